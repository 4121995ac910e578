package notify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/notify"
)

// A message of a task is posted, signed, by a governed call.
func ExampleWebhook_Channel() {
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		verifier, _ := webhooks.NewWebhook(secret)
		var m notify.Message
		fmt.Println(verifier.Verify(body, q.Header), json.Unmarshal(body, &m), m.Channel, m.Text, m.ID == q.Header.Get("webhook-id"))
	}))
	defer receiver.Close()
	hook, err := notify.NewWebhook(notify.WebhookConfig{URL: receiver.URL, Secret: secret})
	if err != nil {
		panic(err)
	}
	defer hook.CloseIdleConnections()
	engine, err := delta.New(delta.Config{Channels: map[string]delta.Channel{"ops": hook.Channel()}})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer engine.Close(ctx)
	agent := delta.NewAgent("desk").Grant(delta.Communicate().MustBuild()).MustBuild()
	task, err := engine.Start(ctx, delta.Goal{Agent: agent, Text: "keep ops informed", Channels: []string{"ops"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(task.Communicate(ctx, "ops", "the provider is down").MustGet().Code)
	// Output:
	// <nil> <nil> ops the provider is down true
	// OK
}

// What surely was not taken failed; what may have been is unknown and not repeated, unless receivers drop what they have seen.
func TestWebhook_ChannelSaysWhatItKnows(t *testing.T) {
	for _, c := range []struct {
		name, reason string
		answer       int // 0: none, the connection is cut; -1: nobody listens
		want         action.Code
	}{
		{"taken", "2xx", 202, action.OK},
		{"refused", "the receiver says that it does not take it", 403, action.Failed},
		{"elsewhere", "redirects are not followed", 307, action.Failed},
		{"busy", "it takes nothing now", 429, action.Failed},
		{"down", "it says so", 503, action.Failed},
		{"broken", "it may have been taken before that", 500, action.StartedUnknown},
		{"cut", "nobody knows", 0, action.StartedUnknown},
		{"nobody", "there was no connection to send it over", -1, action.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex
			ids := map[string]int{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				mu.Lock()
				ids[q.Header.Get("webhook-id")]++
				mu.Unlock()
				if c.answer == 0 {
					panic(http.ErrAbortHandler)
				}
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(c.answer)
			}))
			defer server.Close()
			h := hook(t, server.URL)
			defer h.CloseIdleConnections()
			if c.answer < 0 {
				server.Close()
			}
			e, err := delta.New(delta.Config{Channels: map[string]delta.Channel{"ops": h.Channel()}})
			require.NoError(t, err)
			defer e.Close(context.Background())
			once, err := e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("once").Grant(delta.Communicate().MustBuild()).MustBuild(), Channels: []string{"ops"}})
			require.NoError(t, err)
			assert.Equal(t, c.want, once.Communicate(t.Context(), "ops", "hello").MustGet().Code, c.reason)

			again := delta.Communicate().Effect(action.Idempotent).Retry(1).MustBuild()
			safe, err := e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("safe").Grant(again).MustBuild(), Channels: []string{"ops"}})
			require.NoError(t, err)
			out := safe.Communicate(t.Context(), "ops", "hello").MustGet()
			assert.Equal(t, c.want, out.Code, c.reason)
			mu.Lock()
			defer mu.Unlock()
			if c.answer >= 300 || c.answer == 0 {
				assert.GreaterOrEqual(t, ids[out.Intent], 2, "tried again under the same id")
			}
		})
	}
}

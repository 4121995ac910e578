package chattest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/planner/chat"
)

// Key is the key that a model of the suite is to be opened with.
const Key = "sk-test-0123456789abcdef"

// Open opens a model at a server: with Key, and with that many retries of which none waits longer than two seconds.
type Open func(t *testing.T, url string, retries int) chat.Model

// Run is what a [chat.Model] has to pass: what it makes of well-formed replies, and of everything that goes wrong on a wire.
func Run(t *testing.T, open Open) {
	s := suite{open}
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{
		{"replies arrive as they were sent", s.replies},
		{"prompts are what a provider takes", s.prompts},
		{"the same prompt is the same bytes", s.stable},
		{"a stream that is cut anywhere is ErrCut", s.cut},
		{"an error inside a stream is ErrCut", s.failing},
		{"429 is retried after what Retry-After says", s.retryAfter},
		{"500 is retried so often and no more", s.bounded},
		{"a wait that is too long is not waited", s.tooPatient},
		{"what cannot be retried is said once, without the key", s.refused},
		{"a prompt that is too long is ErrTooLong", s.tooLong},
		{"a slow stream ends with its context", s.cancelled},
		{"a server that is away is an error and no ErrCut", s.away},
	} {
		t.Run(c.name, c.test)
	}
}

type suite struct{ open Open }

func hello() chat.Prompt {
	return chat.Prompt{System: []string{"Be brief.", "Your goal: x"}, MaxOutput: 100, Messages: []chat.Message{{Text: "Begin."}}, Tools: []chat.Tool{
		{Name: "read", Description: "Read", Schema: []byte(`{"type":"object","properties":{"b":{"type":"integer"},"a":{"enum":["x"]}},"required":["b"],"additionalProperties":false}`)},
		{Name: "finish", Schema: []byte(`{"type":"object"}`)},
	}}
}

func (s suite) replies(t *testing.T) {
	calls := []Call{{"c1", "read", `{"b":12345678901234567890,"b":1}`}, {"c2", "read", `{"b": "ü\ud83d`}, {"c2", "finish", `{}`}, {"c4", "read", ""}}
	var want []chat.ToolCall
	for _, c := range calls {
		want = append(want, chat.ToolCall(c))
	}
	usage := &Usage{Input: 70, CachedRead: 30, Output: 12}
	known := chat.Usage{Known: true, Input: 70, CachedRead: 30, Output: 12}
	tests := []struct {
		name string
		r    Reply
		want chat.Reply
	}{
		{"text", Reply{Text: "Grüße from the model\n", Usage: usage}, chat.Reply{Text: "Grüße from the model\n", Usage: known}},
		{"calls in parallel", Reply{Text: "so", Calls: calls, Usage: usage}, chat.Reply{Text: "so", Calls: want, Usage: known}},
		{"what nobody documented", Reply{Text: "so", Calls: calls, Usage: usage, Unknown: true}, chat.Reply{Text: "so", Calls: want, Usage: known}},
		{"no usage", Reply{Text: "so"}, chat.Reply{Text: "so"}},
		{"empty", Reply{Usage: usage}, chat.Reply{Usage: known}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := New(t, tt.r)
			got, err := s.open(t, server.URL, 0).Ask(t.Context(), hello())
			require.NoError(t, err, server.Refused())
			assert.Equal(t, tt.want, got)
		})
	}
	t.Run("a refusal", func(t *testing.T) {
		got, err := s.open(t, New(t, Reply{Refusal: "I can't help with that."}).URL, 0).Ask(t.Context(), hello())
		require.NoError(t, err)
		assert.True(t, got.Stop == chat.Refused || got.Refusal != "")
		assert.Contains(t, got.Text+got.Refusal, "I can't help with that.")
	})
	t.Run("at its greatest length", func(t *testing.T) {
		for _, stop := range []string{"length", "max_tokens"} { // each wire has one of them
			got, err := s.open(t, New(t, Reply{Text: "and then", Stop: stop}).URL, 0).Ask(t.Context(), hello())
			require.NoError(t, err)
			if got.Stop == chat.Length {
				return
			}
		}
		t.Error("neither was understood")
	})
}

// long is a prompt with a conversation behind it, and an image.
func long() chat.Prompt {
	p := hello()
	p.Messages[0].Media = []chat.Media{{ID: "a", Type: "image/png", Data: []byte("\x89PNG\r\n")}}
	call := func(id string) chat.ToolCall { return chat.ToolCall{ID: id, Name: "read", Arguments: `{"b":1}`} }
	for i := range 3 {
		a, b := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
		p.Messages = append(p.Messages,
			chat.Message{Assistant: true, Text: strings.Repeat("thinking", i%2), Calls: []chat.ToolCall{call(a), call(b)}},
			chat.Message{Results: []chat.ToolResult{{ID: a, Text: "OK"}, {ID: b, Text: "FAILED", Failed: true}}, Text: "Go on."})
	}
	return p
}

func (s suite) prompts(t *testing.T) {
	server := New(t, Reply{Text: "ok"})
	_, err := s.open(t, server.URL, 0).Ask(t.Context(), long())
	require.NoError(t, err)
	require.Empty(t, server.Refused())
	got := server.Requests()[0]
	header := got.Header.Get("Authorization") + got.Header.Get("X-Api-Key")
	assert.Contains(t, header, Key)
	assert.NotContains(t, string(got.Raw), Key)
	for _, text := range []string{"Be brief.", "Your goal: x", "Begin.", "Go on.", "FAILED", `"additionalProperties":false`, "iVBORw"} {
		assert.Contains(t, string(got.Raw), text)
	}
}

func (s suite) stable(t *testing.T) {
	server := Serve(t, func(int, Request) Reply { return Reply{Text: "ok"} })
	m := s.open(t, server.URL, 0)
	for range 8 {
		_, err := m.Ask(t.Context(), long())
		require.NoError(t, err)
	}
	got := server.Requests()
	for _, again := range got[1:] {
		if !bytes.Equal(got[0].Raw, again.Raw) {
			t.Errorf("no prompt cache holds over a request that changes:\n%s\n%s", got[0].Raw, again.Raw)
		}
	}
}

func (s suite) cut(t *testing.T) {
	whole := Reply{Text: "a few words", Calls: []Call{{"c", "read", `{"b":1}`}}, Usage: &Usage{Input: 5, Output: 5}}
	for after := 1; ; after++ {
		r := whole
		r.CutAfter = after
		got, err := s.open(t, New(t, r).URL, 0).Ask(t.Context(), hello())
		if err == nil { // the cut came after the last event
			assert.Greater(t, after, 6)
			assert.Len(t, got.Calls, 1)
			return
		}
		require.ErrorIs(t, err, chat.ErrCut, "after %d events", after)
		require.Less(t, after, 50)
	}
}

func (s suite) failing(t *testing.T) {
	_, err := s.open(t, New(t, Reply{Text: "so", Failing: true}).URL, 0).Ask(t.Context(), hello())
	require.ErrorIs(t, err, chat.ErrCut)
}

func (s suite) retryAfter(t *testing.T) {
	server := New(t, Reply{Status: 429, Header: http.Header{"Retry-After": {"1"}}}, Reply{Text: "ok"})
	began := time.Now()
	got, err := s.open(t, server.URL, 1).Ask(t.Context(), hello())
	require.NoError(t, err)
	assert.Equal(t, "ok", got.Text)
	assert.GreaterOrEqual(t, time.Since(began), time.Second)
}

// soon is a header that asks for a short wait; both libraries know it.
var soon = http.Header{"Retry-After-Ms": {"5"}}

func (s suite) bounded(t *testing.T) {
	for _, retries := range []int{0, 2} {
		server := Serve(t, func(int, Request) Reply { return Reply{Status: 500, Header: soon} })
		_, err := s.open(t, server.URL, retries).Ask(t.Context(), hello())
		require.ErrorContains(t, err, "500")
		assert.NotErrorIs(t, err, chat.ErrCut, "nothing had been answered")
		assert.Len(t, server.Requests(), retries+1)
	}
	server := New(t, Reply{Status: 529, Header: soon}, Reply{Status: 503, Header: soon}, Reply{Text: "ok"})
	_, err := s.open(t, server.URL, 2).Ask(t.Context(), hello())
	assert.NoError(t, err)
}

func (s suite) tooPatient(t *testing.T) {
	server := New(t, Reply{Status: 429, Header: http.Header{"Retry-After": {"3600"}}})
	began := time.Now()
	_, err := s.open(t, server.URL, 2).Ask(t.Context(), hello())
	require.ErrorContains(t, err, "429")
	assert.Less(t, time.Since(began), 30*time.Second)
}

func (s suite) refused(t *testing.T) {
	server := New(t, Reply{Status: 401, Message: "Incorrect API key provided: " + Key})
	_, err := s.open(t, server.URL, 2).Ask(t.Context(), hello())
	require.ErrorContains(t, err, "401")
	for e := err; e != nil; e = errors.Unwrap(e) {
		text := fmt.Sprintf("%v %+v %#v", e, e, e)
		assert.Contains(t, text, "Incorrect API key provided: ***")
		assert.NotContains(t, text, Key)
	}
	moved := httptest.NewServer(http.RedirectHandler(server.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	_, err = s.open(t, moved.URL, 0).Ask(t.Context(), hello())
	require.Error(t, err)
	assert.Len(t, server.Requests(), 1, "a key is sent to nobody else")
}

func (s suite) tooLong(t *testing.T) {
	_, err := s.open(t, New(t, Reply{TooLong: true}).URL, 2).Ask(t.Context(), hello())
	require.ErrorIs(t, err, chat.ErrTooLong)
}

func (s suite) cancelled(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	const pause = 2 * time.Minute
	server := Serve(t, func(int, Request) Reply {
		time.AfterFunc(100*time.Millisecond, func() { cancel(enough) }) // as a rule after the first event
		return Reply{Text: "a slow word", Pause: pause}
	})
	began := time.Now()
	_, err := s.open(t, server.URL, 2).Ask(ctx, hello())
	require.ErrorIs(t, err, enough)
	assert.Less(t, time.Since(began), pause, "it does not wait for the next event")

	short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	_, err = s.open(t, New(t, Reply{Status: 503, Header: http.Header{"Retry-After": {"2"}}}).URL, 2).Ask(short, hello())
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func (s suite) away(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, err := s.open(t, gone.URL, 0).Ask(t.Context(), hello())
	require.Error(t, err)
	assert.NotErrorIs(t, err, chat.ErrCut)
}

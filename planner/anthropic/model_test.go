package anthropic

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/planner/chat"
	"github.com/seed-ab2cfece/delta-agents/planner/chat/chattest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client makes a client whose connections end with the test.
func client(t *testing.T) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func open(t *testing.T, url string, retries int) chat.Model {
	if retries == 0 {
		retries = -1
	}
	m, err := New(Options{BaseURL: url, Key: chattest.Key, Model: "test-model", Retries: retries, MaxWait: 2 * time.Second, Client: client(t)})
	require.NoError(t, err)
	return m
}

func TestModel(t *testing.T) { chattest.Run(t, open) }

func TestNewSaysWhatIsMissing(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_MODEL"} {
		t.Setenv(name, "")
	}
	tests := []struct {
		name, want string
		o          Options
	}{
		{"no model", "set ANTHROPIC_MODEL", Options{Key: "k"}},
		{"no key", "set ANTHROPIC_API_KEY", Options{Model: "m"}},
		{"no URL", "want one such as", Options{Model: "m", BaseURL: "localhost:8000"}},
		{"a password in the URL", "put the key into", Options{Model: "m", BaseURL: "http://u:secret@h"}},
		{"a line break in the key", "line break", Options{Model: "m", Key: "k\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.o)
			assert.ErrorContains(t, err, tt.want)
			assert.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestTheEnvironmentIsEnough(t *testing.T) {
	server := chattest.New(t, chattest.Reply{Text: "ok", Usage: &chattest.Usage{Input: 3, CachedRead: 20, CachedWrite: 7, Output: 5}})
	t.Setenv("ANTHROPIC_BASE_URL", server.URL+"/v1/")
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("ANTHROPIC_MODEL", "local")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "not-ours")
	m, err := New(Options{Client: client(t)})
	require.NoError(t, err)
	got, err := m.Ask(t.Context(), chat.Prompt{Messages: []chat.Message{{Text: "Hi"}}, MaxOutput: 50})
	require.NoError(t, err)
	assert.Equal(t, chat.Usage{Known: true, Input: 3, CachedRead: 20, CachedWrite: 7, Output: 5}, got.Usage)
	sent := server.Requests()[0]
	assert.Equal(t, "/v1/messages", sent.Path)
	assert.Empty(t, sent.Header.Get("Authorization"), "nothing else is read from the environment")
}

// What the next request begins with again is marked for the cache, in no more than the four places that are allowed.
func TestPromptsAreMarkedForTheCache(t *testing.T) {
	server := chattest.New(t, chattest.Reply{Text: "ok"})
	call := []chat.ToolCall{{ID: "a", Name: "read", Arguments: "{}"}}
	_, err := open(t, server.URL, 0).Ask(t.Context(), chat.Prompt{
		System: []string{"s1", "s2"}, MaxOutput: 50, Tools: []chat.Tool{{Name: "a", Schema: []byte(`{"type":"object"}`)}, {Name: "b", Schema: []byte(`{"type":"object"}`)}},
		Messages: []chat.Message{{Text: "1"}, {Assistant: true, Calls: call}, {Results: []chat.ToolResult{{ID: "a", Text: "ok"}}, Text: "2"}},
	})
	require.NoError(t, err)
	body := server.Requests()[0].Body
	marked := func(v any) bool { return v.(map[string]any)["cache_control"] != nil }
	last := func(v any) any { l := v.([]any); return l[len(l)-1] }
	assert.True(t, marked(last(body["tools"])))
	assert.True(t, marked(last(body["system"])))
	messages := body["messages"].([]any)
	assert.True(t, marked(last(messages[0].(map[string]any)["content"])))
	assert.True(t, marked(last(messages[2].(map[string]any)["content"])))
	assert.False(t, marked(body["tools"].([]any)[0]))
}

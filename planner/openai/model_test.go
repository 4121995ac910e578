package openai

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/planner/chat"
	"github.com/seed-ab2cfece/delta-agents/planner/chat/chattest"
)

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
	m, err := New(Options{BaseURL: url + "/v1", Key: chattest.Key, Model: "test-model", Retries: retries, MaxWait: 2 * time.Second, Client: client(t)})
	require.NoError(t, err)
	return m
}

func TestModel(t *testing.T) { chattest.Run(t, open) }

func TestNewSaysWhatIsMissing(t *testing.T) {
	for _, name := range []string{"OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"} {
		t.Setenv(name, "")
	}
	tests := []struct {
		name, want string
		o          Options
	}{
		{"no model", "set OPENAI_MODEL", Options{Key: "k"}},
		{"no key", "set OPENAI_API_KEY", Options{Model: "m"}},
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
	server := chattest.New(t, chattest.Reply{Text: "ok"})
	t.Setenv("OPENAI_BASE_URL", server.URL+"/v1/")
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_MODEL", "local")
	t.Setenv("OPENAI_ORG_ID", "not-ours")
	m, err := New(Options{Client: client(t)})
	require.NoError(t, err)
	assert.Equal(t, "local at "+server.URL+"/v1/", m.String())
	_, err = m.Ask(t.Context(), chat.Prompt{Messages: []chat.Message{{Text: "Hi"}}, MaxOutput: 50})
	require.NoError(t, err)
	got := server.Requests()[0]
	assert.Equal(t, "/v1/chat/completions", got.Path)
	assert.Equal(t, "local", got.Body["model"])
	assert.Equal(t, 50.0, got.Body["max_tokens"], "what every server knows")
	assert.Empty(t, got.Header.Get("OpenAI-Organization"), "nothing else is read from the environment")
}

func TestCallsOfServersThatCountNone(t *testing.T) {
	var r reader
	for _, p := range []string{
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"x","arguments":"}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"y","arguments":"{}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}`,
	} {
		require.NoError(t, r.take(chunk(t, p)))
	}
	got := r.reply()
	assert.Equal(t, []chat.ToolCall{{ID: "a", Name: "x", Arguments: "{}"}, {ID: "b", Name: "y", Arguments: "{}"}}, got.Calls)
	assert.Equal(t, chat.Refused, got.Stop)
}

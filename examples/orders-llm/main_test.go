package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/planner/chat/chattest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// work is a model that charges an order, wrongly at first, in either wire's words.
func work(t *testing.T) *chattest.Server {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	used := &chattest.Usage{Input: 500, Output: 20}
	call := func(id, name, more string) chattest.Call {
		return chattest.Call{ID: id, Name: name, Arguments: fmt.Sprintf(`{"orderId":"ORD-1"%s}`, more)}
	}
	return chattest.New(t,
		chattest.Reply{Text: "The customer waits.", Calls: []chattest.Call{call("a", "charge-order", "")}, Usage: used},
		chattest.Reply{Calls: []chattest.Call{call("a", "look-up-order", ""), call("a", "look-up-order", `,"nonsense":1`), {ID: "b", Name: "look-up-order", Arguments: `{"orderId":`}}, Usage: used},
		chattest.Reply{Calls: []chattest.Call{call("c", "confirm-order", "")}, Usage: used},
		chattest.Reply{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After-Ms": {"5"}}},
		chattest.Reply{Calls: []chattest.Call{call("d", "charge-order", ""), call("e", "notify-customer", `,"text":"Thank you."`)}, Usage: used, CutAfter: 4},
		chattest.Reply{Calls: []chattest.Call{call("d", "charge-order", ""), call("e", "notify-customer", `,"text":"Thank you."`)}, Unknown: true},
		chattest.Reply{Calls: []chattest.Call{{ID: "f", Name: "finish", Arguments: `{"verdict":"reached","why":"ORD-1 is charged"}`}}, Usage: used},
	)
}

func clear(t *testing.T) {
	for _, name := range []string{"OPENAI_MODEL", "OPENAI_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_MODEL", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"} {
		t.Setenv(name, "")
	}
}

func TestTheDeskOnEitherWire(t *testing.T) {
	for _, provider := range []string{"OPENAI", "ANTHROPIC"} {
		t.Run(provider, func(t *testing.T) {
			clear(t)
			server := work(t)
			t.Setenv(provider+"_MODEL", "test-model")
			t.Setenv(provider+"_BASE_URL", server.URL+"/v1")
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"--yes", "Charge ORD-1."}, strings.NewReader(""), &out, &errs)
			assert.Zero(t, code, "%s\n%s", out.String(), errs.String())
			assert.Empty(t, server.Refused())
			at := 0
			for _, want := range []string{
				"works on: Charge ORD-1.", "charge-order", "NOT_LEGAL", "look-up-order", "OK", "INPUT_INVALID", "INPUT_MALFORMED",
				"confirm-order", "tokens (estimated)", "charge-order", "OK", "notify-customer", "OK",
				"done: the model says that the goal is reached: ORD-1 is charged", "charges 1, refunds 0, mails 1",
			} {
				i := strings.Index(out.String()[at:], want)
				if !assert.GreaterOrEqual(t, i, 0, "%s, in order, in\n%s", want, out.String()) {
					return
				}
				at += i
			}
		})
	}
}

// Without --yes a person is asked: what is not yes is no, and the reason reaches the model.
func TestAPersonIsAsked(t *testing.T) {
	for _, tt := range []struct{ typed, want string }{{"y\n", ""}, {"yes\n", ""}, {"\n", "no"}, {"no, later\n", "no"}, {"", "error"}} {
		s := &session{out: io.Discard, lines: bufio.NewScanner(strings.NewReader(tt.typed))}
		yes, why, err := s.ask("?")
		assert.Equal(t, tt.want == "", yes, "%q", tt.typed)
		assert.Equal(t, tt.want == "error", err != nil, "%q", tt.typed)
		assert.False(t, yes && why != "y" && why != "yes")
	}
}

func TestItSaysWhatIsMissing(t *testing.T) {
	tests := []struct {
		name, want string
		env        map[string]string
		args       []string
		code       int
	}{
		{"no model", "no model is chosen: set OPENAI_MODEL", nil, nil, 2},
		{"two models", "choose with --provider", map[string]string{"OPENAI_MODEL": "a", "ANTHROPIC_MODEL": "b"}, nil, 2},
		{"another provider", `--provider is "x"`, nil, []string{"--provider", "x"}, 2},
		{"no key", "set ANTHROPIC_API_KEY", map[string]string{"ANTHROPIC_MODEL": "b"}, nil, 2},
		{"an unknown flag", "flag provided but not defined", nil, []string{"--no"}, 2},
		{"help", "Exit codes:", nil, []string{"--help"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clear(t)
			for k, v := range tt.env {
				t.Setenv(k, v)
			}
			var out bytes.Buffer
			assert.Equal(t, tt.code, run(t.Context(), tt.args, strings.NewReader(""), &out, &out))
			assert.Contains(t, out.String(), tt.want)
		})
	}
}

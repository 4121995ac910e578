package chattest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/planner/chat"
	"github.com/seed-ab2cfece/delta-agents/planner/chat/chattest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain is a model over chat completions without a library: what proves that the server and the suite agree.
type plain struct {
	url     string
	retries int
	client  *http.Client
}

type object = map[string]any

func (p plain) body(in chat.Prompt) []byte {
	messages := []any{object{"role": "system", "content": strings.Join(in.System, "\n")}}
	for _, m := range in.Messages {
		if m.Assistant {
			var calls []any
			for _, c := range m.Calls {
				calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}})
			}
			messages = append(messages, object{"role": "assistant", "content": m.Text, "tool_calls": calls})
			continue
		}
		for _, r := range m.Results {
			messages = append(messages, object{"role": "tool", "tool_call_id": r.ID, "content": r.Text})
		}
		parts := []any{object{"type": "text", "text": m.Text}}
		for _, x := range m.Media {
			parts = append(parts, object{"type": "image_url", "image_url": object{"url": "data:" + x.Type + ";base64," + base64.StdEncoding.EncodeToString(x.Data)}})
		}
		messages = append(messages, object{"role": "user", "content": parts})
	}
	var tools []any
	for _, t := range in.Tools {
		tools = append(tools, object{"type": "function", "function": object{"name": t.Name, "description": t.Description, "parameters": t.Schema}})
	}
	b, err := json.Marshal(object{"model": "m", "stream": true, "stream_options": object{"include_usage": true}, "messages": messages, "tools": tools})
	if err != nil {
		panic(err)
	}
	return b
}

func (p plain) send(ctx context.Context, body []byte) (*http.Response, error) {
	for try := 0; ; try++ {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/v1/chat/completions", bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+chattest.Key)
		res, err := p.client.Do(req)
		if err != nil {
			return nil, chat.Broken("plain", err, chattest.Key, false)
		}
		if res.StatusCode == http.StatusOK {
			return res, nil
		}
		var said struct {
			Error struct{ Code, Message string }
		}
		_ = json.NewDecoder(res.Body).Decode(&said)
		res.Body.Close()
		wait, _ := time.ParseDuration(res.Header.Get("Retry-After-Ms") + "ms")
		if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
			wait = time.Duration(s) * time.Second
		}
		if try >= p.retries || wait > 2*time.Second || res.StatusCode < 500 && res.StatusCode != 429 {
			return nil, chat.Refusal("plain", res.StatusCode, said.Error.Code, said.Error.Message, chattest.Key)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (p plain) Ask(ctx context.Context, in chat.Prompt) (r chat.Reply, err error) {
	res, err := p.send(ctx, p.body(in))
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return r, err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !ok:
		case data == "[DONE]":
			return r, nil
		default:
			if err := take(&r, data); err != nil {
				return r, err
			}
		}
	}
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	return r, chat.Broken("plain", errors.Join(lines.Err(), errors.New("the stream ended")), chattest.Key, true)
}

func take(r *chat.Reply, data string) error {
	var c struct {
		Error   *struct{ Code, Message string }
		Choices []struct {
			Delta struct {
				Content, Refusal string
				ToolCalls        []struct {
					Index    int
					ID       string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			Finish string `json:"finish_reason"`
		}
		Usage *struct {
			In      int64 `json:"prompt_tokens"`
			Out     int64 `json:"completion_tokens"`
			Details struct {
				Cached int64 `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := json.Unmarshal([]byte(data), &c); err != nil {
		return fmt.Errorf("%w: %w", chat.ErrCut, err)
	}
	if c.Error != nil {
		return chat.Refusal("plain", 0, c.Error.Code, c.Error.Message, chattest.Key)
	}
	if u := c.Usage; u != nil {
		r.Usage = chat.Usage{Known: true, Input: u.In - u.Details.Cached, CachedRead: u.Details.Cached, Output: u.Out}
	}
	for _, choice := range c.Choices {
		r.Text += choice.Delta.Content
		r.Refusal += choice.Delta.Refusal
		for _, p := range choice.Delta.ToolCalls {
			for len(r.Calls) <= p.Index {
				r.Calls = append(r.Calls, chat.ToolCall{})
			}
			call := &r.Calls[p.Index]
			call.ID, call.Name, call.Arguments = call.ID+p.ID, call.Name+p.Function.Name, call.Arguments+p.Function.Arguments
		}
		if choice.Finish == "length" {
			r.Stop = chat.Length
		}
	}
	return nil
}

func TestSuite(t *testing.T) {
	chattest.Run(t, func(t *testing.T, url string, retries int) chat.Model {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		t.Cleanup(transport.CloseIdleConnections)
		never := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		return plain{url, retries, &http.Client{Transport: transport, CheckRedirect: never}}
	})
}

// What no provider takes is refused, on either wire, and why is kept.
func TestTheServerIsStrict(t *testing.T) {
	tests := []struct{ name, path, body, want string }{
		{"a call without its answer", "/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"x"},` +
			`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"y"}]}`, "must be followed by tool messages"},
		{"an answer without its call", "/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"tool","tool_call_id":"a","content":"x"}]}`, "answers no call"},
		{"a name", "/v1/chat/completions", `{"model":"m","stream":true,"tools":[{"function":{"name":"a.b","parameters":{"type":"object"}}}]}`, "does not match pattern"},
		{"a root of alternatives", "/v1/messages", `{"model":"m","stream":true,"max_tokens":1,"tools":[{"name":"a","input_schema":{"type":"object","oneOf":[]}}]}`, "oneOf at its top level"},
		{"the assistant first", "/v1/messages", `{"model":"m","stream":true,"max_tokens":1,"messages":[{"role":"assistant","content":"x"}]}`, "first message must use the user role"},
		{"blank text", "/v1/messages", `{"model":"m","stream":true,"max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":" "}]}]}`, "non-whitespace"},
		{"text before a result", "/v1/messages", `{"model":"m","stream":true,"max_tokens":1,"messages":[{"role":"user","content":"x"},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},` +
			`{"role":"user","content":[{"type":"text","text":"y"},{"type":"tool_result","tool_use_id":"a"}]}]}`, "comes after text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := chattest.New(t)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+tt.path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("anthropic-version", "2023-06-01")
			req.Close = true
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			got := server.Refused()
			if res.StatusCode != http.StatusBadRequest || len(got) != 1 || !strings.Contains(got[0], tt.want) {
				t.Errorf("%d %q, want %q", res.StatusCode, got, tt.want)
			}
		})
	}
}

package chattest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// anthropic is the wire of messages.
type anthropic struct{}

func (anthropic) failure(kind, message, _ string) any {
	return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}, "request_id": "req_1"}
}

func (a anthropic) tooLong() any {
	return a.failure("invalid_request_error", "prompt is too long: 210001 tokens > 200000 maximum", "")
}

func (anthropic) events(req Request, r Reply) []event {
	var out []event
	send := func(name string, data map[string]any) {
		data["type"] = name
		if r.Unknown {
			data["x_extra"] = []any{1}
		}
		out = append(out, event{name, data})
	}
	message := map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "content": []any{}, "model": req.Body["model"], "stop_reason": nil, "stop_sequence": nil}
	if u := r.Usage; u != nil {
		message["usage"] = map[string]any{"input_tokens": u.Input, "cache_creation_input_tokens": u.CachedWrite, "cache_read_input_tokens": u.CachedRead, "output_tokens": 1}
	}
	send("message_start", map[string]any{"message": message})
	send("ping", map[string]any{})
	index := 0
	block := func(start map[string]any, deltas ...map[string]any) {
		send("content_block_start", map[string]any{"index": index, "content_block": start})
		for _, d := range deltas {
			send("content_block_delta", map[string]any{"index": index, "delta": d})
		}
		send("content_block_stop", map[string]any{"index": index})
		index++
	}
	if said := r.Text + r.Refusal; said != "" {
		var deltas []map[string]any
		for _, p := range pieces(said) {
			deltas = append(deltas, map[string]any{"type": "text_delta", "text": p})
		}
		block(map[string]any{"type": "text", "text": ""}, deltas...)
	}
	if r.Unknown {
		send("weather_report", map[string]any{"sky": "grey"})
		block(map[string]any{"type": "something_new", "stuff": "x"}, map[string]any{"type": "new_delta", "y": 1})
	}
	if r.Failing {
		return append(out, event{"error", anthropic{}.failure("overloaded_error", "Overloaded", "")})
	}
	for _, c := range r.Calls {
		deltas := []map[string]any{{"type": "input_json_delta", "partial_json": ""}}
		if c.Arguments != "" {
			for _, p := range pieces(c.Arguments) {
				deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": p})
			}
		}
		block(map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}}, deltas...)
	}
	stop := r.Stop
	switch {
	case stop != "":
	case r.Refusal != "":
		stop = "refusal"
	case len(r.Calls) > 0:
		stop = "tool_use"
	default:
		stop = "end_turn"
	}
	last := map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}}
	if r.Usage != nil {
		last["usage"] = map[string]any{"output_tokens": r.Usage.Output}
	}
	send("message_delta", last)
	send("message_stop", map[string]any{})
	return out
}

func (anthropic) check(r Request) error {
	if text(r.Body["model"]) == "" {
		return errors.New("model: field required")
	}
	if n, _ := r.Body["max_tokens"].(float64); n < 1 {
		return errors.New("max_tokens: field required")
	}
	if r.Body["stream"] != true {
		return errors.New("the tests expect a stream")
	}
	if r.Header.Get("anthropic-version") == "" {
		return errors.New("anthropic-version: header is required")
	}
	if n := bytes.Count(r.Raw, []byte(`"cache_control"`)); n > 4 {
		return fmt.Errorf("a maximum of 4 blocks with cache_control may be provided, found %d", n)
	}
	for i, t := range list(r.Body["tools"]) {
		t := object(t)
		if err := checkTool(text(t["name"]), object(t["input_schema"])); err != nil {
			return fmt.Errorf("tools.%d: %w", i, err)
		}
	}
	messages := list(r.Body["messages"])
	if len(messages) == 0 || object(messages[0])["role"] != "user" {
		return errors.New("messages: first message must use the user role")
	}
	open := map[string]bool{}
	for i, m := range messages {
		var err error
		if open, err = checkTurn(object(m), open); err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	if len(open) > 0 {
		return errors.New("tool_use ids were found without tool_result blocks immediately after")
	}
	return nil
}

// checkTurn checks one message; open are the calls of the message before, returned are its own.
func checkTurn(m map[string]any, open map[string]bool) (map[string]bool, error) {
	calls, prose := map[string]bool{}, false
	blocks := list(m["content"])
	if len(blocks) == 0 && text(m["content"]) == "" {
		return nil, errors.New("content must not be empty")
	}
	for j, b := range blocks {
		b := object(b)
		switch b["type"] {
		case "text":
			if prose = true; strings.TrimSpace(text(b["text"])) == "" {
				return nil, fmt.Errorf("content.%d: text content blocks must contain non-whitespace text", j)
			}
		case "tool_result":
			if id := text(b["tool_use_id"]); prose || !open[id] {
				return nil, fmt.Errorf("content.%d: tool_result %q comes after text, or answers no tool_use of the previous message", j, id)
			}
			delete(open, text(b["tool_use_id"]))
		case "tool_use":
			_, isObject := b["input"].(map[string]any)
			if id := text(b["id"]); !toolName.MatchString(id) || calls[id] || !isObject || m["role"] != "assistant" {
				return nil, fmt.Errorf("content.%d: tool_use %v is not acceptable", j, b)
			}
			calls[text(b["id"])] = true
		case "image", "document":
		default:
			return nil, fmt.Errorf("content.%d: unknown type %v", j, b["type"])
		}
	}
	if len(open) > 0 {
		return nil, errors.New("tool_use ids were found without tool_result blocks immediately after")
	}
	return calls, nil
}

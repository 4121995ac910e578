package chattest

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// openAI is the wire of chat completions.
type openAI struct{}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func (openAI) failure(kind, message, code string) any {
	body := map[string]any{"message": message, "type": kind, "param": nil, "code": nil}
	if code != "" {
		body["code"] = code
	}
	return map[string]any{"error": body}
}

func (o openAI) tooLong() any {
	return o.failure("invalid_request_error",
		"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length of the messages.",
		"context_length_exceeded")
}

func (openAI) events(req Request, r Reply) []event {
	var out []event
	chunk := func(choices []any, usage any) {
		c := map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1764460800, "model": req.Body["model"], "choices": choices}
		if usage != nil {
			c["usage"] = usage
		}
		if r.Unknown {
			c["obfuscation"], c["x_timing"] = "Zg7", map[string]any{"queue_ms": 3}
		}
		out = append(out, event{data: c})
	}
	delta := func(d map[string]any, finish any) {
		chunk([]any{map[string]any{"index": 0, "delta": d, "logprobs": nil, "finish_reason": finish}}, nil)
	}
	delta(map[string]any{"role": "assistant", "content": ""}, nil)
	if r.Text != "" {
		for _, p := range pieces(r.Text) {
			delta(map[string]any{"content": p}, nil)
		}
	}
	if r.Refusal != "" {
		for _, p := range pieces(r.Refusal) {
			delta(map[string]any{"refusal": p}, nil)
		}
	}
	if r.Unknown {
		delta(map[string]any{"reasoning_content": "hm", "annotations": []any{}}, nil)
	}
	if r.Failing {
		return append(out, event{data: openAI{}.failure("server_error", "The server had an error", "")})
	}
	for i, c := range r.Calls {
		head := map[string]any{"index": i, "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}}
		if c.ID != "" {
			head["id"] = c.ID
		}
		delta(map[string]any{"tool_calls": []any{head}}, nil)
		for _, p := range pieces(c.Arguments) {
			delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": p}}}}, nil)
		}
	}
	stop := r.Stop
	switch {
	case stop != "":
	case len(r.Calls) > 0:
		stop = "tool_calls"
	default:
		stop = "stop"
	}
	delta(map[string]any{}, stop)
	if u := r.Usage; u != nil && object(req.Body["stream_options"])["include_usage"] == true {
		in := u.Input + u.CachedRead
		chunk([]any{}, map[string]any{
			"prompt_tokens": in, "completion_tokens": u.Output, "total_tokens": in + u.Output,
			"prompt_tokens_details":     map[string]any{"cached_tokens": u.CachedRead, "audio_tokens": 0},
			"completion_tokens_details": map[string]any{"reasoning_tokens": 0},
		})
	}
	return append(out, event{data: "[DONE]"})
}

func (openAI) check(r Request) error {
	if text(r.Body["model"]) == "" {
		return errors.New("you must provide a model parameter")
	}
	if r.Body["stream"] != true {
		return errors.New("the tests expect a stream")
	}
	for i, t := range list(r.Body["tools"]) {
		f := object(object(t)["function"])
		if err := checkTool(text(f["name"]), object(f["parameters"])); err != nil {
			return fmt.Errorf("tools.%d: %w", i, err)
		}
	}
	open := map[string]bool{}
	messages := list(r.Body["messages"])
	if len(messages) == 0 {
		return errors.New("messages: at least one is needed")
	}
	for i, m := range messages {
		m := object(m)
		if m["role"] == "tool" {
			if id := text(m["tool_call_id"]); !open[id] {
				return fmt.Errorf("messages.%d: tool_call_id %q answers no call of the message before", i, id)
			}
			delete(open, text(m["tool_call_id"]))
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("messages.%d: an assistant message with tool_calls must be followed by tool messages for each of them; missing %d", i, len(open))
		}
		calls := list(m["tool_calls"])
		if m["role"] == "assistant" && text(m["content"]) == "" && len(calls) == 0 {
			return fmt.Errorf("messages.%d: content is null", i)
		}
		for _, c := range calls {
			c := object(c)
			f := object(c["function"])
			if !toolName.MatchString(text(f["name"])) || text(c["id"]) == "" || open[text(c["id"])] || !json.Valid([]byte(text(f["arguments"]))) {
				return fmt.Errorf("messages.%d: tool call %v is not acceptable", i, c)
			}
			open[text(c["id"])] = true
		}
	}
	if len(open) > 0 {
		return errors.New("the last tool calls are not answered")
	}
	return nil
}

// checkTool holds what both providers refuse in a tool.
func checkTool(name string, schema map[string]any) error {
	if !toolName.MatchString(name) {
		return fmt.Errorf("name %q: string does not match pattern %s", name, toolName)
	}
	if schema["type"] != "object" {
		return fmt.Errorf("%s: the schema must have type 'object', got %v", name, schema["type"])
	}
	for _, k := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
		if schema[k] != nil {
			return fmt.Errorf("%s: the schema must not have %s at its top level", name, k)
		}
	}
	return nil
}

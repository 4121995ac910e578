package anthropic

import (
	"fmt"

	api "github.com/anthropics/anthropic-sdk-go"

	"github.com/seed-ab2cfece/delta-agents/planner/chat"
)

// reader puts a reply together from the events of a stream. The arguments of a call are kept as they came, so that the
// strict edge sees what the model wrote.
type reader struct {
	got             chat.Reply
	calls           []*chat.ToolCall
	at              map[int64]*chat.ToolCall // by the index of the block
	size            int
	started, closed bool // what was used is known of the prompt, of the reply
	finished        bool
}

func (r *reader) take(e api.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		if u := e.Message.Usage; e.Message.JSON.Usage.Valid() {
			r.started = true
			r.got.Usage = chat.Usage{Input: u.InputTokens, CachedRead: u.CacheReadInputTokens, CachedWrite: u.CacheCreationInputTokens, Output: u.OutputTokens}
		}
	case "content_block_start":
		r.begin(e)
	case "content_block_delta":
		r.add(e)
	case "message_delta":
		r.end(e)
	case "message_stop":
		r.finished = true
	}
	if r.size > chat.MaxReply {
		return fmt.Errorf("anthropic: the reply is longer than %d bytes", chat.MaxReply)
	}
	return nil
}

func (r *reader) begin(e api.MessageStreamEventUnion) {
	switch b := e.ContentBlock; b.Type {
	case "text":
		r.text(b.Text)
	case "tool_use":
		if r.at == nil {
			r.at = map[int64]*chat.ToolCall{}
		}
		c := &chat.ToolCall{ID: b.ID, Name: b.Name}
		r.at[e.Index], r.calls = c, append(r.calls, c)
		r.size += len(b.ID) + len(b.Name)
	}
}

func (r *reader) add(e api.MessageStreamEventUnion) {
	switch e.Delta.Type {
	case "text_delta":
		r.text(e.Delta.Text)
	case "input_json_delta":
		if c := r.at[e.Index]; c != nil {
			c.Arguments += e.Delta.PartialJSON
			r.size += len(e.Delta.PartialJSON)
		}
	}
}

func (r *reader) text(s string) {
	r.got.Text += s
	r.size += len(s)
}

// end takes why the reply stopped, and the usage: counts of the whole message so far, of the prompt only where they are
// repeated.
func (r *reader) end(e api.MessageStreamEventUnion) {
	switch e.Delta.StopReason {
	case "max_tokens", "model_context_window_exceeded":
		r.got.Stop = chat.Length
	case "refusal":
		r.got.Stop = chat.Refused
	}
	if !e.JSON.Usage.Valid() {
		return
	}
	r.closed = true
	u, got := e.Usage, &r.got.Usage
	got.Output = u.OutputTokens
	got.Input = max(got.Input, u.InputTokens)
	got.CachedRead = max(got.CachedRead, u.CacheReadInputTokens)
	got.CachedWrite = max(got.CachedWrite, u.CacheCreationInputTokens)
}

func (r *reader) reply() chat.Reply {
	for _, c := range r.calls {
		r.got.Calls = append(r.got.Calls, *c)
	}
	r.calls = nil
	r.got.Usage.Known = r.started && r.closed
	return r.got
}

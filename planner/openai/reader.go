package openai

import (
	"encoding/json"
	"errors"
	"fmt"

	api "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/seed-ab2cfece/delta-agents/planner/chat"
)

// reader puts a reply together from its chunks.
type reader struct {
	got      chat.Reply
	calls    []*chat.ToolCall
	at       map[int64]*chat.ToolCall // the call that a chunk's index means now
	size     int
	finished bool
}

func (r *reader) take(c api.ChatCompletionChunk) error {
	if c.JSON.Usage.Valid() {
		u, cached := c.Usage, c.Usage.PromptTokensDetails.CachedTokens
		r.got.Usage = chat.Usage{Known: true, Input: u.PromptTokens - cached, CachedRead: cached, Output: u.CompletionTokens}
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // one was asked for
		}
		d := choice.Delta
		r.got.Text += d.Content
		r.got.Refusal += d.Refusal
		r.size += len(d.Content) + len(d.Refusal)
		for _, piece := range d.ToolCalls {
			r.piece(piece)
		}
		switch choice.FinishReason {
		case "":
			continue
		case "length":
			r.got.Stop = chat.Length
		case "content_filter":
			r.got.Stop = chat.Refused
		}
		r.finished = true
	}
	if r.size > chat.MaxReply {
		return fmt.Errorf("openai: the reply is longer than %d bytes", chat.MaxReply)
	}
	return nil
}

// piece adds a part of a call. Calls are told apart by their index, and by their id where a server gives all of them one
// index; some servers repeat the name in every part.
func (r *reader) piece(p api.ChatCompletionChunkChoiceDeltaToolCall) {
	call := r.at[p.Index]
	if call == nil || p.ID != "" && call.ID != "" && p.ID != call.ID {
		if r.at == nil {
			r.at = map[int64]*chat.ToolCall{}
		}
		call = &chat.ToolCall{}
		r.at[p.Index], r.calls = call, append(r.calls, call)
	}
	if call.ID == "" {
		call.ID = p.ID
	}
	if call.Name == "" {
		call.Name = p.Function.Name
	}
	call.Arguments += p.Function.Arguments
	r.size += len(p.ID) + len(p.Function.Name) + len(p.Function.Arguments)
}

func (r *reader) reply() chat.Reply {
	for _, c := range r.calls {
		r.got.Calls = append(r.got.Calls, *c)
	}
	r.calls = nil
	return r.got
}

// failure is what an error event of a stream says.
type failure struct {
	Message string
	Code    string
}

// inStream finds the error that a server sent inside the stream.
func inStream(err error) (failure, bool) {
	var s *ssestream.StreamError
	if !errors.As(err, &s) {
		return failure{}, false
	}
	var body struct {
		Error struct {
			Message string `json:"message"`
			Code    any    `json:"code"` // a text or a number
			Type    string `json:"type"`
		} `json:"error"`
	}
	if json.Unmarshal(s.Event.Data, &body) != nil {
		return failure{Message: s.Message}, true
	}
	code, _ := body.Error.Code.(string)
	if code == "" {
		code = body.Error.Type
	}
	return failure{body.Error.Message, code}, true
}

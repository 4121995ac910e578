package chat

import (
	"context"
	"encoding/json"
	"errors"
)

// Model carries prompts over one provider's wire. It retries what may be retried (429, 5xx, connections that were never
// made) on its own, within the deadline of its context, and must return when the context ends. It keeps nothing between
// calls and may be asked from several goroutines.
type Model interface {
	// Ask sends a prompt and returns the complete reply. An error that wraps [ErrTooLong] or [ErrCut] is handled; any other
	// ends the run. Beside ErrCut the reply is what had arrived. No error may hold a key.
	Ask(ctx context.Context, p Prompt) (Reply, error)
}

// Errors of a Model that a planner knows how to handle.
var (
	// ErrTooLong is wrapped where the prompt does not fit the model's context: the conversation is trimmed and sent again,
	// once.
	ErrTooLong = errors.New("the prompt is longer than the model's context")
	// ErrCut is wrapped where a reply broke off: nothing of it is used, and it is asked for again.
	ErrCut = errors.New("the reply broke off")
)

// Prompt is what a model is sent.
type Prompt struct {
	System    []string  // parts of the system prompt, those that change least first
	Tools     []Tool    // in a stable order
	Messages  []Message // user and assistant in turn, a user's first and last
	MaxOutput int       // tokens of the reply at most
}

// Tool is an action as a model sees it.
type Tool struct {
	Name        string // 1 to 64 letters, digits, '_' and '-'
	Description string
	Schema      json.RawMessage // an object schema without alternatives at its root
}

// Message is one turn. That of a user has the results of all calls of the assistant's turn before, and text.
type Message struct {
	Assistant bool
	Results   []ToolResult // of a user; they come before everything else
	Media     []Media      // of a user; only what the model takes
	Text      string
	Calls     []ToolCall // of an assistant; they come after the text
}

// Media is an image or a sound that a task brings along.
type Media struct {
	ID   string // of the attachment
	Type string // media type, such as image/png
	Data []byte
}

// Taker may be implemented by a Model that takes media.
type Taker interface{ Takes(mediaType string) bool }

// ToolCall is a call as a model made it. In a Reply Arguments is what arrived, byte for byte, be it JSON or not; in a
// Prompt it is a JSON object, and IDs are unique.
type ToolCall struct{ ID, Name, Arguments string }

// ToolResult is what became of a call.
type ToolResult struct {
	ID     string // of the call
	Text   string
	Failed bool
}

// Stop says why a reply ended.
type Stop string

// Why a reply ended. Anything else a provider says is Finished.
const (
	Finished Stop = ""
	Length   Stop = "length"  // at MaxOutput
	Refused  Stop = "refused" // by the model or by its provider's filter
)

// Reply is what a model said.
type Reply struct {
	Text    string
	Refusal string // in the words of the model, where it has any
	Calls   []ToolCall
	Stop    Stop
	Usage   Usage
}

// Usage is what a reply used, in tokens; no token is in two fields.
type Usage struct {
	Known       bool  // the provider said so
	Input       int64 // read anew
	CachedRead  int64
	CachedWrite int64
	Output      int64
}

// Tokens is the sum.
func (u Usage) Tokens() int64 { return u.Input + u.CachedRead + u.CachedWrite + u.Output }

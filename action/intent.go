package action

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Provenance relates a call to the reasoning that led to it. All of it is text from the planner: recorded, never trusted.
type Provenance struct {
	Goal     string `json:"goal,omitempty"`
	Decision string `json:"decision,omitempty"`
	PlanStep string `json:"plan_step,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// IsZero reports whether nothing is known.
func (p Provenance) IsZero() bool { return p == Provenance{} }

// Cut returns p with every text cut to [MaxText].
func (p Provenance) Cut() Provenance {
	return Provenance{Goal: Cut(p.Goal), Decision: Cut(p.Decision), PlanStep: Cut(p.PlanStep), Reason: Cut(p.Reason)}
}

// Document is a JSON value that has passed the strict edge: text in canonical form, and the same value as a tree.
type Document struct {
	text     string
	tree     any
	lazy     *Lazy // instead of tree
	detached bool
}

// NewDocument is for the strict edge (package schema), which vouches that text is canonical and that tree is its value:
// map[string]any, []any, string, json.Number, bool and nil.
func NewDocument(text string, tree any) Document { return Document{text: text, tree: tree} }

// Text returns the canonical form.
func (d Document) Text() string { return d.text }

// Tree returns the value. That of a detached document is a copy of its own at every call; any other must not be changed.
func (d Document) Tree() any {
	switch {
	case d.detached && d.lazy != nil:
		return readCanonical(d.text)
	case d.detached:
		return CopyTree(d.tree)
	case d.lazy != nil:
		return d.lazy.of(d.text)
	}
	return d.tree
}

// Detached returns the same document for code that is not trusted with the engine's own: what is done to its tree reaches
// nobody else. Every document that user code sees is detached.
func (d Document) Detached() Document {
	d.detached = true
	return d
}

// CopyTree returns a deep copy of the value of a document.
func CopyTree(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			out[name] = CopyTree(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = CopyTree(e)
		}
		return out
	}
	return v
}

// IsZero reports whether there is no document; a JSON null is one.
func (d Document) IsZero() bool { return d.text == "" }

// MarshalJSON writes the canonical form.
func (d Document) MarshalJSON() ([]byte, error) {
	if d.text == "" {
		return []byte("null"), nil
	}
	return []byte(d.text), nil
}

// Input is the checked input of a call. That given to user code is detached: its Tree is a copy.
type Input struct{ Document }

// Decode stores the input in v as encoding/json does, numbers in interfaces as json.Number so that no digit is lost.
func (in Input) Decode(v any) error {
	d := json.NewDecoder(strings.NewReader(in.text))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("decode input: %w", err)
	}
	return nil
}

// Output is what an action function made by DefineRaw returns: one JSON value.
type Output json.RawMessage

// MarshalJSON writes the value as it is.
func (o Output) MarshalJSON() ([]byte, error) {
	if len(o) == 0 {
		return nil, errors.New("output is empty: want one JSON value")
	}
	return o, nil
}

// Intent is one proposed call. It exists before any effect.
type Intent struct {
	ID         string
	CallID     string // given by the caller; same id and input returns the recorded outcome
	Within     string // the intent whose function makes the call, "" for none
	Agent      string
	Task       string
	Action     string
	Version    string
	Input      Document // zero where the input did not pass the edge
	Digest     string   // of agent, task, action, version, schema and input; see package approval
	Value      string   // names the input as the function sees it, "" where that is the text: other spellings have the same
	Epoch      uint64   // of the offer that the call was chosen from, 0 for none
	Provenance Provenance
}

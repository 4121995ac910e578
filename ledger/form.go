package ledger

import (
	"encoding/json"
	"strconv"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Form is the text of events that are alike but for what an [Entry] holds: the begins of calls of one action in one task, as
// long as nothing moves what they rest on. The text of all the rest is written once. Its zero value is no form.
type Form struct{ head, whose, what, fence, holds, tells string }

// Entry is what one event of a form has of its own.
type Entry struct {
	At           int64
	Intent, Call string
	Digest       string
	Within       string
	Owner        string
	Input        json.RawMessage // JSON without white space, as the strict edge leaves it
	Provenance   *action.Provenance
	Value        string
}

// FormOf returns the form of events that are like e but for the fields of an [Entry], whatever e holds there. False where
// encoding/json must write them, or where e holds an output or a state, which stand between those fields, or is about a workflow.
func FormOf(e *Event) (f Form, ok bool) {
	if e.V != Version && e.V != 0 || !e.Type.Valid() || !eventsKnown || len(e.Output) > 0 || len(e.State) > 0 || e.Flow != nil {
		return f, false
	}
	w := text{b: []byte{'{'}, vouched: true}
	w.head(e.Type)
	w.b = append(w.b, `,"at":`...)
	f.head = w.cut()
	w.whose(e)
	f.whose = w.cut()
	w.what(e)
	f.what = w.cut()
	w.fence(e)
	f.fence = w.cut()
	w.holds(e)
	f.holds = w.cut()
	w.tells(e)
	f.tells = w.cut() + "}"
	return f, !w.odd
}

// cut returns what was written and leaves nothing.
func (w *text) cut() string {
	s := string(w.b)
	w.b = w.b[:0]
	return s
}

// Append appends the text of an event, as [AppendEvent] writes it, to dst and returns the extended slice. It allocates
// nothing where dst has room.
func (f *Form) Append(dst []byte, e *Entry) []byte {
	w := text{b: append(dst, f.head...), vouched: true}
	w.b = strconv.AppendInt(w.b, e.At, 10)
	w.b = append(w.b, f.whose...)
	w.str("intent", e.Intent)
	w.str("call", e.Call)
	w.b = append(w.b, f.what...)
	w.str("digest", e.Digest)
	w.str("within", e.Within)
	w.b = append(w.b, f.fence...)
	w.str("owner", e.Owner)
	w.b = append(w.b, f.holds...)
	w.raw("input", e.Input)
	if e.Provenance != nil {
		w.provenance(e.Provenance)
	}
	w.str("value", e.Value)
	return append(w.b, f.tells...)
}

package ledger

import (
	"encoding/json"
	"strconv"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Form is the text of events that are alike but for what an [Entry] holds: the begins of calls of one action in one task, as
// long as nothing moves what they rest on. The text of all the rest is written once. Its zero value is no form.
type Form struct {
	text []byte
	ends [5]int // of the text up to the time, the intent, the digest, the owner and the input
}

// Entry is what one event of a form has of its own.
type Entry struct {
	At           int64
	Intent, Call string
	Digest       string
	Sum          *[32]byte // where Digest is "": the bytes that it writes in hex; nil: there is no digest
	Within       string
	Owner        string
	Input        json.RawMessage // JSON without white space, as the strict edge leaves it
	Provenance   *action.Provenance
	Value        string
}

// Set makes f the form of events that are like e but for the fields of an [Entry], whatever e holds there, in the memory
// that f had. False where encoding/json must write them, or where e holds an output or a state, which stand between those
// fields, is about a workflow or holds something sealed: then f is no form. The text of the risk may be known, see [AppendRisk]; "" is not.
func (f *Form) Set(e *Event, risk string) bool {
	w := text{b: append(f.text[:0], '{'), vouched: true, shown: risk}
	w.head(e.Type)
	w.b = append(w.b, `,"at":`...)
	f.ends[0] = len(w.b)
	w.whose(e)
	f.ends[1] = len(w.b)
	w.what(e)
	f.ends[2] = len(w.b)
	w.fence(e)
	f.ends[3] = len(w.b)
	w.holds(e)
	f.ends[4] = len(w.b)
	w.tells(e)
	f.text = append(w.b, '}')
	if w.odd || e.V != Version && e.V != 0 || !e.Type.Valid() || !eventsKnown || len(e.Output) > 0 || len(e.State) > 0 || e.Flow != nil || e.Sealed != "" {
		f.text = f.text[:0]
		return false
	}
	return true
}

// Append appends the text of an event, as [AppendEvent] writes it, to dst and returns the extended slice. It allocates
// nothing where dst has room.
func (f *Form) Append(dst []byte, e *Entry) []byte {
	t, ends := f.text, &f.ends
	w := text{b: append(dst, t[:ends[0]]...), vouched: true}
	w.b = strconv.AppendInt(w.b, e.At, 10)
	if e.Intent == "" && e.Call == "" {
		w.b = append(w.b, t[ends[0]:ends[2]]...)
	} else {
		w.b = append(w.b, t[ends[0]:ends[1]]...)
		w.str("intent", e.Intent)
		w.str("call", e.Call)
		w.b = append(w.b, t[ends[1]:ends[2]]...)
	}
	if e.Sum != nil && e.Digest == "" {
		w.b = append(action.AppendHex(append(w.b, `,"digest":"`...), e.Sum), '"')
	} else {
		w.str("digest", e.Digest)
	}
	w.str("within", e.Within)
	if e.Owner == "" {
		w.b = append(w.b, t[ends[2]:ends[4]]...)
	} else {
		w.b = append(w.b, t[ends[2]:ends[3]]...)
		w.str("owner", e.Owner)
		w.b = append(w.b, t[ends[3]:ends[4]]...)
	}
	w.raw("input", e.Input)
	if e.Provenance != nil {
		w.provenance(e.Provenance)
	}
	w.str("value", e.Value)
	return append(w.b, t[ends[4]:]...)
}

package delta

import (
	"encoding/json"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/schema"
)

// checkReturned passes what a function returned through the strict edge and its schema. room, which may be nil, is for the
// value of the document.
func (d *declaration) checkReturned(r *returned, room *action.Lazy) (action.Document, *action.Failure) {
	if r.raw == nil {
		return d.checkOutput(r.output)
	}
	if d.out == nil {
		if doc, bad := schema.CanonicalIn(room, r.raw, 0); bad == nil { // only what is wrong with it needs words
			return doc, nil
		}
	}
	return d.checkOutput(r.raw)
}

// checkOutput passes what a function returned through the strict edge and its schema.
func (d *declaration) checkOutput(v any) (doc action.Document, f *action.Failure) {
	defer func() {
		if p := recover(); p != nil {
			f = action.Fail(action.OutputInvalid, "the output cannot be written as JSON: its MarshalJSON panicked")
		}
	}()
	raw, err := json.Marshal(v)
	if err != nil {
		return doc, action.Fail(action.OutputInvalid, "the output cannot be written as JSON: %s", action.TextOf(err)).Because(err)
	}
	if d.out != nil {
		return d.out.CheckOutput(raw)
	}
	doc, f = schema.Canonical(raw, 0)
	if f != nil {
		return doc, action.Fail(action.OutputInvalid, "the output is not acceptable JSON: %s", f.Message)
	}
	return doc, nil
}

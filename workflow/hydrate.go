package workflow

import (
	"encoding/json"
)

// Mapping makes a JSON object of what is known: each key is a dotted path in the object, each value where it comes from. The
// single key "." makes the whole document of one source.
//
// Sources are dotted paths, array elements by number:
//
//	input.…                 what the instance was started with
//	steps.NAME.output.…     the artifact of a step that is done
//	steps.NAME.failure.…    of one that failed: code, message
//	intake.…                what a person last gave to the step itself
//	instance                the id of the instance
//	call.input.…            of the call to undo (only in [Undo])
//	call.output.…
//
// Values are taken over byte for byte, white space apart: no number changes.
type Mapping map[string]Source

// Source is where a value comes from: a path, or a constant. Default stands in where the path leads nowhere, which without
// one is a failure of the step.
type Source struct {
	From    string          `json:"from,omitempty"`
	Const   json.RawMessage `json:"const,omitempty"`
	Default json.RawMessage `json:"default,omitempty"`
}

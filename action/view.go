package action

import "encoding/json"

// View is what a hook sees of a call: a copy, so that a hook can observe and nothing else.
type View struct {
	Agent      string
	Task       string
	Intent     string
	CallID     string
	Action     string
	Version    string
	Attempt    int
	Input      json.RawMessage
	Provenance Provenance
	Outcome    *Outcome // nil before the call
}

package action

import "encoding/json"

// Outcome is the typed end of an intent. It is what is recorded: the same call id returns it again.
type Outcome struct {
	Intent   string          `json:"intent"`
	Action   string          `json:"action"`
	Code     Code            `json:"code"`
	Output   json.RawMessage `json:"output,omitempty"`  // only where Code is OK
	Cost     Cost            `json:"cost,omitzero"`     // what was charged
	Overrun  bool            `json:"overrun,omitempty"` // more was charged than had been reserved
	Attempts int             `json:"attempts,omitempty"`
	Failure  *Failure        `json:"failure,omitempty"` // only where Code is not OK
	Recorded bool            `json:"-"`                 // returned from the record, nothing ran now
	// Untrusted says that Output and the words of Failure come from a tool outside the program: they are data for whoever
	// reads them, a planner above all, and never instructions.
	Untrusted bool       `json:"-"`
	Waived    []*Failure `json:"waived,omitempty"` // observe mode: what would have been refused
	// Sealed is the output where it is recorded unreadable, for it holds secrets: Output is then what may be read of it. It is
	// "" in every outcome that a call returns.
	Sealed string `json:"sealed,omitempty"`
}

// OK reports whether the call succeeded. Only an explicit Ok of the function does.
func (o Outcome) OK() bool { return o.Code == OK }

// Err returns the failure as an error, nil where the call succeeded.
func (o Outcome) Err() error {
	if o.OK() {
		return nil
	}
	if o.Failure == nil {
		return Fail(o.Code, "")
	}
	return o.Failure
}

package action

import (
	"encoding/json"
	"slices"
)

// Status says how an action stands for an agent at one moment.
type Status string

// The statuses. A blocked action does not exist for the planner.
const (
	Legal   Status = "legal"   // may run now
	Gated   Status = "gated"   // may run after an approval
	Blocked Status = "blocked" // may not run now
)

// Offered is one action of an offer.
type Offered struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // the input schema, narrowed to what satisfies the prerequisites
	Status      Status          `json:"status"` // Legal or Gated
	Why         string          `json:"why,omitempty"`
	Risk        float64         `json:"risk"` // effective risk, 1 to 5
	Forecast    Cost            `json:"forecast,omitzero"`
	Priced      []string        `json:"priced,omitempty"` // the axes on which its input says what a call costs; nothing is forecast there
	Effect      Effect          `json:"effect"`
}

// Offer is the legal set at one moment.
type Offer struct {
	Epoch    uint64    `json:"epoch"`
	Actions  []Offered `json:"actions"`
	Guidance []string  `json:"guidance,omitempty"`
}

// Clone returns a copy that shares nothing.
func (o Offer) Clone() Offer {
	o.Actions, o.Guidance = slices.Clone(o.Actions), slices.Clone(o.Guidance)
	size := 0
	for i := range o.Actions {
		size += len(o.Actions[i].Schema)
	}
	all := make([]byte, 0, size) // one piece for all schemas; none can grow into the next
	for i := range o.Actions {
		text := &o.Actions[i].Schema
		if *text == nil {
			continue
		}
		from := len(all)
		all = append(all, *text...)
		*text = all[from:len(all):len(all)]
	}
	return o
}

// Find returns the offered action of that name.
func (o Offer) Find(name string) (Offered, bool) {
	for _, a := range o.Actions {
		if a.Name == name {
			return a, true
		}
	}
	return Offered{}, false
}

package explain

import (
	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// Report says how every action of a set stands, in the order of the file.
type Report struct {
	Agent   string   `json:"agent"`
	Goal    string   `json:"goal,omitempty"`
	Done    int64    `json:"done"` // calls made before
	Actions []Action `json:"actions"`
}

// Action says how one action stands.
type Action struct {
	Name     string        `json:"name"`
	Status   action.Status `json:"status"`
	Why      []string      `json:"why"`      // what gates or blocks it, every reason
	Declared int           `json:"declared"` // risk, 1 to 5
	Risk     float64       `json:"risk"`     // effective, 1 to 5
	Path     *Path         `json:"path,omitempty"`
}

// Path is the cheapest sequence of actions that would make an action prerequisite-legal.
type Path struct {
	Steps    []string    `json:"steps"`
	Boundary []string    `json:"boundary,omitempty"` // steps whose output decides how it goes on
	Beyond   []string    `json:"beyond,omitempty"`   // what would follow them
	Cost     action.Cost `json:"cost"`
	Text     string      `json:"text"`
}

func newAction(st delta.Standing) Action {
	a := Action{Name: st.Action, Status: st.Status, Why: st.Reasons, Declared: st.Risk.Declared, Risk: st.Risk.Effective}
	if a.Why == nil {
		a.Why = []string{}
	}
	if len(st.Path.Steps) == 0 {
		return a
	}
	a.Path = &Path{Boundary: st.Path.Boundary, Beyond: st.Path.Beyond, Cost: st.Path.Cost, Text: st.Path.String()}
	for _, s := range st.Path.Steps {
		a.Path.Steps = append(a.Path.Steps, s.Action)
	}
	return a
}

package replay

import (
	"cmp"
	"slices"
)

// Report is what a replay found. Agents are in the order of their names, actions in that of agent and name.
type Report struct {
	Rows    int64    `json:"rows"`
	Agents  []Agent  `json:"agents"`
	Actions []Action `json:"actions"`
	Why     *Why     `json:"why,omitempty"` // where the configuration asks for it
}

// Agent is the trust in one agent at the end.
type Agent struct {
	Name  string  `json:"name"`
	Trust float64 `json:"trust"` // 0 to 1: a deliberately pessimistic bound of its rate of Ok, failures counted twice
	Lower float64 `json:"lower"` // the same bound
	Upper float64 `json:"upper"` // the other end of the same band
	OK    int64   `json:"ok"`
	Err   int64   `json:"err"`
}

// Action is the risk of one tool of one agent at the end.
type Action struct {
	Agent    string  `json:"agent"`
	Name     string  `json:"name"`
	Runs     int64   `json:"runs"`
	OK       int64   `json:"ok"`
	Err      int64   `json:"err"`
	Declared int     `json:"declared"` // 1 to 5
	Level    float64 `json:"level"`    // estimated risk on the scale of declared levels
	P        float64 `json:"p"`        // probability that the next call ends in Err
	Lo       float64 `json:"lo"`       // of the central 90 % of the rate of Err
	Hi       float64 `json:"hi"`
	Gated    int64   `json:"gated"` // calls that the threshold would have held for a person
}

func (r *Report) sort() {
	slices.SortFunc(r.Agents, func(a, b Agent) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Actions, func(a, b Action) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Name, b.Name))
	})
}

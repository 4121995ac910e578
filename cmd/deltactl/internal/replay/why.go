package replay

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/risk"
)

// Why says what the risk of one action rests on at the end. Log-odds of the parts and of the declaration add up to
// LogOdds; with Uncertainty and Held they are those of P.
type Why struct {
	Agent          string  `json:"agent"`
	Action         string  `json:"action"`
	P              float64 `json:"p"`
	Lo             float64 `json:"lo"`
	Hi             float64 `json:"hi"`
	Runs           int64   `json:"runs"`
	Err            int64   `json:"err"`
	Prior          float64 `json:"prior"`    // probability that the declared level stands for
	Declared       float64 `json:"declared"` // log-odds to start from
	Parts          []Part  `json:"parts"`
	LogOdds        float64 `json:"log_odds"`
	Uncertainty    float64 `json:"uncertainty"`      // log-odds that not being sure adds
	Held           float64 `json:"held,omitempty"`   // log-odds held back, so that an estimate does not move against the last outcome
	Change         string  `json:"change,omitempty"` // the last change found in the action: worse, better
	ChangedAt      int64   `json:"changed_at,omitempty"`
	AgentChange    string  `json:"agent_change,omitempty"`
	AgentChangedAt int64   `json:"agent_changed_at,omitempty"`
	text           string
}

// Part is what one part adds to the log-odds of Err.
type Part struct {
	Name   string  `json:"name"` // agent, slope, a tag, action
	Mean   float64 `json:"mean"`
	SD     float64 `json:"sd"`
	Shared bool    `json:"shared"` // with the other actions of the agent
}

// String explains for a person.
func (w *Why) String() string { return w.text }

// find returns the agent and the tool that cfg.Why names. Either may hold a slash, so that every split is tried.
func (r *replay) find() (*agent, string, error) {
	for _, name := range slices.Sorted(maps.Keys(r.agents)) {
		for _, tool := range slices.Sorted(maps.Keys(r.agents[name].tools)) {
			if name+"/"+tool == r.cfg.Why {
				return r.agents[name], tool, nil
			}
		}
	}
	return nil, "", fmt.Errorf("nothing to explain: the recording has no agent and action %q; name them as AGENT/ACTION, as the report does", r.cfg.Why)
}

func (r *replay) why(ctx context.Context) (*Why, error) {
	a, tool, err := r.find()
	if err != nil {
		return nil, err
	}
	w, err := r.engine.Why(ctx, a.made.Name(), a.names.to[tool])
	if err != nil {
		return nil, err
	}
	w.Declaration.Name = a.name + "/" + tool
	e := w.Estimate
	out := &Why{
		Agent: a.name, Action: tool, P: e.P, Lo: e.Lo, Hi: e.Hi, Runs: e.N, Err: e.Errs, Prior: w.Prior, Declared: w.Declared,
		LogOdds: e.Mean, Uncertainty: w.Uncertainty, Held: w.Held, Change: string(e.LastChange), ChangedAt: e.ChangedAt, AgentChange: string(w.AgentChange), AgentChangedAt: w.AgentAt,
		text: w.String(),
	}
	for _, p := range w.Parts() {
		out.Parts = append(out.Parts, part(p))
	}
	return out, nil
}

func part(p risk.Part) Part { return Part{Name: p.Name, Mean: p.Mean, SD: p.SD, Shared: p.Shared} }

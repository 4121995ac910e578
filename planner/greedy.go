package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/statespace"
)

// Greedy works towards one action. Each proposal is one call: of the target where that is offered, else of the cheapest
// action that is, those that run now before those a person has to approve, in the order of the offer where they cost the
// same. It knows only what it is offered, so it may make calls that do not lead to the target; Via keeps it on a path.
//
// A call that succeeded is not made again, and one that failed not more than Tries times. What was refused, or waits
// for a person, is proposed again only once something else has succeeded since. It is done when the target has
// succeeded, and when nothing is left to call.
//
// It sees the latest [delta.HistoryKept] results: a run that is longer may repeat a call.
type Greedy struct {
	// Target names the action to reach.
	Target string
	// Inputs returns the inputs with which an offered action may be called, the best first; none: not now. Nil calls
	// every action with the empty object. It must depend on its arguments alone.
	Inputs func(o action.Offered, r delta.Request) []json.RawMessage
	// Via names the actions that may be called on the way, such as the steps of a [delta.Path]; empty: all.
	Via []string
	// Tries bounds how often a call that fails is made. Default 1.
	Tries int
	// Weigh makes one number of a cost, so that costs can be compared. Nil: [statespace.Weigh].
	Weigh func(action.Cost) float64
}

var _ delta.Planner = Greedy{}

// Given returns inputs for [Greedy] from a map: action to one input in JSON. Actions that it does not name are not
// called.
func Given(inputs map[string]string) func(action.Offered, delta.Request) []json.RawMessage {
	return func(o action.Offered, _ delta.Request) []json.RawMessage {
		in, ok := inputs[o.Name]
		if !ok {
			return nil
		}
		return []json.RawMessage{json.RawMessage(in)}
	}
}

// Plan returns the next call, or that there is none.
func (g Greedy) Plan(_ context.Context, r delta.Request) (delta.Proposal, error) {
	if g.Target == "" {
		return delta.Proposal{}, fmt.Errorf("greedy planner: no target is named")
	}
	for _, h := range r.History {
		if h.Call.Action == g.Target && h.Outcome.OK() {
			return delta.Proposal{Done: true, Why: g.Target + " has succeeded"}, nil
		}
	}
	for _, o := range g.order(r.Offer.Actions) {
		for _, in := range g.inputs(o, r) {
			c := delta.Call{Action: o.Name, Input: in, Epoch: r.Offer.Epoch}
			if g.worth(c, r.History) {
				return delta.Proposal{Calls: []delta.Call{c}}, nil
			}
		}
	}
	return delta.Proposal{Done: true, Why: g.stuck(r)}, nil
}

// order sorts what may be called, the best first.
func (g Greedy) order(offered []action.Offered) []action.Offered {
	weigh := g.Weigh
	if weigh == nil {
		weigh = statespace.Weigh
	}
	out := slices.DeleteFunc(slices.Clone(offered), func(o action.Offered) bool {
		return o.Name != g.Target && len(g.Via) > 0 && !slices.Contains(g.Via, o.Name)
	})
	slices.SortStableFunc(out, func(a, b action.Offered) int {
		switch {
		case a.Name == g.Target || b.Name == g.Target:
			return before(a.Name == g.Target, b.Name == g.Target)
		case a.Status != b.Status:
			return before(a.Status == action.Legal, b.Status == action.Legal)
		}
		x, y := weigh(a.Forecast), weigh(b.Forecast)
		return before(x < y, y < x)
	})
	return out
}

func before(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func (g Greedy) inputs(o action.Offered, r delta.Request) []json.RawMessage {
	if g.Inputs == nil {
		return []json.RawMessage{json.RawMessage("{}")}
	}
	return g.Inputs(o, r)
}

// worth reports whether a call may bring anything, after what became of it before.
func (g Greedy) worth(c delta.Call, history []delta.Result) bool {
	failed, waits := 0, false
	for _, h := range history {
		same := h.Call.Action == c.Action && string(h.Call.Input) == string(c.Input)
		switch {
		case h.Outcome.OK() && same:
			return false
		case h.Outcome.OK():
			waits = false
		case same && h.Outcome.Code.Info().Executed == action.No:
			waits = true
		case same:
			failed++
		}
	}
	return !waits && failed < max(1, g.Tries)
}

// stuck says why nothing is left to call.
func (g Greedy) stuck(r delta.Request) string {
	if len(r.Last) > 0 && !r.Last[0].Outcome.OK() {
		last := r.Last[0]
		return fmt.Sprintf("nothing is left to call towards %s; the last call, of %s, ended as %s", g.Target, last.Call.Action, last.Outcome.Code)
	}
	return fmt.Sprintf("nothing is left to call towards %s", g.Target)
}

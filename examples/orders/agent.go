package main

import (
	"context"
	"encoding/json"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/examples/orders/desk"
)

// step is one thing the agent means to do.
type step struct {
	why    string // its reason, recorded with the call and not trusted
	action string
	input  func(last action.Outcome) any // nil input: after what came before there is nothing to do
	id     string                        // the call's id, where it matters that a repetition is recognised
	stick  int                           // how often it tries again after a failure
}

// script is the agent: a planner that wants what its steps say, one after the other. A model would take its place and
// see the same: the offer, and what became of its calls.
type script struct {
	steps []step
	next  int
	tries int
	hear  func(delta.Result) // told every result as it arrives
}

// EstimatePlan says what a proposal will cost: thinking is spending, too.
func (s *script) EstimatePlan() action.Cost { return action.Cost{Tokens: 150} }

// Plan proposes the next step, or the last one again where it failed and is worth another try.
func (s *script) Plan(_ context.Context, r delta.Request) (delta.Proposal, error) {
	var last action.Outcome
	for _, l := range r.Last {
		s.hear(l)
		last = l.Outcome
	}
	p := delta.Proposal{Used: action.Cost{Tokens: 120}}
	if last.Code == action.Failed && s.tries < s.steps[s.next-1].stick {
		s.tries++
		return s.propose(p, s.steps[s.next-1], last)
	}
	s.tries = 0
	for s.next < len(s.steps) {
		s.next++
		if st := s.steps[s.next-1]; st.input(last) != nil {
			return s.propose(p, st, last)
		}
	}
	p.Done, p.Why = true, "that is all"
	return p, nil
}

func (s *script) propose(p delta.Proposal, st step, last action.Outcome) (delta.Proposal, error) {
	raw, err := json.Marshal(st.input(last))
	p.Calls = []delta.Call{{ID: st.id, Action: st.action, Input: raw, Provenance: action.Provenance{Reason: st.why}}}
	return p, err
}

// of is the input of a step about one order.
func of(id string) func(action.Outcome) any {
	return func(action.Outcome) any { return desk.OrderID{ID: id} }
}

// mail is the input of a step that writes to a customer.
func mail(id, text string) func(action.Outcome) any {
	return func(action.Outcome) any { return desk.Mail{ID: id, Text: text} }
}

// excuse writes to a customer why what came before did not work out, in the words of whoever stopped it.
func excuse(id string) func(action.Outcome) any {
	return func(last action.Outcome) any {
		if last.Failure == nil {
			return nil
		}
		reason := last.Failure.Details[action.DetailReason]
		if reason == "" {
			reason = "something went wrong at our side"
		}
		return desk.Mail{ID: id, Text: "Your order is delayed: " + reason}
	}
}

package engine

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// watchful has everything escalate early.
var watchful = Escalate{Failed: 2, Denied: 2, Risky: 2, Asked: 4, Surprise: true, Close: 1000 * lease}

// Whatever is paused, resumed and ended in between, state is the fold of the ledger, and a task is in the list of those that
// wait for a person exactly while it is paused.
func TestI14_EscalationsFold(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := newShift(r)
		s.rules.Escalate = watchful
		mine := append(slices.Clone(steps), (*shift).raise, (*shift).unpause, (*shift).unpause, (*shift).settleIn, (*shift).settleIn, (*shift).settleIn)
		for range 30 {
			rapid.SampledFrom(mine).Draw(r, "step")(s)
			s.checkPaused()
		}
		s.checkFold()
		s.fold()
		s.checkBeliefs()
	})
}

func (s *shift) raise() {
	c := rapid.SampledFrom(action.Concerns()).Draw(s.r, "concern")
	if t := Raise(s.rules, s.look(), c, "why", s.id("e"), s.who()); t != nil {
		s.must(t)
	}
}

func (s *shift) unpause() {
	v := s.look()
	id := "none"
	if v.Task.Paused != nil {
		id = v.Task.Paused.ID
	}
	t, err := Unpause(v, id, rapid.IntRange(0, 9).Draw(s.r, "end") > 0, nil, s.who())
	if id == "none" {
		require.Error(s, err)
		return
	}
	require.NoError(s, err)
	s.must(t)
}

// settleIn ends a call as the shell does: a refusal for the task's sake is followed by an end without an escalation.
func (s *shift) settleIn() {
	x, ok := one(s.r, &s.running)
	if !ok {
		return
	}
	end := s.outcome()
	t := x.SettleIn(s.rules, s.look(), end, s.id("e"), true)
	if r := s.apply(t); !r.OK {
		require.GreaterOrEqual(s, r.Failed, 0)
		s.must(x.SettleIn(s.rules, s.look(), end, s.id("e"), false))
	}
	if end.Code == action.StartedUnknown {
		s.unknown = append(s.unknown, *x.Begun)
	}
}

func (s *shift) checkPaused() {
	q, err := s.store.Queued(s.r.Context(), s.agent.Name, QueueEscalations, txn.Queued{}, false, 10)
	require.NoError(s, err)
	v := s.look()
	require.Equal(s, v.Task.Status == Paused, len(q) == 1)
	require.Equal(s, v.Task.Status == Paused, v.Task.Paused != nil)
}

// Toll is a count: what it counts, and from when on it says that a person should look.
func TestToll(t *testing.T) {
	rules := &Rules{Escalate: Escalate{Failed: 2, Denied: 2, Risky: 2, Asked: 2}}
	cases := []struct {
		name    string
		before  ledger.Row
		code    action.Code
		row     *ledger.Row
		concern action.Concern
		why     string
	}{
		{"a first failure", ledger.Row{}, action.Failed, &ledger.Row{Failed: 1}, "", "one is none"},
		{"a second", ledger.Row{Failed: 1, Denied: 1}, action.Timeout, &ledger.Row{}, action.ConcernFailure, "counted anew from there"},
		{"unknown is no success", ledger.Row{Failed: 1}, action.StartedUnknown, &ledger.Row{}, action.ConcernFailure, "it may have failed"},
		{"interrupted", ledger.Row{Failed: 1}, action.Interrupted, nil, "", "somebody stopped it"},
		{"denied", ledger.Row{Denied: 1}, action.Denied, &ledger.Row{}, action.ConcernPolicy, "the second"},
		{"too risky", ledger.Row{Risky: 1}, action.RiskCeiling, &ledger.Row{}, action.ConcernRisk, "the second"},
		{"nobody to approve", ledger.Row{Failed: 1}, action.NoApprover, &ledger.Row{Failed: 1, Risky: 1}, "", "beside the other counts"},
		{"asked", ledger.Row{Asked: 1}, action.ApprovalRequired, &ledger.Row{}, action.ConcernRisk, "the second"},
		{"other refusals", ledger.Row{Failed: 1}, action.InputInvalid, nil, "", "are counted as violations"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := &View{Snap: txn.NewSnapshot()}
			v.Snap.Task.Cells[cellRow] = txn.Cell{Ver: 1, Val: string(jsonText(c.before))}
			s := Toll(rules, nil, v, c.code, "act", nil)
			assert.Equal(t, c.row, s.Row, c.why)
			assert.Equal(t, c.concern, s.Concern, c.why)
			if c.before != (ledger.Row{}) {
				assert.Equal(t, &ledger.Row{}, Relief(&v.Snap.Task).Row, "an Ok clears it")
			}
		})
	}
	assert.Nil(t, Relief(&txn.NewSnapshot().Task).Row, "nothing to clear, nothing to write")
}

package engine

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Whatever was learned and whatever an input adds: at or above the threshold nothing begins without an approval, above the
// ceiling nothing begins, and the effective risk is never below what was declared, estimated or demanded by a rule.
func TestI05_ThresholdAndCeiling(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := plain()
		s.Threshold = rapid.Float64Range(1, 5).Draw(r, "threshold")
		s.Ceiling = rapid.SampledFrom([]float64{0, 2, 3.5, 5}).Draw(r, "ceiling")
		d := open(r, s)
		for range rapid.IntRange(0, 12).Draw(r, "history") {
			code := rapid.SampledFrom([]action.Code{action.OK, action.Failed}).Draw(r, "end")
			d.learn("confirm", code == action.Failed)
		}
		if rapid.Bool().Draw(r, "fold") {
			d.fold()
		}
		c := d.call("confirm", `{"order":"A"}`)
		c.Rule = rapid.IntRange(0, 5).Draw(r, "rule")
		dec := d.decide(c)
		e := event(d, dec)
		require.NotNil(r, e.Risk)
		floor := max(float64(d.agent.Actions["confirm"].Risk), e.Risk.Score, float64(c.Rule))
		require.GreaterOrEqual(r, e.Risk.Effective, floor)
		require.LessOrEqual(r, e.Risk.Effective, 5.0)
		switch {
		case s.Ceiling > 0 && e.Risk.Effective > s.Ceiling:
			require.Equal(r, action.RiskCeiling, dec.Refusal.Code)
		case e.Risk.Effective >= s.Threshold:
			require.Equal(r, action.ApprovalRequired, dec.Refusal.Code)
		default:
			require.Nil(r, dec.Refusal)
		}
	})
}

// learn adds one outcome of an action, as a settle elsewhere would.
func (d *desk) learn(name string, failed bool) {
	var c changes
	c.learn(&ledger.Event{Learned: &ledger.Observed{Action: name, Err: failed, Declared: d.agent.Actions[name].Risk}})
	d.must(&txn.Txn{Agent: d.agent.Name, Phase: txn.Plain, Clauses: c.list})
}

// event returns what a decision would record last.
func event(d *desk, dec Decision) (e ledger.Event) {
	for _, c := range dec.Txn.Clauses {
		if c.Op == txn.Event {
			var err error
			e, err = ledger.Decode(c.Val)
			require.NoError(d, err)
		}
	}
	return e
}

// An Err that arrives while a begin is on its way gives the call back where it now needs a person or is above the ceiling.
func TestI05_RiskThatRisesOnTheWay(t *testing.T) {
	for _, c := range []struct {
		name      string
		ceiling   float64
		before    int // failures known when it was decided
		folded    bool
		arrive    []bool // outcomes that arrive: true is an Err
		want      bool
		threshold float64
	}{
		{name: "nothing arrived"},
		{name: "an Ok", arrive: []bool{false}},
		{name: "one Err below the threshold", arrive: []bool{true}, threshold: 5},
		{name: "Errs above the threshold", arrive: []bool{true, true, true, true}, want: true},
		{name: "an Err above the ceiling, below the threshold", ceiling: 3.6, threshold: 5, arrive: []bool{true}, want: true},
		{name: "an Err upon known ones", before: 1, arrive: []bool{true}, threshold: 4.5, want: true},
		{name: "an Err upon folded ones", before: 1, folded: true, arrive: []bool{true}, threshold: 4.5, want: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := plain()
			s.Ceiling = c.ceiling
			if c.threshold > 0 {
				s.Threshold = c.threshold
			}
			d := open(t, s)
			for range c.before {
				d.learn("confirm", true)
			}
			if c.folded {
				d.fold()
			}
			call := d.call("confirm", `{"order":"A"}`)
			dec := d.decide(call)
			require.Nil(t, dec.Refusal)
			view := *d.view
			snap := cloned(view.Snap)
			view.Snap = &snap
			for _, failed := range c.arrive {
				d.learn("confirm", failed)
			}
			r := d.must(dec.Txn)
			assert.Equal(t, len(c.arrive) > 0, r.AgentRev != view.Snap.Agent.Rev, "the reply tells that something came")
			call.Now = d.now()
			assert.Equal(t, c.want, Recheck(d.rules, d.agent, d.look(), dec.Begun, call) != nil)
			observing := *d.rules
			observing.Observe = true
			assert.Nil(t, Recheck(&observing, d.agent, d.look(), dec.Begun, call), "observe mode blocks nothing")
		})
	}
}

// An estimate that moves by less than what pins see, outcomes of an action that this worker does not hold, and one that
// cannot be read.
func TestFoldOddities(t *testing.T) {
	d := open(t, plain())
	var c changes
	c.learn(&ledger.Event{Learned: &ledger.Observed{Action: "elsewhere", Err: true, Declared: 4}})
	c.learn(&ledger.Event{Learned: &ledger.Observed{Action: "older", Err: true}})
	d.must(&txn.Txn{Agent: d.agent.Name, Phase: txn.Plain, Clauses: c.list})
	d.fold()
	(&shift{desk: d}).checkBeliefs()
	assert.Contains(t, d.snap.Agent.Cells, cellBelief+"elsewhere")
	d.must(&txn.Txn{Agent: d.agent.Name, Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Pend, Scope: txn.Agent, Val: "{"}}})
	_, err := Fold(d.rules, d.agent, d.snap, d.now())
	assert.ErrorContains(t, err, "pending outcome 3")
	_, err = Look(d.rules, d.agent, d.snap, nil)
	assert.Error(t, err, "nothing is decided on beliefs that cannot be read")
}

// Observe mode waives gates 4 to 8, records what it waived, and nothing else.
func TestObserveMode(t *testing.T) {
	s := plain()
	s.Limit.Tokens, s.Ceiling, s.Approvers = action.Max(1), 2, nil
	d := open(t, s)
	d.rules.Observe = true
	d.agent.Grants = policy.Grants{}
	d.agent.Actions["charge"].Approve = true
	dec := d.propose(d.call("charge", `{"order":"A"}`))
	require.NotNil(t, dec.Begun)
	var waived []action.Code
	for _, f := range dec.Begun.Waived {
		waived = append(waived, f.Code)
	}
	assert.Equal(t, []action.Code{action.NotLegal, action.Denied, action.RiskCeiling, action.BudgetExhausted, action.NoApprover}, waived)
	assert.Equal(t, action.InputInvalid, d.code("charge", `{}`))
	assert.Equal(t, action.ActionUnknown, d.code("nothing", `{}`))
	d.fail("list", `{}`, action.StartedUnknown)
	assert.Equal(t, action.NotLegal, d.code("list", `{}`), "an unknown outcome is not repeated in any mode")
	x, err := CancelTask(d.look(), d.who())
	require.NoError(t, err)
	d.must(x)
	assert.Equal(t, action.Cancelled, d.code("confirm", `{"order":"A"}`))
}

// Deny is the default: no grant, a policy that fails, forbids or says nothing all deny; a forbid beats a grant.
func TestI04_DenyByDefault(t *testing.T) {
	for _, c := range []struct {
		name   string
		grant  bool
		policy policy.Policy
		want   action.Code
	}{
		{"no grant, no policy", false, nil, action.Denied},
		{"a grant", true, nil, action.OK},
		{"a policy permits", false, fixed(policy.Decision{Permit: true}, nil), action.OK},
		{"a policy says nothing", false, fixed(policy.Decision{}, nil), action.Denied},
		{"a policy says nothing to a grant", true, fixed(policy.Decision{}, nil), action.OK},
		{"a policy forbids what is granted", true, fixed(policy.Decision{Forbid: true}, nil), action.Denied},
		{"a policy fails over what is granted", true, fixed(policy.Decision{Permit: true}, errors.New("no")), action.Denied},
		{"a policy panics", true, policy.Func(func(policy.Request) (policy.Decision, error) { panic("no") }), action.Denied},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t, plain())
			d.rules.Policy = c.policy
			if !c.grant {
				d.agent.Grants = policy.Grants{}
			}
			dec := d.propose(d.call("list", `{}`))
			if c.want == action.OK {
				require.Nil(t, dec.Refusal)
				return
			}
			require.NotNil(t, dec.Refusal)
			assert.Equal(t, c.want, dec.Refusal.Code)
			assert.Equal(t, int64(1), d.look().Violations())
		})
	}
}

func fixed(d policy.Decision, err error) policy.Policy {
	return policy.Func(func(policy.Request) (policy.Decision, error) { return d, err })
}

package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// A decision travels while others write. Where the store still accepts it, it must be what would be decided now: a refusal
// is true at its place in the ledger, and nothing begins on grounds that are gone. Beliefs are the one thing that is not
// pinned exactly; what they may lift is for Recheck.
func TestDecisionsAreTrueAtTheirPlace(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { decisionsAreTrueAtTheirPlace(r, 20) })
}

func decisionsAreTrueAtTheirPlace(r *rapid.T, n int) {
	s := newShift(r)
	for range n {
		s.step()
	}
	name, input := s.draw()
	c := s.desk.call(name, input)
	c.Intent.CallID = rapid.SampledFrom([]string{"", "c1"}).Draw(r, "id")
	early := s.decide(c)
	if early.Lookup != "" {
		s.must(ReadIntent(s.agent.Name, s.task, early.Lookup))
		early = s.decide(c)
	}
	if early.Txn == nil {
		return
	}
	believed := s.view.Beliefs
	for range rapid.IntRange(1, 4).Draw(r, "meanwhile") {
		s.step()
	}
	if s.risk(believed, name) != s.risk(s.look().Beliefs, name) {
		return
	}
	again := *c
	again.Now = s.now()
	now := Decide(s.rules, s.agent, s.look(), &again)
	reply, err := s.store.Apply(r.Context(), early.Txn)
	require.NoError(s, err)
	if !reply.OK {
		return
	}
	if early.Refusal != nil {
		require.NotNil(s, now.Refusal, "refused with %v, and now it could begin", early.Refusal)
		require.Equal(s, early.Refusal.Code, now.Refusal.Code)
		return
	}
	require.Nil(s, now.Refusal, "it began")
	require.Equal(s, early.Begun.Claimed, now.Begun.Claimed)
	require.Equal(s, early.Begun.Approval, now.Begun.Approval)
}

// risk is all that beliefs contribute to a decision about an action.
func (s *shift) risk(b risk.Belief, name string) [3]any {
	d := s.agent.Actions[name].Declaration()
	return [3]any{model.Risk(b, d), model.Trust(b).Score, model.Forecast(b, d)}
}

// What a decision does not rest on does not disturb it: calls of one agent must not make each other decide again.
func TestUnrelatedChangesDoNotDisturb(t *testing.T) {
	for name, meanwhile := range map[string]func(*desk){
		"another call of the same action": func(d *desk) { d.ok("confirm", `{"order":"B"}`, `{}`) },
		"another action":                  func(d *desk) { d.ok("list", `{}`, `{"open":["A"]}`) },
		"a failure elsewhere":             func(d *desk) { d.fail("list", `{}`, action.Failed) },
		"another's unknown outcome":       func(d *desk) { d.fail("list", `{}`, action.StartedUnknown) },
		"a refusal":                       func(d *desk) { d.code("charge", `{"order":"B"}`) },
		"a request for approval":          func(d *desk) { d.code("wipe", `{"order":"A"}`) },
		"a fold":                          func(d *desk) { d.fold() },
		"planning": func(d *desk) {
			d.must(DecidePlan(d.rules, d.agent, d.look(), d.call(PlanAction, ""), action.Cost{Tokens: 3}).Txn)
		},
		"time": func(d *desk) { d.pass(10 * second) },
	} {
		t.Run(name, func(t *testing.T) {
			s := plain()
			s.Limit.Tokens, s.Limit.Calls = action.Max(1000), action.Max(50)
			for _, input := range []string{`{"order":"A"}`, `{"order":"C"}`} { // one begins, one is refused
				d := open(t, s)
				d.ok("confirm", `{"order":"A"}`, `{}`)
				dec := d.decide(d.call("charge", input))
				meanwhile(d)
				assert.True(t, d.apply(dec.Txn).OK)
			}
		})
	}
}

// What a decision rests on, changed one thing at a time: the store refuses the transaction.
func TestPinsAreRefused(t *testing.T) {
	charge := func(d *desk) *Call { return d.call("charge", `{"order":"A"}`) }
	notify := func(d *desk) *Call { return d.call("notify", `{"order":"A"}`) }
	ship := func(d *desk) *Call { return d.call("ship", `{"order":"A"}`) }
	wipe := func(d *desk) *Call { return d.call("wipe", `{"order":"A"}`) }
	list := func(d *desk) *Call { return d.call("list", `{}`) }
	confirmed := func(d *desk) { d.ok("confirm", `{"order":"A"}`, `{}`) }
	bulk := func(d *desk) { d.ok("list", `{}`, many(MaxFactsForTest, "A")) }
	other := func(d *desk) { d.ok("list", `{}`, many(MaxFactsForTest, "B")) }
	for _, c := range []struct {
		name      string
		before    func(*desk)
		call      func(*desk) *Call
		want      action.Code
		meanwhile func(*desk)
	}{
		{"the task is reconfigured", confirmed, charge, action.OK, func(d *desk) { d.change(func(s *TaskState) { s.Threshold = 5 }) }},
		{"the fact is consumed", confirmed, charge, action.OK, func(d *desk) { d.begin(charge(d)) }},
		{"the fact is established", nil, charge, action.NotLegal, confirmed},
		{"the fact becomes stale", confirmed, notify, action.OK, func(d *desk) { d.pass(60*second + 1) }},
		{"a stale fact is refreshed", func(d *desk) { confirmed(d); d.pass(61 * second) }, notify, action.NotLegal, confirmed},
		{"a listing no longer holds it", bulk, ship, action.OK, other},
		{"a listing holds it now", other, ship, action.NotLegal, bulk},
		{"the first listing holds it", nil, ship, action.NotLegal, bulk},
		{"what was used is listed again", func(d *desk) { bulk(d); d.begin(ship(d)); d.pass(1) }, ship, action.NotLegal, bulk},
		{"an outcome is unknown", func(d *desk) { d.view = nil }, list, action.OK, func(d *desk) { d.fail("list", `{}`, action.StartedUnknown) }},
		{"the budget is gone", func(d *desk) { d.change(func(s *TaskState) { s.Limit.Tokens = action.Max(5) }) }, list, action.OK,
			func(d *desk) { d.begin(list(d)) }},
		{"the budget is back", func(d *desk) {
			d.change(func(s *TaskState) { s.Limit.Calls = action.Max(1) })
			d.plan()
		}, list, action.BudgetExhausted, func(d *desk) { d.unplan() }},
		{"the estimate fits again, the forecast does not", func(d *desk) {
			for range 5 {
				d.must(d.begin(list(d)).Settle(d.end(action.OK, `{}`, action.Cost{Calls: 1, Tokens: 100})))
			}
			held := d.look().Account().Granted.Tokens + 10
			d.change(func(s *TaskState) { s.Limit.Tokens = action.Max(held) })
			d.plannedFor(10)
		}, list, action.BudgetExhausted, func(d *desk) { d.unplan() }},
		{"a listing comes that holds what is used up", func(d *desk) { d.ok("list", `{}`, `{"open":["A"]}`); d.pass(1) }, ship, action.OK, bulk},
		{"the approval is decided", func(d *desk) { d.propose(wipe(d)) }, wipe, action.ApprovalRequired, func(d *desk) {
			require.NoError(d, d.ask(wipe(d).Intent.Digest, "approve"))
		}},
		{"the request expires", func(d *desk) { d.propose(wipe(d)) }, wipe, action.ApprovalRequired, func(d *desk) { d.pass(askTTL) }},
		{"the approval is revoked", func(d *desk) {
			d.propose(wipe(d))
			require.NoError(d, d.ask(wipe(d).Intent.Digest, "approve"))
		}, wipe, action.OK, func(d *desk) { require.NoError(d, d.ask(wipe(d).Intent.Digest, "revoke")) }},
		{"the approval expires", func(d *desk) {
			d.propose(wipe(d))
			require.NoError(d, d.ask(wipe(d).Intent.Digest, "approve"))
		}, wipe, action.OK, func(d *desk) { d.pass(askTTL) }},
		{"somebody else asks", nil, wipe, action.ApprovalRequired, func(d *desk) { d.propose(wipe(d)) }},
		{"the risk level moves", nil, list, action.OK, func(d *desk) {
			runs := []*Run{d.begin(list(d)), d.begin(list(d)), d.begin(list(d))}
			for _, x := range runs {
				d.must(x.Settle(d.end(action.Failed, "", action.Cost{Calls: 1})))
			}
			d.fold()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t, plain())
			if c.before != nil {
				c.before(d)
			}
			dec := d.decide(c.call(d))
			if c.want == action.OK {
				require.Nil(t, dec.Refusal)
			} else {
				require.NotNil(t, dec.Refusal)
				require.Equal(t, c.want, dec.Refusal.Code)
			}
			c.meanwhile(d)
			r := d.apply(dec.Txn)
			assert.False(t, r.OK, "accepted: %+v", dec.Txn.Clauses)
			if r.Failed < 0 && r.Fresh.Leases[dec.Txn.Intent].Phase == txn.Settle {
				return // what happened ended the very intent: its lease says no before any pin does
			}
			assert.GreaterOrEqual(t, r.Failed, 0, "refused by a pin")
		})
	}
}

// A call id that is still running is refused only as long as it runs.
func TestInFlightIsTrueAtItsPlace(t *testing.T) {
	d := open(t, plain())
	named := func() *Call {
		c := d.call("list", `{}`)
		c.Intent.CallID = "c1"
		return c
	}
	run := d.begin(named())
	d.must(ReadIntent(d.agent.Name, d.task, run.Begun.Intent))
	dec := d.decide(named())
	require.Equal(t, action.InFlight, dec.Refusal.Code)
	d.must(run.Settle(d.end(action.OK, `{}`, action.Cost{Calls: 1})))
	assert.False(t, d.apply(dec.Txn).OK)
}

// The approvers are who they are when the answer is written, not when it was looked at.
func TestAnswersArePinnedToTheApprovers(t *testing.T) {
	d := open(t, plain())
	c := d.call("wipe", `{"order":"A"}`)
	d.propose(c)
	yes, err := DecideAsk(d.look(), c.Intent.Digest, "approve", nil, d.who())
	require.NoError(t, err)
	d.change(func(s *TaskState) { s.Approvers = []string{"somebody-else"} })
	assert.False(t, d.apply(yes).OK)
}

const planned = "plan"

// plan reserves a proposal, unplan ends it without a cost.
func (d *desk) plan() { d.plannedFor(0) }

func (d *desk) plannedFor(tokens int64) {
	c := d.call(PlanAction, "")
	c.Intent.ID, c.Owner = planned, planned
	dec := DecidePlan(d.rules, d.agent, d.look(), c, action.Cost{Tokens: tokens})
	require.Nil(d, dec.Refusal)
	d.must(dec.Txn)
}

func (d *desk) unplan() {
	e, err := Held(&txn.Space{Cells: d.cold(cellIntent + planned)}, planned)
	require.NoError(d, err)
	d.must(SettlePlan(nil, &e, planned, action.Cost{}, nil, d.now(), false))
}

// What fails teaches of its relatives: an action that never ran is riskier now, and a decision on what it was is refused.
func TestFailuresElsewhereLiftTheLevelOfAnAction(t *testing.T) {
	d := open(t, plain())
	d.ok("confirm", `{"order":"A"}`, `{}`)
	score := func() float64 { return model.Risk(d.look().Beliefs, d.agent.Actions["charge"].Declaration()).Score }
	early, was := d.decide(d.call("charge", `{"order":"A"}`)), score()
	for range 2 {
		d.fail("list", `{}`, action.Failed)
	}
	d.fold()
	require.Greater(t, score(), was+.1)
	require.False(t, d.apply(early.Txn).OK, "the level moved")
}

// Level and tags of an outcome are those it was recorded with: workers that hold another version of the action, or that do
// not hold it, fold to the same bytes.
func TestWorkersOfDifferentVersionsFoldAlike(t *testing.T) {
	d := open(t, plain())
	charge := *d.agent.Actions["charge"]
	charge.Tags = []string{"money", "irreversible"}
	d.agent.Actions["charge"] = &charge
	d.ok("confirm", `{"order":"A"}`, `{}`)
	d.ok("charge", `{"order":"A"}`, `{}`)
	d.fold()
	records := d.records("")
	want, err := FoldBeliefs(d.rules, d.agent, records)
	require.NoError(t, err)
	require.Equal(t, charge.Tags, want.Tags())
	for name, held := range map[string]map[string]*Action{
		"another version": {"charge": {Name: "charge", Risk: 1, Estimate: charge.Estimate}, "confirm": d.agent.Actions["confirm"]},
		"not held":        {"confirm": d.agent.Actions["confirm"]},
	} {
		got, err := FoldBeliefs(d.rules, &Agent{Name: d.agent.Name, Actions: held}, records)
		require.NoError(t, err)
		require.Equal(t, want.Shared(), got.Shared(), name)
	}
}

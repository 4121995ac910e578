package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Each row breaks every gate from its own on: the first one that is broken must give the answer.
func TestGatesInOrder(t *testing.T) {
	const cancelled, unknown, invalid, unmet, denied, ceiling, poor, unasked = 1, 2, 3, 4, 5, 6, 7, 8
	for _, c := range []struct {
		from int
		want action.Code
		why  string
	}{
		{cancelled, action.Cancelled, "a cancelled task says nothing about its actions"},
		{unknown, action.ActionUnknown, "an action unknown to the agent has no input to judge"},
		{invalid, action.InputInvalid, "an input that is not valid reaches no prerequisite, no policy, no person"},
		{unmet, action.NotLegal, "what is not legal does not exist: nobody is asked and nothing is denied"},
		{denied, action.Denied, "what is not permitted does not reach risk"},
		{ceiling, action.RiskCeiling, "what is above the ceiling costs nothing and is put to nobody"},
		{poor, action.BudgetExhausted, "a person is not asked for what cannot be paid"},
		{unasked, action.NoApprover, "all else holds, and there is nobody to ask"},
	} {
		t.Run(string(c.want), func(t *testing.T) {
			s := plain()
			s.Limit.Tokens = action.Max(100)
			d := open(t, s)
			d.agent.Actions["charge"].Risk = 5
			if c.from > unmet {
				d.ok("confirm", `{"order":"A"}`, `{}`)
			}
			d.change(func(s *TaskState) {
				s.Approvers = nil
				if c.from <= poor {
					s.Limit.Tokens = action.Max(3)
				}
				if c.from <= ceiling {
					s.Ceiling = 2
				}
			})
			if c.from <= denied {
				d.agent.Grants = policy.Grants{}
			}
			call := d.call("charge", `{"order":"A"}`)
			if c.from <= invalid {
				call.Edge = action.Fail(action.InputInvalid, "no")
			}
			if c.from <= unknown {
				delete(d.agent.Actions, "charge")
			}
			if c.from <= cancelled {
				x, err := CancelTask(d.look(), d.who())
				require.NoError(t, err)
				d.must(x)
			}
			dec := d.propose(call)
			require.NotNil(t, dec.Refusal, c.why)
			assert.Equal(t, c.want, dec.Refusal.Code, c.why)
			assert.Nil(t, dec.Begun, "a refusal runs nothing")
		})
	}
}

// Every refusal of gates 1 to 8, and what it takes to get it.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		want        action.Code
		name, input string
		prepare     func(d *desk)
	}{
		{action.TaskClosed, "list", `{}`, func(d *desk) { d.pass(3600 * second) }},
		{action.TaskClosed, "list", `{}`, func(d *desk) {
			x, err := CloseTask(d.look(), d.who())
			require.NoError(d, err)
			d.must(x)
		}},
		{action.TaskClosed, "list", `{}`, func(d *desk) { d.task = "other"; d.snap, d.view = d.load(), nil }},
		{action.ActionUnknown, "nothing", `{}`, nil},
		{action.ContextMissing, "onsite", `{}`, nil},
		{action.OK, "onsite", `{}`, func(d *desk) { d.change(func(s *TaskState) { s.Context = []string{"badge"} }) }},
		{action.InputMalformed, "confirm", `{"order":`, nil},
		{action.InputInvalid, "confirm", `{}`, nil},
		{action.NotLegal, "charge", `{"order":"A"}`, nil},
		{action.NotLegal, "charge", `{"order":"B"}`, func(d *desk) { d.ok("confirm", `{"order":"A"}`, `{}`) }},
		{action.OK, "charge", `{"order":"A"}`, func(d *desk) { d.ok("confirm", `{"order":"A"}`, `{}`) }},
		{action.NotLegal, "charge", `{"order":"A"}`, func(d *desk) { d.fail("confirm", `{"order":"A"}`, action.Failed) }},
		{action.NotLegal, "charge", `{"order":"A","amount":2}`, func(d *desk) { // consumed by a call that still runs
			d.ok("confirm", `{"order":"A"}`, `{}`)
			d.begin(d.call("charge", `{"order":"A"}`))
		}},
		{action.NotLegal, "notify", `{"order":"A"}`, func(d *desk) { // too long ago
			d.ok("confirm", `{"order":"A"}`, `{}`)
			d.pass(60*second + 1)
		}},
		{action.OK, "notify", `{"order":"A"}`, func(d *desk) {
			d.ok("confirm", `{"order":"A"}`, `{}`)
			d.pass(60 * second)
		}},
		{action.OK, "ship", `{"order":"A"}`, func(d *desk) { d.ok("list", `{}`, `{"open":["A"]}`) }},
		{action.NotLegal, "ship", `{"order":"B"}`, func(d *desk) { d.ok("list", `{}`, `{"open":["A"]}`) }},
		{action.NotLegal, "confirm", `{"order":"A"}`, func(d *desk) { d.fail("confirm", `{"order":"A"}`, action.StartedUnknown) }},
		{action.OK, "confirm", `{"order":"B"}`, func(d *desk) { d.fail("confirm", `{"order":"A"}`, action.StartedUnknown) }},
		{action.Denied, "forbidden", `{}`, nil},
		{action.RiskCeiling, "wipe", `{"order":"A"}`, func(d *desk) { d.change(func(s *TaskState) { s.Ceiling = 4.5 }) }},
		{action.BudgetExhausted, "list", `{}`, func(d *desk) { d.change(func(s *TaskState) { s.Limit.Calls = action.Max(0) }) }},
		{action.ApprovalRequired, "wipe", `{"order":"A"}`, nil},
		{action.ApprovalRequired, "audit", `{}`, nil},
		{action.NoApprover, "audit", `{}`, func(d *desk) { d.change(func(s *TaskState) { s.Approvers = nil }) }},
		{action.ApprovalRejected, "wipe", `{"order":"A"}`, func(d *desk) {
			c := d.call("wipe", `{"order":"A"}`)
			d.propose(c)
			require.NoError(d, d.ask(c.Intent.Digest, approval.Reject))
			d.pass(2 * askTTL)
		}},
		{action.ApprovalExpired, "wipe", `{"order":"A"}`, func(d *desk) {
			d.propose(d.call("wipe", `{"order":"A"}`))
			d.pass(askTTL)
		}},
	} {
		t.Run(string(c.want)+" "+c.name, func(t *testing.T) {
			s := plain()
			s.Deadline = 3600 * second
			d := open(t, s)
			if c.prepare != nil {
				c.prepare(d)
			}
			dec := d.propose(d.call(c.name, c.input))
			if c.want == action.OK {
				require.Nil(t, dec.Refusal)
				return
			}
			require.NotNil(t, dec.Refusal)
			assert.Equal(t, c.want, dec.Refusal.Code)
			assert.NotEmpty(t, dec.Refusal.Message)
			if last := d.records(d.task); dec.Txn != nil {
				assert.Contains(t, last[len(last)-1].Val, string(c.want), "the refusal is in the ledger")
			}
		})
	}
}

// A call id names one call for ever.
func TestCallIDsAreLookedUpFirst(t *testing.T) {
	d := open(t, plain())
	named := func(name, input string) *Call {
		c := d.call(name, input)
		c.Intent.CallID = "c1"
		return c
	}
	d.ok("confirm", `{"order":"A"}`, `{}`)
	first := named("charge", `{"order":"A"}`)
	run := d.begin(first)

	dec := d.propose(named("charge", `{"order":"A"}`))
	require.NotNil(t, dec.Refusal)
	assert.Equal(t, action.InFlight, dec.Refusal.Code)

	d.must(run.Settle(d.end(action.OK, `{"paid":true}`, action.Cost{Calls: 1})))
	d.snap.Record, d.snap.Leases = txn.NewSpace(), map[string]txn.Lease{} // another worker knows nothing of it
	dec = d.propose(named("charge", `{"order":"A"}`))
	require.NotNil(t, dec.Recorded, "the fact is consumed; still the answer is the recorded one")
	assert.True(t, dec.Recorded.OK())
	assert.True(t, dec.Recorded.Recorded)
	assert.JSONEq(t, `{"paid":true}`, string(dec.Recorded.Output))

	dec = d.propose(named("charge", `{"order":"B"}`))
	require.NotNil(t, dec.Refusal)
	assert.Equal(t, action.InputInvalid, dec.Refusal.Code, "another input under the same id")
}

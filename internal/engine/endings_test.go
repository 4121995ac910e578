package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// What each end of an executed or stopped call does to budget, facts and beliefs is what its code says.
func TestEndsDoWhatTheirCodeSays(t *testing.T) {
	for _, info := range action.Infos() {
		if info.Gate != 0 && info.Gate < 10 || info.Code == action.Late {
			continue
		}
		t.Run(string(info.Code), func(t *testing.T) {
			d := open(t, plain())
			d.ok("confirm", `{"order":"A"}`, `{}`)
			before := d.look().Account()
			x := d.begin(d.call("charge", `{"order":"A"}`))
			pending := len(d.snap.Pending)
			used := action.Cost{Calls: 1, Tokens: 33}
			d.must(x.Settle(d.end(info.Code, `{}`, used)))
			acc, v := d.look().Account(), d.look()

			spent := acc.Spent.Tokens - before.Spent.Tokens
			switch info.Charge {
			case action.ChargeActual:
				assert.Equal(t, used.Tokens, spent)
				assert.True(t, acc.Reserved().IsZero())
			case action.ChargeReleased:
				assert.Zero(t, spent)
				assert.True(t, acc.Reserved().IsZero())
			case action.ChargeReserved:
				assert.Zero(t, spent)
				assert.Equal(t, int64(20), acc.Reserved().Tokens, "it stays reserved")
			}
			if info.Executed == action.No {
				assert.Equal(t, int64(1), v.Runs(), "only the confirmation ran")
				assert.Equal(t, action.OK, d.code("charge", `{"order":"A"}`), "the fact it had claimed is back")
			} else {
				assert.Equal(t, int64(2), v.Runs())
				assert.Equal(t, action.NotLegal, d.code("charge", `{"order":"A"}`), "its fact is used up")
			}
			learned := len(v.Snap.Pending) - pending
			assert.Equal(t, info.Learns != action.LearnsNothing, learned == 1)
		})
	}
}

// An outcome nobody knows stands until a person resolves it; two that were under way at once are two.
func TestI09_UnknownOutcomesAreResolvedOneByOne(t *testing.T) {
	d := open(t, plain())
	list := func() *Run { return d.begin(d.call("list", `{}`)) }
	first, second := list(), list()
	for _, x := range []*Run{first, second} {
		d.must(x.Settle(d.end(action.StartedUnknown, "", action.Cost{Calls: 1})))
	}
	resolve := func(x *Run, ok bool) {
		r, err := Resolve(d.agent, d.look(), *x.Begun, ok, action.Cost{Calls: 1}, End{Output: document(t, `{"open":["A"]}`)}, Run{}, d.who())
		require.NoError(t, err)
		d.must(r)
	}
	dec := d.propose(d.call("list", `{}`))
	require.Equal(t, action.NotLegal, dec.Refusal.Code)
	assert.Equal(t, first.Begun.Intent, dec.Refusal.Details[action.DetailIntent], "an operator is told which intent to resolve")
	resolve(first, false)
	assert.Equal(t, action.NotLegal, d.code("list", `{}`), "the other stands")
	assert.Equal(t, int64(1), d.look().Account().Reserved().Calls, "and so does what it reserved")
	_, err := Resolve(d.agent, d.look(), *first.Begun, true, action.Cost{}, End{}, Run{}, d.who())
	assert.ErrorContains(t, err, "not unknown", "a word once given stays")
	resolve(second, true)
	assert.Equal(t, action.OK, d.code("list", `{}`))
	assert.Equal(t, action.OK, d.code("ship", `{"order":"A"}`), "what was resolved as Ok satisfies")
	s := &shift{desk: d}
	s.checkFold()
}

// Two workers that resolve the same intent: one of them is refused by the store.
func TestI09_ResolveOnce(t *testing.T) {
	d := open(t, plain())
	x := d.fail("list", `{}`, action.StartedUnknown)
	both := make([]*txn.Txn, 2)
	for i := range both {
		var err error
		both[i], err = Resolve(d.agent, d.look(), *x.Begun, i == 0, action.Cost{Calls: 1}, End{Output: document(t, `{}`)}, Run{}, d.who())
		require.NoError(t, err)
	}
	d.must(both[0])
	assert.False(t, d.apply(both[1]).OK)
}

// key is the digest of a key, where the action has one.
func key(keyed bool) string {
	if keyed {
		return "k1"
	}
	return ""
}

// TestI09_TakeoverByThePromiseItBeganUnder: what an action is declared to be since, in the same version, lets nothing be
// repeated that began as something else.
func TestI09_TakeoverByThePromiseItBeganUnder(t *testing.T) {
	type form struct {
		effect action.Effect
		key    string // "" declares none
		tool   string
	}
	for _, c := range []struct {
		name       string
		began, now form
		repeats    bool
	}{
		{"the same class", form{effect: action.Idempotent}, form{effect: action.Idempotent}, true},
		{"the same key", form{effect: action.Irreversible, key: "k1"}, form{effect: action.Irreversible, key: "k1"}, true},
		{"called idempotent since", form{effect: action.Irreversible}, form{effect: action.Idempotent}, false},
		{"called harmless since", form{effect: action.Compensatable}, form{effect: action.None}, false},
		{"a key since", form{effect: action.Irreversible}, form{effect: action.Irreversible, key: "k1"}, false},
		{"another key", form{effect: action.Irreversible, key: "k1"}, form{effect: action.Irreversible, key: "k2"}, false},
		{"no key any more", form{effect: action.Irreversible, key: "k1"}, form{effect: action.Irreversible}, false},
		{"no key any more, but idempotent", form{effect: action.Irreversible, key: "k1"}, form{effect: action.Idempotent}, false},
		{"found to be irreversible", form{effect: action.Idempotent}, form{effect: action.Irreversible}, false},
		{"another tool", form{effect: action.Idempotent, tool: "a"}, form{effect: action.Idempotent, tool: "b"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t, plain())
			a := d.agent.Actions["list"]
			be := func(f form) { a.Effect, a.Keyed, a.Tool = f.effect, f.key != "", f.tool }
			be(c.began)
			call := d.call("list", `{}`)
			call.Key = c.began.key
			x := d.begin(call)
			d.pass(lease)
			be(c.now)
			take, next := Takeover(d.agent, d.look(), *x.Begun, c.now.key, txn.Lease{Phase: txn.Begin, Fence: 1, Owner: x.Owner}, "w-new", lease, d.now())
			d.must(take)
			assert.Equal(t, c.repeats, next != nil)
			if !c.repeats {
				o, ok := Ended(&txn.Space{Cells: d.cold(cellOutcome + x.Begun.Intent)}, x.Begun.Intent)
				require.True(t, ok)
				assert.Equal(t, action.StartedUnknown, o.Code)
			}
		})
	}
}

// A takeover repeats only what may be repeated; of all else it is the end, in one transaction.
func TestI09_TakeoverByEffect(t *testing.T) {
	for _, effect := range []action.Effect{action.None, action.Idempotent, action.Compensatable, action.Irreversible} {
		for _, keyed := range []bool{false, true} {
			t.Run(effect.String(), func(t *testing.T) {
				d := open(t, plain())
				a := d.agent.Actions["list"]
				a.Effect, a.Keyed = effect, keyed
				c := d.call("list", `{}`)
				c.Key = key(keyed)
				x := d.begin(c)
				held := txn.Lease{Phase: txn.Begin, Fence: 1, Owner: x.Owner}
				early, _ := Takeover(d.agent, d.look(), *x.Begun, key(keyed), held, "w-new", lease, d.now())
				assert.Equal(t, -1, d.apply(early).Failed, "a live lease is not taken")
				d.pass(lease)
				take, next := Takeover(d.agent, d.look(), *x.Begun, key(keyed), held, "w-new", lease, d.now())
				d.must(take)
				assert.Equal(t, -1, d.apply(x.Settle(d.end(action.OK, `{}`, action.Cost{Calls: 1}))).Failed, "the first worker is superseded")
				assert.Equal(t, int64(1), d.look().Account().Granted.Calls, "nothing is reserved again")
				if effect.Repeatable() || keyed {
					require.NotNil(t, next)
					assert.Equal(t, int64(2), next.Begun.Fence)
					d.must(next.Settle(d.end(action.OK, `{}`, action.Cost{Calls: 1})))
					assert.Equal(t, action.OK, d.code("list", `{}`))
					return
				}
				require.Nil(t, next)
				assert.Equal(t, action.NotLegal, d.code("list", `{}`), "its outcome is unknown")
				assert.Equal(t, int64(1), d.look().Account().Reserved().Calls, "and its reservation stands")
			})
		}
	}
}

// A worker that does not hold the version that began must not repeat it.
func TestI09_TakeoverOfAnotherVersion(t *testing.T) {
	d := open(t, plain())
	x := d.begin(d.call("list", `{}`))
	d.pass(lease)
	for _, forget := range []func(){func() { d.agent.Actions["list"].Version = "2" }, func() { delete(d.agent.Actions, "list") }} {
		forget()
		_, next := Takeover(d.agent, d.look(), *x.Begun, "", txn.Lease{Phase: txn.Begin, Fence: 1}, "w-new", lease, d.now())
		assert.Nil(t, next)
	}
}

// What the attempts before a takeover used is not forgotten with their worker.
func TestI07_TakeoverKeepsWhatAttemptsSpent(t *testing.T) {
	run := func(t *testing.T) (*desk, *Run) {
		d := open(t, plain())
		x := d.begin(d.call("list", `{}`))
		end := d.end(action.Failed, "", action.Cost{Calls: 1, Tokens: 40})
		require.True(t, d.attempt(x, end))
		d.pass(lease)
		begun, err := Held(&txn.Space{Cells: d.cold(cellIntent + x.Begun.Intent)}, x.Begun.Intent)
		require.NoError(t, err)
		x.Begun = &begun
		return d, x
	}
	t.Run("repeated", func(t *testing.T) {
		d, x := run(t)
		take, next := Takeover(d.agent, d.look(), *x.Begun, "", txn.Lease{Phase: txn.Begin, Fence: 1}, "w-new", lease, d.now())
		d.must(take)
		d.must(next.Settle(d.end(action.OK, `{}`, action.Cost{Calls: 1, Tokens: 2})))
		acc := d.look().Account()
		assert.Equal(t, int64(42), acc.Spent.Tokens)
		assert.Equal(t, int64(2), acc.Spent.Calls)
		assert.True(t, acc.Reserved().IsZero())
	})
	t.Run("stopped", func(t *testing.T) {
		d, x := run(t)
		d.must(TakeoverStopped(d.agent, *x.Begun, txn.Lease{Phase: txn.Begin, Fence: 1}, "w-new", "its task has ended", d.now()))
		acc := d.look().Account()
		assert.Equal(t, int64(45), acc.Spent.Tokens, "what the first used, and what was reserved for the second")
		assert.Equal(t, int64(2), acc.Spent.Calls)
	})
}

// What the input said that a call costs is reserved until its end, whoever takes it over: the record of the begin has it, and
// further attempts go by that.
func TestI07_TakeoverReservesWhatTheInputSaid(t *testing.T) {
	d := open(t, plain())
	c := d.call("list", `{}`)
	c.Price = action.Limit{Tokens: action.Max(7)}
	x := d.begin(c)
	require.Equal(t, int64(7), x.Begun.Reserved.Tokens)
	d.pass(lease)
	begun, err := Held(&txn.Space{Cells: d.cold(cellIntent + x.Begun.Intent)}, x.Begun.Intent)
	require.NoError(t, err)
	require.Equal(t, c.Price, begun.Priced)
	take, next := Takeover(d.agent, d.look(), begun, "", txn.Lease{Phase: txn.Begin, Fence: 1}, "w-new", lease, d.now())
	d.must(take)
	assert.Equal(t, int64(7), d.look().Account().Reserved().Tokens)
	require.True(t, d.attempt(next, d.end(action.Failed, "", action.Cost{Calls: 1, Tokens: 3})))
	acc := d.look().Account()
	assert.Equal(t, int64(7), acc.Reserved().Tokens, "the attempt is told nothing of the input")
	assert.Equal(t, int64(3), acc.Spent.Tokens)
	d.must(next.Settle(d.end(action.OK, `{}`, action.Cost{Calls: 1, Tokens: 7})))
	acc = d.look().Account()
	assert.Equal(t, int64(10), acc.Spent.Tokens)
	assert.True(t, acc.Reserved().IsZero())
}

// What a worker before may have run was not "not started": its approval and its facts are not there to be used again.
func TestI06_TakeoverReturnsNothing(t *testing.T) {
	for _, code := range []action.Code{action.NotStarted, action.HookFailed} {
		d := open(t, plain())
		a := d.agent.Actions["charge"]
		a.Effect, a.Approve = action.Idempotent, true
		d.ok("confirm", `{"order":"A"}`, `{}`)
		c := d.call("charge", `{"order":"A"}`)
		d.propose(c)
		require.NoError(t, d.ask(c.Intent.Digest, "approve"))
		x := d.begin(d.call("charge", `{"order":"A"}`))
		d.pass(lease)
		take, next := Takeover(d.agent, d.look(), *x.Begun, "", txn.Lease{Phase: txn.Begin, Fence: 1}, "w-new", lease, d.now())
		d.must(take)
		end := d.end(code, "", action.Cost{})
		settle := next.Settle(end)
		d.must(settle)
		assert.Equal(t, action.Interrupted, Written(settle).Code)
		assert.Equal(t, action.Cost{Tokens: 20, Calls: 1}, Written(settle).Cost, "what was reserved counts as used")
		assert.True(t, d.look().Account().Reserved().IsZero())
		assert.Equal(t, action.NotLegal, d.code("charge", `{"order":"A"}`), "the fact is used up")
		d.ok("confirm", `{"order":"A"}`, `{}`)
		assert.Equal(t, action.ApprovalRequired, d.code("charge", `{"order":"A"}`), "and so is the approval")
		(&shift{desk: d}).checkFold()
	}
}

// A proposal whose worker disappeared counts as used; it is never repeated.
func TestTakeoverOfPlanning(t *testing.T) {
	d := open(t, plain())
	dec := DecidePlan(d.rules, d.agent, d.look(), d.call(PlanAction, ""), action.Cost{Tokens: 9})
	d.must(dec.Txn)
	d.pass(lease)
	take, next := Takeover(d.agent, d.look(), *dec.Begun, "", txn.Lease{Phase: txn.Begin, Fence: 1}, "w-new", lease, d.now())
	require.Nil(t, next)
	d.must(take)
	v := d.look()
	assert.Equal(t, action.Cost{Tokens: 9, Calls: 1}, v.Account().Spent)
	assert.Zero(t, v.Runs(), "planning is no attempt of an action")
	assert.Empty(t, v.Snap.Pending, "and teaches nothing")
}

// Planning passes gates 1 and 7 only.
func TestPlanningIsSpending(t *testing.T) {
	s := plain()
	s.Limit.Tokens, s.Threshold, s.Approvers = action.Max(10), 1, nil
	d := open(t, s)
	plan := func() Decision {
		dec := DecidePlan(d.rules, d.agent, d.look(), d.call(PlanAction, ""), action.Cost{Tokens: 6})
		d.must(dec.Txn)
		return dec
	}
	first := plan()
	require.Nil(t, first.Refusal, "no approval, whatever the threshold")
	require.Equal(t, action.BudgetExhausted, plan().Refusal.Code)
	d.must(SettlePlan(nil, first.Begun, first.Begun.Owner, action.Cost{Tokens: 2}, nil, d.now(), false))
	require.Nil(t, plan().Refusal)
	x, err := CancelTask(d.look(), d.who())
	require.NoError(t, err)
	d.must(x)
	require.Equal(t, action.Cancelled, plan().Refusal.Code)
}

// A retry is a call of its own to the budget, and stops where the task does.
func TestAttempts(t *testing.T) {
	s := plain()
	s.Limit.Calls = action.Max(2)
	d := open(t, s)
	x := d.begin(d.call("list", `{}`))
	end := d.end(action.Failed, "", action.Cost{Calls: 1})
	require.True(t, d.attempt(x, end))
	assert.Equal(t, 2, x.Begun.Attempt)
	assert.False(t, d.attempt(x, end), "no call is left")
	settle := x.Settle(d.end(action.OK, `{}`, action.Cost{Calls: 1}))
	d.must(settle)
	acc := d.look().Account()
	assert.Equal(t, int64(2), acc.Spent.Calls)
	left, _ := acc.Left(action.Calls)
	assert.Zero(t, left)
	assert.Len(t, d.snap.Pending, 2, "each attempt teaches")
	o, ok := Ended(&txn.Space{Cells: d.cold(cellOutcome + x.Begun.Intent)}, x.Begun.Intent)
	require.True(t, ok)
	assert.Equal(t, 2, o.Attempts)
	assert.Equal(t, Written(settle), o)
}

func TestAttemptAfterCancelIsRefused(t *testing.T) {
	d := open(t, plain())
	x := d.begin(d.call("list", `{}`))
	v := *d.look()
	c, err := CancelTask(&v, d.who())
	require.NoError(t, err)
	d.must(c)
	a, _, no := x.Attempt(d.rules, &v, d.callOf(x), d.end(action.Failed, "", action.Cost{Calls: 1}), lease)
	require.Nil(t, no)
	assert.False(t, d.apply(a).OK)
	assert.False(t, d.apply(x.Renew(&v, lease)).OK, "the heartbeat notices")
	assert.True(t, d.apply(x.Keep(lease)).OK, "and the lease can be kept to settle under")
	end := d.end(action.OK, `{}`, action.Cost{Calls: 1})
	pinned := x.Settle(end)
	v.PinTask(pinned)
	assert.False(t, d.apply(pinned).OK, "a result after the cancellation is no success")
	d.must(x.Settle(d.end(action.Interrupted, "", action.Cost{Calls: 1})))
}

// A late result is charged for what it used beyond what its end was charged with, unless a person will say.
func TestLateIsCharged(t *testing.T) {
	d := open(t, plain())
	x := d.fail("list", `{}`, action.Timeout)
	more := Beyond(action.Cost{Calls: 1, Tokens: 30}, action.Cost{Calls: 1, Tokens: 12, Bytes: 4})
	assert.Equal(t, action.Cost{Tokens: 18}, more)
	before := d.look().Account()
	d.must(x.Late(d.end(action.OK, `{}`, action.Cost{}), action.Timeout, more))
	after := d.look().Account()
	assert.Equal(t, before.Spent.Tokens+18, after.Spent.Tokens)
	assert.Equal(t, before.Granted.Tokens+18, after.Granted.Tokens)
	d.must(x.Late(d.end(action.OK, `{}`, action.Cost{}), action.StartedUnknown, more))
	assert.Equal(t, after, d.look().Account())
	assert.Equal(t, int64(0), d.look().Snap.Task.Counters[countFacts], "and satisfies nothing")
}

// Interrupting what may be repeated is what it looks like; of all else nobody can tell.
func TestInterrupt(t *testing.T) {
	for effect, want := range map[action.Effect]action.Code{
		action.None: action.Timeout, action.Idempotent: action.Timeout,
		action.Compensatable: action.StartedUnknown, action.Irreversible: action.StartedUnknown,
	} {
		assert.Equal(t, want, Interrupt(&Action{Effect: effect}, action.Timeout, "slow").Code, effect)
		assert.Equal(t, action.Timeout, Interrupt(&Action{Effect: effect, Keyed: true}, action.Timeout, "slow").Code, effect)
	}
}

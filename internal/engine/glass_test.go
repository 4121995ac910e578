package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

func (d *desk) breakGlass(ttl int64, actions ...string) {
	t, err := BreakGlass(d.look(), Glass{ID: d.id("g"), Actions: actions}, ttl, d.who())
	require.NoError(d, err)
	d.must(t)
}

func (d *desk) types() (out []ledger.Type) {
	for _, r := range d.records(d.task) {
		e, err := ledger.Decode(r.Val)
		require.NoError(d, err)
		out = append(out, e.Type)
	}
	return out
}

// An override answers the demand for an approval, for its actions and its time, and nothing else.
func TestBreakGlass(t *testing.T) {
	d := open(t, plain())
	require.Equal(t, action.ApprovalRequired, d.code("wipe", `{"order":"A"}`))
	d.breakGlass(60*second, "wipe")
	st := Stand(d.rules, d.agent, d.look(), FactsOf(d.agent, d.snap), "wipe", d.now())
	assert.Equal(t, action.Legal, st.Status)
	c := d.call("wipe", `{"order":"B"}`)
	dec := d.propose(c)
	require.NotNil(t, dec.Begun)
	assert.Equal(t, d.now()+60*second, dec.Expires, "it does not start later")
	assert.Empty(t, dec.Begun.Approval)
	types := d.types()
	assert.Equal(t, []ledger.Type{ledger.GlassUsed, ledger.Begun}, types[len(types)-2:], "the call is marked")
	assert.Equal(t, action.ApprovalRequired, d.code("audit", `{}`), "another action")
	assert.Equal(t, action.Denied, d.code("forbidden", `{}`), "policy holds")
	assert.Equal(t, action.InputInvalid, d.code("wipe", `{"order":1}`), "the schema holds")
	d.change(func(s *TaskState) { s.Ceiling = 3 })
	assert.Equal(t, action.RiskCeiling, d.code("wipe", `{"order":"C"}`), "the ceiling holds")
	d.change(func(s *TaskState) { s.Ceiling, s.Limit.Calls = 0, action.Max(0) })
	assert.Equal(t, action.BudgetExhausted, d.code("wipe", `{"order":"C"}`), "the budget holds")
	d.change(func(s *TaskState) { s.Limit.Calls = action.Bound{} })
	d.pass(60 * second)
	assert.Equal(t, action.ApprovalRequired, d.code("wipe", `{"order":"C"}`), "it expired by itself")
	d.must(CloseGlass(d.look(), true, Who{At: d.now()}))
	assert.Nil(t, CloseGlass(d.look(), true, Who{At: d.now()}), "once")
	(&shift{desk: d}).checkFold()
}

// What a person rejected stays rejected.
func TestBreakGlass_NotOverARejection(t *testing.T) {
	d := open(t, plain())
	c := d.call("wipe", `{"order":"A"}`)
	d.propose(c)
	require.NoError(t, d.ask(c.Intent.Digest, approval.Reject))
	d.breakGlass(60 * second)
	assert.Equal(t, action.ApprovalRejected, d.code("wipe", `{"order":"A"}`))
	assert.Equal(t, action.OK, d.code("wipe", `{"order":"B"}`))
}

// A begin that was decided under an override which has ended meanwhile is refused by the store.
func TestBreakGlass_PinnedAtBegin(t *testing.T) {
	for name, end := range map[string]func(d *desk){
		"closed":  func(d *desk) { d.must(CloseGlass(d.look(), false, d.who())) },
		"expired": func(d *desk) { d.pass(60 * second) },
	} {
		d := open(t, plain())
		d.breakGlass(60*second, "wipe")
		dec := d.decide(d.call("wipe", `{"order":"A"}`))
		require.NotNil(t, dec.Begun)
		end(d)
		assert.False(t, d.apply(dec.Txn).OK, name)
	}
}

func TestBreakGlass_OneAtATime(t *testing.T) {
	d := open(t, plain())
	d.breakGlass(60 * second)
	_, err := BreakGlass(d.look(), Glass{ID: "other"}, second, d.who())
	assert.ErrorContains(t, err, "still stands")
	d.pass(60 * second)
	d.breakGlass(60 * second) // the other's end is written with it
	assert.Contains(t, d.types(), ledger.GlassClosed)
	d.must(CloseGlass(d.look(), false, d.who()))
	assert.Equal(t, action.ApprovalRequired, d.code("wipe", `{"order":"A"}`))
	(&shift{desk: d}).checkFold()
}

func TestMayBreakGlass(t *testing.T) {
	s := plain()
	s.Requester = "mallory"
	d := open(t, s)
	for _, c := range []struct {
		reason string
		who    Who
		may    bool
	}{
		{"an operator", Who{Identity: "olga"}, true},
		{"in an operator's role", Who{Identity: "omar", Roles: []string{"oncall"}}, true},
		{"an approver is none", Who{Identity: person}, false},
		{"the requester, though an operator", Who{Identity: "Mallory", Roles: []string{"oncall"}}, false},
		{"the agent", Who{Identity: "counter", Roles: []string{"oncall"}}, false},
	} {
		err := MayBreakGlass(d.look(), []string{"olga", "mallory", "role:oncall"}, c.who)
		assert.Equal(t, c.may, err == nil, "%s: %v", c.reason, err)
	}
}

func TestTopUp(t *testing.T) {
	s := plain()
	s.Limit = action.Limit{Calls: action.Max(1), Money: action.Max(5), Currency: "EUR"}
	d := open(t, s)
	d.ok("list", `{}`, `{"open":[]}`)
	require.Equal(t, action.BudgetExhausted, d.code("list", `{}`))
	for _, c := range []struct {
		reason string
		more   action.Cost
		want   string
	}{
		{"nothing", action.Cost{}, "the top-up is nothing"},
		{"an axis without a limit", action.Cost{Tokens: 1}, "not limited"},
		{"less", action.Cost{Calls: -1}, "calls"},
		{"another currency", action.Cost{Money: 1, Currency: "USD"}, "USD"},
		{"more than is countable", action.Cost{Calls: action.MaxAmount}, "more than"},
	} {
		_, err := TopUp(d.look(), c.more, d.who())
		assert.ErrorContains(t, err, c.want, c.reason)
	}
	x, err := TopUp(d.look(), action.Cost{Calls: 2, Money: 1, Currency: "EUR"}, d.who())
	require.NoError(t, err)
	d.must(x)
	n, _ := d.look().Task.Limit.Money.Get()
	assert.EqualValues(t, 6, n)
	assert.Equal(t, action.OK, d.code("list", `{}`))
	(&shift{desk: d}).checkFold()
}

// A reset belief is as it was declared, whatever was pending counts before it, and the agent's own ledger reproduces it.
func TestI14_BeliefReset(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := newShift(r)
		s.change(func(t *TaskState) { t.Limit = action.Limit{} })
		for range 25 {
			switch rapid.IntRange(0, 6).Draw(r, "what") {
			case 0:
				name := rapid.SampledFrom([]string{"", "list", "confirm", "audit"}).Draw(r, "name")
				t, err := ResetBelief(s.rules, s.agent, s.snap, name, s.who())
				if err != nil {
					require.ErrorContains(s, err, "nothing was learned")
					continue
				}
				s.must(t)
				require.Empty(s, s.snap.Pending)
				_, known := s.look().Beliefs.Action(name)
				require.False(s, known)
			case 1:
				s.fold()
			default:
				s.step()
			}
		}
		s.fold()
		s.checkBeliefs()
	})
}

// Overrides and resets are among what can happen at any time.
func init() { steps = append(steps, (*shift).override, (*shift).override, (*shift).forget) }

func (s *shift) override() {
	if t := CloseGlass(s.look(), rapid.Bool().Draw(s.r, "expired"), s.who()); t != nil && rapid.Bool().Draw(s.r, "close") {
		s.must(t)
		return
	}
	var only []string
	if rapid.Bool().Draw(s.r, "scoped") {
		only = []string{"wipe", "charge"}
	}
	if t, err := BreakGlass(s.look(), Glass{ID: s.id("g"), Actions: only}, 30*second, s.who()); err == nil {
		s.must(t)
	}
}

func (s *shift) forget() {
	name := rapid.SampledFrom([]string{"", "list", "charge", "wipe"}).Draw(s.r, "name")
	if t, err := ResetBelief(s.rules, s.agent, s.snap, name, s.who()); err == nil {
		s.must(t)
	}
}

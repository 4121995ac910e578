package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/statespace"
)

// offer is what the planner sees now.
func (d *desk) offer() []action.Offered {
	v := d.look()
	out, err := Offer(d.rules, d.agent, v, FactsOf(d.agent, v.Snap), d.now())
	require.NoError(d, err)
	return out
}

// After anything: what is offered is what would pass the gates for some input, marked as it would be met; what is not
// offered is refused for every input. The set kept up to date fact by fact is the set built anew.
func TestI03_OfferIsTheLegalSet(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { offerIsTheLegalSet(r, 25) })
}

func offerIsTheLegalSet(r *rapid.T, n int) {
	s := newShift(r)
	set := FactsOf(s.agent, s.snap)
	s.watch(set)
	for range n {
		s.step()
	}
	v := s.look()
	anew := FactsOf(s.agent, v.Snap)
	require.Equal(s, anew.Names(), set.Names())
	offered := map[string]action.Offered{}
	for _, o := range s.offer() {
		offered[o.Name] = o
		require.Equal(s, anew.Allowed(o.Name, s.now()), set.Allowed(o.Name, s.now()), o.Name)
	}
	for _, name := range s.agent.Graph.Names() {
		best := s.best(name)
		o, ok := offered[name]
		switch {
		case !ok:
			require.Equal(s, action.Blocked, best, "%s is not offered", name)
		case best == action.Blocked:
			many := func(a statespace.Allowed) bool { return a.Tuples == nil }
			require.True(s, slices.ContainsFunc(anew.Allowed(name, s.now()), many), "%s is offered and no input of it passes", name)
		default:
			require.Equal(s, o.Status, best, "%s is offered", name)
		}
	}
}

// watch keeps a set up to date by every transaction that the desk has accepted, as the shell does.
func (d *desk) watch(set *statespace.Set) { d.sets = append(d.sets, set) }

// best is the naive recomputation: the best that any input meets at the gates, those aside that speak of one input only.
func (s *shift) best(name string) action.Status {
	inputs := []string{`{}`}
	if _, f := s.agent.Actions[name].Input.Check([]byte(`{}`)); f != nil {
		inputs = nil
		for _, o := range append([]string{"x1"}, orders...) {
			inputs = append(inputs, fmt.Sprintf(`{"order":%q}`, o))
		}
	}
	best := action.Blocked
	for _, in := range inputs {
		switch s.meets(name, in) {
		case action.OK:
			return action.Legal
		case action.ApprovalRequired:
			best = action.Gated
		}
	}
	return best
}

// meets is what a call would meet, nothing being written, and what one input alone went through being forgotten.
func (s *shift) meets(name, input string) action.Code {
	c := s.desk.call(name, input)
	c.Intent.Digest = "of nothing ever asked"
	v := *s.look()
	snap := cloned(v.Snap)
	for k := range snap.Task.Counters {
		if strings.HasPrefix(k, countUnknown) {
			delete(snap.Task.Counters, k)
		}
	}
	v.Snap = &snap
	dec := Decide(s.rules, s.agent, &v, c)
	if dec.Refusal != nil {
		return dec.Refusal.Code
	}
	return action.OK
}

func names(os []action.Offered) (out []string) {
	for _, o := range os {
		out = append(out, o.Name)
	}
	return out
}

func TestOfferNarrowsToWhatSatisfies(t *testing.T) {
	d := open(t, plain())
	assert.NotContains(t, names(d.offer()), "charge")
	d.ok("confirm", `{"order":"A"}`, `{}`)
	d.ok("confirm", `{"order":"B"}`, `{}`)
	check := func(input string) bool {
		i := slices.IndexFunc(d.offer(), func(o action.Offered) bool { return o.Name == "charge" })
		require.GreaterOrEqual(t, i, 0)
		s, err := schema.Declared(d.offer()[i].Schema)
		require.NoError(t, err)
		_, f := s.Check([]byte(input))
		return f == nil
	}
	assert.True(t, check(`{"order":"A"}`))
	assert.True(t, check(`{"order":"B","amount":3}`))
	assert.False(t, check(`{"order":"C"}`), "it was not confirmed")
	d.begin(d.call("charge", `{"order":"A"}`))
	assert.False(t, check(`{"order":"A"}`), "it is used up")
	for i := range statespace.MaxNarrow {
		d.ok("confirm", fmt.Sprintf(`{"order":"n%d"}`, i), `{}`)
	}
	assert.True(t, check(`{"order":"C"}`), "too many values: the call itself is judged")
	assert.Equal(t, action.NotLegal, d.code("charge", `{"order":"C"}`))
}

func TestOfferOfNeedsThatMeetNowhere(t *testing.T) {
	d := open(t, plain())
	d.ok("confirm", `{"order":"A"}`, `{}`)
	d.ok("list", `{}`, `{"open":["B"]}`)
	assert.NotContains(t, names(d.offer()), "refund", "one need is met for A, the other for B")
	d.ok("confirm", `{"order":"B"}`, `{}`)
	assert.Contains(t, names(d.offer()), "refund")
}

// A prerequisite's values need not be inputs of the dependent: then it is withheld, and the rest is offered all the same.
func TestOfferOfValuesThatNoInputTakes(t *testing.T) {
	d := open(t, plain())
	narrow, err := schema.Declared([]byte(`{"type":"object","properties":{"order":{"enum":["X"]}},"required":["order"],"additionalProperties":false}`))
	require.NoError(t, err)
	d.agent.Actions["ship"].Input = narrow
	d.ok("list", `{}`, `{"open":["A"]}`)
	assert.NotContains(t, names(d.offer()), "ship")
	assert.Contains(t, names(d.offer()), "list")
}

// A value of a listing that was used and given back is held again, and what was used at the very moment of a listing is
// used; in a set kept up to date as in one built anew.
func TestSetFollowsListings(t *testing.T) {
	d := open(t, plain())
	set := FactsOf(d.agent, d.snap)
	d.watch(set)
	check := func(want int) {
		t.Helper()
		for _, s := range []*statespace.Set{set, FactsOf(d.agent, d.snap)} {
			assert.Equal(t, want, s.Allowed("ship", d.now())[0].Count)
		}
	}
	d.ok("list", `{}`, many(MaxFactsForTest, "A"))
	check(MaxFactsForTest + 1)
	x := d.begin(d.call("ship", `{"order":"A"}`))
	check(MaxFactsForTest)
	d.must(x.Settle(d.end(action.NotStarted, "", action.Cost{})))
	check(MaxFactsForTest + 1)
	d.begin(d.call("ship", `{"order":"A"}`))
	d.ok("list", `{}`, many(MaxFactsForTest, "A"))
	check(MaxFactsForTest)
	d.pass(1)
	d.ok("list", `{}`, many(MaxFactsForTest, "A"))
	check(MaxFactsForTest + 1)
}

func TestOfferWithoutAnybodyToAsk(t *testing.T) {
	s := plain()
	d := open(t, s)
	offered := d.offer()
	i := slices.IndexFunc(offered, func(o action.Offered) bool { return o.Name == "wipe" })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, action.Gated, offered[i].Status)
	assert.NotEmpty(t, offered[i].Why)
	d.change(func(s *TaskState) { s.Approvers = nil })
	assert.NotContains(t, names(d.offer()), "wipe")
	st := Stand(d.rules, d.agent, d.look(), FactsOf(d.agent, d.snap), "wipe", d.now())
	assert.Equal(t, action.Blocked, st.Status)
	assert.Contains(t, strings.Join(st.Reasons, "\n"), string(action.NoApprover))
}

func TestOfferWithholds(t *testing.T) {
	for _, c := range []struct {
		name, gone string
		change     func(*desk)
	}{
		{"what needs context", "onsite", func(*desk) {}},
		{"what is not permitted", "forbidden", func(*desk) {}},
		{"what is above the ceiling", "confirm", func(d *desk) { d.change(func(s *TaskState) { s.Ceiling = 1.5 }) }},
		{"what cannot be paid", "confirm", func(d *desk) { d.change(func(s *TaskState) { s.Limit.Tokens = action.Max(9) }) }},
		{"what became stale", "notify", func(d *desk) { d.ok("confirm", `{"order":"A"}`, `{}`); d.pass(61 * second) }},
		{"everything, once the task has ended", "list", func(d *desk) {
			x, err := CancelTask(d.look(), d.who())
			require.NoError(d, err)
			d.must(x)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t, plain())
			c.change(d)
			assert.NotContains(t, names(d.offer()), c.gone)
		})
	}
}

func TestOfferInObserveMode(t *testing.T) {
	s := plain()
	s.Approvers, s.Limit.Tokens = nil, action.Max(0)
	d := open(t, s)
	d.rules.Observe = true
	assert.Equal(t, d.agent.Graph.Names(), names(d.offer()), "nothing is withheld")
	for _, o := range d.offer() {
		assert.Equal(t, action.Legal, o.Status)
	}
}

// Nothing a planner reads names an action that is hidden from it: not the offer, not a failure, not what changed.
func TestI12_PlannersLearnNothingHidden(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := newShift(r)
		for range 15 {
			s.step()
		}
		earlier := action.Offer{Actions: s.offer()}
		name, input := s.draw()
		dec := s.propose(s.desk.call(name, input))
		now := action.Offer{Actions: s.offer(), Guidance: Guidance(s.look(), 3)}
		told, err := json.Marshal(now)
		require.NoError(r, err)
		said := string(told) + Differences(earlier, now)
		if dec.Refusal != nil {
			f := dec.Refusal.ForPlanner()
			said += f.Error() + fmt.Sprint(f.Details)
		}
		known := append(names(earlier.Actions), names(now.Actions)...)
		for _, hidden := range s.agent.Graph.Names() {
			if hidden != name && !slices.Contains(known, hidden) {
				require.NotContains(r, said, hidden)
			}
		}
	})
}

func TestDifferences(t *testing.T) {
	offer := func(os ...action.Offered) action.Offer { return action.Offer{Actions: os} }
	a := action.Offered{Name: "a", Status: action.Legal, Schema: json.RawMessage(`{}`)}
	gated, narrow := a, a
	gated.Status, narrow.Schema = action.Gated, json.RawMessage(`{"x":1}`)
	for _, c := range []struct {
		earlier, later action.Offer
		want           string
	}{
		{offer(a), offer(a), ""},
		{offer(a), offer(), "a is no longer available"},
		{offer(), offer(a), "a is available now"},
		{offer(a), offer(gated), "a is now gated"},
		{offer(a), offer(narrow), "a accepts other values now"},
	} {
		assert.Equal(t, c.want, Differences(c.earlier, c.later))
	}
}

// Stand tells an operator every fact, and the way there.
func TestStandTellsEverything(t *testing.T) {
	d := open(t, plain())
	d.agent.Grants = policy.Grants{}
	d.change(func(s *TaskState) { s.Ceiling, s.Limit.Tokens = 2.5, action.Max(1) })
	st := Stand(d.rules, d.agent, d.look(), FactsOf(d.agent, d.snap), "charge", d.now())
	all := strings.Join(st.Reasons, "\n")
	for _, part := range []string{"confirm", "permission", "ceiling", "budget"} {
		assert.Contains(t, all, part)
	}
	assert.NotEmpty(t, st.Path.Steps)
	assert.Equal(t, action.Blocked, Stand(d.rules, d.agent, d.look(), FactsOf(d.agent, d.snap), "nothing", d.now()).Status)
}

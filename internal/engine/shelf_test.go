package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/policy"
)

// After anything, at any later moment: what the shelf gives is what an offer made anew would be.
func TestShelfIsTheOffer(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := newShift(r)
		s.rules.Observe = rapid.Bool().Draw(r, "observe")
		set := FactsOf(s.agent, s.snap)
		s.watch(set)
		var shelf Shelf
		for range 15 {
			if rapid.IntRange(0, 3).Draw(r, "step") > 0 {
				s.step()
			} else {
				s.pass(rapid.Int64Range(0, 2*offerHolds).Draw(r, "time"))
			}
			v := s.look()
			want, err := Offer(s.rules, s.agent, v, FactsOf(s.agent, v.Snap), s.now())
			require.NoError(s, err)
			got, err := shelf.Offer(s.rules, s.agent, v, set, s.now())
			require.NoError(s, err)
			require.Equal(s, want, got)
			require.Equal(s, RiskGuidance(s.rules, s.agent, v, want), shelf.RiskGuidance(s.rules, s.agent, v, got))
			require.Equal(s, RiskGuidance(s.rules, s.agent, v, want), shelf.RiskGuidance(s.rules, s.agent, v, got), "and again")
		}
	})
}

// What does not change is not made again; a policy of somebody else's may decide otherwise at any time.
func TestShelfKeeps(t *testing.T) {
	d := open(t, plain())
	v := d.look()
	set, shelf := FactsOf(d.agent, v.Snap), Shelf{}
	first, err := shelf.Offer(d.rules, d.agent, v, set, d.now())
	require.NoError(t, err)
	require.NotEmpty(t, first)
	again := func() bool {
		out, err := shelf.Offer(d.rules, d.agent, v, set, d.now())
		require.NoError(t, err)
		return &out[0] == &first[0]
	}
	require.True(t, again())
	d.pass(offerHolds - 1)
	require.True(t, again())
	d.pass(1)
	require.False(t, again(), "not for ever: something outside the snapshot may count")
	first, err = shelf.Offer(d.rules, d.agent, v, set, d.now())
	require.NoError(t, err)
	shelf.Drop()
	require.False(t, again(), "dropped")
	d.rules.Policy = policy.Func(func(policy.Request) (policy.Decision, error) { return policy.Decision{Permit: true}, nil })
	require.False(t, again(), "a policy")
}

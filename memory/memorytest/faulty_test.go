package memorytest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/memory"
)

func TestFaultyLosesByPlan(t *testing.T) {
	ctx, in := context.Background(), openReference("")(t)
	s := NewFaulty(in.Store, func(call int) Fault {
		return []Fault{None, LostRequest, LostReply}[(call-1)%3]
	})
	note := memory.Note{Content: "x"}
	require.NoError(t, s.Remember(ctx, "a", note))
	require.ErrorIs(t, s.Remember(ctx, "a", note), ErrLost)
	require.ErrorIs(t, s.Remember(ctx, "a", note), ErrLost)
	ns, err := in.Store.Recall(ctx, "a", "", "", 9)
	require.NoError(t, err)
	assert.Len(t, ns, 2, "the lost request had no effect, the lost reply had")
	calls, lost := s.Calls()
	assert.Equal(t, []int{3, 2}, []int{calls, lost})
}

func TestFaultyCoversEveryMethod(t *testing.T) {
	ctx := context.Background()
	for _, fault := range []Fault{LostRequest, LostReply} {
		e := newEnv(t, openReference(""))
		s := NewFaulty(e.Store, FailFrom(fault, 1))
		e.Store = s
		for name, err := range e.calls(ctx) {
			assert.ErrorIs(t, err, ErrLost, name)
		}
		s.Replan(nil)
		for name, err := range e.calls(ctx) {
			assert.NoError(t, err, name)
		}
		assert.NoError(t, s.Close())
	}
}

func TestPlans(t *testing.T) {
	list := func(p Plan) (out []Fault) {
		for call := 1; call <= 4; call++ {
			out = append(out, p(call))
		}
		return out
	}
	assert.Equal(t, []Fault{None, LostReply, None, LostReply}, list(FailAt(LostReply, 2, 4)))
	assert.Equal(t, []Fault{None, None, LostRequest, LostRequest}, list(FailFrom(LostRequest, 3)))
	assert.Equal(t, list(FailRandomly(7, 0.4, 0.4)), list(FailRandomly(7, 0.4, 0.4)), "the same for the same seed")
	counts := map[Fault]int{}
	for p := FailRandomly(1, 0.2, 0.3); counts[None]+counts[LostRequest]+counts[LostReply] < 10_000; {
		counts[p(0)]++
	}
	assert.InDelta(t, 2000, counts[LostRequest], 200)
	assert.InDelta(t, 3000, counts[LostReply], 200)
}

// The wrapper adds nothing of its own.
func TestFaultyWithoutPlanIsTheStore(t *testing.T) {
	Run(t, func(tb testing.TB) Instance {
		in := openReference("")(tb)
		in.Store = NewFaulty(in.Store, nil)
		return in
	})
}

package txn_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// clauses draws conditions and writes over few keys, so that they meet.
func clauses(t *rapid.T, label string) []txn.Clause {
	one := rapid.Custom(func(t *rapid.T) txn.Clause {
		state := rapid.SampledFrom([]string{"", "x", "y"})
		small := rapid.Int64Range(-4, 4)
		return txn.Clause{
			Op:    rapid.SampledFrom([]txn.Op{txn.Expect, txn.Count, txn.Have, txn.Take, txn.Time, txn.Put, txn.Set, txn.Event, txn.Pend, txn.Read}).Draw(t, "op"),
			Scope: rapid.SampledFrom([]txn.Scope{txn.Task, txn.Agent}).Draw(t, "scope"),
			Key:   rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"),
			From:  state.Draw(t, "from"), To: state.Draw(t, "to"), Val: state.Draw(t, "val"),
			N: small.Draw(t, "n"), Min: small.Draw(t, "min") - 3, Max: small.Draw(t, "max") + 3,
			Soft: rapid.Bool().Draw(t, "soft"),
		}
	})
	x := &txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain}
	for _, c := range rapid.SliceOfN(one, 0, 6).Draw(t, label) {
		x.Add(c)
		if x.Check() != nil {
			x.Clauses = x.Clauses[:len(x.Clauses)-1]
		}
	}
	return x.Clauses
}

func clone(s txn.State) txn.State {
	return txn.State{Task: s.Task.Clone(), Record: s.Record.Clone(), Agent: s.Agent.Clone()}
}

func reached(t *rapid.T) txn.State {
	s := txn.NewState()
	for i := range 5 {
		s.Apply(clauses(t, fmt.Sprint("before", i)), int64(i))
	}
	return s
}

// Any transaction on any state: refused, it changes nothing and names a condition that does not hold; accepted, every
// condition held before, and writing alone gives the same state.
func TestApplyIsAllOrNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := reached(t)
		cs, before := clauses(t, "clauses"), clone(s)
		i := s.Apply(cs, 5)
		if i >= 0 {
			require.Equal(t, before, s)
			require.False(t, s.Holds(&cs[i], 5))
		}
		for j := range cs {
			if i < 0 || j < i {
				require.True(t, before.Holds(&cs[j], 5))
			}
		}
		if i < 0 {
			before.Replay(cs, 5)
			require.Equal(t, before, s)
		}
	})
}

// Any accepted transaction: what changed is in the scopes that Raises names, and under the keys that Names names.
func TestWritesStayWhereTheyAreAnnounced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := reached(t)
		cs, before := clauses(t, "clauses"), clone(s)
		s.Replay(cs, 5)
		raised, start := map[txn.Scope]bool{}, clone(before)
		for i := range cs {
			c := &cs[i]
			raised[c.Raises()] = true
			cells, counters, tokens := c.Names()
			if cells {
				level(before.Space(c.Scope).Cells, s.Space(c.Scope).Cells, c.Key)
			}
			if counters {
				level(before.Space(c.Scope).Counters, s.Space(c.Scope).Counters, c.Key)
			}
			if tokens {
				level(before.Space(c.Scope).Tokens, s.Space(c.Scope).Tokens, c.Key)
			}
		}
		require.Equal(t, before, s, "apart from the keys named")
		for _, sc := range []txn.Scope{txn.Task, txn.Agent} {
			if !raised[sc] {
				require.Equal(t, start.Space(sc), s.Space(sc), "a write that no revision tells of")
			}
		}
	})
}

func level[V any](to, from map[string]V, key string) {
	if v, ok := from[key]; ok {
		to[key] = v
	} else {
		delete(to, key)
	}
}

func TestRaises(t *testing.T) {
	for _, c := range []struct {
		c    txn.Clause
		want txn.Scope
	}{
		{txn.Clause{Op: txn.Put, Scope: txn.Task}, txn.Task},
		{txn.Clause{Op: txn.Put, Scope: txn.Record}, txn.Task},
		{txn.Clause{Op: txn.Set, Scope: txn.Agent}, txn.Agent},
		{txn.Clause{Op: txn.Take, Scope: txn.Agent, Soft: true}, txn.Agent},
		{txn.Clause{Op: txn.Count, Scope: txn.Task, N: 1}, txn.Task},
		{txn.Clause{Op: txn.Count, Scope: txn.Task}, 0},
		{txn.Clause{Op: txn.Pend}, txn.Agent},
		{txn.Clause{Op: txn.Trim}, txn.Agent},
		{txn.Clause{Op: txn.Event, Scope: txn.Agent}, 0},
		{txn.Clause{Op: txn.Queue}, 0},
		{txn.Clause{Op: txn.Read, Scope: txn.Task}, 0},
		{txn.Clause{Op: txn.Expect, Scope: txn.Task}, 0},
		{txn.Clause{Op: txn.Have, Scope: txn.Agent}, 0},
	} {
		assert.Equal(t, c.want, c.c.Raises(), "%c %c", c.c.Op, c.c.Scope)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	s := txn.NewState()
	s.Replay([]txn.Clause{{Op: txn.Put, Scope: txn.Task, Key: "k", Val: "x"}, {Op: txn.Count, Scope: txn.Task, Key: "k", N: 1},
		{Op: txn.Set, Scope: txn.Task, Key: "k", To: "s"}}, 1)
	c := s.Task.Clone()
	require.Equal(t, s.Task, c)
	clear(c.Cells)
	clear(c.Counters)
	clear(c.Tokens)
	assert.Equal(t, []int{1, 1, 1}, []int{len(s.Task.Cells), len(s.Task.Counters), len(s.Task.Tokens)})
}

func TestLive(t *testing.T) {
	assert.True(t, txn.Token{}.Live(5), "never expires")
	assert.True(t, txn.Token{Exp: 6}.Live(5))
	assert.False(t, txn.Token{Exp: 5}.Live(5), "over when its time has come")
	assert.True(t, txn.Lease{Phase: txn.Begin, Until: 6}.Live(5))
	assert.False(t, txn.Lease{Phase: txn.Begin, Until: 5}.Live(5))
	assert.False(t, txn.Lease{Phase: txn.Settle, Until: 6}.Live(5), "it ended")
}

// A budget in two clauses: the most that may be granted, and a version that must not have moved.
func ExampleState_Apply() {
	s := txn.NewState()
	reserve := []txn.Clause{
		{Op: txn.Expect, Scope: txn.Task, Key: "policy", N: 0},
		{Op: txn.Count, Scope: txn.Task, Key: "granted", N: 30, Max: 50},
	}
	fmt.Println("first:", s.Apply(reserve, 1), s.Task.Counters["granted"])
	fmt.Println("again: clause", s.Apply(reserve, 2), "does not hold,", s.Task.Counters["granted"])
	// Output:
	// first: -1 30
	// again: clause 1 does not hold, 30
}

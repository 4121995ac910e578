package txn_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

func put(sc txn.Scope, key string) txn.Clause { return txn.Clause{Op: txn.Put, Scope: sc, Key: key} }

func plain(cs ...txn.Clause) *txn.Txn {
	return &txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain, Clauses: cs}
}

// seen is a snapshot at revisions 5 and 7.
func seen() *txn.Snapshot {
	s := txn.NewSnapshot()
	s.Task.Rev, s.Agent.Rev = 5, 7
	s.Pending = []txn.Pending{{Seq: 1}}
	return s
}

func TestAdvanceNoticesWhatItMissed(t *testing.T) {
	fresh := func(task, agent int64) *txn.Snapshot {
		f := txn.NewSnapshot()
		f.Task.Rev, f.Agent.Rev = task, agent
		return f
	}
	read := txn.Clause{Op: txn.Read, Scope: txn.Task, Key: "r"}
	for _, c := range []struct {
		name    string
		x       *txn.Txn
		r       txn.Reply
		gap     bool
		applied bool
	}{
		{"in order", plain(put(txn.Task, "k")), txn.Reply{OK: true, TaskRev: 6, AgentRev: 7}, false, true},
		{"both spaces", plain(put(txn.Task, "k"), put(txn.Agent, "k")), txn.Reply{OK: true, TaskRev: 6, AgentRev: 8}, false, true},
		{"somebody wrote to the task", plain(put(txn.Task, "k")), txn.Reply{OK: true, TaskRev: 7, AgentRev: 7}, true, true},
		{"somebody wrote to the agent, this did not", plain(put(txn.Task, "k")), txn.Reply{OK: true, TaskRev: 6, AgentRev: 8}, true, true},
		{"somebody wrote, this only appended", plain(txn.Clause{Op: txn.Event, Scope: txn.Task}), txn.Reply{OK: true, TaskRev: 6, AgentRev: 7}, true, false},
		{"overtaken", plain(put(txn.Task, "k")), txn.Reply{OK: true, TaskRev: 5, AgentRev: 7}, true, false},
		{"a repeat", plain(put(txn.Task, "k")), txn.Reply{OK: true, Replay: true, TaskRev: 6, AgentRev: 7}, true, false},
		{"without a task", &txn.Txn{Agent: "a", Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Pend}}}, txn.Reply{OK: true, AgentRev: 8}, false, false},
		{"with values, in order", plain(read), txn.Reply{OK: true, TaskRev: 5, AgentRev: 7, Fresh: fresh(5, 7)}, false, false},
		{"with values and a write, in order", plain(put(txn.Task, "x"), read), txn.Reply{OK: true, TaskRev: 6, AgentRev: 7, Fresh: fresh(6, 7)}, false, false},
		{"with values, somebody wrote", plain(read), txn.Reply{OK: true, TaskRev: 6, AgentRev: 7, Fresh: fresh(6, 7)}, true, false},
		{"with values, without a task", &txn.Txn{Agent: "a", Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Read, Scope: txn.Agent, Key: "r"}}},
			txn.Reply{OK: true, AgentRev: 7, Fresh: fresh(0, 7)}, false, false},
	} {
		s := seen()
		s.Advance(c.x, c.r)
		assert.Equal(t, c.gap, s.Gap, c.name)
		_, has := s.Task.Cells["k"]
		assert.Equal(t, c.applied, has, c.name)
		if !c.gap {
			assert.Equal(t, c.r.AgentRev, s.Agent.Rev, c.name)
			assert.Equal(t, c.r.Pending, s.Pending, c.name)
		}
	}
}

// What was observed is not forgotten because somebody folded it into a cell that this snapshot has not seen.
func TestPendingOutcomesOutliveAGap(t *testing.T) {
	s := seen()
	s.Advance(plain(put(txn.Task, "k")), txn.Reply{OK: true, TaskRev: 6, AgentRev: 9, Pending: []txn.Pending{{Seq: 3}}})
	assert.Equal(t, []txn.Pending{{Seq: 1}, {Seq: 3}}, s.Pending)
	s = seen()
	s.Advance(plain(txn.Clause{Op: txn.Trim, N: 1}), txn.Reply{OK: true, TaskRev: 5, AgentRev: 8})
	assert.Empty(t, s.Pending, "its own trim it has seen")
}

func TestMergeKeepsToTheNameSpaceOfTheClause(t *testing.T) {
	s, fresh := seen(), txn.NewSnapshot()
	s.Task.Cells["k"], s.Task.Counters["k"], s.Task.Tokens["k"] = txn.Cell{Ver: 1}, 1, txn.Token{State: "x"}
	fresh.Task.Rev, fresh.Agent.Rev = 5, 7
	fresh.Leases["i"] = txn.Lease{Fence: 2}
	s.Merge(fresh, []txn.Clause{{Op: txn.Count, Scope: txn.Task, Key: "k"}, {Op: txn.Queue, Key: "k"}, {Op: txn.Event, Scope: txn.Task}})
	assert.Equal(t, map[string]txn.Cell{"k": {Ver: 1}}, s.Task.Cells)
	assert.Empty(t, s.Task.Counters, "absent is a value too")
	assert.Len(t, s.Task.Tokens, 1)
	assert.EqualValues(t, 2, s.Leases["i"].Fence)
	assert.False(t, s.Gap)
	s.Merge(fresh, []txn.Clause{{Op: txn.Read, Scope: txn.Task, Key: "k"}})
	assert.Empty(t, s.Task.Cells)
	assert.Empty(t, s.Task.Tokens)
	s.Merge(nil, nil)
	fresh.Agent.Rev = 8
	s.Merge(fresh, nil)
	assert.True(t, s.Gap, "somebody wrote")
}

// Any order of replies: a snapshot without a gap is the state of the store.
func TestAdvanceInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, s := txn.NewState(), txn.NewSnapshot()
		type sent struct {
			x *txn.Txn
			r txn.Reply
		}
		var flying []sent
		for i := range int64(8) {
			x := plain(clauses(t, "clauses")...)
			if store.Apply(x.Clauses, i) >= 0 {
				continue
			}
			raise := map[txn.Scope]int64{}
			for j := range x.Clauses {
				raise[x.Clauses[j].Raises()] = 1
			}
			store.Task.Rev += raise[txn.Task]
			store.Agent.Rev += raise[txn.Agent]
			flying = append(flying, sent{x, txn.Reply{OK: true, Now: i, TaskRev: store.Task.Rev, AgentRev: store.Agent.Rev}})
			if rapid.Bool().Draw(t, "arrives") {
				j := rapid.IntRange(0, len(flying)-1).Draw(t, "which")
				s.Advance(flying[j].x, flying[j].r)
				flying = append(flying[:j], flying[j+1:]...)
			}
		}
		if !s.Gap && s.Task.Rev == store.Task.Rev && s.Agent.Rev == store.Agent.Rev {
			require.Equal(t, store, s.State)
		}
	})
}

// A snapshot without maps is an empty one: they are made when something is learned.
func TestAnEmptySnapshotNeedsNoMaps(t *testing.T) {
	s, fresh := &txn.Snapshot{}, txn.NewSnapshot()
	fresh.Task.Cells["k"], fresh.Leases["i"] = txn.Cell{Ver: 3, Val: "v"}, txn.Lease{Fence: 1}
	s.Merge(fresh, []txn.Clause{{Op: txn.Read, Scope: txn.Task, Key: "k"}})
	assert.Equal(t, int64(3), s.Task.Cells["k"].Ver)
	assert.Contains(t, s.Leases, "i")
	cs := []txn.Clause{{Op: txn.Put, Scope: txn.Record, Key: "k"}, {Op: txn.Count, Scope: txn.Record, Key: "k", N: 1, Max: 1},
		{Op: txn.Set, Scope: txn.Record, Key: "k", To: "x"}, {Op: txn.Take, Scope: txn.Agent, Key: "k", To: "y"}}
	assert.Equal(t, -1, s.Apply(cs, 1))
	assert.Len(t, s.Record.Cells, 1)
	assert.Len(t, s.Record.Counters, 1)
	assert.Len(t, s.Record.Tokens, 1)
	assert.Equal(t, "y", s.Agent.Tokens["k"].State)
	assert.NotNil(t, txn.Space{}.Clone().Cells)
}

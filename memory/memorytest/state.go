package memorytest

import (
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// everything is all that can be seen of an agent's task without its clock: what two stores, or two moments, are compared
// by.
type everything struct {
	Task, Record, Agent txn.Space
	Pending             []txn.Pending
	OfTask, OfAgent     []txn.Stored
	Queues              map[string][]txn.Queued
	Leases              map[string]txn.Lease
}

// look names the cold cells, the intents and the queues that see reads.
type look struct{ record, intents, queues []string }

func see(tb testing.TB, s memory.Store, agent, task string, at look) everything {
	tb.Helper()
	ctx := context.Background()
	sn, err := s.Load(ctx, agent, task, nil)
	require.NoError(tb, err)
	out := everything{Task: full(sn.Task), Agent: full(sn.Agent), Record: txn.NewSpace(), Pending: none(sn.Pending),
		Queues: map[string][]txn.Queued{}, Leases: map[string]txn.Lease{}}
	out.OfTask, err = s.Records(ctx, agent, task, 1, 1<<20)
	require.NoError(tb, err)
	out.OfAgent, err = s.Records(ctx, agent, "", 1, 1<<20)
	require.NoError(tb, err)
	out.OfTask, out.OfAgent = none(out.OfTask), none(out.OfAgent)
	for _, q := range at.queues {
		ms, err := s.Queued(ctx, agent, q, txn.Queued{}, false, 1<<20)
		require.NoError(tb, err)
		out.Queues[q] = none(ms)
	}
	t := &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain}
	for _, key := range at.record {
		t.Add(txn.Clause{Op: txn.Read, Scope: txn.Record, Key: key})
	}
	if len(at.record) > 0 {
		r, err := s.Apply(ctx, t)
		require.NoError(tb, err)
		require.NotNil(tb, r.Fresh)
		out.Record = full(r.Fresh.Record)
		out.Record.Rev = 0 // counted with the task's
	}
	for _, i := range at.intents {
		r, err := s.Apply(ctx, &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain, Intent: i,
			Clauses: []txn.Clause{{Op: txn.Read, Scope: txn.Task, Key: "nothing"}}})
		require.NoError(tb, err)
		require.NotNil(tb, r.Fresh)
		maps.Copy(out.Leases, r.Fresh.Leases)
	}
	return out
}

// full replaces nil maps by empty ones, none an empty slice by nil: stores may return either.
func full(s txn.Space) txn.Space {
	n := txn.NewSpace()
	n.Rev = s.Rev
	maps.Copy(n.Cells, s.Cells)
	maps.Copy(n.Counters, s.Counters)
	maps.Copy(n.Tokens, s.Tokens)
	return n
}

func none[E any](s []E) []E {
	if len(s) == 0 {
		return nil
	}
	return s
}

// plainReply is the reply in the one form that replies are compared in. Which condition failed is left out where it was
// one of the clauses: a store may check them in an order of its own.
func plainReply(r txn.Reply) txn.Reply {
	r.Pending = none(r.Pending)
	r.Failed = min(r.Failed, 0)
	if r.Fresh != nil {
		f := *r.Fresh
		f.Task, f.Record, f.Agent = full(f.Task), full(f.Record), full(f.Agent)
		f.Record.Rev = 0
		f.Pending, f.Leases = none(f.Pending), maps.Clone(f.Leases)
		if f.Leases == nil {
			f.Leases = map[string]txn.Lease{}
		}
		r.Fresh = &f
	}
	return r
}

package delta_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// A prune that breaks off behind the drop of a ledger leaves the id free and a queue that names it: the task that is begun
// under it is not taken for the one that was pruned, neither while it runs nor once it has ended.
func TestPruneBrokenOffAndTheIDUsedAnew(t *testing.T) {
	o := newOld(t, 1)
	o.age(48 * time.Hour)
	o.store.passes.Store(2) // of the transactions: that it prunes, and the checkpoint
	_, err := o.prune(delta.Pruning{})
	require.Error(t, err)
	o.store.passes.Store(1 << 40)

	again, err := o.engine.Start(t.Context(), delta.Goal{ID: "t0", Agent: o.agent, Approvers: []string{"ana"}})
	require.NoError(t, err, "the id is free")
	_, err = o.prune(delta.Pruning{})
	require.NoError(t, err, "and does not keep others from being pruned")
	require.NoError(t, again.Done(t.Context(), "done"))
	require.NoError(t, o.engine.Sync(t.Context()))
	o.age(2 * time.Hour)
	out, err := o.prune(delta.Pruning{})
	require.NoError(t, err)
	assert.Empty(t, out.Pruned, "it is not as old as was asked for")
	records, _, err := o.engine.Ledger(t.Context(), "desk~t0")
	require.NoError(t, err)
	assert.NotEmpty(t, records)
	o.age(48 * time.Hour)
	out, err = o.prune(delta.Pruning{})
	require.NoError(t, err)
	require.Len(t, out.Pruned, 1)
	assert.Equal(t, []string{"t0 9", "t0 2"}, o.checkpoints(), "each by a checkpoint of its own")
}

// Of two prunes at once the one that began last goes on. The other writes no second checkpoint, and drops nothing that took
// the id meanwhile.
func TestOfTwoPrunesOneGoesOn(t *testing.T) {
	o := newOld(t, 1)
	o.age(48 * time.Hour)
	_, err := o.prune(delta.Pruning{Export: func(context.Context, delta.Pruned, []txn.Stored) error {
		_, err := o.prune(delta.Pruning{})
		require.NoError(t, err)
		o.task("t0", "b")
		return nil
	}})
	require.ErrorIs(t, err, delta.ErrPruning)
	assert.Equal(t, []string{"t0 9"}, o.checkpoints())
	records, _, err := o.engine.Ledger(t.Context(), "desk~t0")
	require.NoError(t, err)
	assert.NotEmpty(t, records)
}

// A pruner that died, and so never said that it is done, keeps nobody from pruning: the next one goes on at once.
func TestADeadPrunerBlocksNobody(t *testing.T) {
	for _, c := range []struct {
		name   string
		passes int64
	}{{"before the checkpoint", 1}, {"behind the checkpoint", 2}} {
		t.Run(c.name, func(t *testing.T) {
			o := newOld(t, 1)
			o.age(48 * time.Hour)
			o.store.passes.Store(c.passes)
			_, err := o.prune(delta.Pruning{})
			require.Error(t, err)
			require.NotErrorIs(t, err, delta.ErrPruning)
			o.store.passes.Store(1 << 40)
			out, err := o.prune(delta.Pruning{})
			require.NoError(t, err)
			assert.Len(t, append(out.Resumed, make([]string, len(out.Pruned))...), 1, "pruned, or the drop that broke off is done")
			assert.Equal(t, []string{"t0 9"}, o.checkpoints(), "one checkpoint whoever wrote it")
		})
	}
}

// An export that takes longer than it is remembered who prunes ends the run before anything is dropped; the next one goes on.
func TestAPrunerThatTakesADayForOneLedger(t *testing.T) {
	o := newOld(t, 1)
	o.age(48 * time.Hour)
	_, err := o.prune(delta.Pruning{Export: func(context.Context, delta.Pruned, []txn.Stored) error {
		o.age(25 * time.Hour)
		return nil
	}})
	require.ErrorIs(t, err, delta.ErrPruning)
	assert.Empty(t, o.checkpoints())
	out, err := o.prune(delta.Pruning{})
	require.NoError(t, err)
	assert.Len(t, out.Pruned, 1)
}

// A parent whose id was used anew does not meet the children of the one before: not what they came to, and not what an
// operator finds that they cost.
func TestChildrenOfAPrunedParentAreNotTheNextOnes(t *testing.T) {
	for _, order := range []string{"a", "lost"} { // of the second an outcome is unknown, so its state stays
		o := newOld(t, 0)
		worker := delta.NewAgent("worker").Grant(o.act).MustBuild()
		require.NoError(t, o.engine.Register(worker))
		begin := func() (*delta.Task, *delta.Child, *delta.Task) {
			p, err := o.engine.Start(t.Context(), delta.Goal{ID: "p", Agent: o.agent, Approvers: []string{"ana"}, Limit: action.Limit{Calls: action.Max(9)}})
			require.NoError(t, err)
			c, err := p.Delegate(t.Context(), delta.Goal{ID: "c", Agent: worker, Text: "do it", Limit: action.Limit{Calls: action.Max(5)}})
			require.NoError(t, err)
			work, err := c.Task(t.Context())
			require.NoError(t, err)
			return p, c, work
		}
		p, _, work := begin()
		out, err := work.Do(t.Context(), delta.Call{Action: "act", Input: []byte(`{"order":"` + order + `"}`)}).Get()
		require.NoError(t, err)
		require.NoError(t, work.Conclude(t.Context(), action.Reached, "done"))
		require.NoError(t, p.Done(t.Context(), "done"))
		require.NoError(t, o.engine.Sync(t.Context()))
		o.age(48 * time.Hour)
		pruned, err := o.prune(delta.Pruning{})
		require.NoError(t, err)
		require.Len(t, pruned.Pruned, 1)

		p, c, next := begin()
		assert.NotEqual(t, work.ID(), next.ID())
		s, err := c.Standing(t.Context())
		require.NoError(t, err)
		assert.Equal(t, delta.ChildActive, s.State)
		assert.False(t, s.Reached())
		if order == "lost" {
			require.NoError(t, work.Resolve(t.Context(), out.Intent, o.by, true, []byte(`"done"`), action.Cost{Calls: 4}, "looked"))
		}
		b, err := p.Budget(t.Context())
		require.NoError(t, err)
		assert.Zero(t, b.Spent.Calls, "the new parent pays for nothing that was before it")
		require.NoError(t, next.Done(t.Context(), "done"))
		b, err = p.Budget(t.Context())
		require.NoError(t, err)
		assert.Zero(t, b.Reserved.Calls, "and gets its grant back")
	}
}

package engine

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// sealOwn links the agent's own ledger to its end.
func (d *desk) sealOwn() []txn.Stored {
	records := d.records("")
	base, err := ledger.BaseIn(records)
	require.NoError(d, err)
	prev := ledger.Genesis(d.agent.Name, "")
	if base.Seq > 0 {
		prev = base.Link
	}
	t, _ := Seal(d.agent.Name, "", prev, records)
	d.must(t)
	return d.records("")
}

// pruneOwn prunes the first n of the agent's own records.
func (d *desk) pruneOwn(n int) Cut {
	records := d.sealOwn()
	c, err := Carry(d.rules, d.agent, records, n)
	require.NoError(d, err)
	d.must(PruneOwn(d.load(), d.agent.Name, &c, "", d.who()))
	d.sealOwn()
	require.NoError(d, d.store.Cut(context.Background(), d.agent.Name, c.Base.Seq))
	return c
}

// Whatever is pruned of an agent's own ledger, however often: what is left folds to what the store holds, and verifies.
func TestI14_APrunedLedgerFoldsToTheSame(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := newShift(r)
		whole := []txn.Stored{}
		for range rapid.IntRange(1, 3).Draw(r, "rounds") {
			for range 10 {
				s.step()
			}
			s.fold()
			records := s.sealOwn()
			if len(records) > 1 {
				c := s.pruneOwn(rapid.IntRange(1, len(records)-1).Draw(r, "n"))
				for _, x := range records {
					if int(x.Seq) == len(whole)+1 {
						whole = append(whole, x)
					}
				}
				log, err := ledger.NewLog(whole)
				require.NoError(r, err)
				root, err := log.Root(c.Base.Seq)
				require.NoError(r, err)
				got, err := c.Base.Root()
				require.NoError(r, err)
				require.Equal(r, root, got, "the tree is that of the whole ledger")
			}
			left := s.sealOwn()
			report, err := ledger.VerifyFrom(s.agent.Name, "", left)
			require.NoError(r, err)
			require.Zero(r, report.Unsealed)
			diffs, err := CompareBeliefs(s.rules, s.agent, left, s.load())
			require.NoError(r, err)
			require.Empty(r, diffs)
			state, err := FoldLedger(left)
			require.NoError(r, err)
			for key, c := range state.Agent.Cells {
				require.Equal(r, s.load().Agent.Cells[key].Val, c.Val, key)
			}
			seq, link, err := CutAt(s.load())
			require.NoError(r, err)
			if len(left) > 0 && left[0].Seq > 1 {
				require.Equal(r, left[0].Seq-1, seq)
				require.Equal(r, left[0].Link, ledger.Link(link, left[0]))
			}
		}
	})
}

// Configurations that later records name are carried over, and so are cells that earlier ones put.
func TestCarryKeepsWhatLaterRecordsRestOn(t *testing.T) {
	d := open(t, plain())
	tuned := risk.Config{Slope: 0.5}
	m, err := risk.New(tuned)
	require.NoError(t, err)
	d.rules.Model, d.rules.Estimator = m, Estimator(tuned)
	x, err := Configure(d.load(), d.agent.Name, Configuration{Estimator: Estimator(tuned), Risk: &tuned}, d.who())
	require.NoError(t, err)
	d.must(x)
	for range 3 {
		d.learn("confirm", true)
		d.fold()
	}
	d.pruneOwn(2)
	d.learn("confirm", false)
	d.fold()
	left := d.sealOwn()
	others := &Rules{Model: model}
	diffs, err := CompareBeliefs(others, d.agent, left, d.load())
	require.NoError(t, err)
	assert.Empty(t, diffs, "whoever is not tuned so folds it too")
	names, err := EstimatorsOf(left)
	require.NoError(t, err)
	assert.Equal(t, []string{Estimator(tuned)}, names)
	state, err := FoldLedger(left)
	require.NoError(t, err)
	snap := txn.NewSnapshot()
	*snap.Space(txn.Agent) = state.Agent
	have, err := ReadConfiguration(snap)
	require.NoError(t, err)
	assert.Equal(t, Estimator(tuned), have.Estimator)

	spoilt := append([]txn.Stored{}, left...)
	for i := range spoilt {
		e, err := ledger.Decode(spoilt[i].Val)
		require.NoError(t, err)
		if e.Type == ledger.LedgerPruned {
			e.State = json.RawMessage(`{"trust":"AAAA"}`)
			spoilt[i].Val, err = ledger.Encode(e)
			require.NoError(t, err)
		}
	}
	_, err = FoldBeliefs(others, d.agent, spoilt)
	assert.ErrorContains(t, err, "checkpoint")
	_, err = FoldBeliefs(others, d.agent, left[1:])
	var broken *ledger.BrokenError
	assert.ErrorAs(t, err, &broken, "more was taken than the checkpoint says")
}

func TestCutAtReadsNothingElse(t *testing.T) {
	snap := txn.NewSnapshot()
	seq, _, err := CutAt(snap)
	require.NoError(t, err)
	assert.Zero(t, seq)
	for _, text := range []string{"x", "7", "0 ab", "-1 ab", "7 "} {
		snap.Agent.Cells[cellCut] = txn.Cell{Val: text}
		_, _, err = CutAt(snap)
		assert.Error(t, err, text)
	}
}

package delta_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

func (f *faint) Cut(ctx context.Context, agent string, upto int64) error {
	if f.forgets.Add(-1) < 0 {
		return errFaint
	}
	return f.InProcess.Cut(ctx, agent, upto)
}

// busy makes the agent's own ledger long, with records that are old and some that are not.
func (o *old) busy(name string) {
	for i := range 16 {
		o.task(fmt.Sprint(name, i), "a", "b")
	}
	o.age(48 * time.Hour)
	o.task(name+"-young", "a")
	require.NoError(o, o.engine.Sync(o.Context()))
}

func (o *old) pruneOwn(p delta.OwnPruning) (delta.OwnPruned, error) {
	p.Agent, p.By = "desk", o.by
	if p.Before.IsZero() {
		p.Before = o.now().Add(-24 * time.Hour)
	}
	return o.engine.PruneOwn(o.Context(), p)
}

func (o *old) own() ([]txn.Stored, ledger.Report) {
	records, report, err := o.engine.Ledger(o.Context(), "desk")
	require.NoError(o, err)
	return records, report
}

func TestPruneOwnLeavesASignedCheckpoint(t *testing.T) {
	o := newOld(t, 0)
	o.busy("b")
	whole, _ := o.own()
	risks, err := o.engine.Risks(t.Context(), "desk")
	require.NoError(t, err)
	secret, public, err := ledger.NewKey(rand.Reader, "audit.example.org")
	require.NoError(t, err)
	signer, err := ledger.NewSigner(secret)
	require.NoError(t, err)
	var file bytes.Buffer
	out, err := o.pruneOwn(delta.OwnPruning{
		Reason: "retention",
		Export: func(_ context.Context, base ledger.Base, records []txn.Stored) error {
			x := ledger.NewExporterFrom(&file, "desk", "", base)
			for _, r := range records {
				require.NoError(t, x.Add(r))
			}
			_, err := x.End()
			return err
		},
		Sign: func(h ledger.Head, state []byte) (string, error) { return ledger.SignCheckpoint(h, state, signer) },
	})
	require.NoError(t, err)
	require.Positive(t, out.Records)
	require.Less(t, out.Records, int64(len(whole)), "what is young stays")
	require.False(t, out.Resumed)

	left, report := o.own()
	require.Equal(t, out.Upto+1, left[0].Seq)
	require.Equal(t, out.Upto, report.Pruned)
	e, err := ledger.CheckpointIn(left)
	require.NoError(t, err)
	assert.Equal(t, "ana", e.Identity)
	assert.Equal(t, "retention", e.Reason)
	exported, err := ledger.NewImporter(&file).Next()
	require.NoError(t, err)
	require.Equal(t, whole[:out.Records], exported.Records)
	require.NoError(t, ledger.OpenCheckpoint(e.Text, exported.Head, e.State, public), "the note is of the head that was exported")

	// What was learned is what it was, and goes on; the checkpoint is sealed by whoever opens the store next.
	again, err := o.engine.Risks(t.Context(), "desk")
	require.NoError(t, err)
	assert.Equal(t, risks, again)
	o.task("later", "a", "b")
	second, err := o.pruneOwn(delta.OwnPruning{})
	require.NoError(t, err)
	assert.Zero(t, second, "nothing more is old")
	o.age(48 * time.Hour)
	o.busy("c")
	second, err = o.pruneOwn(delta.OwnPruning{})
	require.NoError(t, err)
	assert.Greater(t, second.Upto, out.Upto)
	_, report = o.own()
	assert.Equal(t, second.Upto, report.Pruned)
	assert.Zero(t, report.Unsealed)
}

// A run that breaks off anywhere is simply repeated: nothing is dropped without a checkpoint, and none is written twice.
func TestPruneOwnBreaksOffAnywhere(t *testing.T) {
	for n := range int64(4) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			o := newOld(t, 0)
			o.busy("b")
			whole, _ := o.own()
			o.store.passes.Store(n)
			o.store.forgets.Store(0)
			_, err := o.pruneOwn(delta.OwnPruning{})
			require.ErrorIs(t, err, errFaint)
			o.store.passes.Store(1 << 40)
			o.store.forgets.Store(1 << 40)
			between, _ := o.own()
			require.EqualValues(t, 1, between[0].Seq, "nothing was dropped")
			out, err := o.pruneOwn(delta.OwnPruning{})
			require.NoError(t, err)
			require.Positive(t, out.Records)
			left, report := o.own()
			require.Equal(t, out.Upto+1, left[0].Seq)
			require.Zero(t, report.Unsealed)
			checkpoints := 0
			for _, r := range left {
				e, err := ledger.Decode(r.Val)
				require.NoError(t, err)
				if e.Type == ledger.LedgerPruned {
					checkpoints++
				}
			}
			require.Equal(t, 1, checkpoints)
			require.Greater(t, len(whole), len(left))
		})
	}
}

func TestPruneOwnDropsNothingThatIsNotWhole(t *testing.T) {
	o := newOld(t, 0)
	o.busy("b")
	whole, _ := o.own()
	same := func(reason string) {
		t.Helper()
		left, _, err := o.engine.Ledger(t.Context(), "desk")
		require.NoError(t, err)
		require.Len(t, left, len(whole), reason)
	}
	_, err := o.pruneOwn(delta.OwnPruning{Export: func(context.Context, ledger.Base, []txn.Stored) error { return errors.New("the disk is full") }})
	require.ErrorContains(t, err, "the disk is full")
	same("it was not exported")
	_, err = o.pruneOwn(delta.OwnPruning{Sign: func(ledger.Head, []byte) (string, error) { return "", errors.New("no key") }})
	require.ErrorContains(t, err, "no key")
	same("it was not signed")
	_, err = o.engine.PruneOwn(t.Context(), delta.OwnPruning{Agent: "desk", Before: o.now()})
	require.ErrorIs(t, err, delta.ErrNobody)
	_, err = o.engine.PruneOwn(t.Context(), delta.OwnPruning{Agent: "nobody", By: o.by, Before: o.now()})
	require.ErrorContains(t, err, "not registered")
	_, err = o.engine.PruneOwn(t.Context(), delta.OwnPruning{Agent: "desk", By: o.by})
	require.ErrorContains(t, err, "before when")
	_, err = o.store.InProcess.Apply(t.Context(), &txn.Txn{Agent: "desk", Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Put, Scope: txn.Agent, Key: "belief/act", Val: "\x01"}}})
	require.NoError(t, err)
	_, err = o.pruneOwn(delta.OwnPruning{})
	require.ErrorContains(t, err, "not the fold of the ledger")
	same("what is believed does not follow from it")
}

// A few records are not worth a checkpoint.
func TestPruneOwnLeavesWhatIsShort(t *testing.T) {
	o := newOld(t, 1)
	o.age(48 * time.Hour)
	out, err := o.pruneOwn(delta.OwnPruning{})
	require.NoError(t, err)
	assert.Zero(t, out)
}

// Who opens the store later seals on from the checkpoint, and who reads on from before it passes over what is gone.
func TestPrunedLedgerGoesOnElsewhere(t *testing.T) {
	o := newOld(t, 0)
	o.busy("b")
	out, err := o.pruneOwn(delta.OwnPruning{})
	require.NoError(t, err)
	other, err := delta.New(delta.Config{Store: bare{o.store.InProcess}, Now: o.now,
		Authenticator: delta.AuthenticatorFunc(func(_ context.Context, c any) (string, error) { return c.(string), nil })})
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close(context.Background())) }()
	first := o.engine
	o.engine = other
	for i := range 5 {
		o.task(fmt.Sprint("there", i), "a")
	}
	_, report := o.own()
	require.Zero(t, report.Unsealed)
	require.Equal(t, out.Upto, report.Pruned)
	o.engine = first
	_, report = o.own()
	require.Equal(t, out.Upto, report.Pruned)
	for r, err := range first.Follow(t.Context(), "desk", 2) {
		require.NoError(t, err)
		require.Equal(t, out.Upto+1, r.Seq)
		break
	}
}

// bare is a store whose closing closes nothing.
type bare struct{ memory.Store }

func (bare) Close() error { return nil }

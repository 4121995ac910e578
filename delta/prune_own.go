package delta

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// OwnPruning says how much of an agent's own ledger to drop: what was learned, declared, configured and pruned of it.
type OwnPruning struct {
	Agent  string
	Before time.Time // by the store's clock: records that are older
	By     Identity
	Reason string
	// Export is given what is about to be dropped, verified and sealed: the records, and the base of the first of them, see
	// [ledger.NewExporterFrom]. An error keeps all. It may be given some again where a run before this one did not come to its
	// end. Nil: the checkpoint alone is kept.
	Export func(ctx context.Context, base ledger.Base, records []txn.Stored) error
	// Sign returns the checkpoint as a signed note, see [ledger.SignCheckpoint]: whoever has the public key then need not trust
	// the store for what came before. It goes into the ledger with the checkpoint. Nil: it is not signed.
	Sign func(h ledger.Head, state []byte) (string, error)
}

// OwnPruned is what a run of PruneOwn did. Its zero value is nothing.
type OwnPruned struct {
	Records int64  // dropped
	Upto    int64  // number of the last of them
	Head    string // its link
	// Resumed says that a run before this one had written the checkpoint and did not come to its end. Records older than
	// Before that came later are left to the next run.
	Resumed bool
}

// PruneOwn drops the beginning of an agent's own ledger. What it comes to, beliefs above all, and the Merkle tree over it are
// carried over in a checkpoint, ledger_pruned, which is written and sealed before anything is dropped; from then on the
// ledger is verified and folded from there. A run that is interrupted is simply repeated. Nothing is dropped of a ledger
// that is not whole, or that is not what the agent's beliefs follow from, nor where the checkpoint would be larger than what
// is dropped. Readers that are behind, of Follow and audit trails, miss what is dropped.
//
// Workers must know of checkpoints: on Redis, programs older than layout 2 must be gone.
func (e *Engine) PruneOwn(ctx context.Context, p OwnPruning) (OwnPruned, error) {
	s, err := e.pruned(ctx, p.Agent, p.Before, p.By)
	if err != nil {
		return OwnPruned{}, err
	}
	defer e.inside.Done()
	store, can := e.raw().(memory.Cutter)
	if !can {
		return OwnPruned{}, errors.New("prune: this store keeps agents' own ledgers whole")
	}
	out, err := (&ownPruner{p, e, s, store}).run(ctx)
	if err != nil {
		err = fmt.Errorf("prune the own ledger of %s: %w", p.Agent, err)
	}
	return out, err
}

type ownPruner struct {
	OwnPruning
	e     *Engine
	s     *agentState
	store memory.Cutter
}

func (p *ownPruner) run(ctx context.Context) (out OwnPruned, err error) {
	if err := p.e.keeper.seal(book{p.Agent, ""}, nil); err != nil {
		return out, fmt.Errorf("seal: %w", err)
	}
	records, report, err := p.e.records(ctx, p.Agent, "")
	if err != nil || len(records) == 0 {
		return out, err
	}
	snap, err := p.e.store.Load(ctx, p.Agent, "", nil)
	if err != nil {
		return out, err
	}
	upto, link, err := engine.CutAt(snap)
	if err != nil {
		return out, err
	}
	if first := records[0].Seq; upto >= first { // its checkpoint is there
		if upto < records[len(records)-1].Seq && records[upto-first].Link != link {
			return out, fmt.Errorf("the checkpoint of the records up to %d is not of this ledger", upto)
		}
		out = OwnPruned{upto - first + 1, upto, link, true}
		return out, p.drop(ctx, upto)
	}
	n := p.old(records, report)
	if n == 0 {
		return out, nil
	}
	if err := p.stands(ctx, records); err != nil {
		return out, err
	}
	cut, err := engine.Carry(&p.e.rules, p.s.agent.compiled, records, n)
	if err != nil || !worthwhile(&cut, records[:n]) {
		return out, err
	}
	if err := p.checkpoint(ctx, snap, &cut, records, n); err != nil {
		return out, err
	}
	out = OwnPruned{int64(n), cut.Base.Seq, cut.Base.Link, false}
	return out, p.drop(ctx, cut.Base.Seq)
}

// old is how many of the records may go: those that are old enough and sealed, and never the last one.
func (p *ownPruner) old(records []txn.Stored, report ledger.Report) (n int) {
	for n < len(records)-1 && records[n].At < p.Before.UnixMicro() && records[n].Seq <= report.Sealed {
		n++
	}
	return n
}

// worthwhile reports whether the checkpoint is smaller than what is dropped for it: or a ledger that is pruned often would grow
// by that.
func worthwhile(cut *engine.Cut, records []txn.Stored) bool {
	size := 0
	for i := range records {
		size += len(records[i].Val)
	}
	return len(cut.State) < size
}

// stands checks that what the agent is known for follows from its ledger, up to the moment at which nobody writes: what is
// carried over must be what was believed.
func (p *ownPruner) stands(ctx context.Context, records []txn.Stored) error {
	f, err := engine.NewBeliefFold(&p.e.rules, p.s.agent.compiled, records)
	if err == nil {
		err = f.Add(records)
	}
	for try := 0; err == nil && try < recordPage; try++ {
		snap, err := p.e.store.Load(ctx, p.Agent, "", nil)
		if err != nil {
			return err
		}
		more, err := p.e.store.Records(ctx, p.Agent, "", f.Next(), recordPage)
		if err != nil {
			return err
		}
		if len(more) == 0 {
			if d := f.Compare(snap); len(d) > 0 {
				return fmt.Errorf("what is believed is not the fold of the ledger: %s and %d others differ; see deltactl ledger fold", d[0].Place, len(d)-1)
			}
			return nil
		}
		if more[0].Seq != f.Next() {
			return errors.New("somebody else prunes it")
		}
		if err := f.Add(more); err != nil {
			return err
		}
	}
	if err == nil {
		err = errors.New("it is written to all the time; try again when it rests")
	}
	return err
}

// checkpoint exports, signs and writes.
func (p *ownPruner) checkpoint(ctx context.Context, snap *txn.Snapshot, cut *engine.Cut, records []txn.Stored, n int) error {
	if p.Export != nil {
		base, err := ledger.BaseIn(records)
		if err == nil {
			err = p.Export(ctx, base, append([]txn.Stored(nil), records[:n]...))
		}
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
	}
	signed := ""
	if p.Sign != nil {
		head, err := cut.Base.Head(p.Agent, "")
		if err == nil {
			signed, err = p.Sign(head, cut.State)
		}
		if err != nil {
			return fmt.Errorf("sign the checkpoint: %w", err)
		}
	}
	r, err := p.e.apply(ctx, engine.PruneOwn(snap, p.Agent, cut, signed, p.e.whoIs(p.By, p.Reason)))
	switch {
	case err != nil:
		return failedStore(err)
	case !r.OK:
		return errors.New("somebody else prunes it")
	}
	return nil
}

// drop seals the checkpoint, where it is not, and drops what it is of.
func (p *ownPruner) drop(ctx context.Context, upto int64) error {
	if err := p.e.keeper.seal(book{p.Agent, ""}, nil); err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	return p.store.Cut(ctx, p.Agent, upto)
}

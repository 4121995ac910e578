package delta

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Events returns what happened in the task, in order, decoded. The chain is verified first, and compared with what this
// engine has sealed: an error names the first record that is not what was written. In place of values that
// a schema marks as secret stand keyed digests.
func (t *Task) Events(ctx context.Context) ([]ledger.Event, error) {
	records, _, err := t.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]ledger.Event, len(records))
	for i, r := range records {
		if out[i], err = ledger.Decode(r.Val); err != nil {
			return nil, fmt.Errorf("record %d of %s: %w", r.Seq, t, err)
		}
	}
	return out, nil
}

// Outcome returns what became of an intent: of a parked call that ran in Work, say. False where it has not ended, or never
// was.
func (t *Task) Outcome(ctx context.Context, intent string) (action.Outcome, bool, error) {
	own := newSight()
	if err := t.readRecord(ctx, intent, own); err != nil {
		return action.Outcome{}, false, failedStore(err)
	}
	o, ended := engine.Ended(&own.record, intent)
	o.Recorded = ended
	return t.unveil(ctx, o), ended, nil
}

// Verify checks a copy of the task's records against their hash chain, wherever the copy comes from, and against what this
// engine has sealed: a copy may be older, and lack links that came later, but what it holds must be what was sealed.
func (t *Task) Verify(records []txn.Stored) (ledger.Report, error) {
	if err := t.opened(); err != nil {
		return ledger.Report{}, err
	}
	report, err := ledger.Verify(ledger.Genesis(t.agent.name, t.local), records)
	if err != nil {
		return report, err
	}
	m := t.engine.keeper.mark(book{t.agent.name, t.local})
	err = ledger.Compare(records, report, ledger.Report{Sealed: m.seq, Head: m.link})
	var b *ledger.BrokenError
	if errors.As(err, &b) && b.Fault != ledger.Changed {
		err = nil
	}
	return report, err
}

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// evidence is what recording one call adds for later proof: its events in their canonical form, and their links. Beside it
// stands SHA-256 over the bytes of the same events.
func evidence(ctx context.Context) (pair, error) {
	d, err := chargeDesk(ctx, delta.NoTimeout)
	if err != nil {
		return pair{}, err
	}
	all, err := d.task.Events(ctx)
	if err != nil {
		return pair{}, err
	}
	var events []ledger.Event // of one call: its begin and its end
	var texts [][]byte
	var records []txn.Stored // as a store holds them: the copy into it is the store's
	for _, e := range all {
		if e.Type != ledger.Begun && e.Type != ledger.Settled || len(events) == 2 {
			continue
		}
		text, err := ledger.AppendEvent(nil, &e)
		if err != nil {
			return pair{}, err
		}
		events, texts = append(events, e), append(texts, text)
		records = append(records, txn.Stored{Seq: int64(len(events)), At: e.At, Val: string(text)})
	}
	if len(events) != 2 {
		return pair{}, fmt.Errorf("the call left %d events, want its begin and its end", len(events))
	}
	var buf []byte
	link := ledger.Genesis("clerk", "t")
	record := timed(func() (err error) {
		for i := range events {
			if buf, err = ledger.AppendEvent(buf[:0], &events[i]); err != nil {
				return err
			}
			link = ledger.Link(link, records[i])
		}
		return nil
	})
	bare := timed(func() error {
		for _, text := range texts {
			if sum := sha256.Sum256(text); sum == [sha256.Size]byte{} {
				return errors.New("the sum is zero")
			}
		}
		return nil
	})
	return pair{record, bare, d.close}, nil
}

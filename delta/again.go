package delta

import (
	"context"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// applyAgain repeats a transaction of which nobody knows whether it took effect. With a lease that is safe by itself: the
// store answers a repeat with its first answer. Without one the repeat is refused by its own conditions, as if somebody
// else had been quicker, or, having none, is written twice: a person would be told that their decision failed while it
// stands. So the ledger is asked whether the event is there, before and, because the first request may still have been on
// its way, after.
func (e *Engine) applyAgain(ctx context.Context, x *txn.Txn) (txn.Reply, error) {
	event, ok := eventOf(x)
	if x.Phase != txn.Plain || !ok {
		return e.store.Apply(ctx, x)
	}
	there, err := e.written(ctx, x, event)
	if err != nil || there {
		return txn.Reply{OK: there, Replay: there}, err
	}
	r, err := e.store.Apply(ctx, x)
	if err != nil || r.OK {
		return r, err
	}
	if there, err := e.written(ctx, x, event); err == nil && there {
		return txn.Reply{OK: true, Replay: true}, nil
	}
	return r, nil
}

// eventOf returns the first event that the transaction appends to the ledger of its task.
func eventOf(x *txn.Txn) (string, bool) {
	for i := range x.Clauses {
		if c := &x.Clauses[i]; c.Op == txn.Event && c.Scope == txn.Task {
			return c.Val, true
		}
	}
	return "", false
}

// written reports whether the task's ledger holds the event. Its worker time tells it from others of the same content.
func (e *Engine) written(ctx context.Context, x *txn.Txn, event string) (bool, error) {
	for from := int64(1); ; from += recordPage {
		page, err := e.store.Records(ctx, x.Agent, x.Task, from, recordPage)
		if err != nil {
			return false, err
		}
		for i := range page {
			if page[i].Val == event {
				return true, nil
			}
		}
		if len(page) < recordPage {
			return false, nil
		}
	}
}

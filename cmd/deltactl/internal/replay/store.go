package replay

import (
	"context"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// forgetful is a store that keeps what decisions rest on and none of the records, so that a long recording fits into
// memory: a replay reads neither a ledger nor an outcome again. Records carry no condition of a call that has no call
// id, so what is decided, run and learned is the same.
type forgetful struct{ memory.Store }

// Apply applies the transaction without its events and without what it writes to cold cells.
func (s forgetful) Apply(ctx context.Context, t *txn.Txn) (txn.Reply, error) {
	short := *t
	short.Clauses = nil
	for _, c := range t.Clauses {
		if c.Op != txn.Event && !(c.Op == txn.Put && c.Scope == txn.Record) {
			short.Clauses = append(short.Clauses, c)
		}
	}
	return s.Store.Apply(ctx, &short)
}

package delta

import (
	"context"
	"time"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// bounded is a store every access to which has a deadline, whatever context the caller brings along.
type bounded struct {
	memory.Store
	limit time.Duration // 0 where the store never waits
}

func (b bounded) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.limit == 0 {
		return ctx, func() {}
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= b.limit { // it is bounded as it is
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, b.limit)
}

func (b bounded) Apply(ctx context.Context, t *txn.Txn) (txn.Reply, error) {
	if ctx == nil {
		return txn.Reply{}, errNoContext
	}
	ctx, cancel := b.within(ctx)
	defer cancel()
	return b.Store.Apply(ctx, t)
}

func (b bounded) Load(ctx context.Context, agent, task string, have *txn.Snapshot) (*txn.Snapshot, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	ctx, cancel := b.within(ctx)
	defer cancel()
	return b.Store.Load(ctx, agent, task, have)
}

func (b bounded) Records(ctx context.Context, agent, task string, from int64, limit int) ([]txn.Stored, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	ctx, cancel := b.within(ctx)
	defer cancel()
	return b.Store.Records(ctx, agent, task, from, limit)
}

func (b bounded) Queued(ctx context.Context, agent, queue string, after txn.Queued, dueOnly bool, limit int) ([]txn.Queued, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	ctx, cancel := b.within(ctx)
	defer cancel()
	return b.Store.Queued(ctx, agent, queue, after, dueOnly, limit)
}

func (b bounded) Remember(ctx context.Context, agent string, n memory.Note) error {
	if ctx == nil {
		return errNoContext
	}
	ctx, cancel := b.within(ctx)
	defer cancel()
	return b.Store.Remember(ctx, agent, n)
}

func (b bounded) Recall(ctx context.Context, agent, tenant, query string, limit int) ([]memory.Note, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	ctx, cancel := b.within(ctx)
	defer cancel()
	return b.Store.Recall(ctx, agent, tenant, query, limit)
}

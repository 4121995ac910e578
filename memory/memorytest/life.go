package memorytest

import (
	"context"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

func lifeCases() []testCase {
	return []testCase{
		{"life/cancelled", "a caller that gave up must not be surprised by an effect", lifeCancelled},
		{"life/closed", "nothing executes without a store", lifeClosed},
	}
}

// calls are all methods but Close, as what they return.
func (e *env) calls(ctx context.Context) map[string]error {
	s, errs := e.Store, map[string]error{}
	_, errs["Apply"] = s.Apply(ctx, begin("t", "i", written()...))
	_, errs["Load"] = s.Load(ctx, "a", "t", nil)
	_, errs["Records"] = s.Records(ctx, "a", "t", 1, 9)
	_, errs["Queued"] = s.Queued(ctx, "a", "q", txn.Queued{}, false, 9)
	errs["Remember"] = s.Remember(ctx, "a", memory.Note{Content: "x"})
	_, errs["Recall"] = s.Recall(ctx, "a", "", "", 9)
	return errs
}

func lifeCancelled(e *env) {
	before := see(e, e.Store, "a", "t", wholeLook)
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	for name, err := range e.calls(ctx) {
		assert.ErrorIs(e, err, context.Canceled, name)
	}
	assert.Equal(e, before, see(e, e.Store, "a", "t", wholeLook))
	assert.Empty(e, e.recall("a", "", 9))
	for name, err := range e.calls(e.ctx) {
		assert.NoError(e, err, name)
	}
}

func lifeClosed(e *env) {
	require.NoError(e, e.Store.Close())
	for name, err := range e.calls(e.ctx) {
		assert.ErrorIs(e, err, memory.ErrClosed, name)
	}
	assert.ErrorIs(e, e.Store.Close(), memory.ErrClosed)
}

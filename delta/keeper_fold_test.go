package delta

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// foldSpy is a store that is not known never to wait, and counts how many outcomes each fold took.
type foldSpy struct {
	memory.Store
	mu    sync.Mutex
	upto  int64
	folds []int64
}

func (s *foldSpy) Apply(ctx context.Context, x *txn.Txn) (txn.Reply, error) {
	r, err := s.Store.Apply(ctx, x)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range x.Clauses {
		if c := &x.Clauses[i]; c.Op == txn.Trim && r.OK {
			s.folds, s.upto = append(s.folds, c.N-s.upto), c.N
		}
	}
	return r, err
}

func (s *foldSpy) taken() (n int64, folds []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	folds, s.folds = s.folds, nil
	for _, f := range folds {
		n += f
	}
	return n, folds
}

// Where a fold costs a trip, successes are folded many at a time; what is left is as soon as nothing follows it, and a failure
// at once.
func TestSuccessesAreFoldedManyAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &foldSpy{Store: memory.New(memory.Config{})}
		act := DefineRaw("act", []byte(`{"type":"object"}`), func(_ *Context, in action.Input) mo.Result[action.Output] {
			if in.Text() == `{"n":-1}` {
				return mo.Err[action.Output](fmt.Errorf("no"))
			}
			return mo.Ok(action.Output(`{}`))
		}).Describe("Act").Risk(1).Effect(action.Idempotent).Timeout(NoTimeout)
		def, err := act.Build()
		require.NoError(t, err)
		e, err := New(Config{Store: store})
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close(context.Background())) }()
		task, err := e.Start(t.Context(), Goal{Agent: NewAgent("a").Grant(def).MustBuild(), Text: "act"})
		require.NoError(t, err)
		do := func(n int) action.Code {
			return task.Do(t.Context(), Call{Action: "act", Input: fmt.Appendf(nil, `{"n":%d}`, n)}).MustGet().Code
		}
		require.NoError(t, e.Sync(t.Context()))
		store.taken()

		for i := range 100 { // time stands still meanwhile
			require.Equal(t, action.OK, do(i))
		}
		n, folds := store.taken()
		assert.GreaterOrEqual(t, n, int64(100-tailKept-1), "a decision finds no more than so many")
		for _, f := range folds {
			assert.Greater(t, f, int64(foldedFrom), "%v", folds)
		}
		time.Sleep(3 * linger)
		synctest.Wait()
		left, _ := store.taken()
		assert.Equal(t, int64(100), n+left, "the rest once nothing follows")

		require.Equal(t, action.OK, do(200))
		require.Equal(t, action.Failed, do(-1))
		synctest.Wait()
		n, _ = store.taken()
		assert.Equal(t, int64(2), n, "a failure at once, and what waits before it")
	})
}

package delta_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// TestI04_LostCallIsNotRepeatedWithoutPermission: a takeover rests on what a start rests on. Permission that was withdrawn
// after the worker disappeared ends the call; nothing runs again.
func TestI04_LostCallIsNotRepeatedWithoutPermission(t *testing.T) {
	for _, withdrawn := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			var forbid atomic.Bool
			w := newWorld(t, func(w *world, _ *delta.Goal) {
				w.cfg.Lease = 300 * time.Millisecond
				w.cfg.Policy = policy.Func(func(policy.Request) (policy.Decision, error) {
					return policy.Decision{Forbid: forbid.Load(), Reason: "for now"}, nil
				})
			})
			var runs atomic.Int64
			release := make(chan struct{})
			w.does(func(*delta.Context, In) mo.Result[Out] {
				if runs.Add(1) == 1 {
					<-release
				}
				return mo.Ok(Out{"done"})
			})
			w.store.set(func(s *spy) { s.before = failOn(txn.Renew) }) // cut off
			c := delta.Call{ID: "c", Action: "look", Input: inputOf(In{ID: "a"})}
			first := background(func() action.Outcome { return w.do(c) })
			synctest.Wait() // the first worker is inside the function
			forbid.Store(withdrawn)
			stop := w.work(w.other())
			time.Sleep(5 * time.Second)
			stop()
			close(release)
			first()
			if withdrawn {
				require.EqualValues(t, 1, runs.Load())
				require.Equal(t, action.Interrupted, w.do(c).Code)
				return
			}
			require.EqualValues(t, 2, runs.Load())
			require.Equal(t, action.OK, w.do(c).Code)
		})
	}
}

package delta_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/txn"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// A workflow that keeps failing is not started any more, by whatever instance of the agent, on whatever worker, until its
// breaker has cooled down.
func TestBreakerOfAWorkflowCountsAllInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFloor(t)
		w.cfg.Poll = time.Second
		w.breaks("charge")
		once := workflow.Rung{Kind: workflow.RungRetry, Attempts: 1}
		input := `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`
		child := workflow.New("child", "1").Input(input).Step(execute("pay", "charge")).MustBuild()
		other := workflow.New("other", "1").Input(input).Step(execute("pay", "send")).MustBuild()
		breaker := workflow.Breaker{Failures: 3, Window: time.Hour, Cooldown: 30 * time.Minute}
		d := one(workflow.Run("sub", "child").Map("id", "input.id").Ladder(once).Breaker(breaker))
		beside := workflow.New("beside", "1").Input(input).Step(workflow.Run("sub", "other").Map("id", "input.id").Ladder(once).Breaker(breaker)).MustBuild()
		first, second := w.engine(child, other, d, beside), w.engine(child, other, d, beside)
		stop, also := w.working(first), w.working(second)
		ends := func(e *delta.Engine, d *workflow.Definition) (workflow.State, int) {
			i := w.start(e, d, delta.Goal{})
			time.Sleep(time.Minute)
			kids, err := i.Task().Children(t.Context())
			require.NoError(t, err)
			w.folds(i)
			return w.state(i), len(kids)
		}
		for n := range 3 {
			s, children := ends([]*delta.Engine{first, second}[n%2], d)
			assert.Equal(t, workflow.Failed, s.Status)
			assert.Equal(t, 1, children, "failure %d", n+1)
		}
		for range 2 { // open: what is refused counts no further
			s, children := ends(second, d)
			assert.Equal(t, workflow.Failed, s.Status)
			assert.Equal(t, action.Unavailable, s.Failure.Code, "%+v", s.Failure)
			assert.Zero(t, children)
			time.Sleep(10 * time.Minute)
		}
		s, children := ends(first, beside)
		assert.Equal(t, workflow.Completed, s.Status, "another workflow is another matter")
		assert.Equal(t, 1, children)
		time.Sleep(10 * time.Minute) // it has cooled down, and counts anew
		for n := range 3 {
			_, children = ends(first, d)
			assert.Equal(t, 1, children, "after the cooldown, %d", n+1)
		}
		_, children = ends(second, d)
		assert.Zero(t, children)
		time.Sleep(4 * time.Hour) // long ago
		_, children = ends(second, d)
		assert.Equal(t, 1, children)
		kept, err := w.store.Queued(t.Context(), "shop", "failures", txn.Queued{}, false, 100)
		require.NoError(t, err)
		assert.Len(t, kept, 1, "what counts no more is forgotten")
		stop()
		also()
	})
}

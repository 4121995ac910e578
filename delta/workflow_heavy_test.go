//go:build heavy

package delta_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

func TestI08_AWorkflowWhoseWorkerStopsAnywhereGoesOnElsewhere(t *testing.T) { stopsAt(t, 1) }

// Ten thousand instances that wait for a person cost the worker nothing that goes on, and any of them goes on within a second
// of its answer, which another engine took.
func TestHeavyParkedWorkflowsCostNoGoroutine(t *testing.T) {
	const many = 10_000
	w := newFloor(t)
	w.cfg.Poll = 200 * time.Millisecond
	d := one(workflow.AskPerson("ask").Hitl(workflow.Hitl{Intake: json.RawMessage(`{"type":"object"}`)}), execute("pay", "charge", "ask"))
	worker, desk := w.engine(d), w.engine(d)
	require.NoError(t, desk.Register(w.agent))
	stop := w.working(worker)
	defer stop()
	time.Sleep(time.Second)
	before := runtime.NumGoroutine()
	runs := make([]*delta.Instance, many)
	for n := range runs {
		var err error
		runs[n], err = desk.StartWorkflow(t.Context(), d, delta.Goal{Agent: w.agent}, fmt.Appendf(nil, `{"id":"o%d"}`, n))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		for n := many - 1; n >= 0; n -= 100 {
			if s := w.state(runs[n]); !s.Parked() || len(s.Waits()) == 0 {
				return false
			}
		}
		return true
	}, 5*time.Minute, 100*time.Millisecond)
	for range 300 { // the last ones end
		if runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), before)
	ana := w.ana(desk)
	worst := time.Duration(0)
	for n := 7; n < many; n += many / 25 {
		told := time.Now()
		require.NoError(t, runs[n].Signal(t.Context(), "ask", ana, []byte(`{}`)))
		require.Eventually(t, func() bool { return w.state(runs[n]).Status == workflow.Completed }, 20*time.Second, 5*time.Millisecond)
		worst = max(worst, time.Since(told))
	}
	assert.Less(t, worst, time.Second)
	t.Logf("%d parked; the slowest of 25 went on %v after its answer", many, worst)
}

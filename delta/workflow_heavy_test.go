//go:build heavy

package delta_test

import (
	"context"
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
	first, err := desk.StartWorkflow(t.Context(), d, delta.Goal{Agent: w.agent}, []byte(`{"id":"o"}`))
	require.NoError(t, err)
	_, err = first.Wait(t.Context()) // the worker works
	require.NoError(t, err)
	before := runtime.NumGoroutine()
	runs := make([]*delta.Instance, many)
	for n := range runs {
		var err error
		runs[n], err = desk.StartWorkflow(t.Context(), d, delta.Goal{Agent: w.agent}, fmt.Appendf(nil, `{"id":"o%d"}`, n))
		require.NoError(t, err)
	}
	patient, tired := context.WithTimeout(t.Context(), 5*time.Minute)
	defer tired()
	for n := many - 1; n >= 0; n -= 100 {
		s, err := runs[n].Wait(patient)
		require.NoError(t, err)
		require.NotEmpty(t, s.Waits())
	}
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
		s, err := runs[n].Wait(patient)
		require.NoError(t, err)
		require.Equal(t, workflow.Completed, s.Status)
		worst = max(worst, time.Since(told))
	}
	assert.Less(t, worst, time.Second)
	t.Logf("%d parked; the slowest of 25 went on %v after its answer", many, worst)
}

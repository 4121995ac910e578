package delta

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// TestI14_RewrapLetsOldKeysGo: after it, a ring without the older keys opens all there is, of tasks and of subjects; it is
// bounded, repeated it goes on, and what was erased stays so.
func TestI14_RewrapLetsOldKeysGo(t *testing.T) {
	w := newTill(t)
	march, april := w.key("march"), w.key("april")
	pay := func(e *Engine, subject string) *Task {
		task := w.start(e, subject)
		require.True(t, task.Do(t.Context(), Call{ID: "c", Action: "pay", Input: []byte(`{"card":"4111222233334444"}`)}).MustGet().OK())
		return task
	}
	bare := pay(w.open(nil), "")
	old := w.open(w.ring(march))
	tasks := []*Task{bare, pay(old, ""), pay(old, "somebody"), pay(old, "else")}
	gone := pay(old, "gone")
	_, err := old.Erase(t.Context(), "gone", w.as(old, "olga"), "")
	require.NoError(t, err)

	both := w.open(w.ring(march, april))
	_, err = both.Rewrap(t.Context(), w.as(both, "ana"), 0)
	require.Error(t, err, "operators alone")
	_, err = w.open(nil).Rewrap(t.Context(), Identity{}, 0)
	require.Error(t, err)
	first, err := both.Rewrap(t.Context(), w.as(both, "olga"), 3)
	require.NoError(t, err)
	assert.Equal(t, Rewrapped{Keys: 3, More: true}, first)
	second, err := both.Rewrap(t.Context(), w.as(both, "olga"), 3)
	require.NoError(t, err)
	assert.Equal(t, Rewrapped{Keys: 1, Already: 3}, second)

	next := w.open(w.ring(april))
	for _, task := range tasks {
		again, err := next.Open(t.Context(), task.ID())
		require.NoError(t, err)
		o := again.Do(t.Context(), Call{ID: "c", Action: "pay", Input: []byte(`{"card":"4111222233334444"}`)}).MustGet()
		require.True(t, o.OK(), "%v", o.Failure)
		assert.JSONEq(t, `{"token":"token-of-4111222233334444"}`, string(o.Output))
		w.sound(again)
	}
	again, err := next.Open(t.Context(), gone.ID())
	require.NoError(t, err)
	assert.NotEqual(t, action.OK, again.Do(t.Context(), Call{ID: "c", Action: "pay", Input: []byte(`{"card":"4111222233334444"}`)}).MustGet().Code)
}

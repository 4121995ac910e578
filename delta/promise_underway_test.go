package delta_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// A call is listed as long as it is under way, with whose it is and how long its lease still lasts: not before, not behind its end,
// and not one that waits for a person.
func TestUnderwayIsWhatIsBeingDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started, release := make(chan bool), make(chan bool)
		slow := delta.Define("slow", func(*delta.Context, In) mo.Result[Out] {
			started <- true
			<-release
			return mo.Ok(Out{"done"})
		}).Describe("Takes long").Risk(1).Effect(action.Idempotent).MustBuild()
		asked := delta.Define("asked", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"done"}) }).
			Describe("Is asked about").Risk(1).Effect(action.Idempotent).RequireApproval().MustBuild()
		e, err := delta.New(delta.Config{Authenticator: anybody, Lease: 30 * time.Second})
		require.NoError(t, err)
		defer func() { assert.NoError(t, e.Close(context.Background())) }()
		task, err := e.Start(t.Context(), delta.Goal{ID: "t", Agent: delta.NewAgent("a").Grant(slow, asked).MustBuild(), Approvers: []string{"ana"}})
		require.NoError(t, err)
		require.Equal(t, action.ApprovalRequired, task.Do(t.Context(), call("asked", "x")).MustGet().Code)
		under := func() []delta.Underway {
			all, err := e.Underway(t.Context(), 10)
			require.NoError(t, err)
			return all
		}
		assert.Empty(t, under(), "it waits, and nobody makes it")

		ended := make(chan action.Outcome)
		go func() { ended <- task.Do(t.Context(), call("slow", "x")).MustGet() }()
		<-started
		all := under()
		require.Len(t, all, 1)
		assert.Equal(t, "a~t", all[0].Task)
		assert.Equal(t, "slow", all[0].Begun.Action)
		assert.NotEmpty(t, all[0].Worker)
		assert.Greater(t, all[0].Left, time.Duration(0))
		assert.LessOrEqual(t, all[0].Left, 30*time.Second)
		close(release)
		out := <-ended
		require.True(t, out.OK(), "%v", out.Failure)
		assert.Equal(t, out.Intent, all[0].Intent)
		assert.Empty(t, under(), "it has ended")
	})
}

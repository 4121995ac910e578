package delta

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
)

type leakIn struct {
	ID string `json:"id"`
}

// What an engine remembers of calls, waits and tasks goes when they end, however they end.
func TestI18_NothingIsRememberedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		run := func(*Context, leakIn) mo.Result[string] { return mo.Ok("x") }
		plain := Define("plain", run).Describe("plain").Risk(1).MustBuild()
		asked := Define("asked", run).Describe("asked").Risk(1).RequireApproval().MustBuild()
		agent := NewAgent("a").Grant(plain, asked).MustBuild()
		e, err := New(Config{Authenticator: AuthenticatorFunc(func(context.Context, any) (string, error) { return "boss", nil })})
		require.NoError(t, err)
		boss, err := e.Authenticate(ctx, "x")
		require.NoError(t, err)
		working, stop := context.WithCancel(ctx)
		stopped := make(chan error, 1)
		go func() { stopped <- e.Work(working) }()
		for i := range 24 {
			g := Goal{Agent: agent, Approvers: []string{"*"}, ApprovalTTL: time.Minute}
			if i%4 == 3 {
				g.Deadline = time.Now().Add(10 * time.Second)
			}
			task, err := e.Start(ctx, g)
			require.NoError(t, err)
			require.True(t, plain.Do(ctx, task, leakIn{"x"}).IsOk())
			gone, cancel := context.WithTimeout(ctx, time.Second)
			waited := task.DoWait(gone, Call{Action: "asked", Input: []byte(`{"id":"x"}`)}).MustGet()
			cancel()
			require.Equal(t, action.ApprovalRequired, waited.Code)
			waiting := make(chan action.Outcome, 1)
			go func() { waiting <- task.DoWait(ctx, Call{Action: "asked", Input: []byte(`{"id":"y"}`)}).MustGet() }()
			synctest.Wait()
			pending, err := e.Approvals(ctx, 99)
			require.NoError(t, err)
			for _, a := range pending {
				switch i % 4 {
				case 0:
					require.NoError(t, e.Approve(ctx, a.ID, boss, "x"))
				case 1:
					require.NoError(t, e.Reject(ctx, a.ID, boss, "x"))
				}
			}
			switch i % 4 {
			case 1:
				require.NoError(t, task.Cancel(ctx, "x"))
			case 3:
				time.Sleep(time.Minute) // the deadline passes
			}
			<-waiting
			if i%4 == 0 || i%4 == 2 {
				require.NoError(t, task.Done(ctx, "x"))
			}
			_, err = e.Open(ctx, task.ID())
			require.NoError(t, err)
			task.Do(ctx, Call{Action: "plain", Input: []byte(`{"id":"x"}`)})
			synctest.Wait() // whoever ran it has landed
			task.aloft.mu.Lock()
			assert.Empty(t, task.aloft.flights, fmt.Sprint(i))
			task.aloft.mu.Unlock()
			task.state.mu.Lock()
			assert.LessOrEqual(t, len(task.offers), offersKept)
			task.state.mu.Unlock()
		}
		time.Sleep(10 * time.Minute)
		stop()
		<-stopped
		require.NoError(t, e.Close(ctx))
		assert.Empty(t, e.waits)
		runtime.GC()
		e.mu.Lock()
		e.purge = 0
		e.dropUnheld()
		assert.LessOrEqual(t, len(e.tasks), 1, "tasks that nobody holds are forgotten")
		assert.LessOrEqual(t, len(e.aloft), 1, "and so is what they had under way")
		e.mu.Unlock()
		assert.LessOrEqual(t, len(e.keeper.sealed), sealedKept)
		assert.Empty(t, e.keeper.failed)
		later, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		e.keeper.task("a", "t")
		assert.NoError(t, e.Sync(later), "nothing is waited for once the keeper has gone")
	})
}

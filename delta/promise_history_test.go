package delta_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// whole reads a history to its end in pages of n.
func whole(t *testing.T, e *delta.Engine, q delta.HistoryQuery, n int) (out []string) {
	t.Helper()
	q.Limit = n
	for range 1000 {
		page, err := e.History(t.Context(), q)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Outcomes), n)
		for _, h := range page.Outcomes {
			out = append(out, fmt.Sprint(h.Agent, " ", h.Task, " ", h.Action, " ", h.Code))
		}
		if q.After = page.Next; q.After == "" {
			return out
		}
	}
	t.Fatal("a history without an end")
	return nil
}

// A history is complete and the same whatever the size of its pages, and each bound leaves out what it says.
func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		act := does("act", func(_ *delta.Context, in In) mo.Result[Out] {
			if in.N > 0 {
				return mo.Err[Out](fmt.Errorf("no"))
			}
			return mo.Ok(Out{"ok"})
		}).MustBuild()
		then := does("then", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"ok"}) }).Needs(act.On("id")).MustBuild()
		cfg := delta.Config{}
		e, err := delta.New(cfg)
		require.NoError(t, err)
		defer e.Close(context.Background())
		began := time.Now()
		var want []string
		for _, name := range []string{"b", "a"} {
			agent := delta.NewAgent(name).Grant(act, then).MustBuild()
			for i := range 3 {
				task, err := e.Start(t.Context(), delta.Goal{ID: fmt.Sprint("z", 9-i), Agent: agent})
				require.NoError(t, err)
				var lines []string
				for _, c := range []delta.Call{call("then", "x"), call("act", "x"), call("then", "x"), {Action: "act", Input: inputOf(In{ID: "x", N: 1})}} {
					o := task.Do(t.Context(), c).MustGet()
					lines = append(lines, fmt.Sprint(name, " z", 9-i, " ", c.Action, " ", o.Code))
				}
				if name == "a" {
					want = append(want, lines...)
				}
				require.NoError(t, e.Run(t.Context(), task, delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) {
					return delta.Proposal{Done: true, Verdict: action.Reached}, nil
				})).Error())
				time.Sleep(time.Hour)
			}
		}
		ofA := delta.HistoryQuery{Agent: "a"}
		all := whole(t, e, delta.HistoryQuery{}, 1000)
		assert.Len(t, all, 24, "two agents, three tasks, four calls")
		assert.Equal(t, want, all[:12], "agents by name, tasks as they were started, calls as they ended")
		for _, n := range []int{1, 3, 5, 12, 13} {
			assert.Equal(t, want, whole(t, e, ofA, n), "pages of %d", n)
			assert.Equal(t, all, whole(t, e, delta.HistoryQuery{}, n), "pages of %d", n)
		}
		assert.Equal(t, want[4:8], whole(t, e, delta.HistoryQuery{Task: "a~z8"}, 3))
		assert.Equal(t, want[4:8], whole(t, e, delta.HistoryQuery{Agent: "a", Task: "z8"}, 3))
		assert.Len(t, whole(t, e, delta.HistoryQuery{Action: "act"}, 3), 12)
		assert.Len(t, whole(t, e, delta.HistoryQuery{Action: "delta.plan"}, 3), 6, "only where it is asked for")
		assert.Len(t, whole(t, e, delta.HistoryQuery{Codes: []action.Code{action.NotLegal, action.Failed}}, 3), 12)
		assert.Equal(t, want[:4], whole(t, e, delta.HistoryQuery{Agent: "a", Until: began.Add(4 * time.Hour)}, 3), "before it")
		assert.Equal(t, want[8:], whole(t, e, delta.HistoryQuery{Agent: "a", Since: began.Add(5 * time.Hour)}, 3), "at it or later")
		assert.Empty(t, whole(t, e, delta.HistoryQuery{Agent: "nobody"}, 3))
		assert.Empty(t, whole(t, e, delta.HistoryQuery{Agent: "a", Task: "none"}, 3))

		page, err := e.History(t.Context(), delta.HistoryQuery{Agent: "a", Codes: []action.Code{action.Failed}})
		require.NoError(t, err)
		h := page.Outcomes[0]
		assert.Equal(t, []any{ledger.Settled, "no", int64(1)}, []any{h.Event, h.Failure.Message, h.Cost.Calls})
		for _, bad := range []delta.HistoryQuery{
			{After: "x"}, {After: "e30"}, {Limit: -1}, {Limit: delta.MaxHistory + 1}, {Agent: "a b"}, {Agent: "a", Task: "b~z9"}, {Agent: "a", Task: "x y"},
		} {
			_, err := e.History(t.Context(), bad)
			assert.Error(t, err, "%+v", bad)
		}
	})
}

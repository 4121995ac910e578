package delta_test

import (
	"context"
	"errors"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Observe mode waives gates 4 to 8 and records what they would have refused. All other gates hold.
func TestObserveMode(t *testing.T) {
	observe := func(changes ...change) func(t *testing.T) *world {
		return func(t *testing.T) *world {
			return newWorld(t, append([]change{func(w *world, _ *delta.Goal) { w.cfg.Observe = true }}, changes...)...)
		}
	}
	waived := []struct {
		name  string
		world func(*testing.T) *world
		call  delta.Call
		code  action.Code
	}{
		{"not legal", observe(), call("then-act", "a"), action.NotLegal},
		{"denied", observe(), call("forbidden", "a"), action.Denied},
		{"ceiling", observe(func(_ *world, g *delta.Goal) { g.Ceiling = 4 }), call("risky", "a"), action.RiskCeiling},
		{"budget", observe(func(_ *world, g *delta.Goal) { g.Limit.Tokens = action.Max(1) }), call("costly", "a"), action.BudgetExhausted},
		{"approval", observe(), call("risky", "a"), action.ApprovalRequired},
		{"no approver", observe(func(_ *world, g *delta.Goal) { g.Approvers = nil }), call("risky", "a"), action.NoApprover},
	}
	for _, c := range waived {
		t.Run(c.name, func(t *testing.T) {
			w := c.world(t)
			assert.True(t, w.offered(c.call.Action), "nothing is withheld")
			o := w.do(c.call)
			require.Equal(t, action.OK, o.Code, "%v", o.Failure)
			codes := func(fs []*action.Failure) (out []action.Code) {
				for _, f := range fs {
					out = append(out, f.Code)
				}
				return out
			}
			assert.Contains(t, codes(o.Waived), c.code)
			for _, e := range w.events() {
				if e.Type == ledger.Begun || e.Type == ledger.Settled {
					assert.Contains(t, codes(e.Waived), c.code, e.Type)
				}
			}
			assert.Zero(t, w.count(ledger.Refused))
			assert.Zero(t, w.count(ledger.ApprovalRequested), "nobody is asked")
			pending, err := w.engine.Approvals(t.Context(), 9)
			require.NoError(t, err)
			assert.Empty(t, pending)
			var told []delta.Result
			r := w.engine.Run(t.Context(), w.task, delta.PlannerFunc(func(_ context.Context, q delta.Request) (delta.Proposal, error) {
				if told = q.Last; q.Step == 1 {
					return delta.Proposal{Calls: []delta.Call{c.call}}, nil
				}
				return delta.Proposal{Done: true}, nil
			})).MustGet()
			assert.Contains(t, codes(r.Results[0].Outcome.Waived), c.code, "an operator is told")
			require.Len(t, told, 1)
			assert.Empty(t, told[0].Outcome.Waived, "a planner is not")
		})
	}
	t.Run("the other gates", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := observe()(t)
			for _, c := range []struct {
				call delta.Call
				code action.Code
			}{
				{call("nothing", "a"), action.ActionUnknown}, {call("briefed", "a"), action.ContextMissing},
				{call("act", ""), action.InputInvalid}, {delta.Call{Action: "act", Input: []byte(`{`)}, action.InputMalformed},
			} {
				assert.Equal(t, c.code, w.do(c.call).Code)
			}
			w.does(func(*delta.Context, In) mo.Result[Out] { return mo.Err[Out](action.Unknown(nil)) })
			assert.Equal(t, action.StartedUnknown, w.do(call("act", "a")).Code)
			assert.Equal(t, action.NotLegal, w.do(call("act", "a")).Code, "an unknown effect is not repeated")
			w.before = func(context.Context, action.View) error { return errors.New("no") }
			assert.Equal(t, action.HookFailed, w.do(call("checked", "a")).Code)
			w.does(func(*delta.Context, In) mo.Result[Out] { return zero() })
			assert.Equal(t, action.OutputInvalid, w.do(call("amend", "a")).Code)
			w.store.set(func(s *spy) { s.before = failOn(txn.Begin) })
			assert.Equal(t, action.StoreUnavailable, w.do(call("look", "a")).Code)
			w.store.set(func(s *spy) { s.before = nil })
			cancelTask(w)
			assert.Equal(t, action.Cancelled, w.do(call("look", "a")).Code)
		})
	})
}

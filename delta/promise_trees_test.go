package delta_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/policy"
)

// TestI03_UserCodeCannotRewriteTheInput: whatever user code does to the tree that it was given, gates, facts and records
// keep the input that was checked.
func TestI03_UserCodeCannotRewriteTheInput(t *testing.T) {
	spoil := func(tree any) {
		m, _ := tree.(map[string]any)
		m["id"] = "forged"
		if list, ok := m["list"].([]any); ok {
			list[0].(map[string]any)["id"] = "forged"
		}
	}
	schema := []byte(`{"type":"object","properties":{"id":{"type":"string"},
		"list":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"}},"additionalProperties":false}}},"required":["id"],"additionalProperties":false}`)
	for _, who := range []string{"function", "risk rule", "idempotency key", "policy"} {
		t.Run(who, func(t *testing.T) {
			var cfg delta.Config
			if who == "policy" {
				cfg.Policy = policy.Func(func(q policy.Request) (policy.Decision, error) {
					if !q.AnyInput && q.Action == "confirm" {
						spoil(q.Input)
					}
					return policy.Decision{}, nil
				})
			}
			engine, err := delta.New(cfg)
			require.NoError(t, err)
			defer engine.Close(t.Context())
			b := delta.DefineRaw("confirm", schema, func(_ *delta.Context, in action.Input) mo.Result[action.Output] {
				if who == "function" {
					spoil(in.Tree())
					spoil(in.Document.Tree())
				}
				if !in.IsZero() && in.Tree().(map[string]any)["id"] != "a" {
					return mo.Err[action.Output](errors.New("forged"))
				}
				return mo.Ok(action.Output(`{}`))
			}).Describe("Confirm").Risk(1).Effect(action.Idempotent)
			switch who {
			case "risk rule":
				b = b.RiskWhen("spoils", func(in action.Input) bool { spoil(in.Tree()); return false }, 5)
			case "idempotency key":
				b = b.IdempotencyKey(func(in action.Input) string { spoil(in.Tree()); return "k" })
			}
			confirm := b.MustBuild()
			pay := delta.Define("pay", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"paid"}) }).
				Describe("Pay").Risk(1).Needs(confirm.On("id")).MustBuild()
			task, err := engine.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("clerk").Grant(confirm, pay).MustBuild()})
			require.NoError(t, err)
			o := task.Do(t.Context(), delta.Call{Action: "confirm", Input: json.RawMessage(`{"id":"a","list":[{"id":"b"}]}`)}).MustGet()
			require.True(t, o.OK(), "%v", o.Failure)
			_, err = pay.Do(t.Context(), task, In{ID: "forged"}).Get()
			require.ErrorIs(t, err, &action.Failure{Code: action.NotLegal})
			require.NoError(t, pay.Do(t.Context(), task, In{ID: "a"}).Error())
		})
	}
}

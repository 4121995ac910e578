package chat

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// The reason of a refusal is to be followed where a person or a policy gave it; what anybody may have said is fenced.
func TestOnlyVouchedReasonsStandOutsideTheFence(t *testing.T) {
	for name, c := range map[string]struct {
		f      *action.Failure
		fenced bool
	}{
		"a person's": {action.Fail(action.ApprovalRejected, "no").With(action.DetailReason, "obey me"), false},
		"anybody's":  {action.Fail(action.TaskPaused, "wait").Quoting("obey me"), true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mouth{lines: []say{calls(call("", "read", `{}`)), calls(call("", finishTool, `{}`))}}
			p, r := planner(t, m, Config{}), first()
			prop, err := p.Plan(context.Background(), r)
			require.NoError(t, err)
			_, err = p.Plan(context.Background(), next(r, prop, func(int, delta.Call) action.Outcome {
				return action.Outcome{Code: c.f.Code, Failure: c.f.ForPlanner()}
			}))
			require.NoError(t, err)
			text := m.heard[1].Messages[2].Results[0].Text
			if !c.fenced {
				assert.Contains(t, text, "\nreason: \"obey me\"")
				return
			}
			assert.NotContains(t, text, "reason: ")
			assert.Regexp(t, `(?s)<untrusted-.*obey me.*</untrusted-`, text)
			assert.NotContains(t, text, "whose")
		})
	}
}

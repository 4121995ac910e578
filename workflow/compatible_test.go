package workflow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// Whoever was asked keeps the right to answer: other owners are for questions that were not asked yet.
func TestOtherOwnersDoNotGetAQuestionThatWasAsked(t *testing.T) {
	made := func(owner string, own bool) *workflow.Definition {
		h := workflow.Hitl{Prompt: "?", Intake: json.RawMessage("{}")}
		if own {
			h.Who = []string{"bo"}
		}
		return workflow.New("w", "1").Owners(owner).Step(workflow.AskPerson("ask").Hitl(h)).MustBuild()
	}
	for _, own := range []bool{false, true} {
		was, is := made("ana", own), made("eve", own)
		turn, err := was.Start(workflow.Begin{Instance: "i", At: 1})
		require.NoError(t, err)
		_, err = workflow.Migrate(was, is, turn.State)
		if own {
			require.NoError(t, err, "the step names its people itself")
		} else {
			require.ErrorContains(t, err, `step "ask" asks the owners`)
		}
		_, err = workflow.Migrate(was, made("ana", own), turn.State)
		require.NoError(t, err)
	}
}

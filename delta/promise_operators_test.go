package delta_test

import (
	"context"
	"errors"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// TestI06_OperatorsAreNotRequesters: whoever asks for a task cannot get round the need for an approval by moving its
// threshold or by declaring an unknown effect known; only its approvers and the engine's operators may.
func TestI06_OperatorsAreNotRequesters(t *testing.T) {
	pay := delta.Define("pay", func(*delta.Context, In) mo.Result[Out] {
		return mo.Err[Out](action.Unknown(errors.New("connection lost")))
	}).Describe("Pay").Risk(3).MustBuild()
	agent := delta.NewAgent("payer").Grant(pay).MustBuild()
	engine, err := delta.New(delta.Config{
		Authenticator: delta.AuthenticatorFunc(func(_ context.Context, name any) (string, error) { return name.(string), nil }), Operators: []string{"olga", "bot"},
	})
	require.NoError(t, err)
	defer engine.Close(t.Context())
	task, err := engine.Start(t.Context(), delta.Goal{Agent: agent, Approvers: []string{"ana", "bot"}, Requester: "bot"})
	require.NoError(t, err)
	_, err = pay.Do(t.Context(), task, In{ID: "a"}).Get()
	unknown := action.FailureOf(err)
	require.Equal(t, action.StartedUnknown, unknown.Code)
	events, err := task.Events(t.Context())
	require.NoError(t, err)
	intent := events[len(events)-1].Intent

	for _, tt := range []struct {
		who  string
		may  bool
		rule string
	}{
		{"bot", false, "the requester, although it is on both lists"},
		{"b0t", false, "a name that reads like the requester's"},
		{"payer", false, "the agent itself"},
		{"eve", false, "authenticated, and on no list"},
		{"ana", true, "an approver"},
		{"olga", true, "an operator"},
	} {
		id, err := engine.Authenticate(t.Context(), tt.who)
		require.NoError(t, err)
		err = task.SetThreshold(t.Context(), id, 5, "trust me")
		require.Equal(t, tt.may, err == nil, "%s: %s: %v", tt.who, tt.rule, err)
		if !tt.may {
			require.Error(t, task.Resolve(t.Context(), intent, id, true, []byte(`{"said":"paid"}`), action.Cost{}, "trust me"), tt.rule)
		}
	}
	olga, err := engine.Authenticate(t.Context(), "olga")
	require.NoError(t, err)
	require.NoError(t, task.Resolve(t.Context(), intent, olga, false, nil, action.Cost{}, "the bank says no"))
}

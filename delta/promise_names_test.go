package delta_test

import (
	"context"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

func byName() delta.Authenticator {
	return delta.AuthenticatorFunc(func(_ context.Context, name any) (string, error) { return name.(string), nil })
}

// TestI06_NobodyApprovesUnderAnotherSpelling: every spelling of the requester's name that a reader takes for it is either
// no identity at all or the requester.
func TestI06_NobodyApprovesUnderAnotherSpelling(t *testing.T) {
	engine, err := delta.New(delta.Config{Authenticator: byName()})
	require.NoError(t, err)
	defer engine.Close(t.Context())
	wipe := delta.Define("wipe", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{}) }).Describe("Wipe").Risk(4).MustBuild()
	agent := delta.NewAgent("wiper").Grant(wipe).MustBuild()
	task, err := engine.Start(t.Context(), delta.Goal{Agent: agent, Approvers: []string{"*"}, Requester: "alice"})
	require.NoError(t, err)
	_, err = wipe.Do(t.Context(), task, In{ID: "a"}).Get()
	ask := action.FailureOf(err).Approval()
	require.NotEmpty(t, ask)
	for _, name := range []string{
		"alice", "ALICE", " alice", "alice ", "alice\u200b", "\u0430lice", "a\u0301lice", "\uff41lice", "al1ce", "a lice", "a-lice",
		"alice\u3164", "a|ice", "al\u0131ce", "alice@corp", "W1PER", "",
	} {
		id, err := engine.Authenticate(t.Context(), name)
		if err == nil {
			err = engine.Approve(t.Context(), ask, id, "mine")
		}
		require.Error(t, err, "%q", name)
	}
	bob, err := engine.Authenticate(t.Context(), "bob")
	require.NoError(t, err)
	require.NoError(t, engine.Approve(t.Context(), ask, bob, "fine"))
}

// Names that nobody could ever be authenticated under are faults where they are declared, not silence.
func TestIdentitiesAreCheckedWhereTheyAreDeclared(t *testing.T) {
	_, err := delta.New(delta.Config{Operators: []string{"ol\u200bga"}})
	require.ErrorContains(t, err, "config Operators")
	engine, err := delta.New(delta.Config{})
	require.NoError(t, err)
	defer engine.Close(t.Context())
	agent := delta.NewAgent("a").Grant(delta.Define("b", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{}) }).Describe("b").MustBuild()).MustBuild()
	for _, c := range []struct {
		goal delta.Goal
		says string
	}{
		{delta.Goal{Requester: "bob "}, "goal requester"},
		{delta.Goal{Approvers: []string{"ana", ""}}, "goal approvers"},
		{delta.Goal{Approvers: []string{"\u0430na"}}, "goal approvers"},
		{delta.Goal{Approvers: []string{"B0B", "bob@corp"}, Requester: "bob"}, "nobody but the requester"},
	} {
		c.goal.Agent = agent
		_, err := engine.Start(t.Context(), c.goal)
		require.ErrorContains(t, err, c.says)
	}
}

// Two names of one agent's actions that differ in case, or look alike in either case, are a fault.
func TestNamesThatReadAlikeAreRefused(t *testing.T) {
	define := func(name string) *delta.Action[In, Out] {
		return delta.Define(name, func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{}) }).Describe("x").MustBuild()
	}
	for _, p := range [][2]string{{"getItem", "getitem"}, {"send-Invoice", "send-invoice"}, {"LIST", "list"}, {"delIete", "deliete"}, {"pay1", "payI"}, {"O-K", "0k"}, {"Modern", "rnodern"}} {
		_, err := delta.NewAgent("a").Grant(define(p[0]), define(p[1])).Build()
		require.ErrorContains(t, err, "taken for each other", "%v", p)
	}
}

package delta_test

import (
	"context"
	"errors"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/risk"
)

func TestWhyAnActionIsRisky(t *testing.T) {
	type none struct{}
	fn := func(*delta.Context, none) mo.Result[none] { return mo.Err[none](errors.New("no")) }
	write := delta.Define("write", fn).Describe("Write").Risk(2).Tags("files").MustBuild()
	remove := delta.Define("remove", fn).Describe("Remove").Risk(2).Tags("files").MustBuild()
	e, err := delta.New(delta.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close(context.Background())) }()
	task, err := e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("clerk").Grant(write, remove).MustBuild(), Text: "tidy"})
	require.NoError(t, err)
	for range 2 {
		_, err := task.Do(t.Context(), delta.Call{Action: "write", Input: []byte(`{}`)}).Get()
		require.NoError(t, err)
	}
	require.NoError(t, e.Sync(t.Context()))
	why, err := e.Why(t.Context(), "clerk", "remove")
	require.NoError(t, err)
	require.Zero(t, why.Estimate.N)
	require.Positive(t, why.Agent.Mean, "the agent fails")
	require.Len(t, why.Tags, 1)
	require.Positive(t, why.Tags[0].Mean, "at what has this tag")
	require.Greater(t, why.Estimate.P, why.Prior)
	_, err = e.Why(t.Context(), "clerk", "burn")
	require.ErrorContains(t, err, `no action "burn"`)
}

// A tag that the risk model cannot take is a mistake of the declaration, found before anything runs.
func TestUnknownTagsAreFoundAtStart(t *testing.T) {
	type none struct{}
	read := delta.Define("read", func(*delta.Context, none) mo.Result[none] { return mo.Ok(none{}) }).
		Describe("Read").Risk(2).Tags("raed").MustBuild()
	agent := delta.NewAgent("clerk").Grant(read).MustBuild()
	e, err := delta.New(delta.Config{Risk: risk.Config{Tags: []string{"read", "write"}}})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	_, err = e.Start(t.Context(), delta.Goal{Agent: agent, Text: "look"})
	require.ErrorContains(t, err, `start: agent "clerk": risk: action "read": unknown tag "raed": name one of read, write`)
	require.ErrorContains(t, e.Register(agent), "register: agent")
}

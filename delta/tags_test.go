package delta_test

import (
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/risk"
)

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

package delta

import (
	"context"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Whatever a caller does to an offer, the next one says what the engine says.
func TestAnOfferCannotBeCorrupted(t *testing.T) {
	act := Define("act", func(*Context, struct{}) mo.Result[string] { return mo.Ok("done") }).Describe("Act").Risk(1).MustBuild()
	e, err := New(Config{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, e.Close(context.Background())) }()
	task, err := e.Start(t.Context(), Goal{Agent: NewAgent("agent").Grant(act).MustBuild()})
	require.NoError(t, err)
	first, err := task.Offer(t.Context())
	require.NoError(t, err)
	want := first.Clone()

	again, err := task.Offer(t.Context())
	require.NoError(t, err)
	assert.Equal(t, want, again)
	assert.Same(t, &first.Actions[0].Schema[0], &again.Actions[0].Schema[0], "schemas are not copied for each reading")
	first.Actions[0].Name = "another"
	assert.Equal(t, want, again, "lists are")

	first.Actions[0].Schema[0] = 'x'
	now, err := task.Offer(t.Context())
	require.NoError(t, err)
	assert.Equal(t, want, now)
	now.Actions[0].Schema = append(now.Actions[0].Schema, "more"...)
	last, err := task.Offer(t.Context())
	require.NoError(t, err)
	assert.Equal(t, want, last)
}

func TestAnEmptyOfferIsHandedOut(t *testing.T) {
	var h handed
	assert.Empty(t, h.hand(action.Offer{Epoch: 3}).Actions)
}

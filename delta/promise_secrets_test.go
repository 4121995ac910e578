package delta_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/keys"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// TestI14_SecretsAreNotHandedOut: what a schema marks as secret reaches the function, and nobody who reads events.
func TestI14_SecretsAreNotHandedOut(t *testing.T) {
	type card struct {
		Number string `json:"number" delta:"secret"`
		Cents  int    `json:"cents"`
	}
	var got string
	charge := delta.Define("charge", func(_ *delta.Context, in card) mo.Result[card] {
		got = in.Number
		return mo.Ok(card{"card 4222 of ana", in.Cents})
	}).Describe("Charge a card").Risk(1).RequireApproval().MustBuild()
	desk := delta.NewAgent("desk").Grant(charge).MustBuild()
	seen := make(chan delta.Record, 100)
	store := memory.New(memory.Config{})
	e, err := delta.New(delta.Config{Authenticator: anybody, Store: store, Observers: []delta.Watch{{
		Observer: delta.ObserverFunc(func(_ context.Context, r delta.Record) { seen <- r }),
	}}})
	require.NoError(t, err)
	task, err := e.Start(t.Context(), delta.Goal{Agent: desk, Approvers: []string{"ana"}})
	require.NoError(t, err)
	call := delta.Call{Action: "charge", Input: []byte(`{"number":"card 4111 of ana","cents":77}`)}
	v, err := task.Preview(t.Context(), call, []byte("before"))
	written, _ := task.Events(t.Context())
	assert.Len(t, written, 1, "a preview writes nothing, and makes no key")
	require.NoError(t, err)
	assert.NotContains(t, string(v.Event), "card 4")
	assert.Contains(t, string(v.Event), "before{")
	id := task.Do(t.Context(), call).MustGet().Failure.Approval()
	require.NoError(t, e.Approve(t.Context(), id, as(t, e, "ana"), "fine"))
	o := task.Do(t.Context(), call).MustGet()
	require.Equal(t, action.OK, o.Code)
	assert.Equal(t, "card 4111 of ana", got, "the function has the real value")
	events, err := task.Events(t.Context())
	require.NoError(t, err)
	shown := asText(events)
	require.NoError(t, e.Close(context.Background()))
	close(seen)
	for r := range seen {
		shown += asText(r)
	}
	assert.NotContains(t, shown, "card 4")
	assert.NotContains(t, shown, "card 4")
	assert.Contains(t, shown, `"cents":77`, "the rest is there")
	assert.Contains(t, shown, keys.DigestPrefix)
}

func asText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

package delta

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/keys"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

type loose struct {
	ID    string         `json:"id"`
	Inner map[string]int `json:"inner,omitempty" delta:"secret"`
}

// TestI12_PlannersAreTold what may be told: digests in place of the secrets that a call returned, unless the action is
// declared to tell them, and no name of an action that a function was not allowed to call.
func TestI12_PlannersAreTold(t *testing.T) {
	out := func(_ *Context, in loose) mo.Result[cardOut] { return mo.Ok(cardOut{"MARK" + in.ID}) }
	keep := Define("keep", out).Describe("Keep").Risk(1).Effect(action.Idempotent).MustBuild()
	tell := Define("tell", out).Describe("Tell").Risk(1).Effect(action.Idempotent).TellsSecrets().MustBuild()
	hidden := Define("hidden-thing", out).Describe("Hidden").Risk(1).Effect(action.Idempotent).MustBuild()
	try := Define("try", func(ctx *Context, in loose) mo.Result[cardOut] {
		if _, err := hidden.CallWithin(ctx, in).Get(); err != nil {
			return mo.Err[cardOut](fmt.Errorf("try: %w", err))
		}
		return mo.Ok(cardOut{})
	}).Describe("Try").Risk(1).Tools("hidden-thing").Effect(action.Idempotent).MustBuild()
	agent := NewAgent("desk").Grant(keep, tell, try).Actions(hidden).MustBuild()
	e, err := New(Config{Store: memory.New(memory.Config{})})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	task, err := e.Start(t.Context(), Goal{Agent: agent})
	require.NoError(t, err)
	var told []Result
	report := e.Run(t.Context(), task, PlannerFunc(func(_ context.Context, r Request) (Proposal, error) {
		if r.Step > 1 {
			told = r.Last
			return Proposal{Done: true}, nil
		}
		return Proposal{Calls: []Call{{Action: "keep", Input: []byte(`{"id":"1"}`)}, {Action: "tell", Input: []byte(`{"id":"1"}`)}, {Action: "try", Input: []byte(`{"id":"1"}`)}}}, nil
	})).MustGet()
	require.Len(t, told, 3)
	assert.Contains(t, string(told[0].Outcome.Output), keys.DigestPrefix)
	assert.NotContains(t, string(told[0].Outcome.Output), "MARK")
	assert.JSONEq(t, `{"token":"MARK1"}`, string(told[1].Outcome.Output))
	require.Equal(t, action.Failed, told[2].Outcome.Code)
	assert.NotContains(t, asText(told[2]), "hidden-thing")
	assert.Contains(t, asText(told[2]), "DENIED")
	assert.Contains(t, report.Results[2].Outcome.Failure.Explain(), "hidden-thing", "operators are told")
	assert.Contains(t, string(report.Results[0].Outcome.Output), "MARK", "the program has what the call gave")
}

// TestI14_NamesBelowASecret: what a refusal says of members below a secret names none that no schema declares.
func TestI14_NamesBelowASecret(t *testing.T) {
	take := Define("take", func(_ *Context, in loose) mo.Result[string] { return mo.Ok(in.ID) }).Describe("Take").Risk(1).MustBuild()
	agent := NewAgent("desk").Grant(take).MustBuild()
	e, err := New(Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	task, err := e.Start(t.Context(), Goal{Agent: agent})
	require.NoError(t, err)
	for _, name := range []string{"MARKname", "MARK/na~me", "x"} {
		o := task.Do(t.Context(), Call{Action: "take", Input: fmt.Appendf(nil, `{"id":"1","inner":{%q:"no number"}}`, name)}).MustGet()
		require.Equal(t, action.InputInvalid, o.Code)
		assert.NotContains(t, asText(o), "MARK")
	}
	events, err := task.Events(t.Context())
	require.NoError(t, err)
	assert.NotContains(t, asText(events), "MARK")
}

// A secret is not to be given again in a field that is none.
func TestBindingsKeepSecrets(t *testing.T) {
	type plain struct {
		ID    string `json:"id"`
		Token string `json:"token"`
	}
	issue := Define("issue", func(_ *Context, in loose) mo.Result[cardOut] { return mo.Ok(cardOut{in.ID}) }).Describe("Issue").Risk(1).MustBuild()
	use := Define("use", func(_ *Context, in plain) mo.Result[string] { return mo.Ok(in.ID) }).Describe("Use").Risk(1).Needs(issue.OnOutput("token", "token")).MustBuild()
	well := Define("use", func(_ *Context, in cardOut) mo.Result[string] { return mo.Ok("") }).Describe("Use").Risk(1).Needs(issue.OnOutput("token", "token")).MustBuild()
	_, err := NewAgent("desk").Grant(issue, use).Build()
	require.ErrorContains(t, err, `"token" in its output is a secret`)
	assert.True(t, strings.Contains(err.Error(), "tag the field"))
	_, err = NewAgent("desk").Grant(issue, well).Build()
	assert.NoError(t, err)
}

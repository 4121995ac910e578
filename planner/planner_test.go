package planner

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func plan(t require.TestingT, p delta.Planner, r delta.Request) delta.Proposal {
	got, err := p.Plan(context.Background(), r)
	require.NoError(t, err)
	return got
}

func TestScriptedPlaysByStep(t *testing.T) {
	s := Scripted{Propose(Call("a", ""), Call("b", `{"n":1}`)), Finish("enough")}
	first := plan(t, s, delta.Request{Step: 1})
	assert.Equal(t, []delta.Call{{Action: "a", Input: json.RawMessage("")}, {Action: "b", Input: json.RawMessage(`{"n":1}`)}}, first.Calls)
	assert.False(t, first.Done)
	assert.Equal(t, delta.Proposal{Done: true, Why: "enough"}, plan(t, s, delta.Request{Step: 2}))
	assert.True(t, plan(t, s, delta.Request{Step: 3}).Done, "beyond the last step")
	assert.True(t, plan(t, Scripted(nil), delta.Request{Step: 1}).Done, "no steps")
	assert.Equal(t, first, plan(t, s, delta.Request{Step: 1}), "a second run starts from the first step")
	_, err := Scripted{nil}.Plan(context.Background(), delta.Request{Step: 1})
	assert.EqualError(t, err, "step 1 of the script is nil")
}

func offered(name string, s action.Status, tokens int64) action.Offered {
	return action.Offered{Name: name, Status: s, Forecast: action.Cost{Tokens: tokens}}
}

func ended(name string, code action.Code) delta.Result {
	return delta.Result{Call: delta.Call{Action: name, Input: json.RawMessage("{}")}, Outcome: action.Outcome{Action: name, Code: code}}
}

func TestGreedyChooses(t *testing.T) {
	all := []action.Offered{offered("dear", action.Legal, 90), offered("cheap", action.Legal, 10), offered("free", action.Gated, 0), offered("even", action.Legal, 10)}
	tests := []struct {
		name, reason string
		g            Greedy
		offer        []action.Offered
		history      []delta.Result
		want         string // "" is done
	}{
		{"the cheapest", "in the order of the offer where costs are equal", Greedy{}, all, nil, "cheap"},
		{"the target", "at any cost", Greedy{}, append(all[:4:4], offered("goal", action.Legal, 999)), nil, "goal"},
		{"a gated target", "a person is asked about what is wanted", Greedy{}, append(all[:4:4], offered("goal", action.Gated, 0)), nil, "goal"},
		{"no repeat", "it succeeded", Greedy{}, all, []delta.Result{ended("cheap", action.OK)}, "even"},
		{"gated last", "legal ones are used up", Greedy{}, all,
			[]delta.Result{ended("cheap", action.OK), ended("even", action.OK), ended("dear", action.OK)}, "free"},
		{"not again after a failure", "one try by default", Greedy{}, all, []delta.Result{ended("cheap", action.Failed)}, "even"},
		{"again after a failure", "two tries", Greedy{Tries: 2}, all, []delta.Result{ended("cheap", action.Failed)}, "cheap"},
		{"not again after a refusal", "nothing has changed", Greedy{Tries: 9}, all, []delta.Result{ended("cheap", action.NotLegal)}, "even"},
		{"again after a refusal", "something else succeeded since", Greedy{}, all,
			[]delta.Result{ended("cheap", action.NotLegal), ended("even", action.OK)}, "cheap"},
		{"on the path only", "Via names it", Greedy{Via: []string{"dear"}}, all, nil, "dear"},
		{"the target beside the path", "Via need not name it", Greedy{Via: []string{"dear"}}, []action.Offered{offered("goal", action.Legal, 0)}, nil, "goal"},
		{"dearest first", "costs are weighed as the caller says", Greedy{Weigh: func(c action.Cost) float64 { return -float64(c.Tokens) }}, all, nil, "dear"},
		{"nothing offered", "", Greedy{}, nil, nil, ""},
		{"target reached", "", Greedy{}, all, []delta.Result{ended("goal", action.OK)}, ""},
		{"without an input", "the map does not name it", Greedy{Inputs: Given(map[string]string{"dear": "{}"})}, all, nil, "dear"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.g.Target = "goal"
			p := plan(t, tt.g, delta.Request{Offer: action.Offer{Epoch: 7, Actions: tt.offer}, History: tt.history})
			if tt.want == "" {
				assert.True(t, p.Done)
				assert.Empty(t, p.Calls)
				assert.NotEmpty(t, p.Why)
				return
			}
			require.Len(t, p.Calls, 1, tt.reason)
			assert.Equal(t, tt.want, p.Calls[0].Action, tt.reason)
			assert.Equal(t, uint64(7), p.Calls[0].Epoch, "the call quotes its offer")
		})
	}
}

func TestGreedyNeedsATarget(t *testing.T) {
	_, err := Greedy{}.Plan(context.Background(), delta.Request{})
	assert.EqualError(t, err, "greedy planner: no target is named")
}

func TestGreedySaysWhatItIsStuckOn(t *testing.T) {
	last := []delta.Result{ended("goal", action.ApprovalRequired)}
	p := plan(t, Greedy{Target: "goal"}, delta.Request{Last: last, History: last, Offer: action.Offer{Actions: []action.Offered{offered("goal", action.Gated, 0)}}})
	assert.True(t, p.Done)
	assert.Contains(t, p.Why, "APPROVAL_REQUIRED")
}

// Whatever is offered and whatever becomes of it, a run ends: each proposal is a call that may still bring something.
func TestGreedyEnds(t *testing.T) {
	codes := []action.Code{action.OK, action.Failed, action.NotLegal, action.ApprovalRequired, action.StartedUnknown}
	rapid.Check(t, func(rt *rapid.T) {
		names := []string{"goal", "a", "b", "c"}
		g := Greedy{Target: "goal", Tries: rapid.IntRange(0, 3).Draw(rt, "tries")}
		var r delta.Request
		for step := 0; ; step++ {
			require.Less(rt, step, 100)
			r.Offer.Actions = nil
			for _, n := range names {
				if rapid.Bool().Draw(rt, n) {
					r.Offer.Actions = append(r.Offer.Actions, offered(n, action.Legal, rapid.Int64Range(0, 3).Draw(rt, "cost")))
				}
			}
			p := plan(rt, g, r)
			require.Equal(rt, p, plan(rt, g, r), "the same request gives the same proposal")
			if p.Done {
				return
			}
			r.Last = []delta.Result{ended(p.Calls[0].Action, rapid.SampledFrom(codes).Draw(rt, "code"))}
			r.History = append(r.History, r.Last...)
		}
	})
}

// A planner that is asked by the engine gets a cancelled run back as such.
func TestPlannersInARunThatIsCancelled(t *testing.T) {
	engine, err := delta.New(delta.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close(context.Background())) }()
	wait, err := delta.Define("wait", delta.Lift(func(ctx *delta.Context, _ struct{}) (struct{}, error) {
		<-ctx.Done()
		return struct{}{}, ctx.Err()
	})).Describe("Wait for the end").Risk(1).Build()
	require.NoError(t, err)
	agent, err := delta.NewAgent("waiter").Grant(wait).Build()
	require.NoError(t, err)
	task, err := engine.Start(context.Background(), delta.Goal{Agent: agent})
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(context.Background())
	script := Scripted{func(delta.Request) delta.Proposal {
		cancel(errors.New("enough"))
		return delta.Proposal{Calls: []delta.Call{Call("wait", "")}}
	}}
	report, err := engine.Run(ctx, task, script).Get()
	require.NoError(t, err)
	assert.Equal(t, delta.RunStopped, report.Ended)
}

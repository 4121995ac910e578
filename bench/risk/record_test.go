package riskbench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func calls(n int) (out []Call) {
	for i := range n {
		out = append(out,
			Call{Agent: "a", Tool: "look up/it", Err: i%10 == 9}, Call{Agent: "a|b", Tool: "look up/it"},
			Call{Agent: "a", Tool: "charge", Err: i%2 == 0})
	}
	return out
}

// Recorded names may be anything; tools of different agents are different actions, of one name.
func TestRecord(t *testing.T) {
	s, err := Record(calls(20), 2)
	require.NoError(t, err)
	require.Len(t, s.Actions, 3)
	require.Len(t, s.Steps, 60)
	assert.Equal(t, s.Actions[0].Name, s.Actions[1].Name)
	assert.NotEqual(t, s.Actions[0].Agent, s.Actions[1].Agent)
	assert.Equal(t, []int{20, 20, 20}, []int{s.Actions[0].Runs, s.Actions[1].Runs, s.Actions[2].Runs})
	for _, declared := range []int{0, 6} {
		_, err = Record(nil, declared)
		require.ErrorContains(t, err, "want 1 to 5")
	}
}

func TestPrequentialByHand(t *testing.T) {
	s, err := Record([]Call{{Agent: "a", Tool: "x", Err: true}, {Agent: "a", Tool: "x"}}, 5)
	require.NoError(t, err)
	r, err := Prequential(t.Context(), "two", s, kinds[1:2], nil)
	require.NoError(t, err)
	require.Len(t, r.Scores, 1)
	got := r.Scores[0]
	assert.Equal(t, "declared", got.Name)
	assert.Equal(t, []int{2, 1}, []int{r.Rows, r.Errs})
	assert.InDelta(t, math.Ln2, got.LogLoss, 1e-12)
	assert.InDelta(t, .25, got.Brier, 1e-12)
	assert.InDelta(t, 0, got.ECE, 1e-12)
	assert.InDelta(t, 1, got.NIS, 1e-12)
	assert.InDelta(t, 500, got.Cost, 1e-9, "both gated, one needlessly")
}

// Recordings judged apart weigh by their rows when put together.
func TestPool(t *testing.T) {
	var parts []Recorded
	for _, n := range []int{10, 30} {
		s, err := Record(calls(n), 2)
		require.NoError(t, err)
		r, err := Prequential(t.Context(), "part", s, cheap(), nil)
		require.NoError(t, err)
		parts = append(parts, r)
	}
	assert.Equal(t, parts[0], Pool(parts[:1]))
	all := Pool(parts)
	assert.Equal(t, 120, all.Rows)
	assert.Equal(t, "part, part", all.Data)
	assert.Len(t, all.Files, 2)
	assert.InDelta(t, .25*parts[0].Scores[0].LogLoss+.75*parts[1].Scores[0].LogLoss, all.Scores[0].LogLoss, 1e-12)
	header, rows := all.Table()
	assert.Len(t, header, 4+len(cheap()))
	assert.Len(t, rows, 3*8)
}

// The spread of a mean over runs of equal length is that of the means of the runs; calls of one run do not tell it.
func TestSpreadOverRuns(t *testing.T) {
	var list []Call
	for run := range 40 {
		for range 5 {
			list = append(list, Call{Agent: "a", Tool: "x", Run: fmt.Sprint(run), Err: run%4 == 0})
		}
	}
	s, err := Record(list, 2)
	require.NoError(t, err)
	r, err := Prequential(t.Context(), "runs", s, kinds[1:3], nil)
	require.NoError(t, err)
	assert.Zero(t, r.Scores[0].Above)
	assert.InDelta(t, r.Scores[1].LogLoss-r.Scores[0].LogLoss, r.Scores[1].Above, 1e-12)
	p := sigma(-3) // declared: a run of Errs costs -ln p per call, any other -ln(1-p)
	want := math.Sqrt(.25*.75/40) * (math.Log(1-p) - math.Log(p))
	assert.InEpsilon(t, want, r.Scores[0].SE, .1)
	assert.Positive(t, r.Scores[1].AboveSE)
	again, err := Prequential(t.Context(), "runs", s, kinds[1:3], nil)
	require.NoError(t, err)
	assert.Equal(t, r, again, "drawn from a seed")

	for i := range list {
		list[i].Run = ""
	}
	s, err = Record(list, 2)
	require.NoError(t, err)
	r, err = Prequential(t.Context(), "one run", s, kinds[1:3], nil)
	require.NoError(t, err)
	assert.Zero(t, r.Scores[0].SE, "one run has no spread")
}

func TestAnEmptyRecordingHasNoLoss(t *testing.T) {
	s, err := Record(nil, 2)
	require.NoError(t, err)
	r, err := Prequential(t.Context(), "none", s, kinds, nil)
	require.NoError(t, err)
	for _, x := range r.Scores {
		assert.Zero(t, x.LogLoss)
	}
	g, err := Gate(t.Context(), "none", s, Prices{1, 10})
	require.NoError(t, err)
	assert.True(t, g.Cheapest.Never, "of equal thresholds that which asks least")
}

func TestRecordedWorkIsCancelled(t *testing.T) {
	s, err := Record(calls(5), 2)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Prequential(ctx, "", s, kinds, nil)
	require.ErrorIs(t, err, context.Canceled)
	_, err = Gate(ctx, "", s, Prices{})
	require.ErrorIs(t, err, context.Canceled)
}

// A higher threshold asks no more and lets no less through; the cheapest is the cheapest; the extremes ask all and none.
func TestGate(t *testing.T) {
	s, err := Record(calls(40), 2)
	require.NoError(t, err)
	g, err := Gate(t.Context(), "calls", s, Prices{1, 3})
	require.NoError(t, err)
	require.Len(t, g.Points, 4*gateStep+2)
	first, last := g.Points[0], g.Points[len(g.Points)-1]
	assert.Equal(t, g.Rows, first.Asked)
	assert.Equal(t, g.Errs, first.Caught)
	assert.True(t, last.Never)
	assert.Equal(t, g.Errs, last.Missed)
	for i := range g.Points[1:] {
		assert.LessOrEqual(t, g.Points[i+1].Asked, g.Points[i].Asked)
		assert.GreaterOrEqual(t, g.Points[i+1].Missed, g.Points[i].Missed)
	}
	least := slices.MinFunc(g.Points, func(a, b GatePoint) int { return int(math.Copysign(1, a.Cost-b.Cost)) })
	assert.InDelta(t, least.Cost, g.Cheapest.Cost, 1e-12)
	assert.Greater(t, g.Cheapest.Threshold, 2., "half of the calls of charge fail, nobody needs to be asked about the others")
	at2 := g.Points[gateStep]
	assert.InDelta(t, 2, at2.Threshold, 1e-12)
	assert.Equal(t, g.Rows, at2.Asked, "declared 2: the floor of the effective risk reaches a threshold of 2")

	_, err = Gate(t.Context(), "", s, Prices{Ask: -1})
	require.ErrorContains(t, err, "the cost of an ask is -1")
	_, err = Gate(t.Context(), "", s, Prices{Err: math.NaN()})
	require.ErrorContains(t, err, "the cost of an err is NaN")
}

// Shared tools: the same steps, one agent, and tags only for what has company.
func TestShare(t *testing.T) {
	s, err := Record(calls(5), 2)
	require.NoError(t, err)
	x := Share(s)
	assert.Equal(t, s.Steps, x.Steps)
	assert.Equal(t, []string{"agent-0", "tool-0"}, x.Actions[0].Tags)
	assert.Equal(t, []string{"agent-1", "tool-0"}, x.Actions[1].Tags)
	assert.Equal(t, []string{"agent-0"}, x.Actions[2].Tags, "nobody else charges")
	assert.Nil(t, s.Actions[0].Tags, "the stream given stays")

	// An agent that never used the tool knows of it.
	first := Share(Stream{Actions: []Action{{ID: 0, Agent: "a", Name: "x", Declared: 2}, {ID: 1, Agent: "b", Name: "x", Declared: 2}}})
	e := newProduct()
	before, _, _ := e.Predict(first.Actions[1])
	for range 5 {
		e.Observe(first.Actions[0], true)
	}
	after, _, _ := e.Predict(first.Actions[1])
	assert.Greater(t, after, before)
}

package workflow

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// A field that is added to a state is written by a Writer too, at the same place.
func TestWriterHasEveryFieldOfAState(t *testing.T) {
	fields := func(v any) (out []string) {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			out = append(out, f.Name+" "+f.Type.String()+" "+string(f.Tag))
		}
		return out
	}
	all := fields(State{})
	at := slices.IndexFunc(all, func(f string) bool { return f == "Steps []workflow.StepState json:\"steps\"" })
	require.Positive(t, at)
	require.Equal(t, "Deeds []workflow.Deed json:\"deeds,omitempty\"", all[at+1])
	assert.Equal(t, all[:at], fields(stateHead{}))
	assert.Equal(t, all[at+2:], fields(stateTail{}))
}

func TestWriterWritesWhatJSONDoes(t *testing.T) {
	step := func(name string, stage Stage, out string) StepState {
		return StepState{Name: name, Stage: stage, Output: json.RawMessage(out), Effect: action.Idempotent}
	}
	one, two := step("a", StageDone, `{"x": "<"}`), step("b", StagePlan, ``)
	changed := two
	changed.Failure = action.Fail(action.Failed, "no")
	deed := Deed{Step: "a", Effect: action.Irreversible, Output: json.RawMessage(`{"n": 1}`)}
	cases := []struct {
		name, reason string
		s            State
	}{
		{"nothing", "lists that are not there", State{}},
		{"no steps, no deeds", "lists that are empty", State{Steps: []StepState{}, Deeds: []Deed{}, Left: []Deed{}}},
		{"two", "nothing is known", State{Steps: []StepState{one, two}, Deeds: []Deed{deed}, Outstanding: []Command{{ID: "c"}}}},
		{"the same", "all of it is known", State{Steps: []StepState{one, two}, Deeds: []Deed{deed}}},
		{"one changed", "a pointer where there was none", State{Steps: []StepState{one, changed}, Deeds: []Deed{deed, deed}, Tree: true}},
		{"fewer", "another instance", State{Steps: []StepState{two}, Left: []Deed{deed}}},
		{"more again", "what was beyond is not taken for known", State{Steps: []StepState{two, one}, Deeds: []Deed{{Step: "b", Effect: action.None}}}},
	}
	var w Writer
	for _, c := range cases {
		got, err := w.Write(&c.s)
		require.NoError(t, err, c.name)
		want, err := json.Marshal(c.s)
		require.NoError(t, err)
		assert.Equal(t, string(want), got, "%s: %s", c.name, c.reason)
	}
}

func TestWriterRefusesWhatJSONDoes(t *testing.T) {
	bad := State{Steps: []StepState{{Name: "a", Output: json.RawMessage(`{`)}}}
	_, want := json.Marshal(bad)
	require.Error(t, want)
	var w Writer
	for range 2 {
		_, err := w.Write(&bad)
		require.Error(t, err)
	}
	bad.Steps[0].Output = json.RawMessage(`{}`)
	got, err := w.Write(&bad)
	require.NoError(t, err)
	text, err := json.Marshal(bad)
	require.NoError(t, err)
	assert.Equal(t, string(text), got)
}

func TestTextIsThatOfTheSpec(t *testing.T) {
	d := New("w", "1").Input(`{"type": "object"}`).Step(Execute("a", "act").Undo("undo", nil)).MustBuild()
	text, err := json.Marshal(d.Spec())
	require.NoError(t, err)
	assert.Equal(t, string(text), string(d.Text()))
	assert.Equal(t, d.Spec().Input, d.Input())
	d.Text()[0], d.Input()[0] = 'x', 'x'
	assert.Equal(t, string(text), string(d.Text()), "what was handed out is not what is kept")
	assert.Equal(t, d.Spec().Input, d.Input())
	var calls []string
	for step, action := range d.Calls() {
		calls = append(calls, step+" "+action)
	}
	assert.Equal(t, []string{"a act", "a undo"}, calls)
	for range d.Calls() {
		break // the first, and no more
	}
}

package statespace_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/statespace"
)

// An action and a workflow may have one name: neither passes for the other, nor one version for another.
func TestWorkflowsAreKeptApartFromActions(t *testing.T) {
	on := []statespace.Bind{{Mine: "x", Theirs: "x"}}
	flow := func(version string) statespace.Need {
		return statespace.Need{Action: "a", Workflow: true, Version: version, Bind: on}
	}
	g := compile(t, statespace.Node{Name: "a"},
		statespace.Node{Name: "act", Needs: []statespace.Need{{Action: "a", Bind: on}}},
		statespace.Node{Name: "any", Needs: []statespace.Need{flow("")}},
		statespace.Node{Name: "two", Needs: []statespace.Need{flow("2")}},
		statespace.Node{Name: "both", Needs: []statespace.Need{flow(""), {Action: "a", Bind: on}}},
	)
	assert.Equal(t, []string{"a", "act", "any", "two", "both"}, g.Names(), "a workflow is no action")
	assert.False(t, g.Has("workflow:a"))
	assert.True(t, g.Follows("a"))
	assert.True(t, g.Follows(""))
	assert.False(t, g.Follows("act"))
	input := map[string]any{"x": "v"}
	acted, err := g.Facts("a", input, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{`a@x="v"`}, acted.Keys)
	one, err := g.FlowFacts("a", "1", input, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{`workflow:a@x="v"`}, one.Keys)
	two, err := g.FlowFacts("a", "2", input, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{`workflow:a:2@x="v"`, `workflow:a@x="v"`}, two.Keys)
	none, err := g.FlowFacts("b", "1", input, nil)
	require.NoError(t, err)
	assert.Empty(t, none.Keys)
	for _, c := range []struct {
		keys []string
		want []string
	}{
		{acted.Keys, []string{"a", "act"}},
		{one.Keys, []string{"a", "any"}},
		{two.Keys, []string{"a", "any", "two"}},
	} {
		s := g.NewSet()
		for _, k := range c.keys {
			require.True(t, s.Put(k, 1))
			f, err := statespace.ParseKey(k)
			require.NoError(t, err)
			assert.Equal(t, k, f.Key())
			assert.Equal(t, "a", f.Action)
		}
		assert.Equal(t, c.want, s.Names())
		for _, name := range g.Names() {
			_, unmet, err := s.Check(name, input, 1)
			require.NoError(t, err)
			assert.Equal(t, s.Legal(name), len(unmet) == 0, name)
		}
		p, err := g.Path("both", s, 1, nil)
		require.NoError(t, err)
		assert.LessOrEqual(t, len(p.Steps), 2)
	}
	p, err := g.Path("both", g.NewSet(), 1, nil)
	require.NoError(t, err)
	assert.Equal(t, "a → workflow a → both", p.String())
	unmet, err := g.Explain("two", g.NewSet(), 1)
	require.NoError(t, err)
	assert.Equal(t, "[needs workflow a in version 2 on x]", fmt.Sprint(unmet))
}

func TestNeedsOfWorkflowsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name string
		need statespace.Need
		want string
	}{
		{"version of an action", statespace.Need{Action: "a", Version: "1"}, "only of a workflow"},
		{"name", statespace.Need{Action: "a:b", Workflow: true}, "not allowed"},
		{"version", statespace.Need{Action: "a", Workflow: true, Version: "1@x"}, "not allowed"},
		{"across", statespace.Need{Action: "a", Workflow: true, Across: true}, "without an age"},
		{"path", statespace.Need{Action: "a", Workflow: true, Bind: []statespace.Bind{{Mine: "x", Theirs: ""}}}, "prerequisite's field"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := statespace.Compile([]statespace.Node{{Name: "a"}, {Name: "b", Needs: []statespace.Need{c.need}}})
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := statespace.Compile([]statespace.Node{{Name: "b", Needs: []statespace.Need{
		{Action: "a", Workflow: true}, {Action: "a", Workflow: true},
	}}})
	require.ErrorContains(t, err, "declared twice")
}

func TestKeysOfWorkflowsRefuse(t *testing.T) {
	for _, key := range []string{"workflow:", "workflow:a:", "workflow::1", "workflow:a:1:2", "workflow:a b", "Workflow:a", "^1^workflow:"} {
		_, err := statespace.ParseKey(key)
		assert.Error(t, err, key)
	}
	for _, key := range []string{"workflow:a", "workflow:a:1", "^3600000000^workflow:a:1@x=1", `workflow:a@output:y="z"`, "workflow"} {
		f, err := statespace.ParseKey(key)
		require.NoError(t, err, key)
		assert.Equal(t, key, f.Key())
	}
}

// What a workflow that completed establishes is exactly what the calls need that it unlocks, and no other call's.
func TestAWorkflowUnlocksWhatItWasAbout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		need := statespace.Need{Action: "w", Workflow: true, Version: rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "needed")}
		for _, f := range []string{"x", "y"} {
			if rapid.Bool().Draw(t, "bound "+f) {
				need.Bind = append(need.Bind, statespace.Bind{Mine: f, Theirs: f, Output: rapid.Bool().Draw(t, "output "+f)})
			}
		}
		if rapid.Bool().Draw(t, "across") {
			need.Across, need.Within = true, time.Hour
		}
		g := compile(t, statespace.Node{Name: "act", Needs: []statespace.Need{need}})
		input, output, version := inputs(t), inputs(t), rapid.SampledFrom([]string{"1", "2"}).Draw(t, "ran")
		facts, err := g.FlowFacts("w", version, input, output)
		require.NoError(t, err)
		s := g.NewSet()
		for _, k := range facts.Keys {
			require.True(t, s.Put(k, 1), k)
		}
		mine := inputs(t)
		want := need.Version == "" || need.Version == version
		for _, b := range need.Bind {
			theirs := input
			if b.Output {
				theirs = output
			}
			a, _ := json.Marshal(mine[b.Mine])
			c, _ := json.Marshal(theirs[b.Theirs])
			want = want && mine[b.Mine] != nil && string(a) == string(c)
		}
		_, unmet, err := s.Check("act", mine, 1)
		require.NoError(t, err)
		require.Equal(t, want, len(unmet) == 0, "%v in %v out %v mine %v", need, input, output, mine)
	})
}

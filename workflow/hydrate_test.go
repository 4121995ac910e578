package workflow

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func known(t *testing.T) scope {
	input := json.RawMessage(`{"a":{"b":[1,{"c":12345678901234567890.10}]},"t":"<&>","n":null,"e":1E+2}`)
	return func(path []string) (json.RawMessage, int, bool) { return input, 1, path[0] == "input" }
}

// Values are taken over byte for byte, white space apart.
func TestHydrate(t *testing.T) {
	for name, c := range map[string]struct {
		m    Mapping
		want string
	}{
		"nothing":                 {nil, `{}`},
		"exact numbers":           {Mapping{"x": {From: "input.a.b.1.c"}, "y": {From: "input.e"}}, `{"x":12345678901234567890.10,"y":1E+2}`},
		"nested places":           {Mapping{"b.c": {From: "input.t"}, "a": {Const: json.RawMessage(` [ 1.50 ] `)}, "b.a": {From: "input.n"}}, `{"a":[1.50],"b":{"a":null,"c":"<&>"}}`},
		"the whole":               {Mapping{".": {From: "input.a.b"}}, `[1,{"c":12345678901234567890.10}]`},
		"a default":               {Mapping{"x": {From: "input.z", Default: json.RawMessage("0.0")}}, `{"x":0.0}`},
		"a default is not needed": {Mapping{"x": {From: "input.n", Default: json.RawMessage("0.0")}}, `{"x":null}`},
	} {
		got, err := c.m.hydrate(known(t))
		require.NoError(t, err, name)
		assert.Equal(t, c.want, string(got), name)
	}
	for from, want := range map[string]string{
		"input.z": `map "x": "input.z" leads nowhere`, "input.a.b.2": `map "x": "input.a.b.2" leads nowhere`,
		"input.a.b.-1": `map "x": "input.a.b.-1" leads nowhere`, "input.t.u": `map "x": "input.t.u" leads nowhere`, "other": `map "x": "other" leads nowhere`,
	} {
		_, err := Mapping{"x": {From: from}}.hydrate(known(t))
		assert.EqualError(t, err, want)
	}
}

// The same mapping gives the same bytes, and every backoff lies within what it may be.
func TestBackoff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, seed := rapid.IntRange(0, 80).Draw(t, "times"), rapid.Int().Draw(t, "seed")
		b := Backoff{Base: 1e9, Max: 30e9, Jitter: rapid.IntRange(-1, 100).Draw(t, "jitter")}
		full := int64(30_000_000)
		if n <= 5 {
			full = min(full, 1_000_000<<max(n-1, 0))
		}
		got := b.after(n, "i", "s", seed)
		assert.Equal(t, got, b.after(n, "i", "s", seed))
		assert.LessOrEqual(t, got, full)
		percent := int64(b.Jitter)
		if percent == 0 {
			percent = 50
		}
		assert.GreaterOrEqual(t, got, full-full*max(percent, 0)/100)
	})
}

func TestLadders(t *testing.T) {
	d := New("w", "1").Owners("ana").
		Step(AskPerson("h").Hitl(Hitl{Intake: json.RawMessage("{}")})).
		Step(Reason("r", "p").Output("{}").Limits(Limits{Iterations: 5})).
		Step(Execute("e", "a")).Step(Execute("f", "a").Planner("p")).
		Step(Run("s", "c").Limits(Limits{Attempts: 4})).MustBuild()
	kinds := func(step string) (out []string) {
		for _, r := range d.DefaultLadder(step) {
			out = append(out, string(r.Kind))
		}
		return out
	}
	assert.Equal(t, []string{"retry", "parent", "park"}, kinds("h"))
	assert.Equal(t, []string{"retry", "people", "parent", "park"}, kinds("r"))
	assert.Equal(t, 5, d.DefaultLadder("r")[0].Attempts)
	assert.Empty(t, kinds("e"))
	assert.Equal(t, []string{"retry"}, kinds("f"))
	assert.Equal(t, 4, d.DefaultLadder("s")[0].Attempts)
	assert.Nil(t, d.DefaultLadder("nobody"))
}

// A child's id is its place, and stays a name however deep it lies.
func TestChildIDs(t *testing.T) {
	id := "order-1"
	seen := map[string]bool{}
	for range 40 {
		id = childID(id, "a-step-with-a-name", 1)
		assert.LessOrEqual(t, len(id), MaxInstance)
		assert.False(t, seen[id])
		seen[id] = true
	}
	assert.Equal(t, "order-1.notify.2", childID("order-1", "notify", 2))
}

// Recursive and hostile schemas end.
func TestShapesEnd(t *testing.T) {
	loop := `{"$ref":"#"}`
	deep := `{"type":"object","required":["a","b"],"properties":{"a":{"$ref":"#"},"b":{"$ref":"#"},"c":{"$ref":"#/properties/a"}}}`
	for _, a := range []string{loop, deep, `{"$ref":"#/nowhere"}`, `[]`, `7`, `{"items":{"$ref":"#"}}`} {
		for _, b := range []string{loop, deep, `{"type":5,"enum":7,"required":{},"properties":[]}`} {
			hard, soft := parseSchema([]byte(a)).into(parseSchema([]byte(b)), "")
			_, _ = hard, soft
			parseSchema([]byte(a)).at([]string{"a", "b", "0", "c"}).refuses([]byte(`1`))
			parseSchema([]byte(b)).unmapped(Mapping{"a.b.a.b": {}}, "")
		}
	}
}

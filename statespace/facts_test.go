package statespace_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/statespace"
)

func TestFacts(t *testing.T) {
	for _, c := range []struct {
		name, why string
		needs     []statespace.Need
		in, out   string
		want      []string
	}{
		{"nobody needs it", "no token is written for nobody", nil, `{"x":1}`, `{}`, nil},
		{"as such", "the action itself is the fact", []statespace.Need{on("p")}, `{"x":1}`, `null`, []string{"p"}},
		{"number and string", "they are different values", []statespace.Need{on("p", "x"), on("p", "y")},
			`{"x":1,"y":"1"}`, `null`, []string{"p@x=1", `p@y="1"`}},
		{"joint", "one token for both, sorted by field", []statespace.Need{on("p", "y", "x")},
			`{"x":1,"y":"a"}`, `null`, []string{`p@x=1,y="a"`}},
		{"absent half", "a joint fact needs all of its fields", []statespace.Need{on("p", "y", "x"), on("p", "y")},
			`{"y":"a"}`, `null`, []string{`p@y="a"`}},
		{"null", "null is as good as absent", []statespace.Need{on("p", "x")}, `{"x":null}`, `null`, nil},
		{"nested", "dots walk into objects", []statespace.Need{on("p", "c.id")}, `{"c":{"id":7}}`, `null`, []string{"p@c.id=7"}},
		{"not an object", "a path that does not fit finds nothing", []statespace.Need{on("p", "c.id")}, `{"c":"id"}`, `null`, nil},
		{"composite", "whole objects bind too, whatever the order of members", []statespace.Need{on("p", "c")},
			`{"c":{"b":[true,null],"a":1}}`, `null`, []string{`p@c={"a":1,"b":[true,null]}`}},
		{"elements", "every element is a fact, once", []statespace.Need{output("p", "x", "e.*.p")},
			`{}`, `{"e":[{"p":"b"},{"p":"a"},{"p":"b"},{"q":"c"}]}`, []string{`p@output:e.*.p="a"`, `p@output:e.*.p="b"`}},
		{"members", "* also walks objects", []statespace.Need{output("p", "x", "*.p")},
			`{}`, `{"k":{"p":2},"l":{"p":1}}`, []string{`p@output:*.p=1`, `p@output:*.p=2`}},
		{"same element", "fields behind one * are of one element", []statespace.Need{output("p", "x", "e.*.p", "y", "e.*.s")},
			`{}`, `{"e":[{"p":"a","s":1},{"p":"b","s":2},{"p":"c"}]}`,
			[]string{`p@output:e.*.p="a",output:e.*.s=1`, `p@output:e.*.p="b",output:e.*.s=2`}},
		{"two arrays", "what has no element in common combines freely", []statespace.Need{output("p", "x", "e.*", "y", "f.*")},
			`{}`, `{"e":[1,2],"f":[3,4]}`, []string{"p@output:e.*=1,output:f.*=3", "p@output:e.*=1,output:f.*=4",
				"p@output:e.*=2,output:f.*=3", "p@output:e.*=2,output:f.*=4"}},
		{"input and output", "one Ok relates what was asked and what came back",
			[]statespace.Need{{Action: "p", Bind: []statespace.Bind{{Mine: "x", Theirs: "dir"}, {Mine: "y", Theirs: "e.*", Output: true}}}},
			`{"dir":"/"}`, `{"e":["a","b"]}`, []string{`p@dir="/",output:e.*="a"`, `p@dir="/",output:e.*="b"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := compile(t, node("p"), node("d", c.needs...))
			facts, err := g.Facts("p", tree(t, c.in), tree(t, c.out))
			require.NoError(t, err)
			require.Equal(t, statespace.Facts{Keys: c.want}, facts, c.why)
		})
	}
}

func TestFacts_RefusesWhatIsNoTree(t *testing.T) {
	g := compile(t, node("p"), node("d", on("p", "x")))
	for _, v := range []any{1, 1.5, "a\xff", json.Number("1,y=2"), json.Number(""), json.Number("1 "), map[string]any{"\xff": true}} {
		_, err := g.Facts("p", map[string]any{"x": v}, nil)
		require.ErrorContains(t, err, "facts p@x", "%#v", v)
		rs, err := g.Required("d", map[string]any{"x": v})
		require.NoError(t, err)
		require.Equal(t, "x", rs[0].Missing, "a value that is none cannot be met")
	}
	_, err := g.Facts("q", nil, nil)
	require.ErrorIs(t, err, statespace.ErrUnknown)
}

func TestFacts_LongAndSecretValuesAreHashed(t *testing.T) {
	p := statespace.Node{Name: "p", Secret: []string{"card.number"}}
	d := statespace.Node{Name: "d", Needs: []statespace.Need{on("p", "x"), on("p", "card"), on("p", "pin")}, Secret: []string{"pin"}}
	g := compile(t, p, d)
	long := strings.Repeat("v", 200)
	in := map[string]any{"x": long, "card": map[string]any{"number": "4111"}, "pin": "0000"}
	facts, err := g.Facts("p", in, nil)
	require.NoError(t, err)
	require.Len(t, facts.Keys, 3)
	rs, err := g.Required("d", in)
	require.NoError(t, err)
	for i, key := range facts.Keys {
		require.LessOrEqual(t, len(key), statespace.MaxKey)
		require.NotContains(t, key, "4111", "secret of the prerequisite, bound above the secret field")
		require.NotContains(t, key, "0000", "secret of the dependent")
		f, err := statespace.ParseKey(key)
		require.NoError(t, err)
		require.Len(t, f.Hash, 64)
		require.Equal(t, key, f.Key())
		require.Contains(t, facts.Keys, rs[i].Key)
	}
	s := g.NewSet()
	for _, key := range facts.Keys {
		s.Put(key, 0)
	}
	for _, a := range s.Allowed("d", 0) {
		require.Equal(t, 1, a.Count)
		require.Nil(t, a.Tuples, "what is hashed narrows nothing")
	}
	_, unmet, err := s.Check("d", map[string]any{"x": "other", "pin": "1234"}, 0)
	require.NoError(t, err)
	require.Len(t, unmet, 3)
	require.NotContains(t, fmt.Sprint(unmet), "1234")
}

func listing(n int) map[string]any {
	entries := make([]any, n)
	for i := range entries {
		entries[i] = map[string]any{"path": fmt.Sprintf("/%05d", i), "size": json.Number(fmt.Sprint(i))}
	}
	return map[string]any{"entries": entries}
}

func TestFacts_OverfullSetsGoIntoOneCell(t *testing.T) {
	g := compile(t, node("list"), node("read", output("list", "path", "entries.*.path"), on("list")))
	facts, err := g.Facts("list", nil, listing(statespace.MaxFacts-1))
	require.NoError(t, err)
	require.Len(t, facts.Keys, statespace.MaxFacts)
	require.Empty(t, facts.Bulk)

	facts, err = g.Facts("list", nil, listing(statespace.MaxFacts))
	require.NoError(t, err)
	require.Equal(t, []string{"list"}, facts.Keys, "small sets keep their tokens")
	const cell = "list@output:entries.*.path"
	require.Len(t, facts.Bulk[cell], statespace.MaxFacts)

	s := g.NewSet()
	s.Put("list", 1)
	require.False(t, s.Legal("read"))
	require.True(t, s.PutBulk(cell, facts.Bulk[cell], 1))
	require.True(t, s.Legal("read"))
	rs, unmet, err := s.Check("read", tree(t, `{"path":"/00007"}`), 1)
	require.NoError(t, err)
	require.Empty(t, unmet)
	require.True(t, rs[0].Bulk)
	require.Equal(t, cell, rs[0].SetKey)
	require.Contains(t, facts.Bulk[cell], rs[0].Value)
	require.Equal(t, statespace.MaxFacts, s.Allowed("read", 1)[0].Count)
	require.Nil(t, s.Allowed("read", 1)[0].Tuples)

	s.RemoveBulk(cell, rs[0].Value)
	_, unmet, err = s.Check("read", tree(t, `{"path":"/00007"}`), 1)
	require.NoError(t, err)
	require.Equal(t, statespace.Consumed, unmet[0].Reason)
	s.RemoveBulk(cell)
	require.False(t, s.Legal("read"))

	require.True(t, s.PutCell(cell, statespace.Cell{`"/1"`: 5}))
	require.True(t, s.Legal("read"))
	require.Equal(t, [][]string{{`"/1"`}}, s.Allowed("read", 5)[0].Tuples)
	s.PutCell(cell, nil)
	require.False(t, s.Legal("read"))
	require.False(t, s.PutCell("list@dir", nil), "nobody binds on it")
}

func TestFacts_CombinationsAreBounded(t *testing.T) {
	g := compile(t, node("list"), node("d", output("list", "a", "entries.*.size", "b", "other.*.path"),
		output("list", "a", "entries.*.path", "b", "other.*.path"), on("list")))
	out := listing(300)
	out["other"] = out["entries"]
	facts, err := g.Facts("list", nil, out)
	require.NoError(t, err)
	require.Equal(t, []string{"list"}, facts.Keys)
	require.Equal(t, []string{"list@output:entries.*.path,output:other.*.path", "list@output:entries.*.size,output:other.*.path"},
		facts.Dropped, "sorted, whatever the order of the declaration")
}

// Whatever two arrays hold: what is joined behind one * are exactly the elements.
func TestFacts_PairsElements(t *testing.T) {
	g := compile(t, node("p"), node("d", output("p", "x", "e.*.a", "y", "e.*.b")))
	rapid.Check(t, func(t *rapid.T) {
		want, entries := map[string]bool{}, []any{}
		for range rapid.IntRange(0, 6).Draw(t, "n") {
			e := map[string]any{}
			a, b := rapid.IntRange(0, 3).Draw(t, "a"), rapid.IntRange(0, 3).Draw(t, "b")
			if a > 0 {
				e["a"] = json.Number(fmt.Sprint(a))
			}
			if b > 0 {
				e["b"] = json.Number(fmt.Sprint(b))
			}
			if a > 0 && b > 0 {
				want[fmt.Sprintf("p@output:e.*.a=%d,output:e.*.b=%d", a, b)] = true
			}
			entries = append(entries, e)
		}
		facts, err := g.Facts("p", nil, map[string]any{"e": entries})
		require.NoError(t, err)
		require.Len(t, facts.Keys, len(want))
		for _, k := range facts.Keys {
			require.True(t, want[k], k)
		}
	})
}

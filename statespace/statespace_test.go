package statespace_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/statespace"
)

// on binds fields of one name on both sides.
func on(name string, fields ...string) statespace.Need {
	n := statespace.Need{Action: name}
	for _, f := range fields {
		n.Bind = append(n.Bind, statespace.Bind{Mine: f, Theirs: f})
	}
	return n
}

// output binds pairs (mine, theirs) on the prerequisite's output.
func output(name string, pairs ...string) statespace.Need {
	n := statespace.Need{Action: name}
	for i := 0; i < len(pairs); i += 2 {
		n.Bind = append(n.Bind, statespace.Bind{Mine: pairs[i], Theirs: pairs[i+1], Output: true})
	}
	return n
}

func node(name string, needs ...statespace.Need) statespace.Node {
	return statespace.Node{Name: name, Needs: needs}
}

func compile(t require.TestingT, nodes ...statespace.Node) *statespace.Graph {
	g, err := statespace.Compile(nodes)
	require.NoError(t, err)
	return g
}

// tree reads JSON as the strict edge does.
func tree(t require.TestingT, text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	return v
}

// graphs draws declarations without faults: needs point to actions that come earlier in a hidden order, so that
// declaration order and topological order differ.
func graphs(t *rapid.T) []statespace.Node {
	n := rapid.IntRange(1, 9).Draw(t, "actions")
	hidden := rapid.Permutation(slices.Collect(func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	})).Draw(t, "order")
	nodes := make([]statespace.Node, n)
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("a%d", i)
	}
	for pos, i := range hidden {
		seen := map[string]bool{}
		for range rapid.IntRange(0, min(pos, 3)).Draw(t, "needs") {
			nd := on(fmt.Sprintf("a%d", hidden[rapid.IntRange(0, pos-1).Draw(t, "prereq")]), rapid.SampledFrom([][]string{
				nil, {"x"}, {"y"}, {"x", "y"},
			}).Draw(t, "fields")...)
			nd.Consumed = rapid.Bool().Draw(t, "consumed")
			if id := fmt.Sprint(nd.Action, nd.Bind); !seen[id] {
				seen[id] = true
				nodes[i].Needs = append(nodes[i].Needs, nd)
			}
		}
	}
	return nodes
}

// inputs draws an input in which x or y may be absent.
func inputs(t *rapid.T) map[string]any {
	in := map[string]any{}
	for _, f := range []string{"x", "y"} {
		if v := rapid.SampledFrom([]any{nil, "1", json.Number("1"), "2"}).Draw(t, f); v != nil {
			in[f] = v
		}
	}
	return in
}

// naiveLegal recomputes the legal set from the keys held, one by one, by what they say.
func naiveLegal(t require.TestingT, nodes []statespace.Node, held map[string]int64, now int64) []string {
	var out []string
	for _, n := range nodes {
		legal := true
		for _, nd := range n.Needs {
			legal = legal && slices.ContainsFunc(slices.Collect(maps.Keys(held)), func(key string) bool {
				f, err := statespace.ParseKey(key)
				require.NoError(t, err)
				fresh := nd.Within == 0 || now-held[key] <= nd.Within.Microseconds()
				return fresh && f.Action == nd.Action && sameFields(f.Values, nd.Bind)
			})
		}
		if legal {
			out = append(out, n.Name)
		}
	}
	return out
}

func sameFields(values []statespace.Value, binds []statespace.Bind) bool {
	var a, b []string
	for _, v := range values {
		a = append(a, fmt.Sprint(v.Path, v.Output))
	}
	for _, v := range binds {
		b = append(b, fmt.Sprint(v.Theirs, v.Output))
	}
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func TestI03_LegalSetEqualsNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := graphs(t)
		g := compile(t, nodes...)
		s, held := g.NewSet(), map[string]int64{}
		for step := range rapid.IntRange(0, 12).Draw(t, "steps") {
			name := rapid.SampledFrom(g.Names()).Draw(t, "ok")
			facts, err := g.Facts(name, inputs(t), nil)
			require.NoError(t, err)
			remove := rapid.Bool().Draw(t, "remove")
			for _, key := range facts.Keys {
				if remove {
					s.Remove(key)
					delete(held, key)
				} else {
					require.True(t, s.Put(key, int64(step)))
					held[key] = int64(step)
				}
			}
			require.Equal(t, naiveLegal(t, nodes, held, 0), s.Names())
			for _, name := range g.Names() {
				require.Equal(t, slices.Contains(s.Names(), name), s.Legal(name))
				unmet, err := g.Explain(name, s, 0)
				require.NoError(t, err)
				require.Equal(t, s.Legal(name), len(unmet) == 0, "Explain and the set agree")
			}
		}
	})
}

// An Ok with some values is what a call with the same values rests on, and a call with others does not.
func TestI03_FactsMeetRequirements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := graphs(t)
		if rapid.Bool().Draw(t, "secret") {
			nodes[0].Secret = []string{"x"}
		}
		g := compile(t, nodes...)
		name := rapid.SampledFrom(g.Names()).Draw(t, "ok")
		in, mine := inputs(t), inputs(t)
		facts, err := g.Facts(name, in, nil)
		require.NoError(t, err)
		for _, d := range g.Dependents(name) {
			rs, err := g.Required(d, mine)
			require.NoError(t, err)
			for _, r := range rs {
				if r.Action != name {
					continue
				}
				nd := nodes[slices.Index(g.Names(), d)].Needs[r.Need]
				want := !slices.ContainsFunc(nd.Bind, func(b statespace.Bind) bool {
					return mine[b.Mine] == nil || in[b.Theirs] != mine[b.Mine]
				})
				require.Equal(t, want, slices.Contains(facts.Keys, r.Key), "%v against %v: %+v", in, mine, r)
			}
		}
	})
}

// trees draws small JSON values with characters that structure keys.
func trees(depth int) *rapid.Generator[any] {
	text := rapid.Map(rapid.StringOfN(rapid.SampledFrom([]rune("a\"\\,=#@{}[]\n\x7fé")), 0, 3, -1), func(s string) any { return s })
	leaves := []*rapid.Generator[any]{text, rapid.SampledFrom([]any{true, false, json.Number("1"), json.Number("-0.5"), "1", "true"})}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	sub := trees(depth - 1)
	return rapid.OneOf(append(leaves,
		rapid.Map(rapid.SliceOfN(sub, 0, 2), func(v []any) any { return v }),
		rapid.Map(rapid.MapOfN(rapid.StringN(0, 2, -1), sub, 0, 2), func(v map[string]any) any { return v }))...)
}

func TestKey_Injective(t *testing.T) {
	g := compile(t, node("p"), node("d", on("p"), on("p", "x"), on("p", "x", "y"), output("p", "x", "x"),
		output("p", "x", `x="1",y`), on("p", `we"ird, name#`)))
	type fact struct{ set, value string }
	seen := map[string]fact{}
	rapid.Check(t, func(t *rapid.T) {
		in := map[string]any{"x": trees(2).Draw(t, "x"), "y": trees(1).Draw(t, "y"), `we"ird, name#`: trees(0).Draw(t, "w")}
		rs, err := g.Required("d", in)
		require.NoError(t, err)
		for _, r := range rs {
			f := fact{r.SetKey, r.Value}
			if old, ok := seen[r.Key]; ok {
				require.Equal(t, old, f)
			}
			seen[r.Key] = f
			back, err := statespace.ParseKey(r.Key)
			require.NoError(t, err)
			require.Equal(t, r.Key, back.Key())
			if back.Hash == "" {
				for _, v := range back.Values {
					if !v.Output && v.Path != "x=\"1\",y" {
						require.Equal(t, in[v.Path], tree(t, v.JSON))
					}
				}
			}
		}
	})
}

func FuzzParseKey(f *testing.F) {
	for _, key := range []string{
		"confirm-order", `confirm-order@orderId="ORD-1"`, `a@output:e.*.path="x,y",z=[1,{"b":"]"}]`,
		`a@"q\"=,"=true`, "a@x,y#" + strings.Repeat("0f", 32), "a@", `a@x="`, "a@x=1,", "a@=1", `a@x,y=1`, `a@b=1,a=2`,
	} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		fact, err := statespace.ParseKey(key)
		if err != nil {
			return
		}
		require.Equal(t, key, fact.Key())
		again, err := statespace.ParseKey(fact.Key())
		require.NoError(t, err)
		require.Equal(t, fact, again)
		for _, v := range fact.Values {
			require.True(t, fact.Hash != "" || json.Valid([]byte(v.JSON)))
		}
	})
}

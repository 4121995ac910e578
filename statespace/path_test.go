package statespace_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/statespace"
)

func costing(tokens int64, n statespace.Node) statespace.Node {
	n.Cost = action.Cost{Tokens: tokens}
	return n
}

func consuming(n statespace.Need) statespace.Need {
	n.Consumed = true
	return n
}

func fetching(n statespace.Node) statespace.Node {
	n.Fetches = true
	return n
}

func TestPath(t *testing.T) {
	diamond := []statespace.Node{node("top", on("left"), on("right")), costing(2, node("left", on("base"))),
		costing(1, node("right", on("base"))), costing(5, node("base"))}
	for _, c := range []struct {
		name, why string
		nodes     []statespace.Node
		held      []string
		target    string
		want      string
		tokens    int64
	}{
		{"nothing to do", "it is legal", diamond, nil, "base", "base", 0},
		{"diamond", "the shared prerequisite runs once, the cheaper branch first", diamond, nil, "top", "base → right → left → top", 8},
		{"half done", "what is held is not run again", diamond, []string{"right"}, "top", "base → left → top", 7},
		{"ties", "equal costs keep the order of the declaration",
			[]statespace.Node{node("z"), node("a"), node("m", on("a"), on("z"))}, nil, "m", "z → a → m", 0},
		{"used up on the way", "what a step uses up is established again",
			[]statespace.Node{node("c"), node("a", consuming(on("c"))), node("t", on("c"), on("a"))}, nil, "t", "c → a → c → t", 0},
		{"held and used up on the way", "even where it is held at first",
			[]statespace.Node{node("c"), node("a", consuming(on("c"))), node("t", on("c"), on("a"))}, []string{"c"}, "t", "a → c → t", 0},
		{"use first", "who uses nothing up goes first",
			[]statespace.Node{node("c"), node("a", consuming(on("c"))), node("b", on("c")), node("t", on("a"), on("b"))}, nil, "t", "c → b → a → t", 0},
		{"used up at every level", "what is established last is not lost again",
			[]statespace.Node{node("c"), node("a", consuming(on("c"))), node("b", consuming(on("a"))), node("t", on("c"), on("a"), on("b"))},
			nil, "t", "c → a → b → c → a → c → t", 0},
		{"established on the way", "what another step had to run does not run once more",
			[]statespace.Node{node("q"), costing(9, node("i", consuming(on("q")))), node("m", on("i")), node("x", consuming(on("m"))),
				node("y", consuming(on("m"))), node("t", on("x"), on("y"), on("i"))},
			[]string{"q", "m"}, "t", "x → i → m → y → t", 9},
		{"boundary", "what to read is known when the list has run",
			[]statespace.Node{fetching(node("list")), node("read", output("list", "path", "e.*.path")), node("log"),
				node("sum", on("read"), on("log"))}, nil, "sum", "list → log → ? (list first; then towards sum)", 0},
		{"boundary at the end", "the target itself binds on what is not known",
			[]statespace.Node{fetching(node("list")), node("read", output("list", "path", "e.*.path"))}, nil, "read",
			"list → ? (list first; then towards read)", 0},
		{"no boundary", "it needs the list, not what is in it",
			[]statespace.Node{fetching(node("list")), node("read", on("list"))}, nil, "read", "list → read", 0},
		{"known already, run all the same", "the list runs for another reason",
			[]statespace.Node{fetching(node("list")), node("read", output("list", "path", "e.*.path")), node("sum", on("read"), on("list"))},
			[]string{`list@output:e.*.path="a"`}, "sum", "list → read → sum", 0},
		{"known already", "there are values to go on with",
			[]statespace.Node{fetching(node("list")), node("read", output("list", "path", "e.*.path")), node("sum", on("read"))},
			[]string{`list@output:e.*.path="a"`}, "sum", "read → sum", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := compile(t, c.nodes...)
			s := g.NewSet()
			for _, key := range c.held {
				require.True(t, s.Put(key, 0))
			}
			p, err := g.Path(c.target, s, 0, nil)
			require.NoError(t, err)
			require.Equal(t, c.want, p.String(), c.why)
			require.Equal(t, c.tokens, p.Cost.Tokens)
			require.Equal(t, float64(c.tokens), p.Weight)
		})
	}
}

func TestPath_StopsAtBoundary(t *testing.T) {
	g := compile(t, fetching(node("list")), fetching(node("stat", output("list", "path", "e.*.path"))),
		node("read", output("stat", "path", "path")), node("sum", on("read")))
	p, err := g.Path("sum", g.NewSet(), 0, nil)
	require.NoError(t, err)
	require.Equal(t, []statespace.Step{{Action: "list"}}, p.Steps)
	require.Equal(t, []string{"list"}, p.Boundary, "the second boundary is not known yet")
	require.Equal(t, []string{"stat", "read"}, p.Beyond)
}

func TestPath_RunsStaleAgain(t *testing.T) {
	n := on("p")
	n.Within = time.Millisecond
	g := compile(t, node("p"), node("d", n))
	s := g.NewSet()
	s.Put("p", 0)
	p, err := g.Path("d", s, 1000, nil)
	require.NoError(t, err)
	require.Equal(t, "d", p.String())
	p, err = g.Path("d", s, 1001, nil)
	require.NoError(t, err)
	require.Equal(t, "p → d", p.String())
}

func TestPath_Errors(t *testing.T) {
	eur := action.Cost{Money: 1, Currency: "EUR"}
	usd := action.Cost{Money: 1, Currency: "USD"}
	g := compile(t, statespace.Node{Name: "a", Cost: eur}, statespace.Node{Name: "b", Cost: usd}, node("c", on("a"), on("b")))
	_, err := g.Path("c", g.NewSet(), 0, nil)
	require.ErrorIs(t, err, action.ErrCurrency)

	// Each level uses the one below up twice: 2^12 steps.
	nodes := []statespace.Node{node("l0")}
	for i := range 12 {
		at := string(rune('A' + i))
		below := nodes[len(nodes)-1].Name
		nodes = append(nodes, node(at+"1", consuming(on(below))), node(at+"2", consuming(on(below))), node(at, consuming(on(at+"1")), consuming(on(at+"2"))))
	}
	g = compile(t, nodes...)
	_, err = g.Path("L", g.NewSet(), 0, nil)
	require.ErrorContains(t, err, "more than 1000 steps")
}

// Playing the path makes the target legal, and every step is legal when its turn comes. Where nothing is used up, it is
// the cheapest: each missing ancestor once.
func TestPath_LeadsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := graphs(t)
		frugal := rapid.Bool().Draw(t, "frugal")
		for i := range nodes {
			nodes[i].Cost.Tokens = int64(rapid.IntRange(0, 3).Draw(t, "cost"))
			for k := range nodes[i].Needs {
				nodes[i].Needs[k].Consumed = nodes[i].Needs[k].Consumed && !frugal
			}
		}
		g := compile(t, nodes...)
		s := g.NewSet()
		in := map[string]any{"x": "1", "y": "1"} // one value all along, as the path assumes
		play := func(name string) {
			rs, err := g.Required(name, in)
			require.NoError(t, err)
			for _, r := range rs {
				if r.Consumed {
					s.Remove(r.Key)
				}
			}
			facts, err := g.Facts(name, in, nil)
			require.NoError(t, err)
			for _, key := range facts.Keys {
				s.Put(key, 0)
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "before") {
			play(rapid.SampledFrom(g.Names()).Draw(t, "ok"))
		}
		target := rapid.SampledFrom(g.Names()).Draw(t, "target")
		missing := ancestors(g, s, target)
		p, err := g.Path(target, s, 0, nil)
		require.NoError(t, err)
		again, err := g.Path(target, s, 0, nil)
		require.NoError(t, err)
		require.Equal(t, p, again)
		ran := map[string]bool{}
		for _, step := range p.Steps {
			require.True(t, s.Legal(step.Action), "%s in %s", step.Action, p)
			play(step.Action)
			ran[step.Action] = true
		}
		require.True(t, s.Legal(target), "%s", p)
		for _, m := range missing {
			require.True(t, ran[m])
		}
		if frugal {
			require.Len(t, p.Steps, len(missing), "%s", p)
		}
	})
}

// ancestors collects what has to run, by asking Explain over and over.
func ancestors(g *statespace.Graph, s *statespace.Set, name string) (out []string) {
	unmet, err := g.Explain(name, s, 0)
	if err != nil {
		return nil
	}
	for _, u := range unmet {
		for _, a := range append(ancestors(g, s, u.Action), u.Action) {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

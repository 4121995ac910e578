package statespace_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/statespace"
)

func TestCompile_NamesEveryFaultAtOnce(t *testing.T) {
	bad := []statespace.Node{
		node("confirm-order"),
		node("charge", on("confirm_order"), on("charge"), on("refund")),
		node("charge"),
		node("ship", statespace.Need{Action: "confirm-order", Within: -time.Second}, on("confirm-order", ""),
			on("confirm-order", "id"), on("confirm-order", "id")),
		node("a", on("b")), node("b", on("c")), node("c", on("b"), on("a")),
		{Name: "costly", Cost: action.Cost{Tokens: -1}, Secret: []string{"a..b"}},
		node("n@me"),
	}
	_, err := statespace.Compile(bad, "refund")
	require.EqualError(t, err, strings.Join([]string{
		"action charge is declared twice",
		"action costly: cost tokens is -1, want 0 to 9007199254740991",
		`action costly: secret: path "a..b" has an empty segment`,
		`action: name "n@me": character '@' at 1 is not allowed (letters, digits, '_', and after the first '-', '.', '/')`,
		"action charge needs confirm_order: there is no such action; did you mean confirm-order?",
		"action charge needs charge: an action cannot need itself",
		"action charge needs refund: the agent does not hold it; add it to the agent's actions",
		"action ship needs confirm-order: within -1s is negative",
		"action ship needs confirm-order: bound field: path is empty",
		"action ship needs confirm-order: prerequisite's field: path is empty",
		"action ship needs confirm-order: declared twice; keep one",
		"prerequisites form a cycle: a → b → c → a",
	}, "\n"))
}

func TestCompile_Refuses(t *testing.T) {
	for _, c := range []struct {
		name, why, want string
		need            statespace.Need
	}{
		{"wildcard on my side", "a call has one value, not many", `only the prerequisite's path may hold "*"`,
			statespace.Need{Action: "p", Bind: []statespace.Bind{{Mine: "a.*", Theirs: "x"}}}},
		{"my field twice", "one field would have to equal two", "bound already",
			statespace.Need{Action: "p", Bind: []statespace.Bind{{Mine: "a", Theirs: "x"}, {Mine: "a", Theirs: "y"}}}},
		{"their field twice", "two fields would have to be equal", "bound already",
			statespace.Need{Action: "p", Bind: []statespace.Bind{{Mine: "a", Theirs: "x"}, {Mine: "b", Theirs: "x"}}}},
		{"a nanosecond", "store time counts microseconds: it would mean no limit", "less than a microsecond",
			statespace.Need{Action: "p", Within: 1}},
		{"not UTF-8", "two paths could have one key", "not valid UTF-8", on("p", "a\xff")},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := statespace.Compile([]statespace.Node{node("p"), node("d", c.need)})
			require.ErrorContains(t, err, c.want, c.why)
		})
	}
}

// The verdict on cycles equals that of the transitive closure.
func TestCompile_CycleVerdictEqualsClosure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "n")
		nodes := make([]statespace.Node, n)
		reach := make([][]bool, n)
		for i := range nodes {
			nodes[i].Name = fmt.Sprintf("a%d", i)
			reach[i] = make([]bool, n)
			for j := range n {
				if i != j && rapid.IntRange(0, 5).Draw(t, "edge") == 0 {
					nodes[i].Needs = append(nodes[i].Needs, on(fmt.Sprintf("a%d", j)))
					reach[i][j] = true
				}
			}
		}
		for k := range n {
			for i := range n {
				for j := range n {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		cyclic := false
		for i := range n {
			cyclic = cyclic || reach[i][i]
		}
		_, err := statespace.Compile(nodes)
		require.Equal(t, cyclic, err != nil)
		if err == nil {
			return
		}
		for line := range strings.Lines(err.Error()) {
			way := strings.Split(strings.TrimPrefix(strings.TrimSpace(line), "prerequisites form a cycle: "), " → ")
			require.Equal(t, way[0], way[len(way)-1])
			for i := range len(way) - 1 {
				var a int
				_, err := fmt.Sscanf(way[i], "a%d", &a)
				require.NoError(t, err)
				require.Contains(t, nodes[a].Needs, on(way[i+1]), "every arrow is a need")
			}
		}
	})
}

func TestCompile_KeepsItsOwnCopy(t *testing.T) {
	nodes := []statespace.Node{node("p"), node("d", on("p", "x"))}
	g := compile(t, nodes...)
	nodes[1].Needs[0].Bind[0].Mine = "changed"
	nodes[1].Needs[0].Action = "changed"
	rs, err := g.Required("d", map[string]any{"x": "1"})
	require.NoError(t, err)
	require.Equal(t, `p@x="1"`, rs[0].Key)
	require.Equal(t, []string{"d"}, g.Dependents("p"))
}

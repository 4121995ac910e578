package statespace

import (
	"cmp"
	"slices"
)

// sort returns the actions with prerequisites first and, for every group of actions that need each other, one shortest
// cycle that starts and ends at the member declared first. Groups are found by Tarjan's algorithm: SIAM J. Comput. 1
// (1972) 146, which visits them prerequisites first.
func (g *Graph) sort() (order []int, cycles [][]string) {
	t := tarjan{g: g, index: make([]int, len(g.nodes)), low: make([]int, len(g.nodes)), on: make([]bool, len(g.nodes))}
	for v := range g.nodes {
		if t.index[v] == 0 {
			t.visit(v)
		}
	}
	slices.SortFunc(t.groups, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	for _, group := range t.groups {
		cycles = append(cycles, g.names(g.shortest(group)))
	}
	return t.order, cycles
}

type tarjan struct {
	g          *Graph
	index, low []int // index 0: not visited
	on         []bool
	stack      []int
	clock      int
	order      []int
	groups     [][]int // of two and more, members in declaration order
}

func (t *tarjan) visit(v int) {
	t.clock++
	t.index[v], t.low[v] = t.clock, t.clock
	t.stack, t.on[v] = append(t.stack, v), true
	for _, n := range t.g.needs[v] {
		if w := n.prereq; t.index[w] == 0 {
			t.visit(w)
			t.low[v] = min(t.low[v], t.low[w])
		} else if t.on[w] {
			t.low[v] = min(t.low[v], t.index[w])
		}
	}
	if t.low[v] == t.index[v] {
		t.pop(v)
	}
}

func (t *tarjan) pop(v int) {
	at := len(t.stack) - 1
	for t.stack[at] != v {
		at--
	}
	group := slices.Sorted(slices.Values(t.stack[at:]))
	t.stack = t.stack[:at]
	for _, w := range group {
		t.on[w] = false
	}
	t.order = append(t.order, group...)
	if len(group) > 1 {
		t.groups = append(t.groups, group)
	}
}

// shortest searches breadth first, within the group, for the way from its first member back to it.
func (g *Graph) shortest(group []int) []int {
	start := group[0]
	from := map[int]int{}
	for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		for _, n := range g.needs[v] {
			if n.prereq == start {
				return trail(from, start, v)
			}
			if _, seen := from[n.prereq]; !seen && slices.Contains(group, n.prereq) {
				from[n.prereq] = v
				queue = append(queue, n.prereq)
			}
		}
	}
	return nil // a group of two and more always has one
}

func trail(from map[int]int, start, v int) []int {
	way := []int{start}
	for ; v != start; v = from[v] {
		way = append(way, v)
	}
	way = append(way, start)
	slices.Reverse(way)
	return way
}

package workflow

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func sorted(m Mapping) []string { return slices.Sorted(maps.Keys(m)) }

// edges resolves the needs of all steps.
func (c *checker) edges() {
	c.unsure = make([]bool, len(c.d.nodes))
	for i := range c.d.nodes {
		n, known := &c.d.nodes[i], len(c.faults)
		what := fmt.Sprintf("step %q", n.Name)
		for _, need := range n.Needs {
			when := need.When
			if when == "" {
				when = OnOk
			}
			to, there := c.d.at[need.Step]
			switch {
			case when != OnOk && when != OnErr && when != OnEnd:
				c.fault("%s needs %q %q; want ok, err or end", what, need.Step, need.When)
			case !there:
				c.fault("%s needs step %q, which there is not%s", what, need.Step, c.suggest(need.Step))
			case to == i:
				c.fault("%s needs itself", what)
			case c.d.nodes[to].phase > n.phase:
				c.fault("%s needs step %q of phase %q, which comes after its own", what, need.Step, c.d.spec.Phases[c.d.nodes[to].phase].Name)
			case slices.Contains(n.needs, edge{to, when}):
				c.fault("%s needs %q twice", what, need.Step)
			default:
				n.needs = append(n.needs, edge{to, when})
			}
		}
		if c.d.spec.Phases[n.phase].Ordered && i > c.d.first[n.phase] &&
			!slices.ContainsFunc(n.needs, func(e edge) bool { return e.to == i-1 }) {
			n.needs = append(n.needs, edge{i - 1, OnEnd})
		}
		c.unsure[i] = len(c.faults) > known
	}
	for _, cycle := range c.d.cycles() {
		c.fault("steps need each other: %s", strings.Join(cycle, " → "))
	}
	c.untangle()
}

// untangle takes the circles out of the graph, so that all else can be looked at, and marks what comes after a step of which it
// is not known what stands before it.
func (c *checker) untangle() {
	circling := c.d.circling()
	after := make([][]int, len(c.d.nodes))
	var doubtful []int
	for i := range c.d.nodes {
		n := &c.d.nodes[i]
		if circling[i] {
			c.unsure[i] = true
			n.needs = slices.DeleteFunc(n.needs, func(e edge) bool { return circling[e.to] })
		}
		for _, e := range n.needs {
			after[e.to] = append(after[e.to], i)
		}
		if c.unsure[i] {
			doubtful = append(doubtful, i)
		}
	}
	for ; len(doubtful) > 0; doubtful = doubtful[1:] {
		for _, i := range after[doubtful[0]] {
			if !c.unsure[i] {
				c.unsure[i] = true
				doubtful = append(doubtful, i)
			}
		}
	}
}

// maxSuggested bounds how many names are compared with all others: a file may be full of wrong ones.
const maxSuggested = 50

// suggest names the step that may have been meant.
func (c *checker) suggest(name string) string {
	d := c.d
	if c.suggested++; c.suggested > maxSuggested || len(name) > action.MaxName {
		return ""
	}
	best, at := "", max(2, len(name)/3)+1
	for i := range d.nodes {
		if n := action.Distance(name, d.nodes[i].Name); n < at {
			best, at = d.nodes[i].Name, n
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// cycles returns one shortest cycle for each step that is the first of one, each once.
func (d *Definition) cycles() (out [][]string) {
	seen := map[int]bool{}
	circling := d.circling()
	from := make([]int, len(d.nodes))
	for start := range d.nodes {
		if seen[start] || !circling[start] {
			continue
		}
		var names []string
		for _, v := range d.wayBack(start, from) {
			seen[v] = true
			names = append(names, d.nodes[v].Name)
		}
		if names != nil {
			out = append(out, names)
		}
	}
	return out
}

// circling marks the steps that are left where those go that need nothing left, one after the other: the steps of cycles, and
// what needs one of these.
func (d *Definition) circling() []bool {
	left, needed := make([]bool, len(d.nodes)), make([][]int, len(d.nodes))
	count := make([]int, len(d.nodes))
	var free []int
	for i := range d.nodes {
		left[i], count[i] = true, len(d.nodes[i].needs)
		if count[i] == 0 {
			free = append(free, i)
		}
		for _, e := range d.nodes[i].needs {
			needed[e.to] = append(needed[e.to], i)
		}
	}
	for ; len(free) > 0; free = free[1:] {
		left[free[0]] = false
		for _, i := range needed[free[0]] {
			if count[i]--; count[i] == 0 {
				free = append(free, i)
			}
		}
	}
	return left
}

// wayBack is a shortest way from a step along its needs back to it, both ends included; nil where there is none. It overwrites
// from, which has a place for each step.
func (d *Definition) wayBack(start int, from []int) []int {
	const unseen = -1
	for i := range from {
		from[i] = unseen
	}
	for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		for _, e := range d.nodes[v].needs {
			if e.to == start {
				way := []int{start}
				for ; v != start; v = from[v] {
					way = append(way, v)
				}
				way = append(way, start)
				slices.Reverse(way)
				return way
			}
			if from[e.to] == unseen {
				from[e.to] = v
				queue = append(queue, e.to)
			}
		}
	}
	return nil
}

// order finds what stands before and after each step, and steps that never run.
func (c *checker) order() {
	reached := make([]*big.Int, len(c.d.nodes))
	for i := range c.d.nodes {
		n := &c.d.nodes[i]
		before := c.d.reach(i, reached)
		for k := range c.d.nodes {
			if k < c.d.first[n.phase] || before.Bit(k) == 1 {
				n.before = append(n.before, k)
			}
		}
		for _, e := range n.needs {
			if e.when == OnErr {
				h := &c.d.nodes[e.to].handlers
				*h = append(*h, i)
			}
		}
	}
	ends := make([]When, len(c.d.nodes))
	for i := range c.d.nodes {
		clear(ends)
		if a, b := c.d.requires(i, ends); a != "" {
			c.fault("step %q is never run: it needs that %s, and that %s", c.d.nodes[i].Name, a, b)
		}
	}
}

// shares warns of nested workflows that are granted all that is left of the budget while other steps may need some of it.
func (c *checker) shares() {
	before := func(i, k int) bool {
		_, is := slices.BinarySearch(c.d.nodes[k].before, i)
		return is
	}
	for i := range c.d.nodes {
		n := &c.d.nodes[i]
		if n.Type != SubSOP || n.Limits.Cost != (action.Limit{}) {
			continue
		}
		for k := c.d.first[n.phase]; k < c.d.first[n.phase+1]; k++ {
			if k != i && c.d.nodes[k].Type != Human && !before(i, k) && !before(k, i) && !c.excluded(i, k) {
				c.warn("step %q has no limit of cost: its workflow is granted all that is left of the budget, and step %q beside it has to wait for some", n.Name, c.d.nodes[k].Name)
				break
			}
		}
	}
}

// excluded reports whether two steps never both run, since they need other ends of a step before them. Of very many pairs it is
// said of the last without looking: a warning less.
func (c *checker) excluded(i, k int) bool {
	if c.pairs++; c.pairs > maxPairs {
		return true
	}
	ends := make([]When, len(c.d.nodes))
	c.d.requires(i, ends)
	a, _ := c.d.requires(k, ends)
	return a != ""
}

const maxPairs = 1000

// reach is the set of the steps that a step needs, and that these need, as bits. It asks each step once.
func (d *Definition) reach(i int, reached []*big.Int) *big.Int {
	if reached[i] != nil {
		return reached[i]
	}
	all := new(big.Int)
	for _, e := range d.nodes[i].needs {
		all.Or(all, d.reach(e.to, reached))
	}
	for _, e := range d.nodes[i].needs {
		all.SetBit(all, e.to, 1)
	}
	reached[i] = all
	return all
}

// requires collects how the steps before one must have ended where it runs. It returns two requirements that exclude each
// other. ends has a place for each step, "" where nothing is required of it.
func (d *Definition) requires(i int, ends []When) (string, string) {
	for _, e := range d.nodes[i].needs {
		if e.when == OnEnd {
			continue
		}
		name := d.nodes[e.to].Name
		switch was := ends[e.to]; {
		case was != "" && was != e.when:
			return name + " succeeded", name + " failed"
		case was != "":
			continue
		}
		ends[e.to] = e.when
		if a, b := d.requires(e.to, ends); a != "" { // it ran, so what it needs was so
			return a, b
		}
	}
	return "", ""
}

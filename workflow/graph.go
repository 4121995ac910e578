package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func sorted(m Mapping) []string { return slices.Sorted(maps.Keys(m)) }

// edges resolves the needs of all steps.
func (c *checker) edges() {
	for i := range c.d.nodes {
		n := &c.d.nodes[i]
		what := fmt.Sprintf("step %q", n.Name)
		for _, need := range n.Needs {
			when := need.When
			if when == "" {
				when = OnOk
			}
			to, known := c.d.at[need.Step]
			switch {
			case when != OnOk && when != OnErr && when != OnEnd:
				c.fault("%s needs %q %q; want ok, err or end", what, need.Step, need.When)
			case !known:
				c.fault("%s needs step %q, which there is not%s", what, need.Step, c.d.suggest(need.Step))
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
	}
	for _, cycle := range c.d.cycles() {
		c.fault("steps need each other: %s", strings.Join(cycle, " → "))
	}
}

// suggest names the step that may have been meant.
func (d *Definition) suggest(name string) string {
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
	for start := range d.nodes {
		if seen[start] {
			continue
		}
		var names []string
		for _, v := range d.wayBack(start) {
			seen[v] = true
			names = append(names, d.nodes[v].Name)
		}
		if names != nil {
			out = append(out, names)
		}
	}
	return out
}

// wayBack is a shortest way from a step along its needs back to it, both ends included; nil where there is none.
func (d *Definition) wayBack(start int) []int {
	from := map[int]int{}
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
			if _, seen := from[e.to]; !seen {
				from[e.to] = v
				queue = append(queue, e.to)
			}
		}
	}
	return nil
}

// order finds what stands before and after each step, and steps that never run.
func (c *checker) order() {
	for i := range c.d.nodes {
		n := &c.d.nodes[i]
		before := map[int]bool{}
		c.d.reach(i, before)
		for k := range c.d.first[n.phase] {
			before[k] = true
		}
		n.before = slices.Sorted(maps.Keys(before))
		for _, e := range n.needs {
			if e.when == OnErr {
				h := &c.d.nodes[e.to].handlers
				*h = append(*h, i)
			}
		}
	}
	for i := range c.d.nodes {
		ends := map[int]When{}
		if a, b := c.d.requires(i, ends); a != "" {
			c.fault("step %q is never run: it needs that %s, and that %s", c.d.nodes[i].Name, a, b)
		}
	}
}

func (d *Definition) reach(i int, into map[int]bool) {
	for _, e := range d.nodes[i].needs {
		if !into[e.to] {
			into[e.to] = true
			d.reach(e.to, into)
		}
	}
}

// requires collects how the steps before one must have ended where it runs. It returns two requirements that exclude each
// other.
func (d *Definition) requires(i int, ends map[int]When) (string, string) {
	for _, e := range d.nodes[i].needs {
		if e.when == OnEnd {
			continue
		}
		name := d.nodes[e.to].Name
		switch was, known := ends[e.to]; {
		case known && was != e.when:
			return name + " succeeded", name + " failed"
		case known:
			continue
		}
		ends[e.to] = e.when
		if a, b := d.requires(e.to, ends); a != "" { // it ran, so what it needs was so
			return a, b
		}
	}
	return "", ""
}

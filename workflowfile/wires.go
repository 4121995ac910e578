package workflowfile

import (
	"slices"

	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// tracks lists the vertices of the row above whose edges into row k need a track of their own between the rows, from the top
// down. What comes down where another edge goes down further on comes first, so that the two are not taken for one.
func (g *graph) tracks(k int) (order []int) {
	into := map[int][]int{} // where the edges of each vertex above go, each place once
	column := map[int]int{} // what begins there
	for _, i := range g.rows[k] {
		column[g.v[i].middle()] = i
		for _, l := range g.v[i].in {
			if n := len(into[l.from]); n == 0 || into[l.from][n-1] != i {
				into[l.from] = append(into[l.from], i)
			}
		}
	}
	var left []int
	for _, from := range g.rows[k-1] {
		if len(into[from]) > 0 {
			left = append(left, from)
		}
	}
	above, over := g.overlaps(k, left, into, column)
	gone := make(map[int]bool, len(left))
	for first, next := 0, 0; len(order) < len(left); {
		for ; next < len(left) && (gone[left[next]] || above[left[next]] == 0); next++ { // counts only fall
		}
		for ; gone[left[first]]; first++ {
		}
		pick := left[first]
		if next < len(left) {
			pick = left[next] // it must be above another one
		}
		gone[pick] = true
		order = append(order, pick)
		for _, i := range into[pick] {
			if from, one := over[i]; one && from != pick {
				above[from]--
			}
		}
	}
	return order
}

// overlaps counts, for each vertex above, the others with an edge that comes down in row k at the column where its own begin,
// to a vertex that it is not linked to itself; over says at which vertices of the row, and whom it concerns.
func (g *graph) overlaps(k int, left []int, into map[int][]int, column map[int]int) (above, over map[int]int) {
	above, over = map[int]int{}, map[int]int{}
	for _, from := range left {
		if i, one := column[g.v[from].middle()]; one && !slices.Contains(into[from], i) {
			over[i] = from
		}
	}
	for _, from := range left {
		for _, i := range into[from] {
			if of, one := over[i]; one {
				above[of]++
			}
		}
	}
	return above, over
}

func (g *graph) wires() (out []wire) {
	for k := 1; k < len(g.rows); k++ {
		track := map[int]int{}
		for n, from := range g.tracks(k) {
			track[from] = n
		}
		bottom := 0
		for _, i := range g.rows[k-1] {
			bottom = max(bottom, g.v[i].y+g.v[i].h)
		}
		for _, i := range g.rows[k] {
			to := &g.v[i]
			for _, l := range to.in {
				from := &g.v[l.from]
				turn := bottom + track[l.from]
				w := wire{corners: []point{{from.middle(), from.y + from.h}, {from.middle(), turn}, {to.middle(), turn}, {to.middle(), to.y - 1}}}
				if from.step < 0 {
					w.corners[0].y = from.y
				}
				if to.step >= 0 && l.when != "" && l.when != workflow.OnOk {
					w.label = string(l.when)
				}
				if to.step < 0 {
					w.corners[3].y = to.y
				}
				out = append(out, w)
			}
		}
	}
	return out
}

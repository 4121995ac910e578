package workflowfile

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// A drawing has the phases one below the other and, in each, the steps in layers: a step stands below all it needs. Its
// coordinates are characters; the picture scales them.
type drawing struct {
	width, height int
	blocks        []block
}

type block struct {
	title, story string
	y            int // of the title
	boxes        []box
	wires        []wire
}

type box struct {
	x, y, w, h int
	lines      []string
	kind       workflow.Type
	mark       markKind
}

// wire is a way from the lower edge of a box to the upper edge of another, by corners.
type wire struct {
	corners []point
	label   string
}

type point struct{ x, y int }

// vertex is a step, or the place where a longer edge passes a layer.
type vertex struct {
	step  int // -1 for a passing edge
	layer int
	w, h  int
	x, y  int
	in    []link
}

type link struct {
	from  int
	when  workflow.When
	ended bool // it ends here, at a step
}

func (v *vertex) middle() int { return v.x + v.w/2 }

const (
	between = 3 // characters between two boxes
	margin  = 2
)

func draw(d *workflow.Definition, marks map[string]mark) drawing {
	s := d.Spec()
	out := drawing{}
	y := 1
	for k := range s.Phases {
		b, w, h := layout(s, k, marks)
		b.y = y
		for i := range b.boxes {
			b.boxes[i].y += y + 2
		}
		for i := range b.wires {
			for j := range b.wires[i].corners {
				b.wires[i].corners[j].y += y + 2
			}
		}
		out.blocks = append(out.blocks, b)
		out.width = max(out.width, w+2*margin, utf8.RuneCountInString(b.title+b.story)+6)
		y += h + 4
	}
	out.height = y
	return out
}

// layout places the steps of one phase.
func layout(s workflow.Spec, k int, marks map[string]mark) (block, int, int) {
	p := s.Phases[k]
	g := &graph{}
	at := map[string]int{}
	for i, st := range p.Steps {
		at[st.Name] = i
		lines, _ := marked(describe(s, k, st), marks, st.Name)
		w := 0
		for _, l := range lines {
			w = max(w, utf8.RuneCountInString(l))
		}
		g.v = append(g.v, vertex{step: i, w: w + 4, h: len(lines) + 2})
	}
	for i, st := range p.Steps {
		for _, n := range st.Needs {
			if from, here := at[n.Step]; here {
				g.v[i].in = append(g.v[i].in, link{from, n.When, true})
			}
		}
		if p.Ordered && i > 0 && !slices.ContainsFunc(g.v[i].in, func(l link) bool { return l.from == i-1 }) {
			g.v[i].in = append(g.v[i].in, link{i - 1, workflow.OnEnd, true})
		}
	}
	g.layers()
	g.pass()
	g.order()
	w, h := g.place()
	b := block{title: p.Name, story: p.Storyline, wires: g.wires()}
	if g := p.Guard; g != nil {
		b.title += ", if " + cmp.Or(g.Name, "a schema holds")
	}
	for i := range g.v {
		if v := &g.v[i]; v.step >= 0 {
			st := p.Steps[v.step]
			lines, kind := marked(describe(s, k, st), marks, st.Name)
			b.boxes = append(b.boxes, box{v.x, v.y, v.w, v.h, lines, st.Type, kind})
		}
	}
	return b, w, h
}

// describe is what stands in the box of a step.
func describe(s workflow.Spec, k int, st workflow.Step) []string {
	second := string(st.Type)
	switch st.Type {
	case workflow.Human:
		who := s.Owners
		if st.Hitl != nil && len(st.Hitl.Who) > 0 {
			who = st.Hitl.Who
		}
		second += " " + strings.Join(who, ", ")
	case workflow.Reasoning:
		second += " " + st.Planner
	case workflow.Execution:
		second += " " + st.Action
	case workflow.SubSOP:
		second += " " + st.Workflow
	}
	out := []string{st.Name, second}
	if g := st.Guard; g != nil {
		out = append(out, "if "+cmp.Or(g.Name, "a schema holds"))
	}
	for _, n := range st.Needs {
		here := slices.ContainsFunc(s.Phases[k].Steps, func(o workflow.Step) bool { return o.Name == n.Step })
		if !here && n.When != "" && n.When != workflow.OnOk {
			out = append(out, "on "+string(n.When)+" of "+n.Step)
		}
	}
	if st.Undo != nil {
		out = append(out, "undo "+st.Undo.Action)
	}
	return out
}

type graph struct {
	v    []vertex
	rows [][]int // vertices, layer by layer, from left to right
}

// layers puts each step one below the lowest that it needs.
func (g *graph) layers() {
	for range g.v { // a longest way has at most so many edges
		for i := range g.v {
			for _, l := range g.v[i].in {
				g.v[i].layer = max(g.v[i].layer, g.v[l.from].layer+1)
			}
		}
	}
}

// pass splits edges that span several layers.
func (g *graph) pass() {
	for i := range len(g.v) {
		for k := range g.v[i].in {
			from := g.v[i].in[k].from
			for g.v[i].layer-g.v[from].layer > 1 {
				l := g.v[i].in[k]
				g.v = append(g.v, vertex{step: -1, layer: g.v[from].layer + 1, w: 1, in: []link{{from: from, when: l.when}}})
				from = len(g.v) - 1
			}
			g.v[i].in[k].from = from
		}
	}
	for i := range g.v {
		for len(g.rows) <= g.v[i].layer {
			g.rows = append(g.rows, nil)
		}
		g.rows[g.v[i].layer] = append(g.rows[g.v[i].layer], i)
	}
}

// order puts vertices near what they are linked to: the barycentre heuristic, downwards and upwards a few times.
func (g *graph) order() {
	out := make([][]int, len(g.v))
	for i := range g.v {
		for _, l := range g.v[i].in {
			out[l.from] = append(out[l.from], i)
		}
	}
	at := make([]float64, len(g.v))
	sort := func(row []int, near func(int) []int) {
		slices.SortStableFunc(row, func(a, b int) int { return cmp.Compare(centre(a, near(a), at), centre(b, near(b), at)) })
		for k, i := range row {
			at[i] = float64(k) / float64(len(row))
		}
	}
	above := func(i int) (near []int) {
		for _, l := range g.v[i].in {
			near = append(near, l.from)
		}
		return near
	}
	for range 4 {
		for _, row := range g.rows {
			sort(row, above)
		}
		for _, row := range slices.Backward(g.rows) {
			sort(row, func(i int) []int { return out[i] })
		}
	}
}

func centre(own int, near []int, at []float64) float64 {
	if len(near) == 0 {
		return at[own]
	}
	sum := 0.0
	for _, i := range near {
		sum += at[i]
	}
	return sum / float64(len(near))
}

// place gives coordinates, and returns how large that is.
func (g *graph) place() (width, height int) {
	widths := make([]int, len(g.rows))
	for k, row := range g.rows {
		for _, i := range row {
			widths[k] += g.v[i].w + between
		}
		width = max(width, widths[k])
	}
	y := 0
	for k, row := range g.rows {
		x, h := margin+(width-widths[k])/2, 0
		for _, i := range row {
			g.v[i].x, g.v[i].y = x, y
			x += g.v[i].w + between
			h = max(h, g.v[i].h)
		}
		for _, i := range row {
			if g.v[i].step < 0 {
				g.v[i].h = h
			}
		}
		y += h
		height = y
		if k+1 < len(g.rows) {
			y += len(g.tracks(k+1)) + 2
		}
	}
	return width, height
}

// tracks lists the vertices of the row above whose edges into row k need a track of their own between the rows, from the top
// down. What comes down where another edge goes down further on comes first, so that the two are not taken for one.
func (g *graph) tracks(k int) (order []int) {
	left := []int{}
	for _, from := range g.rows[k-1] {
		if slices.ContainsFunc(g.rows[k], func(i int) bool { return g.linked(from, i) }) {
			left = append(left, from)
		}
	}
	for len(left) > 0 {
		pick := 0
		for n, from := range left {
			if !slices.ContainsFunc(left, func(other int) bool { return other != from && g.comesDownAt(other, k, g.v[from].middle(), from) }) {
				continue
			}
			pick = n // it must be above that other one
			break
		}
		order = append(order, left[pick])
		left = slices.Delete(left, pick, pick+1)
	}
	return order
}

// comesDownAt reports whether an edge of a vertex ends in row k at a column where one of another vertex begins.
func (g *graph) comesDownAt(of, k, x, other int) bool {
	return slices.ContainsFunc(g.rows[k], func(i int) bool {
		return g.linked(of, i) && !g.linked(other, i) && g.v[i].middle() == x
	})
}

func (g *graph) linked(from, to int) bool {
	return slices.ContainsFunc(g.v[to].in, func(l link) bool { return l.from == from })
}

func (g *graph) wires() (out []wire) {
	for k := 1; k < len(g.rows); k++ {
		tracks := g.tracks(k)
		bottom := 0
		for _, i := range g.rows[k-1] {
			bottom = max(bottom, g.v[i].y+g.v[i].h)
		}
		for _, i := range g.rows[k] {
			to := &g.v[i]
			for _, l := range to.in {
				from := &g.v[l.from]
				turn := bottom + slices.Index(tracks, l.from)
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

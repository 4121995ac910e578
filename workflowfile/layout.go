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

func (w wire) length() (n int) {
	for i := 1; i < len(w.corners); i++ {
		a, b := w.corners[i-1], w.corners[i]
		n += max(a.x-b.x, b.x-a.x) + max(a.y-b.y, b.y-a.y)
	}
	return n
}

// vertex is a step, or the place where a longer edge passes a layer.
type vertex struct {
	step  int // -1 for a passing edge
	layer int
	w, h  int
	x, y  int
	in    []link
	lines []string
	mark  markKind
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

// maxRoom bounds the characters that a drawing spends on boxes, on what is between them and on wires. Phases beyond it are listed.
const maxRoom = 1_000_000

// maxLine bounds a line of a box, in runes.
const maxLine = 200

func draw(d *workflow.Definition, marks map[string]mark) drawing {
	s := d.Spec()
	out := drawing{}
	y, room := 1, maxRoom
	for k := range s.Phases {
		b, w, h := layout(s, k, marks, &room)
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

// layout places the steps of one phase, and takes what they need off the room that is left.
func layout(s workflow.Spec, k int, marks map[string]mark, room *int) (block, int, int) {
	p := s.Phases[k]
	g := graphOf(s, k, marks)
	b := block{title: p.Name, story: p.Storyline}
	if g := p.Guard; g != nil {
		b.title += ", if " + cmp.Or(g.Name, "a schema holds")
	}
	g.layers()
	fits := g.long()*passing <= *room // else not even that is tried
	var w, h int
	if fits {
		g.pass()
		g.order()
		w, h = g.place()
		b.wires = g.wires()
		taken := w * h
		for _, wire := range b.wires {
			taken += wire.length()
		}
		if fits = taken <= *room; fits {
			*room -= taken
		}
	}
	if !fits {
		g, b.wires = graphOf(s, k, marks), nil
		w, h = g.list(p)
	}
	for i := range g.v {
		if v := &g.v[i]; v.step >= 0 {
			b.boxes = append(b.boxes, box{v.x, v.y, v.w, v.h, v.lines, p.Steps[v.step].Type, v.mark})
		}
	}
	return b, w, h
}

// passing is what an edge takes, about, where it passes a layer.
const passing = 20

// graphOf is the graph of a phase.
func graphOf(s workflow.Spec, k int, marks map[string]mark) *graph {
	p := s.Phases[k]
	g := &graph{}
	at := map[string]int{}
	for i, st := range p.Steps {
		at[st.Name] = i
	}
	for i, st := range p.Steps {
		v := vertex{step: i}
		lines, kind := marked(describe(s, at, st), marks, st.Name)
		v.mark = kind
		v.write(lines)
		g.v = append(g.v, v)
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
	return g
}

// write gives a vertex the lines of its box.
func (v *vertex) write(lines []string) {
	w := 0
	for i, l := range lines {
		lines[i] = cut(l)
		w = max(w, utf8.RuneCountInString(lines[i]))
	}
	v.lines, v.w, v.h = lines, w+4, len(lines)+2
}

func cut(line string) string {
	if utf8.RuneCountInString(line) <= maxLine {
		return line
	}
	return string([]rune(line)[:maxLine-1]) + "…"
}

// list places the steps one below the other, as they are written, and says in the boxes what they need: for a graph of which
// nobody could follow the wires.
func (g *graph) list(p workflow.Phase) (width, height int) {
	for i := range g.v {
		v := &g.v[i]
		needs := ""
		for n, l := range v.in {
			if n > 0 {
				needs += ", "
			}
			if needs += p.Steps[l.from].Name; l.when != "" && l.when != workflow.OnOk {
				needs += " (" + string(l.when) + ")"
			}
			if len(needs) > maxLine*utf8.UTFMax { // it is cut
				break
			}
		}
		if needs != "" {
			v.write(append(v.lines, "after "+needs))
		}
		v.x, v.y = margin, height
		height += v.h
		width = max(width, v.w)
	}
	return width, height
}

// describe is what stands in the box of a step.
func describe(s workflow.Spec, here map[string]int, st workflow.Step) []string {
	second := string(st.Type)
	switch st.Type {
	case workflow.Human:
		who := s.Owners
		if st.Hitl != nil && len(st.Hitl.Who) > 0 {
			who = st.Hitl.Who
		}
		second += " " + strings.Join(who[:min(len(who), maxLine)], ", ") // more would be cut
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
		if _, drawn := here[n.Step]; !drawn && n.When != "" && n.When != workflow.OnOk {
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

// layers puts each step one below the lowest that it needs. A workflow that was checked has no cycles.
func (g *graph) layers() {
	left, below := make([]int, len(g.v)), make([][]int, len(g.v))
	var free []int
	for i := range g.v {
		if left[i] = len(g.v[i].in); left[i] == 0 {
			free = append(free, i)
		}
		for _, l := range g.v[i].in {
			below[l.from] = append(below[l.from], i)
		}
	}
	for ; len(free) > 0; free = free[1:] {
		for _, i := range below[free[0]] {
			g.v[i].layer = max(g.v[i].layer, g.v[free[0]].layer+1)
			if left[i]--; left[i] == 0 {
				free = append(free, i)
			}
		}
	}
}

// long counts the layers that edges pass.
func (g *graph) long() (n int) {
	for i := range g.v {
		for _, l := range g.v[i].in {
			n += max(0, g.v[i].layer-g.v[l.from].layer-1)
		}
	}
	return n
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
	to := make([]float64, len(g.v))
	sort := func(row []int, near func(int) []int) {
		for _, i := range row { // nothing in a row is linked to another of it
			to[i] = centre(i, near(i), at)
		}
		slices.SortStableFunc(row, func(a, b int) int { return cmp.Compare(to[a], to[b]) })
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

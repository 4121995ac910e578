package workflowfile

import (
	"strings"

	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// Text draws the graph of a workflow for a terminal that shows box-drawing characters: the phases one below the other, and in
// each the steps below what they need. "err" and "end" stand at edges that are not taken on success.
func Text(d *workflow.Definition) string { return text(d, nil) }

// TextOf draws an instance on the graph of its workflow: as [Text], and in each step how far it has come.
func TextOf(d *workflow.Definition, s *workflow.State) string { return text(d, marksOf(s)) }

func text(d *workflow.Definition, marks map[string]mark) string {
	pic := draw(d, marks)
	c := newCanvas(pic.width, pic.height)
	for _, b := range pic.blocks {
		title := "── " + b.title + " "
		if b.story != "" {
			title += "· " + b.story + " "
		}
		c.write(0, b.y, title)
		for _, w := range b.wires {
			c.wire(w)
		}
		for _, box := range b.boxes {
			c.box(box)
		}
	}
	return d.Name() + " " + d.Version() + "\n" + c.String()
}

// canvas is a grid of characters. A cell with lines knows in which directions they leave it, so that lines that meet join.
type canvas struct {
	width int
	cells [][]cell // each row as wide as what stands in it
}

type cell struct {
	lines uint8
	r     rune
}

const (
	up uint8 = 1 << iota
	down
	left
	right
)

// joints are the characters of the lines that leave a cell.
var joints = [16]rune{
	' ', '│', '│', '│', '─', '┘', '┐', '┤', '─', '└', '┌', '├', '─', '┴', '┬', '┼',
}

func newCanvas(w, h int) *canvas {
	c := &canvas{width: w, cells: make([][]cell, h)}
	return c
}

func (c *canvas) at(x, y int) *cell {
	if y < 0 || y >= len(c.cells) || x < 0 || x >= c.width {
		return &cell{}
	}
	if missing := x + 1 - len(c.cells[y]); missing > 0 {
		c.cells[y] = append(c.cells[y], make([]cell, missing)...)
	}
	return &c.cells[y][x]
}

func (c *canvas) write(x, y int, text string) {
	for _, r := range text {
		c.at(x, y).r = r
		x++
	}
}

// line draws a straight line, ends included.
func (c *canvas) line(a, b point) {
	for a != b {
		next, out, in := a, right, left
		switch {
		case a.x > b.x:
			next.x, out, in = a.x-1, left, right
		case a.x < b.x:
			next.x++
		case a.y > b.y:
			next.y, out, in = a.y-1, up, down
		default:
			next.y, out, in = a.y+1, down, up
		}
		c.at(a.x, a.y).lines |= out
		c.at(next.x, next.y).lines |= in
		a = next
	}
}

func (c *canvas) wire(w wire) {
	first, last := w.corners[0], w.corners[len(w.corners)-1]
	c.at(first.x, first.y).lines |= up
	for i := 1; i < len(w.corners); i++ {
		c.line(w.corners[i-1], w.corners[i])
	}
	c.at(last.x, last.y).lines |= down
	if w.label != "" {
		c.write(last.x+2, last.y, w.label)
	}
}

func (c *canvas) box(b box) {
	x, y := b.x+b.w-1, b.y+b.h-1
	for row := b.y; row <= y; row++ {
		for col := b.x; col <= x; col++ {
			*c.at(col, row) = cell{r: ' '}
		}
	}
	for _, l := range [][2]point{{{b.x, b.y}, {x, b.y}}, {{x, b.y}, {x, y}}, {{x, y}, {b.x, y}}, {{b.x, y}, {b.x, b.y}}} {
		for p := l[0]; p != l[1]; p.x, p.y = p.x+sign(l[1].x-p.x), p.y+sign(l[1].y-p.y) {
			c.at(p.x, p.y).r = 0
		}
		c.line(l[0], l[1])
	}
	for i, text := range b.lines {
		c.write(b.x+2, b.y+1+i, text)
	}
	if c.at(b.x+b.w/2, b.y-1).lines&down != 0 {
		c.at(b.x+b.w/2, b.y-1).r = '▼'
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// String returns the lines, without white space at their ends.
func (c *canvas) String() string {
	var b strings.Builder
	for _, row := range c.cells {
		line := make([]rune, 0, len(row))
		for _, cell := range row {
			r := cell.r
			if r == 0 {
				r = joints[cell.lines]
			}
			line = append(line, r)
		}
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

package workflowfile

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// Pixels of a character.
const (
	cellW = 8
	cellH = 18
)

var fills = map[workflow.Type]string{workflow.Human: "#fff3d6", workflow.Reasoning: "#e6ecff", workflow.Execution: "#e2f5e7", workflow.SubSOP: "#f1e7fa"}

// SVG draws the graph of a workflow as a picture that needs nothing else: the one of [Text], with a colour for each type.
func SVG(d *workflow.Definition) []byte { return svg(d, nil) }

// SVGOf draws an instance on the graph of its workflow: as [SVG], with a frame for each step that says how far it has come.
func SVGOf(d *workflow.Definition, s *workflow.State) []byte { return svg(d, marksOf(s)) }

func svg(d *workflow.Definition, marks map[string]mark) []byte {
	pic := draw(d, marks)
	pic.width = max(pic.width, utf8.RuneCountInString(d.Name()+d.Version())+4)
	var b bytes.Buffer
	w, h := pic.width*cellW, (pic.height-1)*cellH
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="ui-monospace, monospace" font-size="13">`+"\n", w, h, w, h)
	b.WriteString(`<defs><marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="#555"/></marker></defs>` + "\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", w, h)
	label(&b, cellW, cellH, "bold", d.Name()+" "+d.Version())
	for _, k := range pic.blocks {
		title := k.title
		if k.story != "" {
			title += " · " + k.story
		}
		y := (k.y + 1) * cellH
		fmt.Fprintf(&b, `<path d="M%d %dH%d" stroke="#ccc"/>`+"\n", cellW, y-cellH*3/4, w-cellW)
		label(&b, cellW, y+4, "normal", title)
		for _, wire := range k.wires {
			wire.svg(&b)
		}
		for _, box := range k.boxes {
			box.svg(&b)
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func label(b *bytes.Buffer, x, y int, weight, text string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="%s">`, x, y, weight)
	_ = xml.EscapeText(b, []byte(text)) // a buffer takes everything
	b.WriteString("</text>\n")
}

func (w wire) svg(b *bytes.Buffer) {
	var path strings.Builder
	for i, c := range w.corners {
		op := "L"
		if i == 0 {
			op = "M"
		}
		y := c.y*cellH + cellH/2
		switch i {
		case 0:
			y = c.y * cellH
		case len(w.corners) - 1:
			y = (c.y + 1) * cellH
		}
		fmt.Fprintf(&path, "%s%d %d", op, c.x*cellW+cellW/2, y)
	}
	dash := ""
	if w.label != "" {
		dash = ` stroke-dasharray="4 3"`
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="#555" stroke-linejoin="round"%s marker-end="url(#to)"/>`+"\n", path.String(), dash)
	if w.label != "" {
		last := w.corners[len(w.corners)-1]
		label(b, (last.x+1)*cellW+6, (last.y+1)*cellH-5, "normal", w.label)
	}
}

func (x box) svg(b *bytes.Buffer) {
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" %s/>`+"\n", x.x*cellW, x.y*cellH, x.w*cellW, x.h*cellH, fills[x.kind], frames[x.mark])
	for i, text := range x.lines {
		weight := "normal"
		if i == 0 {
			weight = "bold"
		}
		label(b, (x.x+2)*cellW, (x.y+i+1)*cellH+cellH*3/4, weight, text)
	}
}

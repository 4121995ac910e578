package table

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Cut returns a line that is no wider than so many columns of a terminal: what does not fit ends in an ellipsis. The line
// must hold nothing that styles it. A width of 0 or less is unbounded.
func Cut(line string, width int) string {
	if width <= 0 || uniseg.StringWidth(line) <= width {
		return line
	}
	var b strings.Builder
	left := width - 1
	for g := uniseg.NewGraphemes(line); g.Next() && g.Width() <= left; left -= g.Width() {
		b.WriteString(g.Str())
	}
	return b.String() + "…"
}

package table

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

// gap separates the columns on a terminal.
const gap = "  "

// Writer collects rows and prints them as one table. It is not safe for concurrent use.
type Writer struct {
	out      io.Writer
	terminal bool
	bold     bool
	header   []string
	rows     [][]string
	numeric  []bool // per column, whether every cell but "" and "-" was a number: such columns stand right-aligned
}

// New returns a table for w. Without a header only rows are printed.
func New(w io.Writer, header ...string) *Writer {
	terminal := IsTerminal(w)
	return newWriter(w, terminal, terminal && styled(os.Getenv), header)
}

// Aligned returns a table for w as it would be for a terminal, without any style: for a screen that somebody else draws.
func Aligned(w io.Writer, header ...string) *Writer { return newWriter(w, true, false, header) }

func newWriter(w io.Writer, terminal, bold bool, header []string) *Writer {
	t := &Writer{out: w, terminal: terminal, bold: bold, header: make([]string, len(header))}
	for i, h := range header {
		t.header[i] = clean(h)
	}
	return t
}

// IsTerminal says whether w is a terminal, which is whether a person is looking.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// styled heeds the two customary ways to ask a program for plain text.
func styled(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// Row adds a row. Cells print as fmt.Sprint prints them, floating-point numbers with three decimals; nil is "-". Rows may
// differ in length.
func (t *Writer) Row(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		if i == len(t.numeric) {
			t.numeric = append(t.numeric, true)
		}
		row[i] = text(c)
		t.numeric[i] = t.numeric[i] && (number(c) || row[i] == "" || row[i] == "-")
	}
	t.rows = append(t.rows, row)
}

// Flush prints the table and forgets its rows, keeping the header for the next. Nothing is printed before.
func (t *Writer) Flush() error {
	out := bufio.NewWriter(t.out)
	lines := t.rows
	if len(t.header) > 0 {
		lines = append([][]string{t.header}, lines...)
	}
	widths := t.widths(lines)
	for i, line := range lines {
		s := strings.Join(line, "\t")
		if t.terminal {
			s = t.align(line, widths)
		}
		if t.bold && i == 0 && len(t.header) > 0 {
			s = "\x1b[1m" + s + "\x1b[0m"
		}
		_, _ = out.WriteString(s + "\n") // a bufio.Writer keeps its error for Flush
	}
	t.rows, t.numeric = nil, nil
	return out.Flush()
}

func (t *Writer) widths(lines [][]string) []int {
	var widths []int
	for _, line := range lines {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
		}
	}
	return widths
}

func (t *Writer) align(line []string, widths []int) string {
	var b strings.Builder
	for i, cell := range line {
		if i > 0 {
			b.WriteString(gap)
		}
		pad := strings.Repeat(" ", widths[i]-uniseg.StringWidth(cell))
		if i < len(t.numeric) && t.numeric[i] {
			b.WriteString(pad + cell)
		} else {
			b.WriteString(cell + pad)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func text(c any) string {
	switch v := c.(type) {
	case nil:
		return "-"
	case float64:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case float32:
		return strconv.FormatFloat(float64(v), 'f', 3, 32)
	default:
		return clean(fmt.Sprint(v))
	}
}

func number(c any) bool {
	switch c.(type) {
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64:
		return true
	}
	return false
}

// clean escapes what is not printable, spaces other than U+0020 among it, and invalid UTF-8.
func clean(s string) string {
	if strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unprintable(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// unprintable keeps the joiner that emoji are made with.
func unprintable(r rune) bool {
	return !unicode.IsPrint(r) && r != '\u200d' || r == unicode.ReplacementChar
}

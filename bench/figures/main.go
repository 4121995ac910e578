package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

func main() {
	only := flag.String("only", "", "measure the figures whose name holds this")
	samples := flag.Int("samples", 21, "samples of each figure, and of what is beside it")
	each := flag.Duration("each", 5*time.Millisecond, "how long a sample takes at least")
	check := flag.Bool("check", false, "exit with 1 where a bar is missed")
	flag.Parse()
	missed, err := print(context.Background(), os.Stdout, *only, *samples, *each)
	if err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(2)
	}
	if *check && missed > 0 {
		os.Exit(1)
	}
}

// print measures the figures and prints the table; it returns how many miss a bar.
func print(ctx context.Context, w io.Writer, only string, samples int, each time.Duration) (missed int, err error) {
	fmt.Fprintf(w, "%s %s/%s, %d threads\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	if !slices.ContainsFunc(figures, func(f figure) bool { return strings.Contains(f.name, only) }) {
		return 0, fmt.Errorf("no figure has %q in its name; they are: %s", only, names())
	}
	t := table.New(w, "figure", "beside", "bar", "ratio", "quarters", "µs", "allocs", "")
	for _, f := range figures {
		if !strings.Contains(f.name, only) {
			continue
		}
		m, err := f.measure(ctx, max(samples, 1), each)
		if err != nil {
			return missed, errors.Join(t.Flush(), err)
		}
		v := f.verdict(m)
		if v == "missed" {
			missed++
		}
		t.Row(f.name, f.beside, f.bars(), f.shown(m.ratio()), f.quarters(m), short(m.subject/1000), short(m.allocs), v)
	}
	return missed, t.Flush()
}

func names() string {
	var all []string
	for _, f := range figures {
		all = append(all, f.name)
	}
	return strings.Join(all, "; ")
}

// bars writes what is promised.
func (f *figure) bars() string {
	var s string
	switch {
	case f.bar > 0:
		s = "≤ " + short(f.bar) + "×"
	case f.faster > 0:
		s = "≥ " + short(f.faster) + "× faster"
	default:
		return ""
	}
	if f.allocs >= 0 {
		s += fmt.Sprintf(", ≤ %.0f allocs", f.allocs)
	}
	return s
}

// shown writes a ratio the way its bar is written.
func (f *figure) shown(ratio float64) string {
	if f.faster > 0 {
		return short(1/ratio) + "×"
	}
	return short(ratio) + "×"
}

// quarters writes between what most ratios lay.
func (f *figure) quarters(m measured) string {
	if f.faster > 0 {
		return f.shown(m.high) + " – " + f.shown(m.low)
	}
	return f.shown(m.low) + " – " + f.shown(m.high)
}

// short writes three digits or so.
func short(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3f", x)
}

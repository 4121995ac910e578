package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

// row is one line of the table.
type row struct {
	figure, beside string
	bar            float64 // 0 is none
	least          bool    // the bar is the least there may be, not the most
	unit           string
	got            float64
	detail         string
}

func (r row) verdict() string {
	switch {
	case r.bar == 0:
		return "-"
	case r.least && r.got < r.bar, !r.least && r.got > r.bar:
		return "missed"
	}
	return "ok"
}

func (r row) bars() string {
	switch {
	case r.bar == 0:
		return ""
	case r.least:
		return fmt.Sprintf("≥ %g %s", r.bar, r.unit)
	}
	return fmt.Sprintf("≤ %g %s", r.bar, r.unit)
}

// figures are measured one after the other, each on an emptied server.
var figures = []struct {
	name    string
	measure func(context.Context, *server, int) ([]row, error)
}{
	{"governed call, one client", oneClient},
	{"step of a workflow", flow},
	{"64 at once", atOnce},
	{"server time", serverTime},
	{"memory", footprint},
}

func main() {
	only := flag.String("only", "", "measure the figures whose name holds this")
	samples := flag.Int("samples", 21, "batches of each side")
	check := flag.Bool("check", false, "exit with 1 where a bar is missed")
	flag.Parse()
	missed, err := run(context.Background(), os.Stdout, *only, max(*samples, 1))
	if err != nil {
		fmt.Fprintln(os.Stderr, "redis:", err)
		os.Exit(2)
	}
	if *check && missed > 0 {
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, only string, samples int) (missed int, err error) {
	s, err := startServer()
	if err != nil {
		return 0, err
	}
	defer s.stop()
	fmt.Fprintf(w, "%s %s/%s, %d threads, %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), s.version)
	t := table.New(w, "figure", "beside", "bar", "seen", "", "")
	for _, f := range figures {
		if !strings.Contains(f.name, only) {
			continue
		}
		if err := s.client.FlushAll(ctx).Err(); err != nil {
			return missed, err
		}
		rows, err := f.measure(ctx, s, samples)
		if err != nil {
			return missed, fmt.Errorf("%s: %w", f.name, err)
		}
		for _, r := range rows {
			if r.verdict() == "missed" {
				missed++
			}
			t.Row(r.figure, r.beside, r.bars(), fmt.Sprintf("%.3g %s", r.got, r.unit), r.verdict(), r.detail)
		}
	}
	return missed, t.Flush()
}

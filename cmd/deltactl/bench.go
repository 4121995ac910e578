package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	riskbench "github.com/seed-ab2cfece/delta-agents/bench/risk"
	"github.com/seed-ab2cfece/delta-agents/bench/risk/plots"
	"github.com/seed-ab2cfece/delta-agents/cmd/deltactl/internal/replay"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

func newBench() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure how right the risk is, and find a threshold",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBenchRisk(), newBenchGate())
	return c
}

const benchRiskHelp = `Risk measures how right the estimated risk is, beside the simple rules that others
use. Without --data it does so on made-up streams of executions whose true rate of
failure is known at every step, and prints one line per scenario:

  gap %      expected log loss above that of an exact filter that knows how the
             rate moves; of families (H1 to H3) above that of knowing the rate
             itself; of costs the pinball loss of the 95 % forecast
  ECE %      how far stated probabilities are from true rates
  cover      how often the 90 % interval holds the true rate
  also       executions from a jump to the first p̂ of 0.2, at that gate and at
             matched false alarms; false gates; regret per 1000 of gating at 1/11
  verdict    pass; close where targets are missed by less than two standard errors
             over the seeds (±); MISS where one is missed by more. A target stands
             beside what was measured

Then come the gaps of the baselines. The same seeds give the same digits.

With --data it goes through recorded calls (the rows of "deltactl replay"), predicts
each before its outcome is told, and prints the mean log loss, the Brier score, the
calibration error, the mean squared standardised innovation, and the cost per 1000
calls of gating at 1/11. Further arguments are further files; each is judged apart.

JSON of --data: {"data", "rows", "errs", "estimators": [{"name", "logloss", "brier",
"ece", "nis", "cost", "bins"}], "files": where there are several, one such object
each}. Estimators are delta (the product's), declared, reference, ewma, window, beta,
linear and ekf.`

type benchRisk struct {
	cfg            riskbench.Config
	json, markdown bool
	plots          string
	data           []string
	declared       int
	share          bool
}

func newBenchRisk() *cobra.Command {
	var b benchRisk
	c := &cobra.Command{
		Use:   "risk [--data FILE.jsonl[.gz]...]",
		Short: "Measure how right the estimated risk is",
		Long:  benchRiskHelp,
		Example: `  deltactl bench risk
  deltactl bench risk --scenario step,sleeper --seeds 50 --plots out
  deltactl bench risk --data examples/recorded/sample.jsonl --json`,
		RunE: func(c *cobra.Command, args []string) error {
			for _, pair := range [][2]string{{"json", "markdown"}, {"data", "scenario"}, {"data", "seeds"}} {
				if c.Flags().Changed(pair[0]) && c.Flags().Changed(pair[1]) {
					return usageError{fmt.Errorf("--%s and --%s exclude each other", pair[0], pair[1])}
				}
			}
			if len(args) > 0 && len(b.data) == 0 {
				return usageError{fmt.Errorf("%q is an argument without --data", args[0])}
			}
			b.data = append(b.data, args...)
			if len(b.data) > 0 {
				return b.recorded(c)
			}
			return b.run(c)
		},
	}
	f := c.Flags()
	f.StringSliceVar(&b.cfg.Scenarios, "scenario", nil, "scenarios to run: "+strings.Join(riskbench.Names(), ", ")+" (default all)")
	f.IntVar(&b.cfg.Seeds, "seeds", riskbench.Config{}.WithDefaults().Seeds, "streams per scenario")
	f.StringSliceVar(&b.data, "data", nil, "recorded calls to judge on instead, - for standard input")
	f.IntVar(&b.declared, "declared", replay.Config{}.WithDefaults().Declared, "with --data: risk to declare every action with, 1 to 5")
	f.BoolVar(&b.share, "share-tools", false, "with --data: let delta learn of a tool from all agents that use it")
	f.StringVar(&b.plots, "plots", "", "folder to draw pictures in, PNG and SVG")
	f.BoolVar(&b.json, "json", false, "print JSON")
	f.BoolVar(&b.markdown, "markdown", false, "print a table in Markdown")
	return c
}

func (b *benchRisk) run(c *cobra.Command) error {
	if err := b.cfg.Check(); err != nil {
		return usageError{err}
	}
	bar := &progress{w: c.ErrOrStderr()}
	b.cfg.Progress = bar.whole
	r, err := riskbench.Run(c.Context(), b.cfg)
	bar.done()
	if err != nil {
		return err
	}
	if b.plots != "" {
		if _, err := plots.Report(b.plots, r); err != nil {
			return err
		}
	}
	return b.show(c.OutOrStdout(), r, r)
}

func (b *benchRisk) recorded(c *cobra.Command) error {
	if b.declared < 1 || b.declared > 5 {
		return usageError{fmt.Errorf("declared risk is %d, want 1 to 5", b.declared)}
	}
	bar := &progress{w: c.ErrOrStderr()}
	defer bar.done()
	var parts []riskbench.Recorded
	for _, path := range b.data {
		s, err := recording(c, b.declared, path)
		if err != nil {
			return err
		}
		if b.share {
			s = riskbench.Share(s)
		}
		r, err := riskbench.Prequential(c.Context(), path, s, riskbench.Estimators(), func(done, total int64) { bar.step(path, done, total) })
		if err != nil {
			return err
		}
		parts = append(parts, r)
	}
	bar.done()
	r := riskbench.Pool(parts)
	if b.plots != "" {
		if _, err := plots.Recorded(b.plots, r); err != nil {
			return err
		}
	}
	return b.show(c.OutOrStdout(), r, r)
}

// tabular is a result that shows itself in rows of text.
type tabular interface {
	Table() (header []string, rows [][]string)
}

func (b *benchRisk) show(w io.Writer, v any, t tabular) error {
	if b.json {
		return printJSON(w, v)
	}
	header, rows := t.Table()
	if b.markdown {
		_, err := io.WriteString(w, riskbench.Markdown(header, rows))
		return err
	}
	return printRows(w, header, rows)
}

func printRows(w io.Writer, header []string, rows [][]string) error {
	t := table.New(w, header...)
	for _, row := range rows {
		cells := make([]any, len(row))
		for i, s := range row {
			cells[i] = s
		}
		t.Row(cells...)
	}
	return t.Flush()
}

// recording reads recorded calls, which are one recording whatever the number of files.
func recording(c *cobra.Command, declared int, paths ...string) (riskbench.Stream, error) {
	var calls []riskbench.Call
	for _, path := range paths {
		err := replay.Rows(c.Context(), c.InOrStdin(), path, func(r replay.Row) error {
			calls = append(calls, riskbench.Call{Agent: r.Agent, Run: r.Run, Tool: r.Tool, Err: !r.OK})
			return nil
		})
		if err != nil {
			return riskbench.Stream{}, err
		}
	}
	return riskbench.Record(calls, declared)
}

const benchGateHelp = `Gate finds the threshold of risk that would have been cheapest on your own history. It
predicts every recorded call before its outcome is told and counts, for every
threshold on the effective risk (the larger of declared and estimated), how many
calls a person would have been asked about and how many failures nobody would have
been asked about. The cost of a threshold is the former times --ask-cost and the
latter times --err-cost. It assumes that whoever is asked about a call that will fail
stops it.

Columns: threshold, p (the probability of failure that it stands for), asked, of_calls,
caught, let_through, of_errs, cost, and a mark at the cheapest. "none" asks nobody.

JSON: {"data", "rows", "errs", "ask_cost", "err_cost", "cheapest": point, "points":
[{"threshold", "never", "p", "asked", "caught", "let_through", "cost"}]}; the points
are 1 to 5 in steps of 0.05, and never.`

type benchGate struct {
	data     []string
	prices   riskbench.Prices
	declared int
	plots    string
	json     bool
}

func newBenchGate() *cobra.Command {
	var b benchGate
	c := &cobra.Command{
		Use:   "gate --data FILE.jsonl[.gz]...",
		Short: "Find the threshold that is cheapest on recorded calls",
		Long:  benchGateHelp,
		Example: `  deltactl bench gate --data examples/recorded/sample.jsonl
  deltactl bench gate --data runs.jsonl.gz --ask-cost 0.5 --err-cost 40 --plots out`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(b.data) == 0 {
				return usageError{errors.New("no recorded calls: give --data FILE")}
			}
			b.data = append(b.data, args...)
			return b.run(c)
		},
	}
	f := c.Flags()
	f.StringSliceVar(&b.data, "data", nil, "recorded calls, - for standard input; several files are one recording")
	f.Float64Var(&b.prices.Ask, "ask-cost", 1, "what asking a person once costs")
	f.Float64Var(&b.prices.Err, "err-cost", 10, "what a failure costs that nobody was asked about, in the same unit")
	f.IntVar(&b.declared, "declared", replay.Config{}.WithDefaults().Declared, "risk to declare every action with, 1 to 5")
	f.StringVar(&b.plots, "plots", "", "folder to draw a picture in, PNG and SVG")
	f.BoolVar(&b.json, "json", false, "print JSON")
	return c
}

func (b *benchGate) run(c *cobra.Command) error {
	if err := b.prices.Check(); err != nil {
		return usageError{err}
	}
	if b.declared < 1 || b.declared > 5 {
		return usageError{fmt.Errorf("declared risk is %d, want 1 to 5", b.declared)}
	}
	s, err := recording(c, b.declared, b.data...)
	if err != nil {
		return err
	}
	g, err := riskbench.Gate(c.Context(), strings.Join(b.data, ", "), s, b.prices)
	if err != nil {
		return err
	}
	if b.plots != "" {
		if _, err := plots.Gate(b.plots, g); err != nil {
			return err
		}
	}
	if b.json {
		return printJSON(c.OutOrStdout(), g)
	}
	return printGate(c.OutOrStdout(), g)
}

// printGate prints every fifth threshold and the cheapest.
func printGate(w io.Writer, g riskbench.GateReport) error {
	t := table.New(w, "threshold", "p", "asked", "of_calls", "caught", "let_through", "of_errs", "cost", "")
	for i, x := range g.Points {
		best := x == g.Cheapest
		if i%5 != 0 && !best && !x.Never {
			continue
		}
		name, mark, p := fmt.Sprintf("%.2f", x.Threshold), "", fmt.Sprintf("%.3f", x.P)
		if x.Never {
			name, p = "none", "-"
		}
		if best {
			mark = "cheapest"
		}
		t.Row(name, p, x.Asked, share(x.Asked, g.Rows), x.Caught, x.Missed, share(x.Missed, g.Errs), fmt.Sprintf("%g", x.Cost), mark)
	}
	return t.Flush()
}

func share(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(of))
}

// whole draws one bar for all stretches of work.
func (p *progress) whole(what string, done, total int64) {
	if p.bar == nil {
		p.step("", done, total)
	} else {
		p.bar.Add(1)
	}
	p.bar.Describe(what)
}

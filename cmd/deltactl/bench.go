package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
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
             over the seeds (±); MISS where one is missed by more; ? below twenty
             seeds, which are too few to tell. A target stands beside what was
             measured

Then come the gaps of the baselines. The same seeds give the same digits. Seeds are
counted from 80: on those below the product's constants were compared.

With --data it goes through recorded calls (the rows of "deltactl replay"), predicts
each before its outcome is told, and prints the mean log loss, how far it lies above
that of delta, and the standard errors of both (bootstrap over runs, from a fixed
seed); the Brier score, the calibration error, the mean squared standardised
innovation, and the cost per 1000 calls of gating at 1/11. Further arguments are
further files; each is judged apart.

JSON without --data: {"seeds", "scenarios": [{"scenario", "steps", "oracle": score,
"estimators": [score]}], "families": the same without oracle, "costs": [{"scenario",
"estimators": [{"name", "gap", "cover", "cover_p5", "se"}]}], "mean": [{"name", "gap",
"gap_median", "brier", "ece", "cover", "nis", "regret", "se"}], "targets":
[{"scenario", "metric", "measured", "lo", "hi", "se", "pass", "close"}]}. A score is
{"name", "logloss", "gap", "brier", "ece", "cover", "nis", "gated", "regret",
"regret_median", "regret_early", "delay", "bins", "se"}; shares are fractions, not
per cent, and "se" holds standard errors by metric.

JSON of --data: {"data", "rows", "errs", "estimators": [{"name", "logloss",
"logloss_se", "above", "above_se", "brier", "ece", "nis", "cost", "bins"}], "files": where there are several, one such object
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
			if err := b.check(c, args); err != nil {
				return usageError{err}
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

// check reports flags and arguments that would be ignored.
func (b *benchRisk) check(c *cobra.Command, args []string) error {
	given := c.Flags().Changed
	for _, pair := range [][2]string{{"json", "markdown"}, {"data", "scenario"}, {"data", "seeds"}} {
		if given(pair[0]) && given(pair[1]) {
			return fmt.Errorf("--%s and --%s exclude each other", pair[0], pair[1])
		}
	}
	if given("scenario") && (len(b.cfg.Scenarios) == 0 || slices.Contains(b.cfg.Scenarios, "")) {
		return fmt.Errorf("--scenario has an empty name: name some of %s, or leave it out for all", strings.Join(riskbench.Names(), ", "))
	}
	if given("data") {
		return checkPaths(b.data, args)
	}
	for _, name := range []string{"declared", "share-tools"} {
		if given(name) {
			return fmt.Errorf("--%s is of recorded calls: give --data FILE too", name)
		}
	}
	if len(args) > 0 {
		return fmt.Errorf("%q is an argument without --data: write --data %s to judge on that recording", args[0], args[0])
	}
	return nil
}

// checkPaths reports recordings that cannot be meant: none, or standard input twice.
func checkPaths(data, args []string) error {
	all := slices.Concat(data, args)
	stdin := 0
	for _, path := range all {
		if path == "" {
			return errors.New("the name of a recording is empty: give --data FILE, or - for standard input")
		}
		if path == "-" {
			stdin++
		}
	}
	switch {
	case len(data) == 0 && len(args) > 0:
		return fmt.Errorf("%q is an argument without --data: write --data %s", args[0], args[0])
	case len(data) == 0:
		return errors.New("no recorded calls: give --data FILE")
	case stdin > 1:
		return errors.New("- stands for standard input and can be given once")
	}
	return nil
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
	if len(calls) == 0 {
		return riskbench.Stream{}, fmt.Errorf("no recorded calls in %s: want one JSON object a line, see 'deltactl replay --help'", strings.Join(paths, ", "))
	}
	return riskbench.Record(calls, declared)
}

const benchGateHelp = `Gate finds the threshold of risk that would have been cheapest on your own history. It
predicts every recorded call before its outcome is told and counts, for every
threshold on the effective risk (the largest of declared, estimated and what
the action's own record alone supports), how many
calls a person would have been asked about and how many failures nobody would have
been asked about. The cost of a threshold is the former times --ask-cost and the
latter times --err-cost: a call that a person is asked about costs the one whatever
becomes of it, a failure that nobody was asked about the other, and anything else
nothing. It assumes that whoever is asked about a call that will fail stops it.

Two things to know. The effective risk never falls below what was declared, so that a
threshold at --declared or below asks about every call; declare lower to see what the
estimates alone would do. And the cheapest is found on the calls it is then judged on:
expect a little more elsewhere, and take those that cost within 5 % of it, marked
"near", as no worse.

Columns: threshold, p (the probability of failure that it stands for), asked, of_calls,
caught, let_through, of_errs, cost, and a mark at the cheapest, of equal ones that
which asks least ("tie" marks the others). "none" asks nobody. Every fifth threshold
is printed; JSON has all.

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
			if err := checkPaths(b.data, args); err != nil {
				return usageError{err}
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
	if g.Errs == 0 {
		fmt.Fprintln(c.ErrOrStderr(), "deltactl: no recorded call failed, so that not asking is cheapest whatever a failure costs: this says nothing of failures to come")
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

// near is up to how many times the cheapest cost a threshold is marked as near.
const near = 1.05

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
		switch {
		case best:
			mark = "cheapest"
		case x.Cost <= g.Cheapest.Cost:
			mark = "tie"
		case x.Cost <= near*g.Cheapest.Cost:
			mark = "near"
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

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/cmd/deltactl/internal/replay"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

const replayHelp = `Replay passes recorded tool calls through the engine, through the same gates and
the same settling as live ones, and prints what it would have learned: for every
action its runs, Ok, Err, declared and estimated risk, and how many calls the
threshold would have held for a person; for every agent the trust it earned.
Nothing is held back: the engine observes, so every recorded call runs.

A recording has one JSON object a line, plain or gzip, in the order of time for
each agent; "-" is standard input. Several files are replayed in the order given,
and agents of the same name are the same agent.

  agent   string   who called (required)
  run     string   the task that the call was part of (required)
  tool    string   what was called; becomes an action (required)
  ok      boolean  whether it succeeded (required)
  cost    number   0 or more; a whole number is tokens, any other is USD
  dataset, group, task (string), step, latency_ms, task_reward (number)
                   checked, not replayed: the engine measures its own durations

Null is as absent: unknown. Other fields are skipped. A row that is not JSON,
lacks a field or has one of another type ends the replay with its file and line,
and nothing is printed on standard output.

Columns:
  declared   risk declared for every action, 1 to 5 (--declared)
  level      estimated risk on the same scale
  p, lo, hi  probability that the next call fails; lo and hi hold the rate of
             failure with 90 %
  gated      calls whose effective risk, the largest of declared, estimated and
             what its own record alone supports at that moment, had reached --threshold
  trust      a deliberately pessimistic bound of an agent's rate of success: every
             failure counts twice. lower is the same number, upper the other end
             of the same band; neither is an estimate of the rate

With --why AGENT/ACTION it prints instead what the risk of that action rests on: the
declared level, what is known of the agent, of its declarations and of the action
itself, in log-odds that add up, what not being sure adds, and the last changes
found.

JSON: {"rows", "agents": [{"name", "trust", "lower", "upper", "ok", "err"}],
"actions": [{"agent", "name", "runs", "ok", "err", "declared", "level", "p", "lo",
"hi", "gated"}], "why": with --why}, sorted by agent, then name. Why is {"agent", "action",
"p", "lo", "hi", "runs", "err", "prior", "declared", "parts": [{"name", "mean", "sd",
"shared"}], "log_odds", "uncertainty", "held", "change", "changed_at", "agent_change",
"agent_changed_at"}: declared and the parts add up to log_odds; with uncertainty and
held these are the log-odds of p.`

func newReplay() *cobra.Command {
	var cfg replay.Config
	var asJSON bool
	d := replay.Config{}.WithDefaults()
	c := &cobra.Command{
		Use:   "replay FILE.jsonl[.gz]...",
		Short: "Replay recorded tool calls and print risk and trust",
		Long:  replayHelp,
		Example: `  deltactl replay examples/recorded/sample.jsonl
  deltactl replay --threshold 3 --json runs.jsonl.gz | jq '.actions[] | select(.gated > 0)'
  deltactl replay --why order-desk/charge-card examples/recorded/sample.jsonl
  zcat runs/*.gz | deltactl replay -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, paths []string) error {
			if c.Flags().Changed("why") && cfg.Why == "" {
				return usageError{errors.New("--why is empty: give AGENT/ACTION, as the report names them")}
			}
			if err := checkPaths(paths, nil); err != nil {
				return usageError{err}
			}
			return runReplay(c, cfg, paths, asJSON)
		},
	}
	c.Flags().IntVar(&cfg.Declared, "declared", d.Declared, "risk to declare every action with, 1 to 5")
	c.Flags().Float64Var(&cfg.Threshold, "threshold", d.Threshold, "effective risk from which a call counts as gated, 1 to 5")
	c.Flags().StringVar(&cfg.Why, "why", "", "explain the risk of this AGENT/ACTION")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func runReplay(c *cobra.Command, cfg replay.Config, paths []string, asJSON bool) error {
	if err := cfg.Check(); err != nil {
		return usageError{err}
	}
	bar := &progress{w: c.ErrOrStderr()}
	cfg.Stdin, cfg.Progress = c.InOrStdin(), bar.step
	report, err := replay.Files(c.Context(), cfg, paths...)
	bar.done()
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(c.OutOrStdout(), report)
	}
	if report.Why != nil {
		_, err := fmt.Fprint(c.OutOrStdout(), report.Why)
		return err
	}
	return printReplay(c.OutOrStdout(), report)
}

func printReplay(w io.Writer, r *replay.Report) error {
	t := table.New(w, "agent", "action", "runs", "ok", "err", "declared", "level", "p", "lo", "hi", "gated")
	for _, a := range r.Actions {
		t.Row(a.Agent, a.Name, a.Runs, a.OK, a.Err, a.Declared, a.Level, a.P, a.Lo, a.Hi, a.Gated)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	t = table.New(w, "agent", "trust", "lower", "upper", "ok", "err")
	for _, a := range r.Agents {
		t.Row(a.Name, a.Trust, a.Lower, a.Upper, a.OK, a.Err)
	}
	return t.Flush()
}

// progress draws a bar for each stretch of work, one after the other.
type progress struct {
	w    io.Writer
	what string
	bar  *table.Bar
}

func (p *progress) step(what string, _, total int64) {
	if p.what != what || p.bar == nil {
		p.done()
		p.what, p.bar = what, table.Progress(p.w, total)
		p.bar.Describe(what)
	}
	p.bar.Add(1)
}

func (p *progress) done() {
	if p.bar != nil {
		p.bar.Done()
	}
}

package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

const trustHelp = `Trust prints how far agents may be trusted, as the estimator sees it now, outcomes
that are not folded yet included.

Columns:
  score       what gates use: a deliberately pessimistic bound of the rate of
              success, in which every failure counts twice
  lower, upper  both ends of the same band; no estimate of the rate
  ok, err     executed attempts
  violations  refused proposals whose rule the planner could have known

JSON: {"agents": [{"agent", "score", "lower", "upper", "ok", "err", "violations"}],
"next"}; next goes into --after, "" where there is no more.`

type trustRow struct {
	Agent      string  `json:"agent"`
	Score      float64 `json:"score"`
	Lower      float64 `json:"lower"`
	Upper      float64 `json:"upper"`
	OK         int64   `json:"ok"`
	Err        int64   `json:"err"`
	Violations int64   `json:"violations"`
}

func newTrust() *cobra.Command {
	var f storeFlags
	var rows rowFlags
	c := &cobra.Command{
		Use: "trust [AGENT]", Short: "Print how far agents are trusted", Long: trustHelp + storeHelp, Args: cobra.MaximumNArgs(1),
		Example: "  deltactl trust --store redis://localhost:6379 --sort score --limit 10\n  DELTA_STORE=redis://localhost:6379 deltactl trust desk",
		PreRunE: func(*cobra.Command, []string) error { return rows.check() },
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			return printTrust(c, d, &f, &rows, args)
		}),
	}
	f.add(c)
	rows.add(c, "name", "score", "err", "violations")
	return c
}

func printTrust(c *cobra.Command, d *desk, f *storeFlags, rows *rowFlags, args []string) error {
	out := struct {
		Agents []trustRow `json:"agents"`
		Next   string     `json:"next"`
	}{Agents: []trustRow{}}
	add := func(name string) (bool, error) {
		if rows.natural() && len(out.Agents) == rows.limit {
			out.Next = out.Agents[len(out.Agents)-1].Agent
			return false, nil
		}
		t, err := d.engine.Trust(c.Context(), name)
		out.Agents = append(out.Agents, trustRow{name, t.Score, t.Lower, t.Upper, t.Ok, t.Err, t.Violations})
		return true, err
	}
	var err error
	if len(args) == 1 {
		if err = d.adopt(c.Context(), args[0]); err == nil {
			_, err = add(args[0])
		}
	} else {
		err = d.agents(c.Context(), rows.after, add)
	}
	if err != nil {
		return err
	}
	sortTrust(out.Agents, rows.sort)
	out.Agents = out.Agents[:min(rows.limit, len(out.Agents))]
	if f.json {
		return printJSON(c.OutOrStdout(), out)
	}
	t := table.New(c.OutOrStdout(), "agent", "score", "lower", "upper", "ok", "err", "violations")
	for _, r := range out.Agents {
		t.Row(r.Agent, r.Score, r.Lower, r.Upper, r.OK, r.Err, r.Violations)
	}
	more(c, out.Next)
	return t.Flush()
}

// sortTrust puts those first whom one looks for: the least trusted, those that fail and those that break rules most.
func sortTrust(rows []trustRow, by string) {
	slices.SortStableFunc(rows, func(a, b trustRow) int {
		n := 0
		switch by {
		case "score":
			n = cmp.Compare(a.Score, b.Score)
		case "err":
			n = cmp.Compare(b.Err, a.Err)
		case "violations":
			n = cmp.Compare(b.Violations, a.Violations)
		}
		return cmp.Or(n, strings.Compare(a.Agent, b.Agent))
	})
}

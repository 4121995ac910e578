package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

const riskHelp = `Risk prints what each action of an agent risks, as the estimator sees it now.

Columns:
  declared   risk as the agent's card in the store declares it, 1 to 5
  level      what gates: the largest of declared, estimated and what the action's
             own record alone supports
  p, lo, hi  probability that the next call fails; lo and hi hold the rate of
             failure with 90 %
  n, err     outcomes it rests on, and how many of them were failures

JSON: {"agent", "actions": [{"action", "declared", "level", "p", "lo", "hi", "n", "err"}]}.`

type riskRow struct {
	Action   string  `json:"action"`
	Declared int     `json:"declared"`
	Level    float64 `json:"level"`
	P        float64 `json:"p"`
	Lo       float64 `json:"lo"`
	Hi       float64 `json:"hi"`
	N        int64   `json:"n"`
	Err      int64   `json:"err"`
}

func newRisk() *cobra.Command {
	var f storeFlags
	var rows rowFlags
	c := &cobra.Command{
		Use: "risk AGENT", Short: "Print what an agent's actions risk", Long: riskHelp + storeHelp, Args: cobra.ExactArgs(1),
		Example: "  deltactl risk --store redis://localhost:6379 desk",
		PreRunE: func(*cobra.Command, []string) error { return rows.check() },
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			return printRisk(c, d, &f, &rows, args[0])
		}),
	}
	f.add(c)
	rows.add(c, "declaration", "level", "name", "n")
	return c
}

func printRisk(c *cobra.Command, d *desk, f *storeFlags, rows *rowFlags, agent string) error {
	if err := d.adopt(c.Context(), agent); err != nil {
		return err
	}
	risks, err := d.engine.Risks(c.Context(), agent)
	if err != nil {
		return err
	}
	out := struct {
		Agent   string    `json:"agent"`
		Actions []riskRow `json:"actions"`
	}{agent, []riskRow{}}
	for _, r := range risks {
		out.Actions = append(out.Actions, riskRow{r.Action, r.Declared, r.Effective, r.P, r.Lo, r.Hi, r.N, r.Errs})
	}
	slices.SortStableFunc(out.Actions, func(a, b riskRow) int {
		switch rows.sort {
		case "level":
			return cmp.Compare(b.Level, a.Level)
		case "name":
			return strings.Compare(a.Action, b.Action)
		case "n":
			return cmp.Compare(b.N, a.N)
		}
		return 0
	})
	from := 0
	if rows.after != "" {
		from = 1 + slices.IndexFunc(out.Actions, func(r riskRow) bool { return r.Action == rows.after })
	}
	all := out.Actions[from:]
	out.Actions = all[:min(rows.limit, len(all))]
	if f.json {
		return printJSON(c.OutOrStdout(), out)
	}
	t := table.New(c.OutOrStdout(), "action", "declared", "level", "p", "lo", "hi", "n", "err")
	for _, r := range out.Actions {
		t.Row(r.Action, r.Declared, r.Level, r.P, r.Lo, r.Hi, r.N, r.Err)
	}
	if len(out.Actions) < len(all) {
		more(c, out.Actions[len(out.Actions)-1].Action)
	}
	return t.Flush()
}

package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

const budgetHelp = `Budget prints what a task has spent, axis by axis: its limit ("-" is none), what is
reserved for calls under way or of unknown outcome, and what is left.

JSON: {"task", "status", "budget": {"spent", "reserved", "limit", "left"}}; durations
are in nanoseconds, money in millionths of the currency, axes without an amount are
left out.`

func newBudget() *cobra.Command {
	var f storeFlags
	c := &cobra.Command{
		Use: "budget TASK", Short: "Print what a task has spent and has left", Long: budgetHelp + storeHelp, Args: cobra.ExactArgs(1),
		Example: "  deltactl budget --store redis://localhost:6379 desk~t1",
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			return printBudget(c, d, &f, args[0])
		}),
	}
	f.add(c)
	return c
}

func printBudget(c *cobra.Command, d *desk, f *storeFlags, id string) error {
	t, err := d.task(c.Context(), id)
	if err != nil {
		return err
	}
	s, err := t.Standing(c.Context())
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(c.OutOrStdout(), struct {
			Task   string `json:"task"`
			Status string `json:"status"`
			Budget any    `json:"budget"`
		}{s.ID, s.Status, s.Budget})
	}
	out := table.New(c.OutOrStdout(), "axis", "limit", "spent", "reserved", "left")
	b := s.Budget
	for a := range action.AxisCount {
		limit, left := any(nil), any(nil)
		currency := cmp.Or(b.Limit.Currency, b.Spent.Currency, b.Reserved.Currency)
		if n, limited := b.Limit.On(a).Get(); limited {
			limit = a.Amount(n, currency)
		}
		if n, limited := b.Left.On(a).Get(); limited {
			left = a.Amount(n, currency)
		}
		if a == action.Money && currency == "" {
			out.Row(a, nil, nil, nil, nil) // there is none
			continue
		}
		out.Row(a, limit, a.Amount(b.Spent.Amount(a), currency), a.Amount(b.Reserved.Amount(a), currency), left)
	}
	return out.Flush()
}

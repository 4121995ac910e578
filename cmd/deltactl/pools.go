package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

const poolsHelp = `Pools lists the budgets beyond those of tasks: of each agent, or shared by several, in
their present period. What an engine is configured with it records with the first task
of an agent; that is what is read here.

Columns:
  agent     whose calls count; "*" is all agents of a shared pool together, with what
            each of them did behind it
  period    that it counts in now, UTC: a day, a month, or "-" for ever
  axis      one line for each that the pool limits
  limit     "-" of an agent in a shared pool: what holds it is what it was lent
  spent, reserved, left   as of deltactl budget; what is left of a shared pool some agent
            may have been lent already: what it does not use, others get
  lent      what agents were lent of a shared pool, an eighth of it at a time
  note      "undeclared": no agent's latest configuration has the pool any more. What
            its limit ("?") was nothing tells; axes without an amount are left out, and
            money has the currency XXX. "differs": agents were configured by engines
            that declare it differently, and each is held by its own limit

An agent that no engine has started a task for has recorded nothing, and is not shown.
A pool's limit is raised in Config.Pools of the engines; deltactl tasks top-up raises a
task's alone.

JSON: {"pools": [{"pool", "agent", "period", "id", "until", "shared", "note", "limit",
"spent", "reserved", "lent", "agents": [{"agent", "spent", "reserved", "lent"}]}],
"next"}; durations are in nanoseconds, money in millionths of the currency.`

// poolRow is a pool as it holds one agent, or all those that share it.
type poolRow struct {
	Pool     string       `json:"pool"`
	Agent    string       `json:"agent,omitempty"` // "" of a shared pool
	Period   string       `json:"period,omitempty"`
	ID       string       `json:"id"`
	Until    *time.Time   `json:"until,omitempty"`
	Shared   bool         `json:"shared"`
	Note     string       `json:"note,omitempty"`
	Limit    action.Limit `json:"limit"`
	Spent    action.Cost  `json:"spent"`
	Reserved action.Cost  `json:"reserved"`
	Lent     action.Cost  `json:"lent,omitzero"`
	Agents   []poolShare  `json:"agents,omitempty"`
}

type poolShare struct {
	Agent    string       `json:"agent"`
	Spent    action.Cost  `json:"spent"`
	Reserved action.Cost  `json:"reserved"`
	Lent     action.Limit `json:"lent,omitzero"`
}

func newPools() *cobra.Command {
	var f storeFlags
	var rows rowFlags
	var agent string
	c := &cobra.Command{
		Use: "pools [POOL]", Short: "Print the budgets that agents have per period, and those they share", Long: poolsHelp + storeHelp, Args: cobra.MaximumNArgs(1),
		Example: "  deltactl pools --store redis://localhost:6379 --sort used --limit 10\n  deltactl pools --agent desk\n  deltactl pools daily --json",
		PreRunE: func(*cobra.Command, []string) error { return rows.check() },
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			return printPools(c, d, &f, &rows, strings.Join(args, ""), agent)
		}),
	}
	c.Flags().StringVar(&agent, "agent", "", "the pools in which this agent's calls count")
	f.add(c)
	rows.add(c, "name", "used")
	return c
}

func printPools(c *cobra.Command, d *desk, f *storeFlags, rows *rowFlags, name, agent string) error {
	if err := d.adopt(c.Context(), agent); err != nil {
		return err
	}
	var of []string
	if agent != "" {
		of = []string{agent}
	}
	pools, err := d.engine.Pools(c.Context(), of...)
	if err != nil {
		return err
	}
	var all []poolRow
	for _, p := range pools {
		if name == "" || p.Name == name {
			all = append(all, newPoolRows(p)...)
		}
	}
	if name != "" && len(all) == 0 {
		return coded{exitNotFound, fmt.Errorf("no pool %q is recorded in the store%s: deltactl pools lists those that are; an engine records its own with the first task of an agent", name, ofAgent(agent))}
	}
	if rows.sort == "used" {
		slices.SortStableFunc(all, func(a, b poolRow) int { return cmp.Compare(b.share(), a.share()) })
	}
	from, err := behind(all, rows.after, poolRow.key)
	if err != nil {
		return err
	}
	all = all[from:]
	out := struct {
		Pools []poolRow `json:"pools"`
		Next  string    `json:"next"`
	}{Pools: append([]poolRow{}, all[:min(rows.limit, len(all))]...)}
	if len(all) > rows.limit {
		out.Next = out.Pools[rows.limit-1].key()
	}
	if f.json {
		return printJSON(c.OutOrStdout(), out)
	}
	t := table.New(c.OutOrStdout(), "pool", "agent", "period", "axis", "limit", "spent", "reserved", "left", "lent", "note")
	for _, r := range out.Pools {
		r.print(t)
	}
	more(c, out.Next)
	return t.Flush()
}

func ofAgent(agent string) string {
	if agent == "" {
		return ""
	}
	return fmt.Sprintf(" for agent %q", agent)
}

// newPoolRows makes one row of a shared pool, and one for each agent of another.
func newPoolRows(p delta.StoredPool) (rows []poolRow) {
	r := poolRow{Pool: p.Name, ID: p.ID, Shared: p.Shared}
	_, r.Period, _ = strings.Cut(p.ID, "@")
	if !p.Until.IsZero() {
		r.Until = &p.Until
	}
	switch {
	case p.Undeclared:
		r.Note = "undeclared"
	case p.Differs:
		r.Note = "differs"
	}
	if p.Shared {
		r.Limit, r.Lent, r.Spent = p.Limit, p.Lent, p.Spent()
		for _, a := range p.Agents {
			r.Reserved, _ = r.Reserved.Add(a.Reserved) // of one currency
			r.Agents = append(r.Agents, poolShare{a.Agent, a.Spent, a.Reserved, a.Limit})
		}
		return []poolRow{r}
	}
	for _, a := range p.Agents {
		r.Agent, r.Spent, r.Reserved, r.Limit = a.Agent, a.Spent, a.Reserved, a.Limit
		rows = append(rows, r)
	}
	return rows
}

// key tells the row from all others: it goes into --after.
func (r poolRow) key() string {
	parts := []string{r.ID, cmp.Or(r.Agent, "*")}
	if r.Note == "undeclared" {
		parts = append(parts, r.Note)
	}
	return strings.Join(parts, "/")
}

// share is how much of the limit is used, on the axis on which that is most.
func (r poolRow) share() (most float64) {
	for a := range action.AxisCount {
		if n, limited := r.Limit.On(a).Get(); limited {
			most = max(most, float64(r.Spent.Amount(a)+r.Reserved.Amount(a))/float64(max(n, 1)))
		}
	}
	return most
}

func (r poolRow) print(t *table.Writer) {
	currency := cmp.Or(r.Limit.Currency, r.Spent.Currency, r.Reserved.Currency, r.Lent.Currency)
	undeclared := r.Note == "undeclared"
	for a := range action.AxisCount {
		n, limited := r.Limit.On(a).Get()
		spent, reserved, lent := r.Spent.Amount(a), r.Reserved.Amount(a), r.Lent.Amount(a)
		if !limited && !(undeclared && spent+reserved+lent != 0) {
			continue
		}
		amount := func(n int64) any { return a.Amount(n, currency) }
		limit, left, loan := any("?"), any("?"), any(nil)
		if limited {
			limit, left = amount(n), amount(n-spent-reserved)
		}
		if r.Shared {
			loan = amount(lent)
		}
		t.Row(r.Pool, cmp.Or(r.Agent, "*"), orNil(r.Period), a, limit, amount(spent), amount(reserved), left, loan, orNil(r.Note))
		for _, s := range r.Agents {
			loan, left := any("?"), any("?")
			if lent, known := s.Lent.On(a).Get(); known {
				loan, left = amount(lent), amount(lent-s.Spent.Amount(a)-s.Reserved.Amount(a))
			}
			t.Row(r.Pool, s.Agent, orNil(r.Period), a, nil, amount(s.Spent.Amount(a)), amount(s.Reserved.Amount(a)), left, loan, orNil(r.Note))
		}
	}
}

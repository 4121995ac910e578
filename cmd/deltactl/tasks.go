package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

const tasksHelp = `Tasks lists tasks that have not ended, with --ended those that have and are not pruned
yet: agent after agent by name, of each in the order of their deadlines, or ends.

Columns:
  runs     executed attempts
  waiting  requests for approval that are pending
  unknown  intents of unknown outcome, see deltactl intents

Status is running, paused, cancelled or closed; "ended" is a task of which the store
keeps no more than its ledger.

JSON: {"tasks": [{"id", "agent", "status", "reason", "goal", "requester", "approvers",
"threshold", "deadline", "ended", "runs", "waiting", "unknown", "budget"}], "next"}.`

type taskRow struct {
	ID        string     `json:"id"`
	Agent     string     `json:"agent"`
	Status    string     `json:"status"`
	Reason    string     `json:"reason,omitempty"`
	Goal      string     `json:"goal,omitempty"`
	Requester string     `json:"requester,omitempty"`
	Approvers []string   `json:"approvers,omitempty"`
	Threshold float64    `json:"threshold,omitempty"`
	Deadline  *time.Time `json:"deadline,omitempty"`
	Ended     *time.Time `json:"ended,omitempty"`
	Runs      int64      `json:"runs"`
	Waiting   int        `json:"waiting"`
	Unknown   int        `json:"unknown"`
	Budget    any        `json:"budget"`
	Needs     string     `json:"needs,omitempty"` // what somebody has to do, where that was looked for
}

func newTaskRow(s delta.TaskStanding) taskRow {
	r := taskRow{
		ID: s.ID, Agent: s.Agent, Status: s.Status, Reason: s.Reason, Goal: s.Goal, Requester: s.Requester, Approvers: s.Approvers,
		Threshold: s.Threshold, Runs: s.Runs, Waiting: s.Waiting, Unknown: s.Unknown, Budget: s.Budget,
	}
	if !s.Deadline.IsZero() {
		r.Deadline = &s.Deadline
	}
	if !s.Ended.IsZero() {
		r.Ended = &s.Ended
	}
	return r
}

func newTasks() *cobra.Command {
	c := &cobra.Command{
		Use: "tasks", Short: "List, cancel, kill, top up and judge tasks", Args: cobra.NoArgs,
		Long: "Tasks lists tasks, ends them, raises what they may spend, changes from which risk on\npeople are asked, and takes your verdict on them." + operatorsHelp + storeHelp,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newTasksList(), newTasksCancel(), newTasksKill(), newTasksTopUp(), newTasksThreshold(), newTasksConclude())
	return c
}

func newTasksList() *cobra.Command {
	var f storeFlags
	var rows rowFlags
	var q delta.TaskQuery
	c := &cobra.Command{
		Use: "list [AGENT]", Short: "List tasks", Long: tasksHelp + storeHelp, Args: cobra.MaximumNArgs(1),
		Example: "  deltactl tasks list --store redis://localhost:6379 --sort runs\n  deltactl tasks list --ended desk",
		PreRunE: func(*cobra.Command, []string) error { return rows.check() },
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			q.Agent = strings.Join(args, "")
			return printTasks(c, d, &f, &rows, q)
		}),
	}
	c.Flags().BoolVar(&q.Ended, "ended", false, "those that ended")
	f.add(c)
	rows.add(c, "agent", "runs", "waiting", "unknown")
	return c
}

// sortMost bounds what is read to be sorted.
const sortMost = 100_000

func printTasks(c *cobra.Command, d *desk, f *storeFlags, rows *rowFlags, q delta.TaskQuery) error {
	if err := d.adopt(c.Context(), q.Agent); err != nil {
		return err
	}
	out := struct {
		Tasks []taskRow `json:"tasks"`
		Next  string    `json:"next"`
	}{Tasks: []taskRow{}}
	q.Limit, q.After = rows.limit, rows.after
	if !rows.natural() {
		q.Limit = delta.MaxTasks
	}
	for {
		page, err := d.engine.Tasks(c.Context(), q)
		if err != nil {
			return err
		}
		for _, s := range page.Tasks {
			out.Tasks = append(out.Tasks, newTaskRow(s))
		}
		if rows.natural() {
			out.Next = page.Next
			break
		}
		if q.After = page.Next; q.After == "" {
			break
		}
		if len(out.Tasks) > sortMost {
			return fmt.Errorf("more than %d tasks are too many to sort: name the agent", sortMost)
		}
	}
	slices.SortStableFunc(out.Tasks, func(a, b taskRow) int {
		switch rows.sort {
		case "runs":
			return cmp.Compare(b.Runs, a.Runs)
		case "waiting":
			return cmp.Compare(b.Waiting, a.Waiting)
		case "unknown":
			return cmp.Compare(b.Unknown, a.Unknown)
		}
		return 0
	})
	out.Tasks = out.Tasks[:min(rows.limit, len(out.Tasks))]
	if f.json {
		return printJSON(c.OutOrStdout(), out)
	}
	t := table.New(c.OutOrStdout(), "task", "status", "runs", "waiting", "unknown", "goal", "reason")
	for _, r := range out.Tasks {
		t.Row(r.ID, r.Status, r.Runs, r.Waiting, r.Unknown, orNil(action.CutTo(r.Goal, 60)), orNil(action.CutTo(r.Reason, 60)))
	}
	more(c, out.Next)
	return t.Flush()
}

// orNil prints "" as a dash.
func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// reasonFlag asks for what is recorded beside a decision, before anything else is checked.
func reasonFlag(c *cobra.Command, reason *string) {
	c.Flags().StringVar(reason, "reason", "", "why: it is recorded beside your name (required)")
	check := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if action.Blank(action.Cut(*reason)) { // as it is recorded
			return usageError{errors.New("--reason is missing, or nobody can read it: say why, it is recorded beside your name")}
		}
		if check == nil {
			return nil
		}
		return check(c, args)
	}
}

func newTasksCancel() *cobra.Command {
	var f storeFlags
	var reason string
	c := &cobra.Command{
		Use: "cancel TASK...", Short: "End tasks now", Args: cobra.MinimumNArgs(1),
		Long: `Cancel ends tasks: nothing begins any more, and their workers tell calls under way to
stop with their next heartbeat, a third of a lease later at most. It is recorded with
your name as the operating system has it. A task that is cancelled already is left as
it is. Its children end with it.` + deedsHelp + storeHelp,
		Example: "  deltactl tasks cancel --reason 'wrong customer' desk~t1",
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			me, err := d.me(c.Context())
			if err != nil {
				return err
			}
			did := newDeeds(c, &f)
			var faults []error
			for _, id := range args { // one that fails must not keep the others running
				t, err := d.task(c.Context(), id)
				if err == nil {
					err = t.CancelBy(c.Context(), me, reason)
				}
				if err != nil {
					faults = append(faults, err)
					continue
				}
				did.add(deed{Did: "cancelled", What: t.ID()})
			}
			return errors.Join(append(faults, did.end())...)
		}),
	}
	reasonFlag(c, &reason)
	f.add(c)
	return c
}

func newTasksKill() *cobra.Command {
	var f storeFlags
	var reason string
	var all bool
	c := &cobra.Command{
		Use: "kill AGENT...", Short: "End every task of agents, or of all", Args: cobra.ArbitraryArgs,
		Long: `Kill cancels every task of the agents that has not ended; with --all those of every
agent that the store lists. Each agent is on its own slot, so they stop one after the
other: some thousand tasks a second. Calls under way are told to stop as with cancel.
Tasks that start meanwhile may be missed: run it again until it says 0. It keeps
nobody from starting tasks; deltactl halt keeps them from doing anything.` + deedsHelp + storeHelp,
		Example: "  deltactl tasks kill --reason 'leaked key' desk\n  deltactl tasks kill --all --reason drill",
		PreRunE: func(_ *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usageError{errors.New("name the agents, or give --all")}
			}
			return nil
		},
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			did := newDeeds(c, &f)
			return errors.Join(kill(c, d, args, reason, did), did.end())
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "every agent that the store lists")
	reasonFlag(c, &reason)
	f.add(c)
	return c
}

// kill goes on with the others where one agent cannot be killed.
func kill(c *cobra.Command, d *desk, agents []string, reason string, did *deeds) error {
	me, err := d.me(c.Context())
	if err != nil {
		return err
	}
	var faults []error
	one := func(name string) (bool, error) {
		n, err := d.engine.Kill(c.Context(), name, me, reason)
		faults = append(faults, err)
		did.add(deed{Did: "killed", What: name, By: me.String(), N: &n})
		return c.Context().Err() == nil, nil
	}
	if len(agents) == 0 {
		err = d.agents(c.Context(), "", one)
	}
	for _, name := range agents {
		if err := d.know(c.Context(), name); err != nil {
			faults = append(faults, err)
			continue
		}
		_, _ = one(name)
	}
	return errors.Join(append(faults, err)...)
}

func newTasksTopUp() *cobra.Command {
	var f storeFlags
	var reason, money string
	var cost action.Cost
	c := &cobra.Command{
		Use: "top-up TASK", Short: "Raise what a task may spend", Args: cobra.ExactArgs(1),
		Long: `Top-up raises the limits of a task on the axes named, all of which must be limited.
It is for the task's approvers and for operators, never for whoever requested it.` + operatorsHelp + storeHelp,
		Example: "  deltactl tasks top-up --calls 10 --money '2.50 EUR' --reason 'two more orders' desk~t1",
		PreRunE: func(*cobra.Command, []string) (err error) {
			if cost, err = withMoney(cost, money); err != nil {
				return usageError{err}
			}
			return nil
		},
		RunE: onTask(&f, func(c *cobra.Command, d *desk, me delta.Identity, t *delta.Task, args []string) error {
			if err := t.TopUp(c.Context(), me, cost, reason); err != nil {
				return err
			}
			return printBudget(c, d, &f, t.ID())
		}),
	}
	costFlags(c, &cost, &money)
	reasonFlag(c, &reason)
	f.add(c)
	return c
}

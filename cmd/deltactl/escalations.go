package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

const escalationsHelp = `Escalations lists the tasks that wait until a person has looked at them, those that were
raised first first: nothing of theirs begins until somebody resumes or ends them.

Columns:
  concern  why: failure, policy, risk, loop, budget or surprise
  closes   when the task is closed if nobody resolves it

JSON: {"escalations": [{"id", "task", "concern", "reason", "goal", "requester", "raised",
"closes"}], "next"}.`

type escalationRow struct {
	ID        string     `json:"id"`
	Task      string     `json:"task"`
	Concern   string     `json:"concern"`
	Reason    string     `json:"reason,omitempty"`
	Goal      string     `json:"goal,omitempty"`
	Requester string     `json:"requester,omitempty"`
	Raised    time.Time  `json:"raised"`
	Closes    *time.Time `json:"closes,omitempty"`
}

func newEscalations() *cobra.Command {
	c := &cobra.Command{
		Use: "escalations", Short: "List, resume and end tasks that wait for a person", Args: cobra.NoArgs,
		Long: `Escalations lists and resolves tasks that wait until a person has looked at them. It is
for their approvers and for operators, never for whoever requested them.` + operatorsHelp + storeHelp,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newEscalationsList(),
		newResolution("resume", "Let a task go on; what led to its escalation is counted anew", "resumed", (*delta.Engine).ResumeTask),
		newResolution("end", "End a task that waits, as tasks cancel does", "ended", (*delta.Engine).EndTask))
	return c
}

func newEscalationsList() *cobra.Command {
	var f storeFlags
	var rows rowFlags
	c := &cobra.Command{
		Use: "list [AGENT]", Short: "List tasks that wait for a person", Long: escalationsHelp + storeHelp, Args: cobra.MaximumNArgs(1),
		Example: "  deltactl escalations list --store redis://localhost:6379",
		PreRunE: func(*cobra.Command, []string) error { return rows.check() },
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			return printEscalations(c, d, &f, &rows, strings.Join(args, ""))
		}),
	}
	f.add(c)
	rows.add(c, "raised")
	return c
}

func printEscalations(c *cobra.Command, d *desk, f *storeFlags, rows *rowFlags, agent string) error {
	if err := d.adopt(c.Context(), agent); err != nil {
		return err
	}
	all, err := d.engine.Escalations(c.Context(), delta.MaxTasks)
	if err != nil {
		return err
	}
	from, err := behind(all, rows.after, func(x delta.Escalation) string { return x.ID })
	if err != nil {
		return err
	}
	all = all[from:]
	out := struct {
		Escalations []escalationRow `json:"escalations"`
		Next        string          `json:"next"`
	}{Escalations: []escalationRow{}}
	for _, x := range all[:min(rows.limit, len(all))] {
		r := escalationRow{x.ID, x.Task, string(x.Concern), x.Reason, x.Goal, x.Requester, x.Raised.UTC(), nil}
		if !x.Closes.IsZero() {
			at := x.Closes.UTC()
			r.Closes = &at
		}
		out.Escalations = append(out.Escalations, r)
	}
	if len(all) > rows.limit {
		out.Next = out.Escalations[rows.limit-1].ID
	}
	if f.json {
		return printJSON(c.OutOrStdout(), out)
	}
	t := table.New(c.OutOrStdout(), "escalation", "concern", "raised", "closes", "reason")
	for _, r := range out.Escalations {
		closes := any(nil)
		if r.Closes != nil {
			closes = r.Closes.Format(time.RFC3339)
		}
		t.Row(r.ID, r.Concern, r.Raised.Format(time.RFC3339), closes, orNil(action.CutTo(r.Reason, 80)))
	}
	more(c, out.Next)
	return t.Flush()
}

func newResolution(verb, short, done string, resolve decide) *cobra.Command {
	var f storeFlags
	var reason string
	c := &cobra.Command{
		Use: verb + " ESCALATION", Short: short, Args: cobra.ExactArgs(1), Long: short + "." + operatorsHelp + deedsHelp + storeHelp,
		Example: "  deltactl escalations " + verb + " --reason 'looked into it' desk~t1~01JA",
		PreRunE: func(_ *cobra.Command, args []string) error {
			if strings.Count(args[0], "~") != 2 {
				return usageError{errors.New("escalation: want agent~task~id, as the list prints it")}
			}
			return nil
		},
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			agent, _, _ := strings.Cut(args[0], "~")
			if err := d.adopt(c.Context(), agent); err != nil {
				return err
			}
			me, err := d.me(c.Context())
			if err != nil {
				return err
			}
			if err := resolve(d.engine, c.Context(), args[0], me, reason); err != nil {
				return err
			}
			did := newDeeds(c, &f)
			did.add(deed{Did: done, What: args[0], By: me.String()})
			return did.end()
		}),
	}
	reasonFlag(c, &reason)
	f.add(c)
	return c
}

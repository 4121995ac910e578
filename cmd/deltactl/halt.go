package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

const haltHelp = `Halt stops agents, and keeps them from beginning anything, until somebody lifts it:

  halt everything             every agent, those that come later too: the kill switch
  halt agent AGENT...         all that an agent does, in all its tasks, later ones too
  halt action AGENT ACTION... single actions of an agent
  halt task TASK...           a task: it waits until a person has looked at it
  halt list                   what stands, and who said so

Once it says that it is halted nothing begins any more, on any worker. Calls under way
are told to stop: with the next heartbeat of their worker, a third of its lease at
most; with --after-calls they finish instead. Tasks of other agents that work for a
halted agent, or task, are held with it. Calls that wait for an approval, or have it,
wait on: they can be approved meanwhile, and run once all is lifted, unless the request
expires before. A worker that knows an agent which the store
does not list notices a halt of everything within a poll interval (delta.Config.Poll).

Everything, agents and actions are for operators; anybody may halt a task. To end
tasks for good: deltactl tasks cancel, kill.`

const liftHelp = `Lift takes back what deltactl halt did; each halt by itself: an agent that was halted
stays so when the halt of everything is lifted. Everything, agents and actions are for
operators; a task goes on by the word of its approvers or an operator.`

// halting is a verb over what can be halted.
type halting struct {
	verb, done string // halt, halted
	all        func(*delta.Engine, context.Context, delta.Identity, delta.Halting, string) error
	agent      func(*delta.Engine, context.Context, string, delta.Identity, delta.Halting, string) error
	action     func(*delta.Engine, context.Context, string, string, delta.Identity, delta.Halting, string) error
	task       func(*desk, context.Context, string, delta.Identity, string) error
}

var (
	halts = halting{"halt", "halted", (*delta.Engine).HaltAll, (*delta.Engine).HaltAgent, (*delta.Engine).HaltAction, (*desk).pause}
	lifts = halting{"lift", "lifted",
		func(e *delta.Engine, ctx context.Context, me delta.Identity, _ delta.Halting, why string) error {
			return e.LiftAll(ctx, me, why)
		},
		func(e *delta.Engine, ctx context.Context, agent string, me delta.Identity, _ delta.Halting, why string) error {
			return e.LiftAgent(ctx, agent, me, why)
		},
		func(e *delta.Engine, ctx context.Context, agent, name string, me delta.Identity, _ delta.Halting, why string) error {
			return e.LiftAction(ctx, agent, name, me, why)
		},
		(*desk).goOn,
	}
)

func newHalt() *cobra.Command {
	c := &cobra.Command{
		Use: "halt", Short: "Stop everything, an agent, an action or a task", Args: cobra.NoArgs, Long: haltHelp + operatorsHelp + storeHelp,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(halts.commands()...)
	c.AddCommand(newHaltList())
	return c
}

func newLift() *cobra.Command {
	c := &cobra.Command{
		Use: "lift", Short: "Let go on what was halted", Args: cobra.NoArgs, Long: liftHelp + operatorsHelp + storeHelp,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(lifts.commands()...)
	return c
}

func (h halting) commands() []*cobra.Command {
	type one = func(c *cobra.Command, d *desk, me delta.Identity, how delta.Halting, why string, args []string, did *deeds) error
	each := func(what string, do func(ctx context.Context, d *desk, x string, me delta.Identity, how delta.Halting, why string) error) one {
		return func(c *cobra.Command, d *desk, me delta.Identity, how delta.Halting, why string, args []string, did *deeds) error {
			var faults []error
			for _, x := range args { // one that fails must not keep the others going
				if err := do(c.Context(), d, x, me, how, why); err != nil {
					faults = append(faults, err)
					continue
				}
				did.add(deed{Did: h.done, What: what + " " + x, By: me.String()})
			}
			return errors.Join(faults...)
		}
	}
	return []*cobra.Command{
		h.command("everything", "every agent", cobra.NoArgs, true,
			func(c *cobra.Command, d *desk, me delta.Identity, how delta.Halting, why string, _ []string, did *deeds) error {
				err := h.all(d.engine, c.Context(), me, how, why)
				if err == nil {
					did.add(deed{Did: h.done, What: "everything", By: me.String()})
				}
				return err
			}),
		h.command("agent AGENT...", "agents", cobra.MinimumNArgs(1), true,
			each("agent", func(ctx context.Context, d *desk, x string, me delta.Identity, how delta.Halting, why string) error {
				if err := d.know(ctx, x); err != nil {
					return err // a slip in the name must not look like a halt
				}
				return h.agent(d.engine, ctx, x, me, how, why)
			})),
		h.command("action AGENT ACTION...", "actions of an agent", cobra.MinimumNArgs(2), true,
			func(c *cobra.Command, d *desk, me delta.Identity, how delta.Halting, why string, args []string, did *deeds) error {
				agent := args[0]
				if err := d.hasActions(c.Context(), agent, args[1:]); err != nil {
					return err
				}
				return each("action "+agent, func(ctx context.Context, d *desk, x string, me delta.Identity, how delta.Halting, why string) error {
					return h.action(d.engine, ctx, agent, x, me, how, why)
				})(c, d, me, how, why, args[1:], did)
			}),
		h.command("task TASK...", "tasks", cobra.MinimumNArgs(1), false,
			each("task", func(ctx context.Context, d *desk, x string, me delta.Identity, _ delta.Halting, why string) error {
				return h.task(d, ctx, x, me, why)
			})),
	}
}

func (h halting) command(use, what string, args cobra.PositionalArgs, calls bool,
	do func(*cobra.Command, *desk, delta.Identity, delta.Halting, string, []string, *deeds) error) *cobra.Command {
	var f storeFlags
	var reason string
	var after bool
	short := strings.ToUpper(h.verb[:1]) + h.verb[1:] + " " + what
	c := &cobra.Command{
		Use: use, Short: short, Args: args, Long: short + ". See deltactl " + h.verb + " --help for what that means." + deedsHelp + storeHelp,
		Example: fmt.Sprintf("  deltactl %s %s --reason 'a drill'", h.verb, strings.TrimSuffix(use, "...")),
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			me, err := d.me(c.Context())
			if err != nil {
				return err
			}
			did := newDeeds(c, &f)
			return errors.Join(do(c, d, me, delta.Halting(after), reason, args, did), did.end())
		}),
	}
	if calls && h.verb == halts.verb {
		c.Flags().BoolVar(&after, "after-calls", false, "let calls under way finish")
	}
	reasonFlag(c, &reason)
	f.add(c)
	return c
}

// hasActions reports an action that an agent's card does not name: a slip must not look like a halt.
func (d *desk) hasActions(ctx context.Context, agent string, names []string) error {
	if err := d.know(ctx, agent); err != nil {
		return err
	}
	risks, err := d.engine.Risks(ctx, agent)
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for _, r := range risks {
		has[r.Action] = true
	}
	for _, name := range names {
		if !has[name] {
			return coded{exitNotFound, fmt.Errorf("agent %q has no action %q: deltactl risk %s lists those it has", agent, name, agent)}
		}
	}
	return nil
}

// pause brings a task before those who decide about it.
func (d *desk) pause(ctx context.Context, id string, me delta.Identity, why string) error {
	t, err := d.task(ctx, id)
	if err != nil {
		return err
	}
	x, err := t.EscalateBy(ctx, me, action.ConcernRisk, why)
	if err == nil && !x.Paused {
		err = coded{exitRefused, fmt.Errorf("halt task %s: it goes on, since nobody could let it: it has no approvers, and there are no operators; to end it: deltactl tasks cancel", id)}
	}
	return err
}

// goOn resolves the escalation for which a task waits.
func (d *desk) goOn(ctx context.Context, id string, me delta.Identity, why string) error {
	t, err := d.task(ctx, id)
	if err != nil {
		return err
	}
	all, err := d.engine.Escalations(ctx, delta.MaxTasks)
	if err != nil {
		return err
	}
	for _, x := range all {
		if x.Task == t.ID() {
			return d.engine.ResumeTask(ctx, x.ID, me, why)
		}
	}
	return coded{exitRefused, fmt.Errorf("lift task %s: it does not wait for a person", id)}
}

const haltListHelp = `List prints the halts that stand, of agents after each other by name; tasks that wait
for a person are listed by deltactl escalations list.

Columns:
  what   everything, agent A, or action A X
  calls  stop: calls under way were told to stop; finish: they may finish

JSON: {"halts": [{"what", "agent", "action", "by", "since", "calls", "reason"}], "next"}.`

type haltRow struct {
	What   string    `json:"what"`
	Agent  string    `json:"agent,omitempty"`
	Action string    `json:"action,omitempty"`
	By     string    `json:"by"`
	Since  time.Time `json:"since"`
	Calls  string    `json:"calls"`
	Reason string    `json:"reason,omitempty"`
}

func newHaltRow(agent string, h delta.Halt) haltRow {
	r := haltRow{What: "everything", By: h.By, Since: h.Since, Calls: "stop", Reason: h.Reason}
	if h.After {
		r.Calls = "finish"
	}
	switch {
	case h.All:
		return r
	case h.Action != "":
		r.What, r.Action = "action "+agent+" "+h.Action, h.Action
	default:
		r.What = "agent " + agent
	}
	r.Agent = agent
	return r
}

func newHaltList() *cobra.Command {
	var f storeFlags
	var rows rowFlags
	c := &cobra.Command{
		Use: "list [AGENT]", Short: "List the halts that stand", Args: cobra.MaximumNArgs(1), Long: haltListHelp + storeHelp,
		Example: "  deltactl halt list --store redis://localhost:6379",
		PreRunE: func(*cobra.Command, []string) error { return rows.check() },
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			return printHalts(c, d, &f, &rows, strings.Join(args, ""))
		}),
	}
	f.add(c)
	rows.add(c, "agent")
	return c
}

func printHalts(c *cobra.Command, d *desk, f *storeFlags, rows *rowFlags, agent string) error {
	out := struct {
		Halts []haltRow `json:"halts"`
		Next  string    `json:"next"`
	}{Halts: []haltRow{}}
	everything, err := d.engine.Halts(c.Context(), "")
	if err != nil {
		return err
	}
	if rows.after == "" {
		for _, h := range everything {
			out.Halts = append(out.Halts, newHaltRow("", h))
		}
	}
	last := ""
	one := func(name string) (bool, error) {
		if len(out.Halts) >= rows.limit {
			out.Next = last
			return false, nil
		}
		all, err := d.engine.Halts(c.Context(), name)
		for _, h := range all {
			if !h.All { // told once
				out.Halts = append(out.Halts, newHaltRow(name, h))
			}
		}
		last = name
		return true, err
	}
	if agent == "" {
		err = d.agents(c.Context(), rows.after, one)
	} else if err = d.know(c.Context(), agent); err == nil {
		_, err = one(agent)
	}
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(c.OutOrStdout(), out)
	}
	t := table.New(c.OutOrStdout(), "what", "by", "since", "calls", "reason")
	for _, r := range out.Halts {
		t.Row(r.What, r.By, r.Since.Format(time.RFC3339), r.Calls, orNil(action.CutTo(r.Reason, 60)))
	}
	more(c, out.Next)
	return t.Flush()
}

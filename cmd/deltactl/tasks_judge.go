package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

func newTasksThreshold() *cobra.Command {
	var f storeFlags
	var reason string
	var threshold float64
	c := &cobra.Command{
		Use: "threshold TASK RISK", Short: "Change from which effective risk on people are asked", Args: cobra.ExactArgs(2),
		Long: `Threshold sets the effective risk, more than 0 and at most 5, from which on calls of the
task need an approval. It is for the task's approvers and for operators, never for
whoever requested it. Children that are at work already keep theirs.` + operatorsHelp + deedsHelp + storeHelp,
		Example: "  deltactl tasks threshold --reason 'ask before anything' desk~t1 1",
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			if threshold, err = strconv.ParseFloat(args[1], 64); err != nil {
				return usageError{fmt.Errorf("threshold %q: want a risk, more than 0 and at most 5", args[1])}
			}
			return nil
		},
		RunE: onTask(&f, func(c *cobra.Command, d *desk, me delta.Identity, t *delta.Task, args []string) error {
			if err := t.SetThreshold(c.Context(), me, threshold, reason); err != nil {
				return err
			}
			did := newDeeds(c, &f)
			did.add(deed{Did: "threshold " + args[1], What: t.ID(), By: me.String()})
			return did.end()
		}),
	}
	reasonFlag(c, &reason)
	f.add(c)
	return c
}

func newTasksConclude() *cobra.Command {
	var f storeFlags
	var reason string
	c := &cobra.Command{
		Use: "conclude TASK VERDICT", Short: "Say whether a task reached its goal, and end it", Args: cobra.ExactArgs(2),
		Long: `Conclude ends a task with a verdict on its goal: reached, not_reached or abandoned. Calls
under way finish. A task that has ended can be judged too, and the latest word counts.
It is for the task's approvers and for operators, never for whoever requested it.` + operatorsHelp + deedsHelp + storeHelp,
		Example: "  deltactl tasks conclude --reason 'the refund arrived' desk~t1 reached",
		PreRunE: func(_ *cobra.Command, args []string) error {
			if !action.Verdict(args[1]).Valid() {
				return usageError{errors.New("verdict: want reached, not_reached or abandoned")}
			}
			return nil
		},
		RunE: onTask(&f, func(c *cobra.Command, d *desk, me delta.Identity, t *delta.Task, args []string) error {
			if err := t.ConcludeBy(c.Context(), me, action.Verdict(args[1]), reason); err != nil {
				return err
			}
			did := newDeeds(c, &f)
			did.add(deed{Did: args[1], What: t.ID(), By: me.String()})
			return did.end()
		}),
	}
	reasonFlag(c, &reason)
	f.add(c)
	return c
}

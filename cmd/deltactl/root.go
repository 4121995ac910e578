package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2

	exitNotFound    = 3
	exitRefused     = 4
	exitUnreachable = 5
	exitWarning     = 6
	exitSevere      = 7
	exitWaiting     = 8
)

const rootHelp = `deltactl looks into governed agents and operates on their tasks, in the store that
their engines share; it replays recorded tool calls through the same engine,
explains what a set of actions lets an agent do, and measures how right the
estimated risk is. It needs no account and no key; replay, explain and bench need
no store either.

Where something is going wrong now: deltactl halt agent AGENT --reason '...', or halt
everything; then watch, escalations list and trace. What changes something asks for
--reason and is recorded with your name. Every command explains itself with --help.

Every listing is a table on a terminal, tab-separated columns with a header in
a pipe, and JSON with --json. Progress and errors go to standard error.

Exit codes:
  0  done
  1  failed: a file cannot be read, a row or a declaration is wrong
  2  usage: an unknown command or flag, a missing argument, a value out of range
  3  there is no such agent, action, task, approval or intent
  4  refused by a rule: you may not decide this (deltactl whoami), it has ended, it was
     decided before
  5  the store cannot be reached, or refuses to let you in
  6  doctor: a warning; 7 doctor: something is wrong
  8  workflow run: the instance waits for a person, or for other rules`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "deltactl",
		Short:         "Look into governed agents",
		Long:          rootHelp,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"When it burns:", []*cobra.Command{newHalt(), newLift(), newGlass(), newWhoami()}},
		{"What waits for people:", []*cobra.Command{newApprovals(), newEscalations(), newIntents(), newTasks(), newWorkflow()}},
		{"How it stands:", []*cobra.Command{newWatch(), newTrust(), newRisk(), newBudget(), newPools(), newBeliefs()}},
		{"What happened:", []*cobra.Command{newTrace(), newLedger()}},
		{"The store:", []*cobra.Command{newDoctor(), newPrune(), newErase()}},
		{"Without a store:", []*cobra.Command{newPolicy(), newReplay(), newExplain(), newBench(), newKeys(), newVersion()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	nameMissing(root)
	return root
}

// nameMissing has every command that gets too few or too many arguments say which ones it wants.
func nameMissing(c *cobra.Command) {
	for _, sub := range c.Commands() {
		nameMissing(sub)
	}
	check := c.Args
	_, wanted, _ := strings.Cut(c.Use, " ")
	if check == nil || wanted == "" {
		return
	}
	c.Args = func(c *cobra.Command, args []string) error {
		err := check(c, args)
		if err == nil {
			return nil
		}
		missing := strings.Fields(wanted)
		missing = missing[min(len(args), len(missing)):]
		missing = slices.DeleteFunc(missing, func(name string) bool { return strings.HasPrefix(name, "[") })
		if len(missing) == 0 {
			return fmt.Errorf("%w; want %s %s", err, c.CommandPath(), wanted)
		}
		return fmt.Errorf("%w: %s is missing; want %s %s", err, strings.Join(missing, " and "), c.CommandPath(), wanted)
	}
}

// usageError is a mistake in how the program was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// execute runs the program and returns its exit code. Until a command has started, every error is one of usage.
func execute(ctx context.Context, root *cobra.Command, args []string, stderr io.Writer) int {
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SetArgs(args)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "deltactl: %v\n", err)
	var usage usageError
	if !started || errors.As(err, &usage) {
		fmt.Fprintf(stderr, "Run '%s --help' for usage.\n", c.CommandPath())
		return exitUsage
	}
	return exitCode(err)
}

// coded is an error with an exit code of its own.
type coded struct {
	code int
	error
}

func (e coded) Unwrap() error { return e.error }

// exitCode tells what kind of failure an error is.
func exitCode(err error) int {
	var c coded
	var f *action.Failure
	switch {
	case errors.As(err, &c):
		return c.code
	case errors.Is(err, delta.ErrNoAgent), errors.Is(err, delta.ErrNoTask), errors.Is(err, delta.ErrNoRequest), errors.Is(err, delta.ErrNoIntent), errors.Is(err, delta.ErrNoSubject):
		return exitNotFound
	case errors.As(err, &f) && f.Code == action.StoreUnavailable:
		return exitUnreachable
	case errors.As(err, &f), ruledOut(err):
		return exitRefused
	}
	return exitFailed
}

// ruledOut reports whether a rule of deciding stands behind an error.
func ruledOut(err error) bool {
	var moved *approval.TransitionError
	if errors.As(err, &moved) {
		return true
	}
	for _, rule := range []error{
		delta.ErrNotShown, delta.ErrNotPaused, delta.ErrNotWaiting, approval.ErrAnonymous, approval.ErrUnclear, approval.ErrSelf, approval.ErrNotApprover, approval.ErrVoted, approval.ErrNoVote,
	} {
		if errors.Is(err, rule) {
			return true
		}
	}
	return false
}

// printJSON writes a value as one indented document.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

const rootHelp = `deltactl replays recorded tool calls through the engine that governs agents,
explains what a set of actions lets an agent do, and measures how right the
estimated risk is. It needs no account, no key and no server.

Every listing is a table on a terminal, tab-separated columns with a header in
a pipe, and JSON with --json. Progress and errors go to standard error.

Exit codes:
  0  done
  1  failed: a file cannot be read, a row or a declaration is wrong
  2  usage: an unknown command or flag, a missing argument, a value out of range`

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
	root.AddCommand(newReplay(), newExplain(), newBench(), newVersion())
	return root
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
	return exitFailed
}

// printJSON writes a value as one indented document.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

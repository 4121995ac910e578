package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = `team tells the story of an editor that delegates a report. It needs nobody and leaves nothing behind.

Exit codes: 0 the story was told, 1 it broke off, 2 it was called wrongly.
`

// run returns the exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	switch {
	case len(args) == 1 && (args[0] == "-h" || args[0] == "--help"):
		fmt.Fprint(out, usage)
		return 0
	case len(args) > 0:
		fmt.Fprintf(errs, "team: unexpected argument %q; see --help\n", args[0])
		return 2
	}
	if err := tell(ctx, out); err != nil {
		fmt.Fprintf(errs, "team: %v\n", err)
		return 1
	}
	return 0
}

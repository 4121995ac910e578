package main

import (
	"context"
	"errors"
	"flag"
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

  --store URL   hold the state in Redis (DELTA_STORE), where deltactl can look into it

Exit codes: 0 the story was told, 1 it broke off, 2 it was called wrongly.
`

// run returns the exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("team", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	url := flags.String("store", "", "")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return 0
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(errs, "team: %v; see --help\n", err)
		return 2
	}
	if err := tell(ctx, *url, out); err != nil {
		fmt.Fprintf(errs, "team: %v\n", err)
		return 1
	}
	return 0
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/seed-ab2cfece/delta-agents/examples/internal/held"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = `files tells the story of an agent that keeps a directory tidy. It needs nobody and leaves nothing behind.

  --keep        leave the directory for you to look at
  --store URL   hold the state in Redis (DELTA_STORE), where deltactl can look into it

Exit codes: 0 the story was told, 1 it broke off, 2 it was called wrongly.
`

// run returns the exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("files", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	keep, url := flags.Bool("keep", false, ""), flags.String("store", "", "")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return 0
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(errs, "files: %v; see --help\n", err)
		return 2
	}
	if err := tell(ctx, *keep, *url, out); err != nil {
		fmt.Fprintf(errs, "files: %v\n", err)
		return 1
	}
	return 0
}

func tell(ctx context.Context, keep bool, url string, out io.Writer) error {
	at, err := held.Open(ctx, url)
	if err != nil {
		return err
	}
	p, err := build()
	if err != nil {
		return errors.Join(err, at.Close())
	}
	if keep {
		fmt.Fprintf(out, "The directory is %s and stays.\n", p.dir)
	}
	return errors.Join(play(ctx, p, at, out), at.Close(), p.close(keep))
}

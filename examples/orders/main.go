package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"time"

	"golang.org/x/term"

	"github.com/seed-ab2cfece/delta-agents/examples/internal/held"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = `orders tells the story of an agent at an order desk.

  --auto-approve     unattended: the built-in approver rejects the first request and approves the second
  --script ANSWERS   unattended, with your answers: 'reject:too late,approve', or @file with one a line
  --store URL        hold the state in Redis (DELTA_STORE), where deltactl can look into it

Without either it asks you, which needs a terminal.
Exit codes: 0 the story was told, 1 it broke off, 2 it was called wrongly.
`

// run returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	a, url, err := choose(ctx, args, in, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return 0
	case err != nil:
		fmt.Fprintf(errs, "orders: %v\n", err)
		return 2
	}
	if err := tell(ctx, a, url, out); err != nil {
		fmt.Fprintf(errs, "orders: %v\n", err)
		return 1
	}
	return 0
}

func tell(ctx context.Context, a approver, url string, out io.Writer) error {
	p, err := held.Open(ctx, url)
	if err != nil {
		return err
	}
	w, err := open(ctx, p)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	_, err = play(ctx, w, a, out)
	return errors.Join(err, w.close(context.WithoutCancel(ctx)))
}

// choose finds out who decides, and where the state is held.
func choose(ctx context.Context, args []string, in io.Reader, out io.Writer) (_ approver, url string, err error) {
	flags := flag.NewFlagSet("orders", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	auto := flags.Bool("auto-approve", false, "")
	script := flags.String("script", "", "")
	flags.StringVar(&url, "store", "", "")
	if err := flags.Parse(args); err != nil {
		return nil, "", err
	}
	switch {
	case flags.NArg() > 0:
		return nil, "", fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0))
	case *auto && *script != "":
		return nil, "", errors.New("--auto-approve and --script exclude each other; choose who decides")
	case *auto:
		return builtIn(), url, nil
	case *script != "":
		a, err := parseScript(*script)
		return a, url, err
	}
	if f, ok := in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, "", errors.New("somebody must decide, and the input is no terminal: run it on one, or with --auto-approve, or with --script 'reject:too late,approve'")
	}
	who := "you"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	return newPerson(ctx, who, in, out, 2*time.Minute), url, nil
}

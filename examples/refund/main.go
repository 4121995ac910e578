package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"os/user"

	"golang.org/x/term"

	"github.com/seed-ab2cfece/delta-agents/examples/internal/held"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = `refund gives a customer money back by a workflow.

  --script         unattended: the built-in answers, the first of which is asked for again
  --script=FILE    unattended, with your answers: a JSON document in each line
  --fail           the mail server is down: nobody can be told, and the refund is undone
  --no-sandbox     run the tool that moves the money without confining it; that is logged
  --store URL      hold the state in Redis (DELTA_STORE), where deltactl can look into it and answer
  --resume ID      go on with an instance in that store, from where it is

Without --script it asks you, which needs a terminal.
Exit codes: 0 the story was told, 1 it broke off, 2 it was called wrongly.
`

type options struct {
	script         scriptFlag
	fail, confined bool
	url, resume    string
}

// scriptFlag is --script, or --script=FILE.
type scriptFlag struct {
	given bool
	file  string
}

func (f *scriptFlag) String() string   { return f.file }
func (f *scriptFlag) IsBoolFlag() bool { return true }
func (f *scriptFlag) Set(v string) error {
	if f.given = v != "false"; v != "true" && f.given {
		f.file = v
	}
	return nil
}

// run returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	o, p, err := choose(ctx, args, in, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return 0
	case err != nil:
		fmt.Fprintf(errs, "refund: %v\n", err)
		return 2
	}
	if err := tell(ctx, o, p, out, errs); err != nil {
		fmt.Fprintf(errs, "refund: %v\n", err)
		return 1
	}
	return 0
}

// choose reads the command line.
func choose(ctx context.Context, args []string, in io.Reader, out io.Writer) (o options, p person, err error) {
	flags := flag.NewFlagSet("refund", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Var(&o.script, "script", "")
	flags.BoolVar(&o.fail, "fail", false, "")
	bare := flags.Bool("no-sandbox", false, "")
	flags.StringVar(&o.url, "store", "", "")
	flags.StringVar(&o.resume, "resume", "", "")
	if err := flags.Parse(args); err != nil {
		return o, nil, err
	}
	o.confined = !*bare
	switch {
	case flags.NArg() > 0:
		return o, nil, fmt.Errorf("unexpected argument %q; see --help, and write --script=FILE with its equals sign", flags.Arg(0))
	case o.script.file != "":
		p, err = readScript(o.script.file)
		return o, p, err
	case o.script.given:
		return o, builtIn(), nil
	}
	if f, ok := in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return o, nil, errors.New("somebody must answer, and the input is no terminal: run it on one, or with --script")
	}
	return o, newTypist(ctx, whoAmI(), in, out), nil
}

// whoAmI is the name under which the operating system knows whoever runs this.
func whoAmI() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "you"
}

// tell opens the bank and tells the story. No tool runs unconfined unless that was asked for.
func tell(ctx context.Context, o options, p person, out, errs io.Writer) (err error) {
	log := slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b, err := openBank(o.confined, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if r := b.box.Probe(ctx); !r.OK() {
		return fmt.Errorf("the tool that moves the money cannot be confined here: %s; or give --no-sandbox, which confines nothing", r.Err)
	}
	at, err := held.Open(ctx, o.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	s, err := play(ctx, b, o, p, at, log, out)
	if err != nil {
		return err
	}
	books, err := b.books()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe workflow has %s. The bank's books:\n%s", s.Status, books)
	if books == "" {
		fmt.Fprintln(out, "(nothing)")
	}
	return nil
}

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/planner/anthropic"
	"github.com/seed-ab2cfece/delta-agents/planner/chat"
	"github.com/seed-ab2cfece/delta-agents/planner/openai"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second interrupt ends a wait for input
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = `orders-llm lets a language model work at the order desk.

  orders-llm [--yes] [--provider openai|anthropic] [GOAL]

  --yes        approve every request; otherwise you are asked
  --provider   which of two models, where the environment names both

The model is the one that the environment names:
  OPENAI_MODEL     and OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own
  ANTHROPIC_MODEL  and ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL

Exit codes: 0 the model said that the goal is reached, 1 it did not or it broke off, 2 it was called wrongly.
`

const goal = "Charge the orders ORD-1 to ORD-3 and keep their customers informed."

// run returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	flags := flag.NewFlagSet("orders-llm", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	yes := flags.Bool("yes", false, "")
	provider := flags.String("provider", "", "")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, usage)
		return 0
	}
	var model chat.Model
	if err == nil {
		model, err = choose(*provider)
	}
	if err != nil {
		fmt.Fprintf(errs, "orders-llm: %v\n", err)
		return 2
	}
	s := &session{out: out, lines: bufio.NewScanner(in), yes: *yes}
	reached, err := s.work(ctx, model, cmp.Or(strings.Join(flags.Args(), " "), goal))
	if err != nil {
		fmt.Fprintf(errs, "orders-llm: %v\n", err)
	}
	if err != nil || !reached {
		return 1
	}
	return 0
}

// choose opens the model that the environment names.
func choose(provider string) (chat.Model, error) {
	theirs, ours := os.Getenv("ANTHROPIC_MODEL") != "", os.Getenv("OPENAI_MODEL") != ""
	switch {
	case provider == "" && theirs && ours:
		return nil, errors.New("OPENAI_MODEL and ANTHROPIC_MODEL are both set; choose with --provider")
	case provider == "" && !theirs && !ours:
		return nil, errors.New("no model is chosen: set OPENAI_MODEL and OPENAI_API_KEY (or OPENAI_BASE_URL=http://localhost:8000/v1 " +
			"for a server of your own), or ANTHROPIC_MODEL and ANTHROPIC_API_KEY")
	case provider == "anthropic" || provider == "" && theirs:
		return anthropic.New(anthropic.Options{})
	case provider == "openai" || provider == "":
		return openai.New(openai.Options{})
	}
	return nil, fmt.Errorf("--provider is %q, want openai or anthropic", provider)
}

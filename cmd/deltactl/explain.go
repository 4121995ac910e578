package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/cmd/deltactl/internal/explain"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

const explainHelp = `Explain reads a set of actions from YAML ("-" is standard input), builds an agent
of it as a program would, and prints of each action whether it is legal (may run
now), gated (may run once a person approves it) or blocked (does not exist for
the agent now), every reason, its effective risk, and the cheapest sequence of
actions that would make its prerequisites hold.

  agent: order-desk
  actions:
    - name: confirm-order
      description: Confirm an order        # default: the name
      risk: 2                              # 1 to 5, default 3
      effect: idempotent                   # none, idempotent, compensatable, irreversible (default)
      cost: {tokens: 300, money: 0.35, currency: EUR}   # also duration, calls, bytes; money in whole units
      max_cost: {tokens: 900}
    - name: charge-card
      risk: 4
      input: {type: object, ...}           # a JSON schema; default: the bound fields
      needs:                               # a name, or
        - {action: confirm-order, on: orderId}         # the same field of both inputs
        # as: id            another name on the other side
        # output: items.*.id  a value that the other returned
        # bind: [{on: a}, {on: b, as: c}]   several, of one call
        # consumed: true    each use needs a new one
        # within: 30m       only that recent
        # workflow: admit   in place of action: a workflow completed; version: "2" only in that one
      approval: true                       # or {until_trust: 0.9}
      granted: false                       # default true
      fetches: true                        # a path does not guess beyond it
      context: [customer]                  # the goal must bring it along
  goal:                                    # optional
    text: Settle the order
    limit: {tokens: 5000}
    threshold: 4                           # risk from which a person is asked, default 4
    ceiling: 4.5                           # risk above which nothing runs, default none
    approvers: [ana]                       # default nobody: what needs approval is blocked
    context: [customer]
  done:                                    # optional: calls made before, in their order
    - {action: confirm-order, input: {orderId: ORD-1}, output: {}, ok: true, times: 1}

The calls under done pass through the gates of the real engine; what needed an
approval counts as approved by the first of the approvers. A call that could not
have been made is an error. The file is read strictly: unknown keys, keys given
twice and aliases are errors with their line.

JSON: {"agent", "goal", "done": calls made before, "actions": [{"name", "status",
"why": [reason], "declared", "risk", "path": {"steps", "boundary", "beyond", "cost",
"text"}}]}, in the order of the file; there is no path where none is needed or known.

Exit code 0 says that the set could be explained, whatever stands in it; 1 that
the declaration is wrong: a cycle, an unknown prerequisite, a misspelt key.`

func newExplain() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain FILE.yaml",
		Short: "Explain what a set of actions lets an agent do, and why",
		Long:  explainHelp,
		Example: `  deltactl explain examples/explain/orders.yaml
  deltactl explain --json set.yaml | jq '.actions[] | select(.status == "blocked")'`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return runExplain(c, args[0], asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func runExplain(c *cobra.Command, path string, asJSON bool) error {
	src, err := readSet(path, c.InOrStdin())
	if err != nil {
		return err
	}
	report, err := explain.Run(c.Context(), src)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if asJSON {
		return printJSON(c.OutOrStdout(), report)
	}
	return printExplain(c.OutOrStdout(), report)
}

// maxSet bounds a file: it is read whole.
const maxSet = 4 << 20

func readSet(path string, stdin io.Reader) (src []byte, err error) {
	in := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	src, err = io.ReadAll(io.LimitReader(in, maxSet+1))
	switch {
	case err != nil:
		return nil, err // it names the path
	case len(src) > maxSet:
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxSet)
	}
	return src, nil
}

func printExplain(w io.Writer, r *explain.Report) error {
	t := table.New(w, "action", "status", "risk", "why", "path")
	for _, a := range r.Actions {
		why, path := any(nil), any(nil)
		if len(a.Why) > 0 {
			why = strings.Join(a.Why, "; ")
		}
		if a.Path != nil {
			path = a.Path.Text
		}
		t.Row(a.Name, a.Status, a.Risk, why, path)
	}
	return t.Flush()
}

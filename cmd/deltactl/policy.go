package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/cmd/deltactl/internal/whatif"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/policyfile"
	"github.com/seed-ab2cfece/delta-agents/schema"
)

const policyHelp = `Policy checks files of rules, says how they decide, and tries them on what was recorded.

A file of rules is YAML or JSON (grants, declarations of actions, teams, levels of
autonomy, and Cedar files to include) or Cedar alone. See doc/policy.md.`

func newPolicy() *cobra.Command {
	c := &cobra.Command{
		Use: "policy", Short: "Check rules, explain what they decide, and try them on recorded decisions", Long: policyHelp, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newPolicyCheck(), newPolicyExplain(), newPolicyWhatIf())
	return c
}

func newPolicyCheck() *cobra.Command {
	var asJSON, showSchema bool
	c := &cobra.Command{
		Use: "check FILE", Short: "Check a file of rules", Args: cobra.ExactArgs(1),
		Long: `Check compiles a file of rules and what it includes. Where it declares actions, every
policy is checked against them: unknown actions, unknown fields, comparisons of what
cannot be compared and optional fields that are not asked for first are errors.
Warnings, which are allowed and probably not meant, go to standard error.

JSON: {"version", "policies", "actions", "agents", "warnings"}.

Exit code 0 says that an engine would take the rules; 1 that it would not.`,
		Example: "  deltactl policy check examples/policy/rules.yaml\n  deltactl policy check --schema rules.yaml > rules.cedarschema",
		RunE: func(c *cobra.Command, args []string) error {
			b, err := policyfile.Load(args[0])
			if err != nil {
				return err
			}
			if showSchema {
				_, err := fmt.Fprint(c.OutOrStdout(), b.Schema())
				return err
			}
			return printCheck(c, b, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&showSchema, "schema", false, "print the Cedar schema that policies are checked against")
	return c
}

// checked is the report of check.
type checked struct {
	Version  string   `json:"version"`
	Policies int      `json:"policies"`
	Actions  []string `json:"actions"`
	Agents   []string `json:"agents"`
	Warnings []string `json:"warnings"`
}

func printCheck(c *cobra.Command, b *policy.Bundle, asJSON bool) error {
	r := checked{b.Version(), b.Len(), nonNil(b.Actions()), nonNil(b.Agents()), nonNil(b.Warnings())}
	if asJSON {
		return printJSON(c.OutOrStdout(), r)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(c.ErrOrStderr(), "warning: %s\n", w)
	}
	t := table.New(c.OutOrStdout(), "version", "policies", "actions", "agents", "warnings")
	t.Row(r.Version, r.Policies, len(r.Actions), len(r.Agents), len(r.Warnings))
	return t.Flush()
}

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

const policyExplainHelp = `Explain asks a file of rules about one call and says what every policy whose scope may
hold it decides: applies, does not apply, fails (and then the call is denied). Without
--input it says whether any input at all could be permitted, as an offer does.

Grants that agents hold in a program are not in the file and not asked.

Warnings go to standard error: an action that the file does not declare though it
declares others, an agent whose name is nearly that of one, an input that does not fit
what the file declares of it.

JSON: {"permit", "forbid", "reason", "ask", "version", "policies": [{"policy",
"effect", "says", "reason"}], "warnings"}.

Exit code 0 says that an answer was found, whatever it is; with --fail, 1 that the
call is denied.`

func newPolicyExplain() *cobra.Command {
	var q policy.Request
	var input, effect, now string
	var asJSON, fail bool
	c := &cobra.Command{
		Use: "explain FILE", Short: "Explain what rules decide about a call", Args: cobra.ExactArgs(1), Long: policyExplainHelp,
		Example: `  deltactl policy explain examples/policy/rules.yaml --agent mia --action refund --input '{"order":"ORD-1","amount":250}'
  deltactl policy explain rules.yaml --agent nox --action refund --effective 3.4 --trust 0.7`,
		RunE: func(c *cobra.Command, args []string) error {
			if q.Agent == "" || q.Action == "" {
				return usageError{errors.New("who calls what? give --agent and --action")}
			}
			b, err := policyfile.Load(args[0])
			if err != nil {
				return err
			}
			if err := fillRequest(&q, c.Flags().Changed("input"), input, effect, now); err != nil {
				return usageError{err}
			}
			d := policy.Evaluate(b, q)
			findings, err := b.Explain(q)
			if err != nil {
				return err
			}
			out := explained{d.Permit, d.Forbid, d.Reason, d.Ask, d.Version, nonNil(findings), doubts(b, &q, input)}
			if err := printExplained(c, out, asJSON); err != nil {
				return err
			}
			if fail && !d.Permit {
				return fmt.Errorf("denied: %s", d.Reason)
			}
			return nil
		},
	}
	fl := c.Flags()
	fl.StringVar(&q.Agent, "agent", "", "who calls (required)")
	fl.StringVar(&q.Action, "action", "", "what is called (required)")
	fl.StringVar(&q.Tool, "tool", "", "the tool that executes it, where the rules do not say")
	fl.StringVar(&input, "input", "", "the input, in JSON; any input if not given")
	fl.IntVar(&q.Declared, "risk", 3, "declared risk, 1 to 5")
	fl.Float64Var(&q.Effective, "effective", 0, "effective risk, 1 to 5; the declared if not given")
	fl.Float64Var(&q.Trust, "trust", 0.5, "trust in the agent, 0 to 1")
	fl.StringVar(&effect, "effect", "irreversible", "what it changes: none, idempotent, compensatable or irreversible")
	fl.StringVar(&q.Tenant, "tenant", "", "for whom the task works")
	fl.StringVar(&now, "at", "", "when, as 2027-01-02T15:04:05Z; now if not given")
	fl.BoolVar(&asJSON, "json", false, "print JSON")
	fl.BoolVar(&fail, "fail", false, "exit with 1 where the call is denied")
	return c
}

// fillRequest completes a request with what flags say as text.
func fillRequest(q *policy.Request, given bool, input, effect, now string) (err error) {
	if q.Effective == 0 {
		q.Effective = float64(q.Declared)
	}
	if q.Effect, err = action.ParseEffect(effect); err != nil {
		return fmt.Errorf("--effect: %w", err)
	}
	q.Now = time.Now().UnixMicro()
	if now != "" {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			return fmt.Errorf("--at %q: want a time as 2027-01-02T15:04:05Z", now)
		}
		q.Now = at.UnixMicro()
	}
	if q.AnyInput = !given; !given {
		return nil
	}
	doc, f := schema.Canonical([]byte(input), len(input)+1)
	if f != nil {
		return fmt.Errorf("--input: %s", f.Explain())
	}
	q.Input = doc.Tree()
	return nil
}

// explained is the report of explain.
type explained struct {
	Permit   bool             `json:"permit"`
	Forbid   bool             `json:"forbid"`
	Reason   string           `json:"reason"`
	Ask      string           `json:"ask,omitempty"`
	Version  string           `json:"version"`
	Policies []policy.Finding `json:"policies"`
	Warnings []string         `json:"warnings"`
}

// doubts says what of a question does not go with what the rules declare: it was probably not meant.
func doubts(b *policy.Bundle, q *policy.Request, input string) (all []string) {
	all = []string{}
	a, declared := b.Declared(q.Action)
	if known := b.Actions(); !declared && len(known) > 0 {
		all = append(all, fmt.Sprintf("the rules declare no action %q%s", q.Action, meant(q.Action, known)))
	}
	if known := b.Agents(); !slices.Contains(known, q.Agent) {
		if like := meant(q.Agent, known); like != "" {
			all = append(all, fmt.Sprintf("the rules name no agent %q%s", q.Agent, like))
		}
	}
	if q.AnyInput || len(a.Input) == 0 {
		return all
	}
	s, err := schema.Foreign(a.Input)
	if err != nil {
		return append(all, fmt.Sprintf("the input is held to nothing: the schema that the rules declare of %q: %v", q.Action, err))
	}
	if _, f := s.Check([]byte(input)); f != nil {
		all = append(all, fmt.Sprintf("the input does not fit what the rules declare of %q, and no policy is asked about such a call: %s", q.Action, f.Explain()))
	}
	return all
}

// meant is `; did you mean "x"?` for the known name that is closest, "" where none is close.
func meant(name string, known []string) string {
	best, least := "", 1+len(name)/3
	for _, k := range known {
		if d := action.Distance(strings.ToLower(name), strings.ToLower(k)); d < least || d == least && best == "" {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

func printExplained(c *cobra.Command, r explained, asJSON bool) error {
	w := c.OutOrStdout()
	if asJSON {
		return printJSON(w, r)
	}
	for _, doubt := range r.Warnings {
		fmt.Fprintf(c.ErrOrStderr(), "warning: %s\n", doubt)
	}
	verdict := "denied"
	if r.Permit {
		verdict = "permitted"
	}
	t := table.New(w, "decision", "reason", "asks a person", "version")
	t.Row(verdict, r.Reason, orNil(r.Ask), r.Version)
	if err := t.Flush(); err != nil || len(r.Policies) == 0 {
		return err
	}
	fmt.Fprintln(w)
	t = table.New(w, "policy", "effect", "says", "why")
	for _, f := range r.Policies {
		t.Row(f.Policy, f.Effect, f.Says, orNil(f.Reason))
	}
	return t.Flush()
}

const whatIfHelp = `What-if tries a file of rules on the decisions that ledgers hold, and lists those that
would have been others: what was permitted and would be denied, or need a person's
consent; what was denied and would be permitted. Each comes with what the call used,
or, where it never ran, what the action used on average.

What agents were granted in their programs counts as it was recorded. Trust is learned
again from the outcomes in these ledgers, and what is left of budgets counted again:
give all the ledgers of an agent (deltactl ledger export --tasks). What an action
changes is known where the agent's own ledger says; else it counts as irreversible.
Calls that a later gate refused are not tried: their inputs are not recorded.

JSON: {"version", "tried", "same", "untried", "groups": [{"was", "now", "count", "cost"}],
"flips": [{"at", "agent", "task", "intent", "action", "was", "now", "reason", "cost"}]}.

Exit code 0 says that the rules could be tried, whatever flips; with --fail, 1 that
something does.`

func newPolicyWhatIf() *cobra.Command {
	var f storeFlags
	var since string
	var fail bool
	c := &cobra.Command{
		Use: "what-if FILE SOURCE...", Short: "Try rules on recorded decisions", Args: cobra.MinimumNArgs(2), Long: whatIfHelp + sourceHelp + storeHelp,
		Example: "  deltactl policy what-if new-rules.yaml desk.jsonl --since 168h\n  deltactl policy what-if new-rules.yaml desk~t1 --store redis://localhost",
		RunE: func(c *cobra.Command, args []string) error {
			from, err := sinceTime(since, time.Now())
			if err != nil {
				return usageError{err}
			}
			b, err := policyfile.Load(args[0])
			if err != nil {
				return err
			}
			var all []*ledger.Exported
			for _, source := range args[1:] {
				more, err := f.exported(c, source)
				if err != nil {
					return err
				}
				all = append(all, more...)
			}
			r, err := whatif.Run(whatif.Config{Rules: b, Since: from}, all)
			if err != nil {
				return err
			}
			if err := printWhatIf(c.OutOrStdout(), r, f.json); err != nil {
				return err
			}
			if fail && len(r.Flips) > 0 {
				return fmt.Errorf("%d decisions would have been others", len(r.Flips))
			}
			return nil
		},
	}
	f.add(c)
	c.Flags().StringVar(&since, "since", "", "try only decisions since then: a duration before now (168h), or a time (2026-11-01T00:00:00Z)")
	c.Flags().BoolVar(&fail, "fail", false, "exit with 1 where a decision would have been another")
	return c
}

func sinceTime(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at, nil
	}
	return time.Time{}, errors.New("--since: want a duration (168h) or a time (2026-11-01T00:00:00Z)")
}

func printWhatIf(w io.Writer, r *whatif.Report, asJSON bool) error {
	if asJSON {
		return printJSON(w, r)
	}
	t := table.New(w, "at", "agent", "task", "action", "was", "now", "cost", "reason")
	for _, f := range r.Flips {
		t.Row(f.At.Format(time.RFC3339), f.Agent, f.Task, f.Action, f.Was, f.Now, costText(f.Cost), f.Reason)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	t = table.New(w, "was", "now", "decisions", "cost")
	for _, g := range r.Groups {
		t.Row(g.Was, g.Now, g.Count, costText(g.Cost))
	}
	t.Row("-", "same", r.Same, nil)
	t.Row("-", "not tried", r.Untried, nil)
	return t.Flush()
}

// costText writes what is not zero of a cost.
func costText(c action.Cost) any {
	var parts []string
	for a := range action.AxisCount {
		if n := c.Amount(a); n != 0 {
			parts = append(parts, a.Amount(n, c.Currency))
		}
	}
	return orNil(strings.Join(parts, ", "))
}

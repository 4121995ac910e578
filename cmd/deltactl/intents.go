package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

const intentsHelp = `Intents lists calls that have begun and of which no end is known, those first that need
somebody, then those first that have waited longest.

Columns:
  state    running, a worker is making it; lapsed, its lease ran out and a worker that
           has the agent's functions takes it over; unknown, nobody can tell whether
           its effect happened: what it reserved stays reserved and the same call is
           refused until somebody resolves it
  worker   whose hold on the call it is; "-" where nobody has one any more
  lease    how long that holds if nothing is heard of the worker again: each heartbeat
           makes it longer, and below 0s it ran out so long ago
  since    when it began; of unknown outcome: since when it is so
  reserved what it may cost

--attention leaves those that are running, and those that ran out a moment ago, out:
what is left needs somebody, to resolve it or to start a worker.

JSON: {"intents": [{"task", "intent", "state", "action", "version", "since", "worker",
"lease_ms", "input", "reserved"}], "next"}; the input may be long and is in the JSON
alone, digests in place of secrets.`

// States of calls that have not ended.
const (
	callRunning = "running"
	callLapsed  = "lapsed"
	callUnknown = "unknown"
)

type intentRow struct {
	Task     string          `json:"task"`
	Intent   string          `json:"intent"`
	State    string          `json:"state"`
	Action   string          `json:"action,omitempty"`
	Version  string          `json:"version,omitempty"`
	Since    time.Time       `json:"since,omitzero"`
	Worker   string          `json:"worker,omitempty"`
	LeaseMS  *int64          `json:"lease_ms,omitempty"` // left
	Input    json.RawMessage `json:"input,omitempty"`
	Reserved action.Cost     `json:"reserved,omitzero"`
}

// needs reports whether somebody should look: workers take over what lapsed by themselves, as long as there are any.
func (r intentRow) needs() bool {
	return r.State == callUnknown || r.State == callLapsed && *r.LeaseMS < -lateMost.Milliseconds()
}

func (r intentRow) rank() int {
	return slices.Index([]string{callUnknown, callLapsed, callRunning}, r.State)
}

// intents are the calls of adopted agents that have begun and not ended.
func (d *desk) intents(ctx context.Context) (all []intentRow, err error) {
	unknown, err := d.engine.Unresolved(ctx, delta.MaxTasks)
	if err != nil {
		return nil, err
	}
	for _, u := range unknown {
		all = append(all, intentRow{Task: u.Task, Intent: u.Intent, State: callUnknown, Action: u.Begun.Action, Version: u.Begun.Version, Since: u.Since,
			Input: u.Begun.Input, Reserved: u.Begun.Reserved})
	}
	aloft, err := d.engine.Underway(ctx, delta.MaxTasks)
	if err != nil {
		return nil, err
	}
	for _, u := range aloft {
		r := intentRow{Task: u.Task, Intent: u.Intent, State: callRunning, Action: u.Begun.Action, Version: u.Begun.Version, Worker: u.Worker,
			Input: u.Begun.Input, Reserved: u.Begun.Reserved}
		if left := u.Left.Milliseconds(); left < 0 {
			r.State, r.LeaseMS = callLapsed, &left
		} else {
			r.LeaseMS = &left
		}
		if u.Begun.At > 0 {
			r.Since = time.UnixMicro(u.Begun.At).UTC()
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b intentRow) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), a.Since.Compare(b.Since), strings.Compare(a.Intent, b.Intent))
	})
	return all, nil
}

func newIntents() *cobra.Command {
	c := &cobra.Command{
		Use: "intents", Short: "List calls under way and of unknown outcome, resolve or cancel one", Args: cobra.NoArgs,
		Long: "Intents lists calls under way and those of unknown outcome, takes what you found out\nabout one, and cancels single calls." + storeHelp,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newIntentsList(), newIntentsResolve(), newIntentsCancel())
	return c
}

func newIntentsList() *cobra.Command {
	var f storeFlags
	var rows rowFlags
	var attention bool
	c := &cobra.Command{
		Use: "list [AGENT]", Short: "List calls under way and of unknown outcome", Long: intentsHelp + storeHelp, Args: cobra.MaximumNArgs(1),
		Example: "  deltactl intents list --attention --store redis://localhost:6379\n  deltactl intents list desk",
		PreRunE: func(*cobra.Command, []string) error { return rows.check() },
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			return printIntents(c, d, &f, &rows, strings.Join(args, ""), attention)
		}),
	}
	c.Flags().BoolVar(&attention, "attention", false, "those alone that need somebody")
	f.add(c)
	rows.add(c, "since")
	return c
}

func printIntents(c *cobra.Command, d *desk, f *storeFlags, rows *rowFlags, agent string, attention bool) error {
	if err := d.adopt(c.Context(), agent); err != nil {
		return err
	}
	all, err := d.intents(c.Context())
	if err != nil {
		return err
	}
	if attention {
		all = slices.DeleteFunc(all, func(r intentRow) bool { return !r.needs() })
	}
	from, err := behind(all, rows.after, func(r intentRow) string { return r.Intent })
	if err != nil {
		return err
	}
	all = all[from:]
	out := struct {
		Intents []intentRow `json:"intents"`
		Next    string      `json:"next"`
	}{Intents: append([]intentRow{}, all[:min(rows.limit, len(all))]...)}
	if len(all) > rows.limit {
		out.Next = out.Intents[rows.limit-1].Intent
	}
	if f.json {
		return printJSON(c.OutOrStdout(), out)
	}
	t := table.New(c.OutOrStdout(), "task", "intent", "state", "action", "worker", "lease", "since", "reserved")
	for _, r := range out.Intents {
		lease, since := any(nil), any(nil)
		if r.LeaseMS != nil {
			lease = (time.Duration(*r.LeaseMS) * time.Millisecond).Round(100 * time.Millisecond)
		}
		if !r.Since.IsZero() {
			since = r.Since.Format(time.RFC3339)
		}
		t.Row(r.Task, r.Intent, r.State, orNil(r.Action), orNil(r.Worker), lease, since, r.Reserved)
	}
	more(c, out.Next)
	return t.Flush()
}

func newIntentsResolve() *cobra.Command {
	var f storeFlags
	var reason, output, money string
	var ok, failed bool
	var cost action.Cost
	c := &cobra.Command{
		Use: "resolve TASK INTENT", Short: "Say what became of a call", Args: cobra.ExactArgs(2),
		Long: `Resolve writes down what you found out: --ok that the call succeeded, with what it
returned, or --failed that it did not; and what it cost: one call where --calls does
not say otherwise, nothing else where it is not said, and how long it took is learned
only where --duration says it. What it reserved is settled, the outcome is learned from,
and a call that succeeded counts as a prerequisite for others. Of a step of a workflow its output is held to what the step declares of it and
its undo needs; to the action's own schema it is not, for want of that.
It is for the task's approvers and for operators, never for whoever requested it.` + operatorsHelp + deedsHelp + storeHelp,
		Example: "  deltactl intents resolve --ok --output '{\"charge\":\"ch_1\"}' --money '25 EUR' --reason 'it is in the statement' desk~t1 INTENT",
		PreRunE: func(*cobra.Command, []string) (err error) {
			if ok == failed {
				return usageError{errors.New("say what became of it: --ok or --failed")}
			}
			if cost, err = withMoney(cost, money); err != nil {
				return usageError{err}
			}
			return nil
		},
		RunE: onTask(&f, func(c *cobra.Command, d *desk, me delta.Identity, t *delta.Task, args []string) error {
			if err := t.Resolve(c.Context(), args[1], me, ok, []byte(output), cost, reason); err != nil {
				return err
			}
			if ok && cost.IsZero() {
				fmt.Fprintf(c.ErrOrStderr(), "No cost was given: one call is charged, and nothing of what else %s reserved. What a call did\ncost is said with --tokens, --bytes, --money '2.50 EUR' or --duration 3s.\n", action.Visible(args[1]))
			}
			did := newDeeds(c, &f)
			did.add(deed{Did: "resolved", What: args[1]})
			return did.end()
		}),
	}
	c.Flags().BoolVar(&ok, "ok", false, "it succeeded")
	c.Flags().BoolVar(&failed, "failed", false, "it did not")
	c.Flags().StringVar(&output, "output", "", "what it returned, as JSON (null)")
	costFlags(c, &cost, &money)
	reasonFlag(c, &reason)
	f.add(c)
	return c
}

func newIntentsCancel() *cobra.Command {
	var f storeFlags
	var reason string
	c := &cobra.Command{
		Use: "cancel TASK INTENT", Short: "Cancel one call; the rest of its task goes on", Args: cobra.ExactArgs(2),
		Long: `Cancel ends one call: where it runs its worker tells it to stop with its next heartbeat,
where it waits for a person it will not start. How it ended is said by its end, see
deltactl ledger show TASK. Anybody may stop a call.` + deedsHelp + storeHelp,
		Example: "  deltactl intents cancel --reason 'not this one' desk~t1 INTENT",
		RunE: onTask(&f, func(c *cobra.Command, d *desk, me delta.Identity, t *delta.Task, args []string) error {
			if err := t.CancelCallBy(c.Context(), args[1], me, reason); err != nil {
				return err
			}
			did := newDeeds(c, &f)
			did.add(deed{Did: "cancelled", What: args[1]})
			return did.end()
		}),
	}
	reasonFlag(c, &reason)
	f.add(c)
	return c
}

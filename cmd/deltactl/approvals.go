package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

const approvalsHelp = `Approvals lists the calls that wait for a person, those that were asked for first
first; of each agent as many as are shown at a time.

Columns:
  version  of the action: a decision is about that version alone; a worker that holds
           another one asks again
  risk     effective risk, which no consent covers beyond
  cost     forecast, or what the input says that the call costs
  expires  when the request lapses, which is neither consent nor rejection

JSON: {"approvals": [{"id", "task", "agent", "action", "version", "state", "risk",
"cost", "exact", "requester", "asked", "expires", "why", "arguments": [{"path",
"label", "value", "changed"}], "unshown", "rest": [{"path", "label", "more",
"digest"}], "consents", "needed"}], "next"}. Exact is what of the cost is no forecast.
Secrets are hidden. Changed is what differs from the call approved last for the same
tenant and subject, label how a path reads where that is not as it is; unshown counts
arguments that are left out, rest says where.`

type approvalRow struct {
	ID        string           `json:"id"`
	Task      string           `json:"task"`
	Agent     string           `json:"agent"`
	Action    string           `json:"action"`
	Version   string           `json:"version"`
	State     string           `json:"state"`
	Risk      float64          `json:"risk"`
	Cost      string           `json:"cost"`
	Exact     string           `json:"exact,omitempty"`
	Requester string           `json:"requester,omitempty"`
	Asked     time.Time        `json:"asked"`
	Expires   *time.Time       `json:"expires,omitempty"`
	Why       []string         `json:"why,omitempty"`
	Arguments []approval.Field `json:"arguments,omitempty"`
	Unshown   int              `json:"unshown"`
	Rest      []approval.Rest  `json:"rest,omitempty"`
	Input     []string         `json:"input,omitempty"`
	Consents  int              `json:"consents"`
	Needed    int              `json:"needed"`
	Ended     string           `json:"ended,omitempty"`
}

func newApprovalRow(a delta.Approval) approvalRow {
	r := approvalRow{
		ID: a.ID, Task: a.Task, Agent: a.Agent, Action: a.Action, Version: a.Version, State: string(a.State), Risk: a.Risk.Effective,
		Cost: a.Forecast.String(), Exact: a.Priced.Amounts(), Requester: a.Requester, Asked: time.UnixMicro(a.Asked).UTC(), Why: a.Why,
		Arguments: a.Arguments, Unshown: a.Unshown, Rest: a.Rest, Consents: len(a.Votes), Needed: a.Quorum.Need(), Ended: string(a.Ended),
	}
	if a.Expires > 0 {
		at := time.UnixMicro(a.Expires).UTC()
		r.Expires = &at
	}
	return r
}

func newApprovals() *cobra.Command {
	c := &cobra.Command{
		Use: "approvals", Short: "List, show and decide what waits for a person", Args: cobra.NoArgs,
		Long: `Approvals lists and decides calls that wait for a person. You are who the operating
system says you are, and your groups are your roles; you must be one of the task's
approvers, and never whoever requested it.` + storeHelp,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newApprovalsList(), newApprovalsShow(), newApprove(),
		newDecision("reject", "Refuse a call; the reason reaches the planner, and it is not asked again", "rejected", (*delta.Engine).Reject),
		newDecision("revoke", "Take back an approval that was not used yet", "revoked", (*delta.Engine).Revoke),
		newDecision("withdraw", "Take back your own consent while others are awaited", "withdrawn", (*delta.Engine).Withdraw))
	return c
}

func newApprovalsList() *cobra.Command {
	var f storeFlags
	var rows rowFlags
	var mine bool
	c := &cobra.Command{
		Use: "list [AGENT]", Short: "List what waits for a person", Long: approvalsHelp + storeHelp, Args: cobra.MaximumNArgs(1),
		Example: "  deltactl approvals list --store redis://localhost:6379 --sort risk",
		PreRunE: func(*cobra.Command, []string) error { return rows.check() },
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			return printApprovals(c, d, &f, &rows, strings.Join(args, ""), mine)
		}),
	}
	c.Flags().BoolVar(&mine, "mine", false, "only those that you can consent to and have not")
	f.add(c)
	rows.add(c, "asked", "risk", "expires")
	return c
}

func printApprovals(c *cobra.Command, d *desk, f *storeFlags, rows *rowFlags, agent string, mine bool) error {
	all, err := d.requests(c.Context(), agent, mine)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b delta.Approval) int {
		switch rows.sort {
		case "risk":
			return cmp.Compare(b.Risk.Effective, a.Risk.Effective)
		case "expires":
			return cmp.Compare(a.Expires, b.Expires)
		}
		return 0
	})
	from, err := behind(all, rows.after, func(a delta.Approval) string { return a.ID })
	if err != nil {
		return err
	}
	all = all[from:]
	out := struct {
		Approvals []approvalRow `json:"approvals"`
		Next      string        `json:"next"`
	}{Approvals: []approvalRow{}}
	for _, a := range all[:min(rows.limit, len(all))] {
		out.Approvals = append(out.Approvals, newApprovalRow(a))
	}
	if len(all) > rows.limit {
		out.Next = out.Approvals[rows.limit-1].ID
	}
	if f.json {
		return printJSON(c.OutOrStdout(), out)
	}
	t := table.New(c.OutOrStdout(), "approval", "action", "version", "risk", "cost", "requester", "expires")
	for _, r := range out.Approvals {
		expires := any(nil)
		if r.Expires != nil {
			expires = r.Expires.Format(time.RFC3339)
		}
		t.Row(r.ID, r.Action, orNil(r.Version), r.Risk, r.Cost, orNil(r.Requester), expires)
	}
	more(c, out.Next)
	return t.Flush()
}

// requests are what is shown of one agent or all, or what of that is left for me to consent to.
func (d *desk) requests(ctx context.Context, agent string, mine bool) ([]delta.Approval, error) {
	if err := d.adopt(ctx, agent); err != nil {
		return nil, err
	}
	if !mine {
		return d.engine.Approvals(ctx, delta.MaxTasks)
	}
	me, err := d.me(ctx)
	if err != nil {
		return nil, err
	}
	return d.engine.Inbox(ctx, me)
}

// request reads a request by its id, "agent~task~request".
func (d *desk) request(ctx context.Context, id string) (delta.Approval, error) {
	agent, _, _ := strings.Cut(id, "~")
	if strings.Count(id, "~") != 2 {
		return delta.Approval{}, usageError{fmt.Errorf("approval %q: want agent~task~request, as the list prints it", id)}
	}
	if err := d.adopt(ctx, agent); err != nil {
		return delta.Approval{}, err
	}
	return d.engine.Approval(ctx, id)
}

func newApprovalsShow() *cobra.Command {
	var f storeFlags
	var all bool
	c := &cobra.Command{
		Use: "show APPROVAL", Short: "Show all that is to be known before deciding", Args: cobra.ExactArgs(1),
		Long: `Show prints what is asked, why, what is at risk and how it differs from what was
approved last. Nothing in it is invisible or can change how the rest looks; secrets
are hidden. The state is that of the consent; what became of the call is said beside
it once it has ended: one that was approved may be refused when it is its turn, see
deltactl trace. An input that is long is not shown in whole, which the first line says;
--all shows all of it, in lines, secrets hidden. JSON is one element of the list, and
"ended", the code of that end, and with --all the lines of "input".` + storeHelp,
		Example: "  deltactl approvals show desk~t1~01JA",
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			a, err := d.request(c.Context(), args[0])
			if err != nil {
				return err
			}
			var input []string
			if all {
				if input, err = d.engine.ApprovalInput(c.Context(), args[0]); err != nil {
					return err
				}
			}
			if f.json {
				row := newApprovalRow(a)
				row.Input = input
				return printJSON(c.OutOrStdout(), row)
			}
			state := string(a.State)
			if a.Ended != "" {
				state += ", and the call ended as " + string(a.Ended)
			}
			out := c.OutOrStdout()
			fmt.Fprintf(out, "%s\nstate     %s\n", strings.TrimRight(a.Explain(), "\n"), state)
			if all {
				_, err = fmt.Fprintf(out, "\nthe whole input\n%s\n", strings.Join(input, "\n"))
			}
			return err
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "the whole input too")
	f.add(c)
	return c
}

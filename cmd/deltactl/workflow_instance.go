package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// isInstance reports whether an argument names an instance and no file.
func isInstance(arg string) bool {
	if !strings.Contains(arg, "~") || strings.ContainsAny(arg, `/\`) {
		return false
	}
	_, err := os.Stat(arg)
	return errors.Is(err, os.ErrNotExist)
}

type stepRow struct {
	Step      string          `json:"step"`
	Stage     string          `json:"stage"`
	Undone    bool            `json:"undone,omitempty"` // what it effected was taken back
	Iteration int             `json:"iterations"`
	Attempt   int             `json:"attempts"`
	Cost      string          `json:"cost"`
	Failure   *action.Failure `json:"failure,omitempty"`
}

// stage is how far the step has come as a table shows it.
func (r *stepRow) stage() string {
	if r.Undone {
		return r.Stage + ", undone"
	}
	return r.Stage
}

// questionRow is what somebody is asked.
type questionRow struct {
	Step        string          `json:"step"`
	Prompt      string          `json:"prompt"`
	Description string          `json:"description,omitempty"`
	Who         []string        `json:"who,omitempty"`
	Critique    string          `json:"critique,omitempty"` // of the answer before
	Input       json.RawMessage `json:"input,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

// nestedRow is an instance that a step waits for.
type nestedRow struct {
	Step     string `json:"step"`
	Instance string `json:"instance"`
	Workflow string `json:"workflow"`
	Status   string `json:"status"`
}

type shownInstance struct {
	instanceRow
	Nested    []nestedRow   `json:"nested"`
	Progress  []stepRow     `json:"progress"`
	Questions []questionRow `json:"questions"`
	Undone    []string      `json:"not_undone"` // effects that nothing undid
	Spent     string        `json:"spent"`
}

func (d *desk) show(ctx context.Context, id string) (shownInstance, error) {
	run, t, err := d.instance(ctx, id)
	if err != nil {
		return shownInstance{}, err
	}
	tree, err := run.Tree(ctx)
	if err != nil {
		return shownInstance{}, err
	}
	s := &tree.State
	out := shownInstance{instanceRow: newInstanceRow(t, &tree), Nested: []nestedRow{}, Progress: []stepRow{}, Questions: []questionRow{}, Undone: []string{}, Spent: s.Cost.String()}
	if no, err := (roll{}).lacks(ctx, d, t.Agent, run, &out.instanceRow); err != nil {
		return out, err
	} else if no != nil {
		out.NoWorker = no.Error()
	}
	for i := range s.Steps {
		x := &s.Steps[i]
		stage := string(x.Stage)
		if stage == "" {
			stage = "pending"
		}
		out.Progress = append(out.Progress, stepRow{x.Name, stage, x.Undone, x.Iteration, x.Attempt, x.Cost.String(), x.Failure})
	}
	for i := range tree.Nested {
		n := &tree.Nested[i]
		status := string(n.State.Status)
		if len(n.State.Steps) == 0 {
			status = "new"
		}
		out.Nested = append(out.Nested, nestedRow{n.Step, n.ID, n.State.Workflow, status})
	}
	for i := range s.Outstanding {
		if q := &s.Outstanding[i]; q.Kind == workflow.Ask {
			out.Questions = append(out.Questions, questionRow{q.Step, q.Prompt, q.Description, q.Who, q.Critique, q.Input, q.Contract})
		}
	}
	for _, x := range s.Left {
		out.Undone = append(out.Undone, strings.TrimSpace(x.Step+" "+x.Action))
	}
	return out, nil
}

func printInstance(c *cobra.Command, d *desk, f *storeFlags, id string) error {
	x, err := d.show(c.Context(), id)
	if err != nil {
		return err
	}
	out := c.OutOrStdout()
	if f.json {
		return printJSON(out, x)
	}
	head := table.New(out, "instance", "workflow", "version", "status", "steps", "spent")
	head.Row(x.ID, x.Workflow, x.Version, x.standing(), x.progress(), x.Spent)
	steps := table.New(out, "step", "stage", "iterations", "attempts", "failure")
	for _, r := range x.Progress {
		steps.Row(r.Step, r.stage(), r.Iteration, r.Attempt, failureCell(r.Failure))
	}
	if err := errors.Join(head.Flush(), spaced(c, steps)); err != nil {
		return err
	}
	if x.Failure != nil {
		fmt.Fprintf(out, "\nfailure\t%s\n", failureCell(x.Failure))
	}
	if x.NoWorker != "" {
		fmt.Fprintf(out, "\nno worker\t%s\n", action.Visible(x.NoWorker))
	}
	for _, w := range x.Undone {
		fmt.Fprintf(out, "\nnot undone\t%s\n", action.Visible(w))
	}
	if len(x.Nested) > 0 {
		nested := table.New(out, "nested", "instance", "workflow", "status")
		for _, n := range x.Nested {
			nested.Row(n.Step, n.Instance, orNil(n.Workflow), n.Status)
		}
		if err := spaced(c, nested); err != nil {
			return err
		}
	}
	if len(x.Waits) > 0 {
		waits := table.New(out, "waits", "for", "instance", "since", "approval or intent", "who", "why")
		for _, w := range x.Waits {
			waits.Row(w.Step, w.For, cmp.Or(w.Instance, x.ID), w.Since.Format(time.RFC3339), orNil(cmp.Or(w.Approval, w.Intent)), orNil(strings.Join(w.Who, ", ")), orNil(action.CutTo(w.Reason, 120)))
		}
		if err := spaced(c, waits); err != nil {
			return err
		}
	}
	for _, q := range x.Questions {
		fmt.Fprintf(out, "\nquestion\t%s\n", q.Step)
		for _, l := range [][2]string{{"prompt", q.Prompt}, {"critique", q.Critique}, {"input", string(q.Input)}, {"schema", string(q.Schema)}} {
			if l[1] != "" {
				fmt.Fprintf(out, "%s\t%s\n", l[0], action.Visible(l[1]))
			}
		}
	}
	return nil
}

// spaced prints a table below an empty line.
func spaced(c *cobra.Command, t *table.Writer) error {
	fmt.Fprintln(c.OutOrStdout())
	return t.Flush()
}

func failureCell(f *action.Failure) any {
	if f == nil {
		return nil
	}
	return action.CutTo(string(f.Code)+": "+f.Message, 120)
}

func newWorkflowWait() *cobra.Command {
	var f storeFlags
	var limit, every time.Duration
	c := &cobra.Command{
		Use: "wait INSTANCE", Short: "Wait until an instance ends, or waits for a person", Args: cobra.ExactArgs(1),
		Long: `Wait waits until an instance has ended, or it, or whatever is nested in it, waits for a
person or other rules and nothing else goes on; then it prints it as list does. Whether anything goes on is up to its workers. On a terminal it
shows how many steps have ended.

Exit code 0: it completed, or waits; 1: it failed, was cancelled, or the time is up.` + storeHelp,
		Example: "  deltactl workflow wait --timeout 10m desk~t1",
		PreRunE: func(*cobra.Command, []string) error {
			if limit <= 0 || every < 10*time.Millisecond {
				return usageError{fmt.Errorf("--timeout is %v and --every %v, want more than 0, and 10ms or more", limit, every)}
			}
			return nil
		},
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			r, err := d.awaited(c, args[0], limit, every)
			if err != nil {
				return err
			}
			return printAwaited(c, &f, &r)
		}),
	}
	c.Flags().DurationVar(&limit, "timeout", time.Hour, "how long to wait at most")
	c.Flags().DurationVar(&every, "every", 500*time.Millisecond, "how often to look")
	f.add(c)
	return c
}

// awaited looks at an instance until it rests.
func (d *desk) awaited(c *cobra.Command, id string, limit, every time.Duration) (r instanceRow, err error) {
	ctx, cancel := context.WithTimeoutCause(c.Context(), limit, errors.New("it neither ended nor waits for a person; give more --timeout, and see that a worker runs"))
	defer cancel() // it bounds the waiting: a reading that it cuts short would be taken for a store that does not answer
	run, _, err := d.instance(c.Context(), id)
	if err != nil {
		return r, err
	}
	bar, shown := (*table.Bar)(nil), 0
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		t, err := run.Task().Standing(c.Context()) // first: a task that has ended has nothing to add to its instance
		if err != nil {
			return r, err
		}
		tree, err := run.Tree(c.Context())
		if err != nil {
			return r, err
		}
		r = newInstanceRow(t, &tree)
		if bar == nil && r.Steps > 0 {
			bar = table.Progress(c.ErrOrStderr(), int64(r.Steps))
			defer bar.Done()
		}
		if bar != nil {
			bar.Add(int64(r.Ended - shown))
			shown = r.Ended
		}
		if over(&r) || tree.Rests() {
			return r, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return r, context.Cause(ctx)
		}
	}
}

// over reports whether nothing happens to an instance any more.
func over(r *instanceRow) bool {
	return workflow.Status(r.Status).Terminal() || r.Status == "closed" || r.Status == "ended"
}

func printAwaited(c *cobra.Command, f *storeFlags, r *instanceRow) error {
	var err error
	if f.json {
		err = printJSON(c.OutOrStdout(), r)
	} else {
		t := table.New(c.OutOrStdout(), "instance", "workflow", "version", "status", "steps", "waits")
		t.Row(r.ID, r.Workflow, r.Version, r.standing(), r.progress(), r.waiting())
		err = t.Flush()
	}
	if err == nil {
		err = endedBadly(r)
	}
	return err
}

// endedBadly is an error where an instance has ended otherwise than by completing.
func endedBadly(r *instanceRow) (err error) {
	if over(r) && r.Status != string(workflow.Completed) {
		err = coded{exitFailed, fmt.Errorf("workflow %s as %s: %s", r.Workflow, r.ID, r.Status)}
		if r.Failure != nil {
			err = coded{exitFailed, fmt.Errorf("%w: %w", err, r.Failure)}
		}
	}
	return err
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

const instancesHelp = `List lists instances of workflows, nested ones too, that have not ended, with --ended
those that have and are not pruned yet.

Columns:
  status  running, unwinding (it undoes what it completed), completed, failed, cancelled;
          begun by nobody yet is new, and paused is one that is held back
  steps   how many are done, of all, and how many failed or were skipped
  waits   what it waits for that a person or other rules end: intake, approval, policy,
          resolution, operator; each with its step, and with the instance where one
          that is nested in it waits. deltactl workflow show says more
  worker  where no live worker holds its workflow in its version, that; it goes on no
          further then, whatever is said to it

JSON: {"instances": [{"id", "workflow", "version", "parent", "status", "paused",
"ended_steps", "failed_steps", "skipped_steps", "steps", "waits": [{"step", "for", "since", "reason", "code", "who",
"approval", "intent", "instance"}], "failure", "goal", "no_worker"}], "next"}; "instance" is
said where a nested one waits.`

type waitRow struct {
	Step     string    `json:"step,omitempty"`
	For      string    `json:"for"`
	Since    time.Time `json:"since"`
	Reason   string    `json:"reason,omitempty"`
	Code     string    `json:"code,omitempty"`
	Who      []string  `json:"who,omitempty"`
	Approval string    `json:"approval,omitempty"`
	Intent   string    `json:"intent,omitempty"`
	Instance string    `json:"instance,omitempty"` // a nested one that waits
}

type instanceRow struct {
	ID       string          `json:"id"`
	Workflow string          `json:"workflow"`
	Version  string          `json:"version"`
	Parent   string          `json:"parent,omitempty"`
	Status   string          `json:"status"`
	Paused   bool            `json:"paused"`
	Ended    int             `json:"ended_steps"`
	Failed   int             `json:"failed_steps"`
	Skipped  int             `json:"skipped_steps"`
	Undone   int             `json:"undone_steps"`
	Steps    int             `json:"steps"`
	Waits    []waitRow       `json:"waits"`
	Failure  *action.Failure `json:"failure,omitempty"`
	Goal     string          `json:"goal,omitempty"`
	NoWorker string          `json:"no_worker,omitempty"` // holds it, and of whom that is said
}

func newInstanceRow(t delta.TaskStanding, tree *delta.InstanceTree) instanceRow {
	s := &tree.State
	r := instanceRow{
		ID: t.ID, Workflow: t.Workflow, Version: t.Version, Parent: t.Parent, Status: string(s.Status), Paused: s.Held,
		Steps: len(s.Steps), Waits: []waitRow{}, Failure: s.Failure, Goal: t.Goal,
	}
	if len(s.Steps) == 0 {
		r.Status = "new"
	}
	if !s.Status.Terminal() && (t.Status == "cancelled" || t.Status == "closed") {
		r.Status = t.Status // its task was ended, and it with it
	}
	for i := range s.Steps {
		if s.Steps[i].Stage.Ended() {
			r.Ended++
		}
		switch s.Steps[i].Stage {
		case workflow.StageDone:
			if s.Steps[i].Undone {
				r.Undone++
			}
		case workflow.StageFailed:
			r.Failed++
		case workflow.StageSkipped:
			r.Skipped++
		}
	}
	for _, w := range tree.Waits() {
		row := waitRow{w.Step, string(w.For), time.UnixMicro(w.Since).UTC(), w.Reason, string(w.Code), w.Who, w.Approval, w.Intent, w.ID}
		if w.ID == tree.ID {
			row.Instance = ""
		}
		r.Waits = append(r.Waits, row)
	}
	return r
}

// progress is how far it has come as a table shows it: a step that failed, was skipped or was
// undone has ended and is not done.
func (r *instanceRow) progress() string {
	out := fmt.Sprintf("%d/%d", r.Ended-r.Failed-r.Skipped-r.Undone, r.Steps)
	if r.Undone > 0 {
		out += fmt.Sprintf(", %d undone", r.Undone)
	}
	if r.Failed > 0 {
		out += fmt.Sprintf(", %d failed", r.Failed)
	}
	if r.Skipped > 0 {
		out += fmt.Sprintf(", %d skipped", r.Skipped)
	}
	return out
}

// standing is the status as a table shows it.
func (r *instanceRow) standing() string {
	if r.Paused {
		return r.Status + ", paused"
	}
	return r.Status
}

func (r *instanceRow) waiting() any {
	var all []string
	for _, w := range r.Waits {
		what := strings.TrimSpace(w.For + " " + w.Step)
		if w.Instance != "" {
			what += " of " + w.Instance
		}
		all = append(all, what)
	}
	return orNil(strings.Join(all, ", "))
}

func newWorkflowList() *cobra.Command {
	var f storeFlags
	var rows rowFlags
	var q delta.TaskQuery
	var waiting bool
	c := &cobra.Command{
		Use: "list [AGENT]", Short: "List instances of workflows", Long: instancesHelp + storeHelp, Args: cobra.MaximumNArgs(1),
		Example: "  deltactl workflow list --waiting --store redis://localhost:6379",
		PreRunE: func(*cobra.Command, []string) error { return rows.check() },
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			q.Agent = strings.Join(args, "")
			return printInstances(c, d, &f, &rows, q, waiting)
		}),
	}
	c.Flags().BoolVar(&q.Ended, "ended", false, "those that ended")
	c.Flags().BoolVar(&waiting, "waiting", false, "only those that wait for a person, or for other rules")
	f.add(c)
	rows.add(c, "agent")
	return c
}

func printInstances(c *cobra.Command, d *desk, f *storeFlags, rows *rowFlags, q delta.TaskQuery, waiting bool) error {
	if err := d.adopt(c.Context(), q.Agent); err != nil {
		return err
	}
	out := struct {
		Instances []instanceRow `json:"instances"`
		Next      string        `json:"next"`
	}{Instances: []instanceRow{}}
	live := roll{}
	for q.After = rows.after; ; q.After = out.Next {
		q.Limit = rows.limit - len(out.Instances) // a page never holds more than there is room for
		page, err := d.engine.Tasks(c.Context(), q)
		if err != nil {
			return err
		}
		for _, t := range page.Tasks {
			if t.Workflow == "" {
				continue
			}
			r, err := d.instanceRow(c.Context(), t, live)
			if err != nil {
				return err
			}
			if !waiting || len(r.Waits) > 0 || r.Paused {
				out.Instances = append(out.Instances, r)
			}
		}
		if out.Next = page.Next; out.Next == "" || len(out.Instances) == rows.limit {
			break
		}
	}
	if f.json {
		return printJSON(c.OutOrStdout(), out)
	}
	t := table.New(c.OutOrStdout(), "instance", "workflow", "version", "status", "steps", "waits", "worker")
	for i := range out.Instances {
		r := &out.Instances[i]
		t.Row(r.ID, r.Workflow, r.Version, r.standing(), r.progress(), r.waiting(), orNil(action.CutTo(r.NoWorker, 80)))
	}
	more(c, out.Next)
	return t.Flush()
}

func (d *desk) instanceRow(ctx context.Context, t delta.TaskStanding, live roll) (instanceRow, error) {
	run, err := d.engine.OpenWorkflow(ctx, t.ID)
	if err != nil {
		return instanceRow{}, err
	}
	tree, err := run.Tree(ctx)
	if err != nil {
		return instanceRow{}, err
	}
	r := newInstanceRow(t, &tree)
	if no, err := live.lacks(ctx, d, t.Agent, run, &r); err != nil {
		return r, err
	} else if no != nil {
		r.NoWorker = unheldBrief(no)
	}
	return r, nil
}

// instance opens an instance by "agent~task".
func (d *desk) instance(ctx context.Context, id string) (*delta.Instance, delta.TaskStanding, error) {
	t, err := d.task(ctx, id)
	if err != nil {
		return nil, delta.TaskStanding{}, err
	}
	s, err := t.Standing(ctx)
	if err != nil {
		return nil, s, err
	}
	if s.Workflow == "" {
		return nil, s, coded{exitNotFound, fmt.Errorf("%s runs no workflow; deltactl workflow list lists those that do", t)}
	}
	run, err := d.engine.OpenWorkflow(ctx, id)
	return run, s, err
}

// word makes a command that tells an instance a person's word.
func word(c *cobra.Command, f *storeFlags, did string, tell func(ctx context.Context, run *delta.Instance, by delta.Identity, args []string) error) *cobra.Command {
	return wordOn(c, f, did, func(ctx context.Context, _ *desk, run *delta.Instance, by delta.Identity, args []string) error {
		return tell(ctx, run, by, args)
	})
}

func wordOn(c *cobra.Command, f *storeFlags, did string, tell func(ctx context.Context, d *desk, run *delta.Instance, by delta.Identity, args []string) error) *cobra.Command {
	c.Long += operatorsHelp + deedsHelp + storeHelp
	c.RunE = onDesk(f, func(c *cobra.Command, d *desk, args []string) error {
		me, err := d.me(c.Context())
		if err != nil {
			return err
		}
		run, _, err := d.instance(c.Context(), args[0])
		if err != nil {
			return err
		}
		if err := tell(c.Context(), d, run, me, args[1:]); err != nil {
			return err
		}
		done := newDeeds(c, f)
		done.add(deed{Did: did, What: run.ID(), By: me.String()})
		return done.end()
	})
	f.add(c)
	return c
}

// maxDocument bounds what is read from a file or a pipe to be told to an instance.
const maxDocument = 1 << 20

// document is a JSON document of the command line: itself, "@file", or "-" for the standard input.
func document(c *cobra.Command, arg string) (json.RawMessage, error) {
	text, err := []byte(arg), error(nil)
	switch name, file := strings.CutPrefix(arg, "@"); {
	case arg == "-":
		text, err = io.ReadAll(io.LimitReader(&interruptible{ctx: c.Context(), in: c.InOrStdin()}, maxDocument))
	case file:
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, err
	}
	if !json.Valid(text) {
		return nil, usageError{fmt.Errorf("%q is no JSON document: give one in quotes, @FILE, or - for the standard input", action.CutTo(string(text), 60))}
	}
	return text, nil
}

func newWorkflowSignal() *cobra.Command {
	var f storeFlags
	var step string
	c := &cobra.Command{
		Use: "signal INSTANCE ANSWER", Short: "Answer what a step asks", Args: cobra.ExactArgs(2),
		Long: `Signal answers what a HUMAN step, or another that asks people, waits for. The answer is a
JSON document, @FILE, or - for the standard input. It is held to the schema that
deltactl workflow show prints: one that fails is recorded, and exits with 4, and the
question is asked again as often as the step allows. It is for those whom the step
names, or the workflow's owners.`,
		Example: `  deltactl workflow signal desk~t1 '{"amount": 40, "reason": "arrived broken"}'`,
	}
	c.Flags().StringVar(&step, "step", "", "which step, where several ask")
	return word(c, &f, "answered", func(ctx context.Context, run *delta.Instance, by delta.Identity, args []string) error {
		doc, err := document(c, args[0])
		if err != nil {
			return err
		}
		before, err := run.State(ctx)
		if err != nil {
			return err
		}
		if err := run.Signal(ctx, step, by, doc); err != nil {
			return err
		}
		after, err := run.State(ctx)
		if err != nil {
			return err
		}
		return unfit(&before, &after)
	})
}

// unfit reports an answer that was not consumed, because it breaks the schema of its question.
func unfit(before, after *workflow.State) error {
	for i := range before.Steps {
		was, is := &before.Steps[i], &after.Steps[i]
		parked := was.Wait == nil && is.Wait != nil && is.Wait.For == workflow.WaitOperator && is.Wait.Code == action.InputInvalid
		switch {
		case is.Reprompts > was.Reprompts:
			return coded{exitRefused, fmt.Errorf("the answer is recorded and does not do, step %q asks again: %s", is.Name, is.Critique)}
		case parked:
			return coded{exitRefused, fmt.Errorf("the answer is recorded and does not do, step %q now waits for an operator: %s", is.Name, is.Critique)}
		}
	}
	return nil
}

func newWorkflowAmend() *cobra.Command {
	var f storeFlags
	var step string
	c := &cobra.Command{
		Use: "amend INSTANCE INPUT", Short: "Give a step another input", Args: cobra.ExactArgs(2),
		Long: `Amend gives a step that was denied, or that waits for an operator, another input to be
tried with: a JSON document, @FILE, or - for the standard input. Where the call waits
that undoes the step, it is the input of that. It passes the schema and every gate like
any other; nobody overrides a denial.`,
		Example: `  deltactl workflow amend desk~t1 --step charge-back '{"orderId": "ORD-7", "amount": 30}'`,
	}
	c.Flags().StringVar(&step, "step", "", "which step, where several wait")
	return word(c, &f, "amended", func(ctx context.Context, run *delta.Instance, by delta.Identity, args []string) error {
		doc, err := document(c, args[0])
		if err != nil {
			return err
		}
		return run.Amend(ctx, step, by, doc)
	})
}

func newWorkflowResume() *cobra.Command {
	var f storeFlags
	var step, reason string
	var retry, fail bool
	c := &cobra.Command{
		Use: "resume INSTANCE", Short: "End a pause, or a step's wait for an operator", Args: cobra.ExactArgs(1),
		Long: `Resume ends a pause of the instance. With --retry or --fail it ends the wait of a step for
an operator: the step is tried again with fresh budgets, or fails; so does a
compensation that failed, which --fail leaves undone.`,
		Example: "  deltactl workflow resume --retry --reason 'the server is back' desk~t1",
	}
	c.Flags().StringVar(&step, "step", "", "which step, where several wait")
	c.Flags().BoolVar(&retry, "retry", false, "try the step again")
	c.Flags().BoolVar(&fail, "fail", false, "let the step fail")
	c.MarkFlagsMutuallyExclusive("retry", "fail")
	reasonFlag(c, &reason)
	return word(c, &f, "resumed", func(ctx context.Context, run *delta.Instance, by delta.Identity, _ []string) error {
		s, err := run.State(ctx)
		switch of := retry || fail; {
		case err != nil:
			return err
		case !of && step != "":
			return usageError{errors.New("say what becomes of the step: --retry or --fail")}
		case !of && !s.Held:
			return coded{exitRefused, fmt.Errorf("%s is not paused; a step that waits for an operator takes --retry or --fail", run)}
		case of && step == "" && s.Held:
			return coded{exitRefused, fmt.Errorf("%s is paused: resume it first, without --retry and --fail", run)}
		}
		return run.Resume(ctx, step, by, retry, reason)
	})
}

func newWorkflowPause() *cobra.Command {
	var f storeFlags
	var reason string
	c := &cobra.Command{
		Use: "pause INSTANCE", Short: "Hold an instance back", Args: cobra.ExactArgs(1),
		Long:    "Pause holds an instance back: what is under way ends, and nothing begins until it is\nresumed.",
		Example: "  deltactl workflow pause --reason 'let me look' desk~t1",
	}
	reasonFlag(c, &reason)
	return word(c, &f, "paused", func(ctx context.Context, run *delta.Instance, by delta.Identity, _ []string) error {
		return run.Pause(ctx, by, reason)
	})
}

func newWorkflowCancel() *cobra.Command {
	var f storeFlags
	var reason string
	var mode delta.CancelMode
	c := &cobra.Command{
		Use: "cancel INSTANCE", Short: "End an instance and undo what it did", Args: cobra.ExactArgs(1),
		Long: `Cancel ends an instance. What completed is undone, the last first, unless --keep is given;
a worker does that, and deltactl workflow wait waits for it. Anybody may. deltactl
tasks cancel stops it at once and undoes nothing.`,
		Example: "  deltactl workflow cancel --reason 'the wrong customer' desk~t1",
	}
	c.Flags().BoolVar(&mode.After, "after", false, "what is under way ends first")
	c.Flags().BoolVar(&mode.Keep, "keep", false, "undo nothing")
	reasonFlag(c, &reason)
	return word(c, &f, "cancelled", func(ctx context.Context, run *delta.Instance, by delta.Identity, _ []string) error {
		return run.Cancel(ctx, by, mode, reason)
	})
}

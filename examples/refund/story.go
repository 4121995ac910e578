package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/examples/internal/held"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/workflow"
	"github.com/seed-ab2cfece/delta-agents/workflowfile"
)

//go:embed refund.yaml
var refundFile []byte

//go:embed notification.yaml
var notificationFile []byte

// badge is what a person shows at the desk, which takes it for granted; elsewhere a login stands behind it.
type badge string

func signIn(_ context.Context, credential any) (string, error) {
	b, ok := credential.(badge)
	if !ok {
		return "", errors.New("show a badge")
	}
	return string(b), nil
}

// definitions are the workflows, the people among those who own them.
func definitions(people ...string) (refund, notification *workflow.Definition, err error) {
	if refund, err = workflowfile.Parse(refundFile); err != nil {
		return nil, nil, fmt.Errorf("refund.yaml: %w", err)
	}
	if notification, err = workflowfile.Parse(notificationFile); err != nil {
		return nil, nil, fmt.Errorf("notification.yaml: %w", err)
	}
	spec := refund.Spec()
	spec.Owners = slices.Clone(spec.Owners)
	for _, who := range people {
		if !slices.Contains(spec.Owners, who) {
			spec.Owners = append(spec.Owners, who)
		}
	}
	refund, err = workflow.Compile(spec)
	return refund, notification, err
}

// triage stands for a model. Its first proposal breaks the contract, which it is told; small amounts are paid.
func triage(_ context.Context, r delta.StepRequest) (delta.Draft, error) {
	used := action.Cost{Tokens: 120}
	if r.Critique == "" {
		return delta.Draft{Document: json.RawMessage(`{"verdict":"probably"}`), Used: used}, nil
	}
	var in struct{ Amount int }
	if err := json.Unmarshal(r.Input, &in); err != nil {
		return delta.Draft{}, err
	}
	verdict := `{"verdict":"pay"}`
	if in.Amount > 100 {
		verdict = `{"verdict":"refuse"}`
	}
	return delta.Draft{Document: json.RawMessage(verdict), Used: used}, nil
}

type story struct {
	engine *delta.Engine
	run    *delta.Instance
	by     delta.Identity
	person person
	out    io.Writer
	told   map[string]int // task id → how many of its events were told
	nested []*delta.Task  // those of nested instances, in the order of their start
}

// play runs one refund to its end.
func play(ctx context.Context, b *bank, o options, p person, at *held.Place, log *slog.Logger, out io.Writer) (s workflow.State, err error) {
	refund, notification, err := definitions(whoAmI()) // who may answer with deltactl, too
	if err != nil {
		return s, err
	}
	engine, err := delta.New(delta.Config{
		Store: at.Store(), Authenticator: delta.AuthenticatorFunc(signIn), Log: log,
		Workflows: delta.Workflows{
			Definitions: []*workflow.Definition{refund, notification},
			Proposers:   map[string]delta.Proposer{"clerk": delta.ProposerFunc(triage)},
		},
	})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, engine.Close(context.WithoutCancel(ctx))) }()
	by, err := engine.Authenticate(ctx, badge(p.name()))
	if err != nil {
		return s, err
	}
	run, err := begin(ctx, engine, refund, b.clerk(o.fail), o.resume, at)
	if err != nil {
		return s, err
	}
	t := &story{engine: engine, run: run, by: by, person: p, out: out, told: map[string]int{}}
	t.say("Runs as %s.\n", run)
	if at != nil {
		t.say("In the store deltactl workflow show %s looks into it; where this breaks off, --resume %s goes on.\n", run.ID(), run.ID())
	}
	return t.toTheEnd(ctx)
}

// begin starts an instance, or opens the one that is to go on.
func begin(ctx context.Context, e *delta.Engine, refund *workflow.Definition, clerk *delta.Agent, resume string, at *held.Place) (*delta.Instance, error) {
	if resume != "" {
		if err := e.Register(clerk); err != nil {
			return nil, err
		}
		return e.OpenWorkflow(ctx, resume)
	}
	return e.StartWorkflow(ctx, refund, delta.Goal{
		ID: at.ID("refund"), Agent: clerk, Text: "Refund ORD-7", Requester: "customer", Approvers: refund.Spec().Owners,
		Limit: action.Limit{Calls: action.Max(20), Tokens: action.Max(5_000)},
	}, json.RawMessage(`{"orderId": "ORD-7"}`))
}

func (t *story) say(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

func (t *story) toTheEnd(ctx context.Context) (workflow.State, error) {
	for {
		s, err := t.run.Run(ctx)
		if err := errors.Join(err, t.tell(ctx)); err != nil {
			return s, err
		}
		if s.Status.Terminal() {
			return s, nil
		}
		if err := t.help(ctx, t.run, &s); err != nil {
			return s, err
		}
	}
}

// help does what a person can do about what the instance, or one nested in it, waits for first.
func (t *story) help(ctx context.Context, run *delta.Instance, s *workflow.State) error {
	waits := s.Waits()
	if len(waits) == 0 {
		return t.helpNested(ctx, run, s)
	}
	w := waits[0]
	t.say("   ? %s %s", w.Step, action.Visible(w.Reason))
	switch w.For {
	case workflow.WaitIntake:
		doc, err := t.person.answer(ctx, w)
		if err != nil {
			return err
		}
		t.say("     %s says %s", t.by, doc)
		return run.Signal(ctx, w.Step, t.by, doc)
	case workflow.WaitApproval: // the engine has seen the action fail, and takes it for riskier than it was declared
		yes, err := t.person.decide(ctx, "approve? [y/n]")
		if err != nil {
			return err
		}
		t.say("     %s approves: %v", t.by, yes)
		if !yes {
			return t.engine.Reject(ctx, w.Approval, t.by, "not now")
		}
		return t.engine.Approve(ctx, w.Approval, t.by, "try it")
	case workflow.WaitOperator:
		again, err := t.person.decide(ctx, "try again? [y/n]")
		if err != nil {
			return err
		}
		t.say("     %s tries again: %v", t.by, again)
		return run.Resume(ctx, w.Step, t.by, again, "asked at the desk")
	}
	return fmt.Errorf("%s waits for %s: %s", run, w.For, w.Reason)
}

func (t *story) helpNested(ctx context.Context, run *delta.Instance, s *workflow.State) error {
	for _, c := range s.Outstanding {
		if c.Child == "" {
			continue
		}
		child, err := run.Task().Child(ctx, c.Child)
		if err != nil {
			return err
		}
		nested, err := t.engine.OpenWorkflow(ctx, child.ID())
		if err != nil {
			return err
		}
		state, err := nested.State(ctx)
		if err != nil || state.Parked() {
			return errors.Join(err, t.help(ctx, nested, &state))
		}
	}
	return fmt.Errorf("%s rests and waits for nobody", run)
}

// tell prints what the ledgers say happened since, that of nested workflows where they were begun.
func (t *story) tell(ctx context.Context) error {
	for _, task := range t.nested {
		if err := t.tellOf(ctx, task, "      "); err != nil {
			return err
		}
	}
	return t.tellOf(ctx, t.run.Task(), "  ")
}

func (t *story) tellOf(ctx context.Context, task *delta.Task, indent string) error {
	events, err := task.Events(ctx)
	if err != nil {
		return err
	}
	from := t.told[task.ID()]
	t.told[task.ID()] = len(events)
	for i := range events[from:] {
		e := &events[from+i]
		if line := lineOf(e); line != "" {
			t.say("%s%s", indent, line)
		}
		if e.Type != ledger.FlowChild || e.Code != "" || e.Text != "started" {
			continue
		}
		child, err := task.Child(ctx, e.Child)
		if err != nil {
			return err
		}
		nested, err := child.Task(ctx)
		if err != nil {
			return err
		}
		t.nested = append(t.nested, nested)
		if err := t.tellOf(ctx, nested, indent+"    "); err != nil {
			return err
		}
	}
	return nil
}

// lineOf is what a reader wants to know of an event, "" for nothing.
func lineOf(e *ledger.Event) string {
	if e.Flow == nil || e.Type == ledger.WorkflowEvent || e.Type == ledger.Checkpoint || e.Type == ledger.PolicyEval {
		return ""
	}
	words := []string{fmt.Sprintf("%-16s", e.Type)}
	where := e.Flow.Step
	if where == "" {
		where = e.Flow.Phase
	}
	for _, w := range []string{fmt.Sprintf("%-12s", where), string(e.Code), e.Identity, action.Visible(e.Text)} {
		if w != "" {
			words = append(words, w)
		}
	}
	if e.Failure != nil {
		words = append(words, string(e.Failure.Code)+":", action.Visible(e.Failure.Message))
	}
	return strings.TrimRight(strings.Join(words, " "), " ")
}

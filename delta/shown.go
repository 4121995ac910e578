package delta

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
)

// Approval is a request for approval, how it stands, and what somebody who decides about it should see. Request.Input is
// what is written down of the input, digests in place of secrets: show Arguments, or Explain.
type Approval struct {
	approval.Request
	State approval.State
	Task  string          // full id
	Votes []approval.Vote // consents so far, where several are needed
	// Ended is how the call ended that was asked about, "" where it has not, or where the store keeps that no more. A call that was
	// approved may end without having run: what it rests on may be gone by then. Only [Engine.Approval] says it.
	Ended action.Code

	Does      string           // the action's description; "" where this engine does not hold that version of it
	Arguments []approval.Field // the input, value by value: nothing invisible, secrets hidden, bounded
	Unshown   int              // how many more values the input has; ApprovalInput returns them all
	Rest      []approval.Rest  // where those are, and digests of what they are among
	Last      *LastApproved    // the call of this action that was approved last, by whatever task of the agent; nil for none
}

// LastApproved is the call of an action that was approved last for the same tenant and about the same subject, and how another
// differs from it.
type LastApproved struct {
	Task     string // full id
	At       time.Time
	Differs  []approval.Difference // empty: in nothing
	MoreThan int                   // how many more differences there are
	// Elsewhere says that none is remembered but for other tenants or about other subjects: then nothing more is said. Of the
	// sixteen of them for which a call of an action was approved latest one is remembered.
	Elsewhere bool
	// Gone says that it cannot be read any more, its task was pruned say: when it was approved is all that is known.
	Gone bool
}

// dress adds what is shown beside the request. What cannot be read is left out: the request itself is what counts.
func (e *Engine) dress(ctx context.Context, a *Approval) {
	e.mu.Lock()
	s := e.agents[a.Agent]
	e.mu.Unlock()
	if s == nil {
		return
	}
	does, look := s.agent.shownOf(a.Action, a.Version)
	a.Does = does
	now := e.asked(ctx, s, &a.Request)
	var was json.RawMessage
	a.Last, was = e.lastApproved(ctx, s, a)
	if was != nil {
		differs, more, err := look.Differences(was, now)
		if err != nil {
			a.Last, was = &LastApproved{Task: a.Last.Task, At: a.Last.At, Gone: true}, nil
		} else {
			a.Last.Differs, a.Last.MoreThan = differs, more
		}
	}
	shown, err := look.Fields(now, was)
	if err != nil {
		return
	}
	a.Arguments, a.Unshown, a.Rest = shown.Fields, shown.More, shown.Rest
}

// ApprovalInput returns the input of a request in whole, line by line: names that are no plain identifiers are quoted, those
// that read like others marked, nothing is invisible and secrets are hidden.
func (e *Engine) ApprovalInput(ctx context.Context, id string) ([]string, error) {
	a, _, err := e.approval(ctx, id)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	s := e.agents[a.Agent]
	e.mu.Unlock()
	if s == nil {
		return nil, notKnown(a.Agent)
	}
	_, look := s.agent.shownOf(a.Action, a.Version)
	lines, err := look.Text(e.asked(ctx, s, &a.Request))
	if err != nil {
		return nil, fmt.Errorf("approval %s: %w", id, err)
	}
	return lines, nil
}

// asked is the input of a request, for somebody who sees none of its secrets. Where it cannot be opened, it is what is written
// down of it.
func (e *Engine) asked(ctx context.Context, s *agentState, q *approval.Request) json.RawMessage {
	t := e.adopt(s, q.Task)
	if about, err := t.about(ctx); err != nil || about != aboutSomebody && !s.agent.veils[q.Action] {
		return q.Input
	}
	own := newSight()
	if err := t.readRecord(ctx, q.Intent, own); err != nil {
		return q.Input
	}
	begun, err := engine.Held(&own.record, q.Intent)
	if err != nil {
		return q.Input
	}
	input, err := t.inputOf(ctx, &begun)
	if err != nil {
		return q.Input
	}
	return input
}

// lastApproved finds the call that was approved last, and its input; nil where nothing is to be said of it.
func (e *Engine) lastApproved(ctx context.Context, s *agentState, a *Approval) (*LastApproved, json.RawMessage) {
	v, err := e.lookAtTask(ctx, a.Agent, a.Request.Task)
	if err != nil {
		return nil, nil
	}
	before, others := engine.LastApproved(v, a.Action, &v.Task)
	if before == nil {
		if others {
			return &LastApproved{Elsewhere: true}, nil
		}
		return nil, nil
	}
	t := &Task{engine: e, agent: s.agent, state: s, local: before.Task}
	gone := &LastApproved{At: time.UnixMicro(before.At), Gone: true}
	of, err := t.peek(ctx)
	if err != nil && !before.Whose {
		return &LastApproved{Elsewhere: true}, nil
	}
	if err != nil {
		return gone, nil
	}
	if of.Task.ID == "" && before.Whose {
		return gone, nil
	}
	if of.Task.Tenant != v.Task.Tenant || of.Task.Subject != v.Task.Subject { // an id may be used anew
		return &LastApproved{Elsewhere: true}, nil
	}
	_, q, err := engine.ReadAsk(of, before.Digest, of.Snap.Now)
	if err != nil {
		return gone, nil
	}
	return &LastApproved{Task: t.ID(), At: time.UnixMicro(before.At)}, e.asked(ctx, s, &q)
}

// String says in a line what is asked.
func (a Approval) String() string {
	return fmt.Sprintf("%s asks to run %s v%s (approval %s, %s)", a.Agent, a.Action, action.Visible(a.Version), a.ID, a.State)
}

// Explain returns everything that somebody who decides should see, in lines of text. Nothing in it is invisible or can
// change how the rest looks, and secrets are hidden, so that what is shown is what runs.
func (a Approval) Explain() string {
	var p sheet
	head := fmt.Sprintf("%s asks to run %s v%s", a.Agent, a.Action, a.Version)
	if a.Does != "" {
		head += ": " + action.CutTo(a.Does, 200)
	}
	if s := a.partial(); s != "" {
		p.head(s)
	}
	p.head(head)
	task := a.Task
	if a.Requester != "" {
		task += ", requested by " + a.Requester
	}
	p.line("task", task)
	a.explainInput(&p)
	p.lines("why", a.Why)
	a.explainRisk(&p)
	if a.Permit != "" || a.Policy != "" {
		p.line("policy", a.explainPolicy())
	}
	p.line("cost", a.explainCost())
	p.line("effect", a.explainEffect())
	if a.Quorum.Several() {
		p.line("consents", a.explainVotes())
	}
	if a.Expires != 0 {
		p.line("expires", time.UnixMicro(a.Expires).UTC().Format(time.RFC3339))
	}
	return p.String()
}

// partial says what of the input is not shown, "" where all is.
func (a Approval) partial() string {
	cut := 0
	for _, f := range a.Arguments {
		if f.Size > 0 {
			cut++
		}
	}
	var parts []string
	if a.Unshown > 0 || cut > 0 {
		s := fmt.Sprintf("%s of %s values", thousands(len(a.Arguments)), thousands(len(a.Arguments)+a.Unshown))
		if cut > 0 {
			s += fmt.Sprintf(", %s of them cut", thousands(cut))
		}
		parts = append(parts, s)
	}
	if a.Last != nil && a.Last.MoreThan > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s differences", thousands(len(a.Last.Differs)), thousands(len(a.Last.Differs)+a.Last.MoreThan)))
	}
	if len(parts) == 0 {
		return ""
	}
	return "not all of it is shown: " + strings.Join(parts, "; ")
}

// thousands writes a number in groups of three digits.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func (a Approval) explainInput(p *sheet) {
	var lines []string
	for _, f := range a.Arguments {
		s := f.Name() + " = " + f.Value
		if f.Changed {
			s = "≠ " + s
		}
		if f.Size > 0 {
			s += fmt.Sprintf(" (cut, %s bytes in all)", thousands(f.Size))
		}
		lines = append(lines, s)
	}
	for _, r := range a.Rest {
		name := r.Name()
		if name == "" {
			name = "the input"
		}
		lines = append(lines, fmt.Sprintf("%s: %s more, digest of all %s", name, thousands(r.More), r.Digest))
	}
	if a.Unshown > 0 {
		lines = append(lines, fmt.Sprintf("and %s more values that are not shown", thousands(a.Unshown)))
	}
	p.lines("input", lines)
	if a.Last == nil {
		p.line("changed", "no call of this action was approved before")
		return
	}
	if a.Last.Elsewhere {
		p.line("changed", "of the calls approved before that are remembered none was for the same tenant and about the same subject")
		return
	}
	if a.Last.Gone {
		p.line("changed", fmt.Sprintf("the call approved last (%s) cannot be read any more", a.Last.At.UTC().Format(time.RFC3339)))
		return
	}
	lines = []string{fmt.Sprintf("since the call approved last (%s, %s):", a.Last.At.UTC().Format(time.RFC3339), a.Last.Task)}
	for _, d := range a.Last.Differs {
		s := fmt.Sprintf("%s: %s → %s", d.Name(), orNone(d.Was), orNone(d.Now))
		if c := d.Cut; c != nil {
			s += fmt.Sprintf(" (bytes %s to %s of %s → to %s of %s; around them they are the same)", thousands(c.At), thousands(c.WasSize-c.Tail), thousands(c.WasSize),
				thousands(c.NowSize-c.Tail), thousands(c.NowSize))
		}
		lines = append(lines, s)
	}
	if a.Last.MoreThan > 0 {
		lines = append(lines, fmt.Sprintf("and %s more differences that are not shown", thousands(a.Last.MoreThan)))
	}
	if len(lines) == 1 {
		lines[0] += " nothing"
	}
	p.lines("changed", lines)
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

func (a Approval) explainRisk(p *sheet) {
	r := a.Risk
	s := fmt.Sprintf("%.2f of 5, declared %d: fails %.0f %% (%.0f to %.0f %%, %d outcomes)", r.Effective, r.Declared, 100*r.P, 100*r.Lo, 100*r.Hi, r.N)
	if r.Rule != "" {
		s += "; raised by the rule " + r.Rule
	}
	lines := []string{s}
	var parts []string
	for _, q := range a.Parts {
		parts = append(parts, fmt.Sprintf("%s %+.2f", q.Name, q.Adds))
	}
	if len(parts) > 0 {
		lines = append(lines, "log-odds of failing: "+strings.Join(parts, ", "))
	}
	p.lines("risk", lines)
}

// explainCost tells what the input says from what is forecast.
func (a Approval) explainCost() string {
	exact := a.Priced.Amounts()
	if exact == "" {
		return a.Forecast.String() + " (forecast)"
	}
	s, rest := "will cost "+exact+", by its input", a.Forecast
	for x := range action.AxisCount {
		if _, ok := a.Priced.On(x).Get(); ok {
			rest = rest.With(x, 0)
		}
	}
	if !rest.IsZero() {
		s += "; " + rest.String() + " (forecast)"
	}
	return s
}

func (a Approval) explainPolicy() string {
	switch {
	case a.Policy == "":
		return a.Permit
	case a.Permit == "":
		return "version " + a.Policy
	}
	return a.Permit + " (version " + a.Policy + ")"
}

func (a Approval) explainEffect() string {
	switch {
	case a.UndoneBy != "":
		return fmt.Sprintf("%s, by %s", a.Effect, a.UndoneBy)
	case a.Effect == action.Compensatable:
		return "compensatable, but no action is declared to undo it"
	case a.Effect == action.Irreversible:
		return "irreversible: nothing undoes it"
	case a.Effect == action.None:
		return "none: it only reads"
	}
	return a.Effect.String() + ": repeating it changes nothing more"
}

func (a Approval) explainVotes() string {
	names := make([]string, len(a.Votes))
	for i, v := range a.Votes {
		names[i] = v.Identity
	}
	s := fmt.Sprintf("%d so far; needed: %s", len(names), a.Quorum)
	if len(names) > 0 {
		s += "; given by " + strings.Join(names, ", ")
	}
	return s
}

// sheet lays out labelled lines. Whatever it is given, a line of it is a line.
type sheet struct{ strings.Builder }

func (p *sheet) head(s string) { p.WriteString(action.Visible(s) + "\n") }

func (p *sheet) line(label, s string) { fmt.Fprintf(p, "  %-9s %s\n", label, action.Visible(s)) }

func (p *sheet) lines(label string, all []string) {
	for _, s := range all {
		p.line(label, s)
		label = ""
	}
}

package delta

import (
	"context"
	"encoding/json"
	"fmt"
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
	Unshown   int              // how many more values the input has
	Last      *LastApproved    // the call of this action that was approved last, by whatever task of the agent; nil for none
}

// LastApproved is the call of an action that was approved last, and how another differs from it.
type LastApproved struct {
	Task     string // full id
	At       time.Time
	Differs  []approval.Difference // empty: in nothing
	MoreThan int                   // how many more differences there are
	// Elsewhere says that it was about another subject or for another tenant: then nothing more of it is said.
	Elsewhere bool
}

// dress adds what is shown beside the request. What cannot be read is left out: the request itself is what counts.
func (e *Engine) dress(ctx context.Context, a *Approval) {
	e.mu.Lock()
	s := e.agents[a.Agent]
	e.mu.Unlock()
	if s == nil {
		return
	}
	does, secrets := s.agent.shownOf(a.Action, a.Version)
	a.Does = does
	a.Arguments, a.Unshown, _ = approval.Fields(e.asked(ctx, s, &a.Request), secrets)
	a.Last = e.lastApproved(ctx, s, a, secrets)
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

func (e *Engine) lastApproved(ctx context.Context, s *agentState, a *Approval, secrets []string) *LastApproved {
	v, _, err := e.look(ctx, a.Agent)
	if err != nil {
		return nil
	}
	task, digest, at, ok := engine.LastApproved(v, a.Action)
	if !ok {
		return nil
	}
	t := &Task{engine: e, agent: s.agent, state: s, local: task}
	if v, err = t.peek(ctx); err != nil {
		return nil
	}
	_, q, err := engine.ReadAsk(v, digest, v.Snap.Now)
	if err != nil {
		return nil
	}
	now, err := e.lookAtTask(ctx, a.Agent, a.Request.Task)
	if err != nil {
		return nil
	}
	if now.Task.Tenant != v.Task.Tenant || now.Task.Subject != v.Task.Subject {
		return &LastApproved{At: time.UnixMicro(at), Elsewhere: true}
	}
	last := &LastApproved{Task: t.ID(), At: time.UnixMicro(at)}
	last.Differs, last.MoreThan, err = approval.Differences(e.asked(ctx, s, &q), e.asked(ctx, s, &a.Request), secrets)
	if err != nil {
		return nil
	}
	return last
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
	p.line("cost", a.Forecast.String()+" (forecast)")
	p.line("effect", a.explainEffect())
	if a.Quorum.Several() {
		p.line("consents", a.explainVotes())
	}
	if a.Expires != 0 {
		p.line("expires", time.UnixMicro(a.Expires).UTC().Format(time.RFC3339))
	}
	return p.String()
}

func (a Approval) explainInput(p *sheet) {
	var lines []string
	for _, f := range a.Arguments {
		s := f.Path + " = " + f.Value
		if f.Size > 0 {
			s += fmt.Sprintf(" (cut, %d bytes in all)", f.Size)
		}
		lines = append(lines, s)
	}
	if a.Unshown > 0 {
		lines = append(lines, fmt.Sprintf("and %d more values that are not shown", a.Unshown))
	}
	p.lines("input", lines)
	if a.Last == nil {
		p.line("changed", "no call of this action was approved before")
		return
	}
	if a.Last.Elsewhere {
		p.line("changed", fmt.Sprintf("the call approved last (%s) was about somebody else, or for another tenant", a.Last.At.UTC().Format(time.RFC3339)))
		return
	}
	lines = []string{fmt.Sprintf("since the call approved last (%s, %s):", a.Last.At.UTC().Format(time.RFC3339), a.Last.Task)}
	for _, d := range a.Last.Differs {
		lines = append(lines, fmt.Sprintf("%s: %s → %s", d.Path, orNone(d.Was), orNone(d.Now)))
	}
	if a.Last.MoreThan > 0 {
		lines = append(lines, fmt.Sprintf("and %d more differences that are not shown", a.Last.MoreThan))
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

package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// DefaultLadder is what a step does about a try that failed where it declares no ladder of its own:
//
//	HUMAN, REASONING        retry → people, where somebody can be asked → parent → park
//	EXECUTION               retry, where a planner can propose another input → the step fails
//	SUB_SOP                 retry (a new child) → people, where somebody can be asked → parent → park
func (d *Definition) DefaultLadder(step string) []Rung {
	i, ok := d.at[step]
	if !ok {
		return nil
	}
	n := d.nodes[i]
	n.Ladder = nil
	return d.ladderOf(&n)
}

func (d *Definition) ladderOf(n *node) []Rung {
	ladder := slices.Clone(n.Ladder)
	switch {
	case ladder != nil:
	case n.Type != Execution:
		ladder = append(ladder, Rung{Kind: RungRetry})
		if n.Type != Human && len(d.who(n)) > 0 {
			ladder = append(ladder, Rung{Kind: RungPeople})
		}
		ladder = append(ladder, Rung{Kind: RungParent}, Rung{Kind: RungPark})
	case n.Planner != "":
		ladder = []Rung{{Kind: RungRetry}}
	}
	for i := range ladder {
		r := &ladder[i]
		switch {
		case r.Attempts > 0:
		case r.Kind == RungRetry && n.Type == SubSOP && n.Planner == "":
			r.Attempts = cmp.Or(n.Limits.Attempts, 3)
		case r.Kind == RungRetry:
			r.Attempts = cmp.Or(n.Limits.Iterations, 3)
		default:
			r.Attempts = 1
		}
	}
	return ladder
}

// who is asked about a step.
func (d *Definition) who(n *node) []string {
	if n.Hitl != nil && len(n.Hitl.Who) > 0 {
		return n.Hitl.Who
	}
	return d.spec.Owners
}

// helps is who of those a wait of the step is for. An approval is for the approvers of the task, whom no definition knows.
func (d *Definition) helps(n *node, for_ WaitKind) []string {
	if for_ == WaitApproval {
		return nil
	}
	return d.who(n)
}

// ground puts a step before its first try. Where the ladder begins with retries, the first try is one of them.
func (m *machine) ground(i int) {
	st := &m.s.Steps[i]
	st.Rung, st.Tries, st.RungCost = -1, 0, action.Cost{}
	if l := m.d.nodes[i].ladder; len(l) > 0 && l[0].Kind == RungRetry {
		st.Rung, st.Tries = 0, 1
	}
}

// failed is the end of a try: the ladder says what is next.
func (m *machine) failed(i int, f *action.Failure) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	st.Failure, st.Critique = f, f.Error()
	st.Proposal, st.Result, st.Call = nil, nil, ""
	if st.Closing != nil {
		m.fail(i, st.Closing)
		return
	}
	for st.Effected || st.Rung < len(n.ladder) {
		if st.Effected {
			m.fail(i, f) // an effect that may not be repeated stands: no rung leads anywhere but to its undoing
			return
		}
		if st.Rung >= 0 && m.climbed(i, n.ladder[st.Rung], f) {
			return
		}
		st.Rung++
		st.Tries, st.RungCost = 0, action.Cost{}
		if st.Rung < len(n.ladder) && m.leads(i, n.ladder[st.Rung], f) {
			r := n.ladder[st.Rung]
			m.note(i, Entry{Kind: Climb, Text: string(r.Kind), Failure: f})
		}
	}
	m.fail(i, f)
}

// leads reports whether a rung can help at all.
func (m *machine) leads(i int, r Rung, f *action.Failure) bool {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	spent := m.overspent(i) != nil
	switch r.Kind {
	case RungRetry, RungPlanner:
		tripped := n.Type == SubSOP && m.tripped(n) != 0
		return !spent && !tripped && mayRepeat(n, st, f)
	case RungPeople:
		return !spent && len(m.d.who(n)) > 0
	case RungParent:
		return !spent && m.s.Parent != ""
	}
	return true
}

// climbed makes the next try of a rung. It reports false where the rung has none left.
func (m *machine) climbed(i int, r Rung, f *action.Failure) bool {
	st := &m.s.Steps[i]
	if st.Tries >= r.Attempts || exceeded(st.RungCost, r.Cost) || !m.leads(i, r, f) {
		return false
	}
	st.Tries++
	switch r.Kind {
	case RungRetry, RungPlanner:
		m.pause(i, StagePlan, f)
	case RungPeople:
		st.Reprompts = 0
		m.ask(i)
	case RungParent:
		m.escalate(i)
	case RungPark:
		m.park(i, Wait{For: WaitOperator, Code: f.Code, Reason: f.Error()})
	}
	return true
}

// mayRepeat reports whether a try may be followed by another one without a person: it did not run, or its effect may be
// repeated. A child that failed has undone itself.
func mayRepeat(n *node, st *StepState, f *action.Failure) bool {
	return n.Type != Execution || f.Executed == action.No || st.Effect.Repeatable()
}

// pause waits before the next try where the failure will not have gone away by itself at once, or the step wants it.
func (m *machine) pause(i int, then Stage, f *action.Failure) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	if !f.Retryable && n.Backoff == (Backoff{}) {
		m.next(i, then)
		return
	}
	st.Stage, st.Then = StageBackoff, then
	pause := n.Backoff.after(max(st.Tries, st.Calls), m.s.Instance, st.Name, st.Issued)
	if d, err := time.ParseDuration(f.Details[action.DetailAfter]); err == nil { // whoever refused says from when on he may not
		pause = max(pause, micros(min(d, maxAfter)))
	}
	m.issue(i, Command{Kind: Timer, Subject: SubjectBackoff, At: m.s.At + pause})
}

// maxAfter is the longest pause that a refusal can ask for.
const maxAfter = 24 * time.Hour

// next enters the stage that a pause was before.
func (m *machine) next(i int, then Stage) {
	switch then {
	case StageExecute:
		m.call(i)
	case stagePoll:
		m.poll(i)
	case stageAgain:
		m.s.Steps[i].Stage = StagePending
	default:
		m.admit(i)
	}
}

// after returns the pause after so many failures, in µs. What waits seeds the jitter.
func (b Backoff) after(times int, seed ...any) int64 {
	base, most := cmp.Or(b.Base, time.Second), cmp.Or(b.Max, time.Minute)
	pause := min(base, most)
	for ; times > 1 && pause < most; times-- {
		pause = min(pause*2, most)
	}
	percent := int64(max(cmp.Or(b.Jitter, 50), 0))
	us := int64(pause / time.Microsecond)
	return us - us/100*percent/1000*int64(hashOf(fmt.Sprint(seed...))%1001)
}

// escalate asks the parent.
func (m *machine) escalate(i int) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	st.Stage = StageParent
	m.issue(i, Command{Kind: Escalate, Prompt: m.prompt(n), Critique: st.Critique})
}

// advised is the parent's answer.
func (m *machine) advised(i int, e Event) {
	st := &m.s.Steps[i]
	if !e.OK {
		m.failed(i, st.Failure)
		return
	}
	m.consume(i, Given{Step: st.Name, By: e.By, Data: e.Output})
}

// park makes a step wait for what no command brings.
func (m *machine) park(i int, w Wait) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	st.Stage = StageParked
	st.Issued++
	w.ID, w.Step, w.Since = waitID(m.s.Instance, st), st.Name, m.s.At
	if w.Who == nil {
		w.Who = m.d.helps(n, w.For)
	}
	st.Wait = &w
	m.note(i, Entry{Kind: HitlPark, Text: string(w.For), Code: w.Code, Failure: st.Failure})
}

func waitID(instance string, st *StepState) string {
	return fmt.Sprintf("%s/%s/wait.%d", instance, st.Name, st.Issued)
}

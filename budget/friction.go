package budget

import (
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Advice says what friction calls for.
type Advice string

// The advice.
const (
	Quiet    Advice = ""         // nothing to say
	Guide    Advice = "guide"    // tell the planner
	Escalate Advice = "escalate" // tell a person
)

// The bounds above which friction guides and escalates, and the executed attempt from which on it is read: before that,
// one failure would look like a trend.
const (
	GuideAbove    = 1.5
	EscalateAbove = 2.5
	ReadFrom      = 5
)

// Progress is what a task has got for what it spent.
type Progress struct {
	Share    float64 // of the limited budget that is spent: [Account.Share]
	Attempts int     // executed attempts
	Facts    int     // distinct facts satisfied
	Position int     // of the workflow: steps done
	Steps    int     // of the workflow, 0 for none
}

// Friction returns the share of the budget spent over the share of progress made, and what it calls for. Progress is the
// workflow's position where there is one, else distinct facts per executed attempt; never less than one of them, and
// never more than all.
//
//	friction = Share / clamp(Facts/Attempts, 1/Attempts, 1)    or    Share / clamp(Position/Steps, 1/Steps, 1)
//
// It is 0 before the fifth executed attempt. Around 1 a task gets one result for its price; 5 attempts that all spend and
// achieve one thing between them have a friction of 5 times the share spent.
func Friction(p Progress) (float64, Advice) {
	if p.Attempts < ReadFrom || !(p.Share > 0) {
		return 0, Quiet
	}
	done, of := p.Facts, p.Attempts
	if p.Steps > 0 {
		done, of = p.Position, p.Steps
	}
	f := p.Share * float64(of) / float64(min(max(done, 1), of))
	switch {
	case f > EscalateAbove:
		return f, Escalate
	case f > GuideAbove:
		return f, Guide
	}
	return f, Quiet
}

// LowBelow is the share of a limit below which guidance says how much is left.
const LowBelow = 0.2

// Guidance returns what a planner should know before a refusal tells it: which axes run low, that much was spent for
// little, that a call repeats itself (repeats is the count that [Loop.Push] gave). The lines come in this order, name no
// action, and are the same for the same values.
func Guidance(acc Account, p Progress, repeats int) []string {
	var lines []string
	for a := range action.AxisCount {
		left, limited := acc.Left(a)
		limit, _ := acc.Limit.On(a).Get()
		switch {
		case !limited || limit == 0:
		case left <= 0:
			lines = append(lines, fmt.Sprintf("Budget: no %s left.", a))
		case float64(left) < LowBelow*float64(limit):
			lines = append(lines, fmt.Sprintf("Budget: %s left of %s.", a.Amount(left, acc.Limit.Currency), a.Amount(limit, acc.Limit.Currency)))
		}
	}
	switch _, advice := Friction(p); advice {
	case Guide:
		lines = append(lines, "More effort than progress: choose a more direct way, or finish with what there is.")
	case Escalate:
		lines = append(lines, "Much effort for little progress: stop and ask for help, or finish with what there is.")
	}
	if repeats >= LoopAt {
		lines = append(lines, fmt.Sprintf("The same call was made %d times and nothing new came of it: do something else.", repeats))
	}
	return lines
}

// LoopAt is how often the same call without a new fact makes a loop.
const LoopAt = 3

// loopMemory bounds how many different calls a Loop remembers; a planner that goes round in a larger circle is for
// friction to find.
const loopMemory = 32

// Loop remembers the calls made since the last new fact, so that a circle of several calls is found as well as one call
// over and over. It is a value: Push returns the next one and leaves the old one as it was.
type Loop struct {
	Facts int    `json:"facts,omitempty"` // as last given
	Seen  []Seen `json:"seen,omitempty"`  // most recent last
}

// Seen is a call and how often it was made.
type Seen struct {
	Digest string `json:"digest"`
	Count  int    `json:"count"`
}

// Note is Push that changes the loop itself.
func (l *Loop) Note(digest string, facts int) int {
	if facts != l.Facts {
		clear(l.Seen)
		l.Facts, l.Seen = facts, l.Seen[:0]
	}
	i := slices.IndexFunc(l.Seen, func(s Seen) bool { return s.Digest == digest })
	last := Seen{digest, 1}
	switch {
	case i >= 0:
		last.Count += l.Seen[i].Count
	case len(l.Seen) < loopMemory:
		l.Seen = append(l.Seen, Seen{})
		i = len(l.Seen) - 1
	default:
		i = 0
	}
	copy(l.Seen[i:], l.Seen[i+1:])
	l.Seen[len(l.Seen)-1] = last
	return last.Count
}

// Push records a call by its digest, made when that many facts held, and returns how often it was made without the facts
// having changed: LoopAt or more is a loop.
func (l Loop) Push(digest string, facts int) (Loop, int) {
	next := Loop{Facts: facts}
	if facts == l.Facts {
		next.Seen = slices.Clone(l.Seen)
	}
	count := 1
	if i := slices.IndexFunc(next.Seen, func(s Seen) bool { return s.Digest == digest }); i >= 0 {
		count += next.Seen[i].Count
		next.Seen = slices.Delete(next.Seen, i, i+1)
	}
	next.Seen = append(next.Seen, Seen{digest, count})
	if n := len(next.Seen) - loopMemory; n > 0 {
		next.Seen = slices.Delete(next.Seen, 0, n)
	}
	return next, count
}

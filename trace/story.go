package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// Record is one event of a ledger.
type Record struct {
	Seq   int64
	At    time.Time // by the store's clock
	Event ledger.Event
}

// Story is what an id leads to.
type Story struct {
	ID    string   `json:"id"`
	As    []string `json:"as"` // what the id names: intent, call, approval, …; sorted
	Tasks []Task   `json:"tasks"`
}

// Task is the part of a story that one task saw.
type Task struct {
	ID    string    `json:"id"` // agent~task
	Goal  string    `json:"goal,omitempty"`
	Began time.Time `json:"began,omitzero"`
	Calls []Call    `json:"calls,omitempty"` // in the order in which they were proposed
	Steps []Step    `json:"steps,omitempty"` // what was about the task as a whole
}

// Call is one intent.
type Call struct {
	Intent     string            `json:"intent"`
	Call       string            `json:"call,omitempty"`
	Within     string            `json:"within,omitempty"` // the intent whose function made the call
	Action     string            `json:"action"`
	Version    string            `json:"version,omitempty"`
	Tool       string            `json:"tool,omitempty"`
	Provenance action.Provenance `json:"provenance,omitzero"`
	Input      string            `json:"input,omitempty"`
	Code       action.Code       `json:"code,omitempty"` // how it ended last, "" where it has not
	Result     string            `json:"result,omitempty"`
	Waits      bool              `json:"waits,omitempty"` // for a person
	Steps      []Step            `json:"steps"`
}

// Step is one thing that happened.
type Step struct {
	Seq  int64       `json:"seq"`
	At   time.Time   `json:"at"`
	Type ledger.Type `json:"type"`
	Text string      `json:"text"`
}

// ErrNothing is returned where no record names the id.
var ErrNothing = errors.New("no record names it")

// Tell gathers what the id leads to from records of any number of ledgers, each in its own order.
func Tell(id string, records []Record) (Story, error) {
	s := Story{ID: id}
	found := find(id, records)
	if len(found.as) == 0 {
		return s, fmt.Errorf("trace %q: %w", id, ErrNothing)
	}
	for as := range found.as {
		s.As = append(s.As, as)
	}
	slices.Sort(s.As)
	found.relatives(records)
	b := builder{story: &s, at: map[string]int{}, calls: map[string][2]int{}}
	for i := range records {
		b.add(&records[i], found)
	}
	b.around(records)
	s.Tasks = slices.DeleteFunc(s.Tasks, func(t Task) bool { return len(t.Calls)+len(t.Steps) == 0 })
	return s, nil
}

// finding is what an id was found to be about. Keys name a task, and an intent in it.
type finding struct {
	as      map[string]bool
	intents map[string]bool
	tasks   map[string]bool // the whole of it
}

func find(id string, records []Record) finding {
	f := finding{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for i := range records {
		e := &records[i].Event
		p := &e.Provenance
		for _, c := range []struct {
			as   string
			have string
		}{
			{"intent", e.Intent}, {"call", e.Call}, {"approval", e.Approval}, {"decision", p.Decision}, {"plan step", p.PlanStep},
			{"digest", e.Digest}, {"escalation", e.Escalation},
		} {
			if c.have == "" || c.have != id {
				continue
			}
			f.as[c.as] = true
			f.intents[key(e)] = true
			if e.Intent == "" {
				f.tasks[taskOf(e)] = true
			}
		}
		if e.Task != "" && (id == taskOf(e) || id == e.Task) {
			f.as["task"], f.tasks[taskOf(e)] = true, true
		}
	}
	return f
}

// relatives adds the calls within a call that was found, and those around it.
func (f *finding) relatives(records []Record) {
	for range records { // each round finds at least one more, or ends it
		n := len(f.intents)
		for i := range records {
			e := &records[i].Event
			outer := taskOf(e) + "\n" + e.Within
			switch {
			case e.Within == "":
			case f.intents[outer]:
				f.intents[key(e)] = true
			case f.intents[key(e)]:
				f.intents[outer] = true
			}
		}
		if len(f.intents) == n {
			return
		}
	}
}

func taskOf(e *ledger.Event) string { return e.Agent + "~" + e.Task }
func key(e *ledger.Event) string    { return taskOf(e) + "\n" + e.Intent }

type builder struct {
	story *Story
	at    map[string]int    // task → index
	calls map[string][2]int // intent → task and call
}

func (b *builder) add(r *Record, f finding) {
	e := &r.Event
	if e.Task == "" {
		return
	}
	t := b.task(e)
	if e.Type == ledger.TaskStarted {
		t.Goal, t.Began = e.Text, r.At
	}
	step := Step{Seq: r.Seq, At: r.At, Type: e.Type, Text: sentence(e)}
	switch {
	case e.Intent != "" && (f.intents[key(e)] || f.tasks[taskOf(e)]):
		c := b.call(t, e)
		c.Steps = append(c.Steps, step)
		c.learn(e)
	case e.Intent == "" && f.tasks[taskOf(e)]:
		t.Steps = append(t.Steps, step)
	}
}

// around adds to tasks that are told as a whole what was decided about their agent meanwhile: by which rules from then on, and
// halts.
func (b *builder) around(records []Record) {
	for i := range b.story.Tasks {
		t := &b.story.Tasks[i]
		if len(t.Steps) == 0 || t.Began.IsZero() {
			continue
		}
		agent, _, _ := strings.Cut(t.ID, "~")
		end := t.end()
		var before, more []Step
		for j := range records {
			r := &records[j]
			if r.Event.Task != "" || r.Event.Agent != agent || !concerns(r.Event.Type) || r.At.After(end) {
				continue
			}
			step := Step{Seq: r.Seq, At: r.At, Type: r.Event.Type, Text: "in the ledger of " + agent + ": " + sentence(&r.Event)}
			switch {
			case !r.At.Before(t.Began):
				more = append(more, step)
			case r.Event.Type == ledger.AgentConfigured:
				before = []Step{step} // by which it began
			}
		}
		t.Steps = append(append(before, t.Steps...), more...)
		slices.SortStableFunc(t.Steps, func(a, b Step) int { return a.At.Compare(b.At) })
	}
}

func concerns(t ledger.Type) bool {
	return t == ledger.AgentConfigured || t == ledger.AgentHalted || t == ledger.AgentResumed
}

// end is when the last of what the task saw happened.
func (t *Task) end() (at time.Time) {
	for _, s := range t.Steps {
		at = later(at, s.At)
	}
	for _, c := range t.Calls {
		for _, s := range c.Steps {
			at = later(at, s.At)
		}
	}
	return at
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (b *builder) task(e *ledger.Event) *Task {
	id := taskOf(e)
	i, ok := b.at[id]
	if !ok {
		i = len(b.story.Tasks)
		b.at[id] = i
		b.story.Tasks = append(b.story.Tasks, Task{ID: id})
	}
	return &b.story.Tasks[i]
}

func (b *builder) call(t *Task, e *ledger.Event) *Call {
	at, ok := b.calls[key(e)]
	if !ok {
		at = [2]int{b.at[t.ID], len(t.Calls)}
		b.calls[key(e)] = at
		t.Calls = append(t.Calls, Call{Intent: e.Intent})
	}
	return &t.Calls[at[1]]
}

// learn takes over what an event says of its call.
func (c *Call) learn(e *ledger.Event) {
	c.Call, c.Within = cmp.Or(c.Call, e.Call), cmp.Or(c.Within, e.Within)
	c.Action, c.Version, c.Tool = cmp.Or(c.Action, e.Action), cmp.Or(c.Version, e.Version), cmp.Or(c.Tool, e.Tool)
	if c.Provenance.IsZero() {
		c.Provenance = e.Provenance
	}
	c.Input = cmp.Or(c.Input, string(e.Input))
	switch e.Type {
	case ledger.Settled, ledger.Refused, ledger.Resolved, ledger.ApprovalRequested:
		c.Code, c.Result = e.Code, string(e.Output)
		if e.Failure != nil {
			c.Result = e.Failure.Message
		}
		c.Waits = e.Type == ledger.ApprovalRequested
	case ledger.ApprovalApproved:
		c.Code, c.Result, c.Waits = "", "", false // it runs when it is made again
	case ledger.ApprovalRejected, ledger.ApprovalRevoked, ledger.ApprovalExpired:
		c.Waits = false
	}
}

// sentence says what an event says, in a line.
func sentence(e *ledger.Event) string {
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if e.Code != "" {
		say("%s", e.Code)
	}
	if e.Failure != nil && e.Failure.Message != "" {
		say("%s", e.Failure.Message)
	}
	if e.Identity != "" {
		say("by %s", e.Identity)
	}
	if e.Reason != "" {
		say("%s", e.Reason)
	}
	if e.Type == ledger.Begun || e.Type == ledger.Attempt {
		say("attempt %d", max(e.Attempt, 1))
	}
	if e.Approval != "" {
		say("approval %s", e.Approval)
	}
	if e.Risk != nil {
		say("risk %.2f (declared %d)", e.Risk.Effective, e.Risk.Declared)
	}
	if e.Policy != nil && e.Policy.Reason != "" {
		say("policy: %s", e.Policy.Reason)
	}
	if e.Text != "" && e.Type != ledger.TaskStarted {
		say("%s", e.Text)
	}
	return oneLine(strings.Join(parts, "; "))
}

// oneLine leaves nothing that could pass for another line, or move a terminal's cursor: the words are a planner's or a
// tool's.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 {
			return ' '
		}
		return r
	}, s)
}

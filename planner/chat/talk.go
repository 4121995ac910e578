package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// talk is one conversation: everything said since the first step of a run.
type talk struct {
	cfg    Config
	id     string // random, begins the ids of its calls
	step   int    // of the last request
	system []string
	names  *names
	tools  []Tool
	epoch  uint64

	opening Message // never trimmed
	turns   []turn
	dropped int     // turns that were trimmed
	said    *said   // the assistant's last message, not answered yet
	limit   int     // tokens that a prompt may have
	rate    float64 // tokens a byte, as measured
	quiet   int     // replies in a row without a call
	reads   int     // replies in a row that only read
	broken  int     // replies in a row that broke off
	again   bool    // the last prompt got no whole reply and is to be sent again
	ids     map[string]bool
	skill   func(name, file string) (string, error) // reads one; nil where there are none
}

// said is a message of the assistant and the calls proposed for it.
type said struct {
	text  string
	calls []made
	note  string // what it is to be told about the message itself
}

// size of what is answered without the engine, in bytes.
func (s *said) size() (n int) {
	for _, m := range s.calls {
		n += len(m.reply) + overhead
	}
	return n
}

// made is one call of the assistant.
type made struct {
	echo  ToolCall // as it stands in the conversation: unique id, allowed name, an object as arguments
	raw   string   // the arguments as they came, where they are none
	id    string   // the call's id at the engine, "" where it was not proposed
	reply string   // what is answered to one that was not proposed
	own   bool     // reply is what the model wanted
}

// turn is a message of the assistant and the answer to it: a pair that is kept or trimmed as one.
type turn struct {
	said    said
	results []answer
	number  string // of the fences of this message
	text    string
}

// answer is what became of a call, before it is rendered.
type answer struct {
	id, head   string
	from, body string // body is not trusted, unless from is ""
	failed     bool
	most       int // bytes of the body that are shown
}

func (a answer) render(number string) ToolResult {
	text := a.head
	switch {
	case a.body == "":
	case a.from == "":
		text = strings.TrimSpace(text + "\n" + cut(a.body, a.most))
	default:
		text += "\n" + Fence(number, a.from, a.body, a.most)
	}
	return ToolResult{ID: a.id, Text: text, Failed: a.failed}
}

// hear takes a request: what became of the last calls, and what holds now.
func (t *talk) hear(ctx context.Context, m Model, r delta.Request, left int) error {
	now := t.state(r, left)
	t.step, t.epoch = r.Step, r.Offer.Epoch
	if t.said == nil {
		return t.open(ctx, m, r, now)
	}
	last := map[string]delta.Result{}
	for _, res := range r.Last {
		last[res.Call.ID] = res
	}
	return t.answer(last, now)
}

// answer completes the exchange that the assistant's last message began.
func (t *talk) answer(last map[string]delta.Result, now string) error {
	number, err := t.cfg.number()
	if err != nil {
		return err
	}
	u := turn{said: *t.said, number: number, text: now}
	if u.said.note != "" {
		u.text = u.said.note + "\n\n" + now
	}
	for _, m := range u.said.calls {
		a := answer{id: m.echo.ID, body: m.reply, failed: !m.own, most: t.cfg.ResultBytes}
		if m.id != "" {
			res, ok := last[m.id]
			if !ok {
				return errors.New("the results are not those of the calls that were proposed; a planner serves one run at a time")
			}
			a = t.answerTo(m, res)
		}
		u.results = append(u.results, a)
	}
	t.turns, t.said = append(t.turns, u), nil
	return nil
}

// answerTo tells what became of a call. The code and what it means are the engine's own words, the rest may be anybody's.
func (t *talk) answerTo(m made, res delta.Result) answer {
	o, a := res.Outcome, answer{id: m.echo.ID, from: m.echo.Name, failed: !res.Outcome.OK(), most: t.cfg.ResultBytes}
	info := o.Code.Info()
	a.head = fmt.Sprintf("%s: %s.", o.Code, info.Tells)
	if o.OK() {
		a.body = string(o.Output)
		return a
	}
	if hint := advice(info); hint != "" {
		a.head += " " + hint
	}
	told := map[string]any{}
	if f := o.Failure; f != nil && info.Executed == action.No && o.Code != action.HookFailed {
		a.head += words(f)
		if f.Details[action.DetailWhose] != "" {
			told[action.DetailReason] = f.Details[action.DetailReason]
		}
	} else if f != nil {
		told["message"] = f.Message
		for k, v := range f.Details {
			told[k] = v
		}
	}
	if m.raw != "" {
		told["you_sent"] = cut(m.raw, 500)
	}
	if len(told) > 0 {
		a.body = encode(told)
	}
	return a
}

// words is why something was refused: in the engine's words, and in those of the person or the policy that decided. They
// are to be followed, so they stand outside the fences; quoted, since they may quote in turn what a model sent.
func words(f *action.Failure) string {
	s := ""
	if f.Message != "" {
		s += "\nThe engine says: " + quoted(f.Message)
	}
	for _, k := range slices.Sorted(maps.Keys(f.Details)) {
		if k == action.DetailWhose || k == action.DetailReason && f.Details[action.DetailWhose] != "" {
			continue // anybody's words stand in the fence
		}
		s += "\n" + clean(k, maxWire) + ": " + quoted(f.Details[k])
	}
	return s
}

// advice says what a model can do about a failure.
func advice(i action.Info) string {
	switch {
	case i.Code == action.ApprovalRequired:
		return "A person was asked. Do not wait for the answer by repeating the call: go on with other work, or finish and say what waits."
	case i.Code == action.InputMalformed:
		return "Send one JSON object that satisfies the tool's schema."
	case i.Executed == action.Maybe:
		return "Do not try it again."
	case i.Retryable:
		return "The same call may succeed later."
	case i.Violation:
		return "Repeating it brings the same, until what is named here has changed."
	}
	return ""
}

// state is what holds now, in words. It is the newest message's, so that nothing before it changes.
func (t *talk) state(r delta.Request, left int) string {
	now := t.cfg.Now().UTC()
	lines := []string{fmt.Sprintf("Now: %s, %s. Step %d.", now.Format("2006-01-02T15:04:05Z"), now.Weekday(), r.Step)}
	if r.Phase != "" {
		lines[0] += " Phase: " + r.Phase + "."
	}
	var rest []string
	for a := range action.AxisCount {
		if n, limited := r.Budget.Left.On(a).Get(); limited {
			rest = append(rest, spell(a, n, r.Budget.Left.Currency))
		}
	}
	if len(rest) > 0 {
		lines = append(lines, "Budget left: "+strings.Join(rest, ", ")+".")
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("%d more actions exist than can be shown as tools.", left))
	}
	for _, g := range r.Offer.Guidance {
		lines = append(lines, "Guidance: "+g)
	}
	if len(r.Offer.Actions) == 0 {
		lines = append(lines, "No action is possible now.")
	}
	return strings.Join(lines, "\n")
}

func spell(a action.Axis, n int64, currency string) string {
	switch a {
	case action.Money:
		return fmt.Sprintf("%d.%02d %s", n/1_000_000, n/10_000%100, currency)
	case action.Duration:
		return fmt.Sprintf("%d s", n/1_000_000_000)
	}
	return fmt.Sprintf("%d %s", n, a)
}

// take makes a proposal of a reply. Done is set only where the model finished, refused, or has nothing to say.
func (t *talk) take(r Reply) delta.Proposal {
	text := strings.TrimSpace(r.Text)
	t.said = &said{text: text}
	if r.Stop == Refused || r.Refusal != "" {
		return delta.Proposal{Done: true, Why: "the model refused" + because(r.Refusal, text)}
	}
	if r.Stop == Length {
		t.said.note = "Your last reply was cut at its greatest length. Say less before a call."
	}
	if len(r.Calls) == 0 {
		return t.withoutCall(text)
	}
	if p, ok := t.finish(r.Calls, text); ok {
		return p
	}
	t.quiet = 0
	return t.propose(r.Calls, text)
}

// because adds the first text that says something.
func because(texts ...string) string {
	for _, s := range texts {
		if s = strings.TrimSpace(s); s != "" {
			return ": " + s
		}
	}
	return ""
}

// withoutCall bounds how often a model may speak and do nothing.
func (t *talk) withoutCall(text string) delta.Proposal {
	t.quiet++
	what := "said something and called nothing"
	if text == "" {
		what, t.said.text = "was empty", "(nothing)"
	}
	if t.quiet > t.cfg.Nudges {
		return delta.Proposal{Done: true, Why: fmt.Sprintf("the model's reply %s, %d times in a row", what, t.quiet) + because(text)}
	}
	t.said.note = strings.TrimSpace(t.said.note + "\nYour last reply " + what + ". Call a tool; when nothing is left to do, call " + finishTool + ".")
	return delta.Proposal{Why: "the model's reply " + what + because(text)}
}

// finish ends the run where that is all that was called.
func (t *talk) finish(calls []ToolCall, text string) (delta.Proposal, bool) {
	if len(calls) != 1 || calls[0].Name != finishTool {
		return delta.Proposal{}, false
	}
	var in struct{ Verdict, Why string }
	// What cannot be read is an end all the same: the model's own word is all that there is to it.
	if json.Unmarshal([]byte(calls[0].Arguments), &in) != nil {
		in.Verdict = ""
	}
	p := delta.Proposal{Done: true}
	switch in.Verdict {
	case "reached":
		p.Verdict, p.Why = action.Reached, "the model says that the goal is reached"
	case "not_reached":
		p.Verdict, p.Why = action.NotReached, "the model says that the goal is not reached"
	case "waiting":
		p.Why = "the model waits for a person"
	default:
		p.Why = "the model says that it is done"
	}
	p.Why += because(in.Why, text)
	return p, true
}

// propose makes the calls of a reply the engine's. One that a model sent twice is one; two calls under one id get two.
// What the planner answers itself is not among them.
func (t *talk) propose(calls []ToolCall, text string) delta.Proposal {
	var p delta.Proposal
	seen := map[ToolCall]bool{}
	for _, c := range calls {
		if c.ID != "" && seen[c] {
			continue
		}
		seen[c] = true
		m := made{echo: ToolCall{ID: t.freshID(c.ID), Name: t.names.echo(c.Name), Arguments: c.Arguments}}
		switch {
		case c.Name == finishTool:
			m.reply = "Not taken: other calls were made with it. Look at their results, then finish."
		case c.Name == skillTool && t.skill != nil:
			m.reply, m.own = t.readSkill(c.Arguments)
		default:
			m.id = fmt.Sprintf("%s-%d-%d", t.id, t.step, len(p.Calls)+1)
			p.Calls = append(p.Calls, delta.Call{
				ID: m.id, Action: cut(t.names.actionOf(c.Name), 4*action.MaxName), Input: json.RawMessage(c.Arguments), Epoch: t.epoch,
				Provenance: action.Provenance{Reason: text, PlanStep: fmt.Sprintf("%d", t.step)}.Cut(),
			})
		}
		if !object(c.Arguments) {
			m.raw, m.echo.Arguments = c.Arguments, "{}"
		}
		t.said.calls = append(t.said.calls, m)
	}
	if len(p.Calls) == 0 && !t.answered() { // finish, several times
		p = delta.Proposal{Done: true, Why: "the model says that it is done" + because(text)}
	}
	return p
}

// freshID returns the id of a call as the conversation has it: the model's, where that is usable and new.
func (t *talk) freshID(id string) string {
	if id == "" {
		id = "call"
	}
	id = clean(id, maxWire-8)
	out := id
	for i := 2; t.ids[out]; i++ {
		out = fmt.Sprintf("%s_%d", id, i)
	}
	t.ids[out] = true
	return out
}

// object reports whether arguments may stand in a conversation as they are.
func object(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasPrefix(s, "{") && json.Valid([]byte(s))
}

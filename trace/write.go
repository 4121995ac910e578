package trace

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Write writes the story for people: goal, reasoning, decision, plan step, intent, invocation and result, and below them
// what happened, each with its place in the ledger. The same story is the same text.
func (s Story) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s\n", oneLine(s.ID), strings.Join(s.As, ", "))
	for i := range s.Tasks {
		s.Tasks[i].write(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// String is what Write writes.
func (s Story) String() string {
	var b strings.Builder
	_ = s.Write(&b) // a Builder does not fail
	return b.String()
}

func (t *Task) write(b *strings.Builder) {
	fmt.Fprintf(b, "\ntask %s", oneLine(t.ID))
	if !t.Began.IsZero() {
		fmt.Fprintf(b, ", since %s", t.Began.UTC().Format(time.RFC3339))
	}
	b.WriteByte('\n')
	line(b, "  ", "goal", t.Goal)
	steps(b, "  ", t.Steps)
	for i := range t.Calls {
		t.Calls[i].write(b)
	}
}

func (c *Call) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n  %s of %s %s\n", c.kind(), oneLine(c.Action), oneLine(c.Version))
	const in = "    "
	p := c.Provenance
	line(b, in, "goal", p.Goal)
	line(b, in, "reasoning", p.Reason)
	line(b, in, "decision", p.Decision)
	line(b, in, "plan step", p.PlanStep)
	line(b, in, "within", c.Within)
	line(b, in, "intent", c.Intent)
	line(b, in, "call", c.Call)
	line(b, in, "tool", c.Tool)
	line(b, in, "input", c.Input)
	end := string(c.Code)
	if end == "" {
		end = "it has not ended"
	}
	if c.Result != "" {
		end += ": " + c.Result
	}
	line(b, in, "result", end)
	steps(b, in, c.Steps)
}

func (c *Call) kind() string {
	if c.Waits {
		return "call waiting for a person"
	}
	if c.Code.Info().Executed == action.No && c.Code != "" {
		return "refused call"
	}
	return "call"
}

// most is how much of a text is shown, in bytes.
const most = 400

func line(b *strings.Builder, in, name, text string) {
	if text != "" {
		fmt.Fprintf(b, "%s%-10s %s\n", in, name, action.CutTo(oneLine(text), most))
	}
}

func steps(b *strings.Builder, in string, all []Step) {
	for _, s := range all {
		fmt.Fprintf(b, "%s%s", in, strings.TrimRight(fmt.Sprintf("#%-4d %s %s: %s", s.Seq, s.At.UTC().Format("15:04:05.000"), s.Type, action.CutTo(s.Text, most)), ": "))
		b.WriteByte('\n')
	}
}

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// asker asks whoever sits at the terminal.
type asker struct {
	in  *bufio.Reader
	out io.Writer
}

// newAsker returns nil where nobody sits there, or is to be asked.
func newAsker(c *cobra.Command, f *runFlags) *asker {
	from := c.InOrStdin()
	in, ok := from.(*os.File)
	if r, wrapped := from.(*interruptible); wrapped {
		in, ok = r.in.(*os.File)
	}
	if !ok || f.quiet || f.input == "-" || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	out := c.ErrOrStderr()
	if !table.IsTerminal(out) { // it is asked for all that where it is answered
		tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
		if err != nil {
			return nil
		}
		out = tty
	}
	return &asker{bufio.NewReader(from), out}
}

// errNoAnswer says that an answer was not given.
var errNoAnswer = errors.New("no answer")

func (a *asker) line(prompt string) (string, error) {
	fmt.Fprintf(a.out, "%s: ", action.Visible(prompt))
	line, err := a.in.ReadString('\n')
	if err != nil && !(errors.Is(err, io.EOF) && line != "") {
		fmt.Fprintln(a.out)
		return "", fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	return strings.TrimSpace(line), nil
}

// field is a member of an answer that is asked for by itself.
type field struct {
	name, kind string
	required   bool
	enum       []json.RawMessage
}

// fields are those of a flat object, what is required first; nil where an answer is something else.
func fields(contract json.RawMessage) []field {
	var s struct {
		Type       string
		Required   []string
		Properties map[string]struct {
			Type string
			Enum []json.RawMessage
		}
	}
	if json.Unmarshal(contract, &s) != nil || s.Type != "object" || len(s.Properties) == 0 || len(s.Properties) > 16 {
		return nil
	}
	var out []field
	for name, p := range s.Properties {
		if !slices.Contains([]string{"string", "integer", "number", "boolean"}, p.Type) {
			return nil
		}
		out = append(out, field{name, p.Type, slices.Contains(s.Required, name), p.Enum})
	}
	for _, name := range s.Required {
		if _, there := s.Properties[name]; !there {
			return nil
		}
	}
	place := func(f field) int {
		if f.required {
			return slices.Index(s.Required, f.name)
		}
		return len(s.Required)
	}
	slices.SortFunc(out, func(a, b field) int { return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a.name, b.name)) })
	return out
}

// scalar is what was typed as a value of a kind. What is none is passed on as text, and refused by whoever knows the schema.
func scalar(kind, typed string) json.RawMessage {
	if kind != "string" && json.Valid([]byte(typed)) {
		return json.RawMessage(typed)
	}
	text, err := json.Marshal(typed)
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}

// question asks for an answer; nothing typed is none.
func (a *asker) question(w delta.NestedWait, q *workflow.Command) (json.RawMessage, error) {
	fmt.Fprintf(a.out, "\n%s of %s asks: %s\n", action.Visible(w.Step), action.Visible(w.ID), action.Visible(cmp.Or(q.Prompt, q.Description, w.Reason)))
	for _, l := range [][2]string{{"about", string(q.Input)}, {"the last answer did not do", q.Critique}} {
		if l[1] != "" && l[1] != "{}" {
			fmt.Fprintf(a.out, "  %s: %s\n", l[0], action.Visible(l[1]))
		}
	}
	all := fields(q.Contract)
	if all == nil {
		return a.document(q.Contract)
	}
	out := map[string]json.RawMessage{}
	for i, f := range all {
		typed, err := a.line("  " + f.prompt())
		switch {
		case err != nil:
			return nil, err
		case typed == "" && i == 0:
			return nil, errNoAnswer
		case typed == "" && f.required:
			out[f.name] = scalar(f.kind, "")
		case typed != "":
			out[f.name] = scalar(f.kind, typed)
		}
	}
	return json.Marshal(out)
}

func (f *field) prompt() string {
	about := f.kind
	if len(f.enum) > 0 {
		var one []string
		for _, e := range f.enum {
			one = append(one, string(e))
		}
		about = strings.Join(one, ", ")
	}
	if !f.required {
		about += "; may be left out"
	}
	return f.name + " (" + about + ")"
}

// document asks for an answer as JSON; text where the schema wants no more.
func (a *asker) document(contract json.RawMessage) (json.RawMessage, error) {
	var s struct{ Type string }
	_ = json.Unmarshal(contract, &s) // else it is a document
	if s.Type != "string" {
		fmt.Fprintf(a.out, "  schema: %s\n", action.Visible(string(contract)))
	}
	for {
		typed, err := a.line("  answer (" + cmp.Or(s.Type, "JSON") + ")")
		switch {
		case err != nil:
			return nil, err
		case typed == "":
			return nil, errNoAnswer
		case s.Type == "string" && !strings.HasPrefix(typed, `"`):
			return scalar("string", typed), nil
		case json.Valid([]byte(typed)):
			return json.RawMessage(typed), nil
		}
		fmt.Fprintln(a.out, "  that is no JSON document")
	}
}

// answer asks at the terminal what the instance, or one nested in it, waits for; false where nothing was asked.
func (w *follower) answer(ctx context.Context, tree *delta.InstanceTree) (asked bool, err error) {
	if w.ask == nil {
		return false, nil
	}
	for _, wait := range tree.Waits() {
		if w.passed[wait.Wait.ID] {
			continue
		}
		switch q := questionOf(tree, wait); {
		case wait.For == workflow.WaitIntake && q != nil:
			w.hush()
			err = w.signal(ctx, wait, q)
		case wait.For == workflow.WaitApproval && w.local:
			w.hush()
			err = w.decide(ctx, wait)
		default:
			continue
		}
		if ctx.Err() != nil {
			return true, context.Cause(ctx)
		}
		w.passed[wait.Wait.ID] = true
		if w.told[wait.Wait.ID] = err == nil; err != nil { // it is left to others, as is what is not answered
			if !errors.Is(err, errNoAnswer) && !errors.Is(err, delta.ErrNotWaiting) {
				fmt.Fprintf(w.ask.out, "  %v\n", err)
			}
		}
		return true, nil
	}
	return false, nil
}

// goesOn reports whether something that an instance waits for was ended here, and nobody has looked yet.
func (w *follower) goesOn(tree *delta.InstanceTree) bool {
	return slices.ContainsFunc(tree.Waits(), func(wait delta.NestedWait) bool { return w.told[wait.Wait.ID] })
}

// hush takes the bar away while something is asked.
func (w *follower) hush() {
	if w.bar != nil {
		w.bar.Done()
		w.bar, w.shown = nil, 0
	}
}

// questionOf finds what a wait asks, level by level.
func questionOf(tree *delta.InstanceTree, wait delta.NestedWait) *workflow.Command {
	if tree.ID == wait.ID {
		for i := range tree.State.Outstanding {
			if q := &tree.State.Outstanding[i]; q.Kind == workflow.Ask && q.ID == wait.Wait.ID {
				return q
			}
		}
	}
	for i := range tree.Nested {
		if q := questionOf(&tree.Nested[i], wait); q != nil {
			return q
		}
	}
	return nil
}

func (w *follower) signal(ctx context.Context, wait delta.NestedWait, q *workflow.Command) error {
	doc, err := w.ask.question(wait, q)
	if err != nil {
		return err
	}
	run, err := w.engine.OpenWorkflow(ctx, wait.ID)
	if err != nil {
		return err
	}
	return run.Signal(ctx, wait.Step, w.me, doc)
}

// decide asks whether a call that waits for an approval may be made.
func (w *follower) decide(ctx context.Context, wait delta.NestedWait) error {
	a, err := w.engine.Approval(ctx, wait.Approval)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.ask.out, "\n%s of %s wants to call %s: %s\n", action.Visible(wait.Step), action.Visible(wait.ID), action.Visible(a.Action), action.Visible(wait.Reason))
	for _, x := range a.Arguments {
		fmt.Fprintf(w.ask.out, "  %s: %s\n", action.Visible(x.Name()), action.Visible(x.Value))
	}
	if a.Unshown > 0 {
		fmt.Fprintf(w.ask.out, "  and %d more values: deltactl approvals show --all %s\n", a.Unshown, action.Visible(wait.Approval))
	}
	for {
		typed, err := w.ask.line("  approve it? (yes, no)")
		switch {
		case err != nil:
			return err
		case strings.EqualFold(typed, "yes"):
			return w.engine.Approve(ctx, wait.Approval, w.me, "at the terminal")
		case strings.EqualFold(typed, "no"):
			return w.engine.Reject(ctx, wait.Approval, w.me, "at the terminal")
		case typed == "":
			return errNoAnswer
		}
	}
}

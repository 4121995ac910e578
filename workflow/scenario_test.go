package workflow_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/workflow"
	"github.com/seed-ab2cfece/delta-agents/workflowfile"
)

var update = flag.Bool("update", false, "write what the scenarios come to into their files")

// Each file of testdata is a scenario: a workflow, then events, each with what it came to. A line of an event is
//
//	> KIND [of=ID] [+TIME] [word…] [key=value…] [JSON, or text after a colon]
//
// where ID is without the instance. Below it stand the lines of the trail, what is to be done, and how the steps stand.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			got := play(t, string(want))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			assert.Equal(t, string(want), got)
		})
	}
}

// play runs a scenario and returns it with what its events came to.
func play(t *testing.T, text string) string {
	head, events, found := strings.Cut(text, "\n---\n")
	require.True(t, found, "a scenario is a workflow, a line ---, and events")
	def, err := workflowfile.Parse([]byte(head))
	require.NoError(t, err)
	p := &player{t: t, def: def}
	p.out.WriteString(head + "\n---\n")
	for _, line := range strings.Split(events, "\n") {
		switch {
		case strings.HasPrefix(line, "#"), line == "" && p.out.Len() > 0 && false:
			p.out.WriteString(line + "\n")
		case strings.HasPrefix(line, "> "):
			p.event(line)
		}
	}
	return p.out.String()
}

const epoch = int64(1_790_000_000_000_000)

type player struct {
	t      *testing.T
	def    *workflow.Definition
	out    strings.Builder
	begin  workflow.Begin
	events []workflow.Event
	state  workflow.State
	writer workflow.Writer
	now    int64
}

func (p *player) event(line string) {
	p.out.WriteString(line + "\n")
	kind, e, word := p.parse(line)
	if kind == "start" {
		p.begin = workflow.Begin{Instance: "w", Parent: word["parent"], Input: e.Output, At: epoch}
		p.now = epoch
		turn, err := p.def.Start(p.begin)
		require.NoError(p.t, err)
		p.show(turn)
		return
	}
	before := encode(p.t, p.state)
	turn, err := p.def.Step(p.state, e)
	require.NoError(p.t, err)
	require.Equal(p.t, before, encode(p.t, p.state), "a turn changed the state it was given")
	if turn.Absorbed != "" {
		require.Equal(p.t, before, encode(p.t, turn.State))
	}
	p.events = append(p.events, e)
	p.show(turn)
	text, err := p.writer.Write(&p.state)
	require.NoError(p.t, err)
	require.Equal(p.t, encode(p.t, p.state), text, "a state is written otherwise than json.Marshal does")
	again, err := p.def.Step(p.state, e)
	require.NoError(p.t, err)
	require.NotEmpty(p.t, again.Absorbed, "%s twice", line)
	require.Equal(p.t, encode(p.t, p.state), encode(p.t, replay(p.t, p.def, p.begin, p.events)), "replay comes to another state")
}

// replay goes through JSON, as a driver that was killed does.
func replay(t require.TestingT, def *workflow.Definition, b workflow.Begin, events []workflow.Event) workflow.State {
	turn, err := def.Start(b)
	require.NoError(t, err)
	for _, e := range events {
		var s workflow.State
		var f workflow.Event
		require.NoError(t, json.Unmarshal([]byte(encode(t, turn.State)), &s))
		require.NoError(t, json.Unmarshal([]byte(encode(t, e)), &f))
		turn, err = def.Step(s, f)
		require.NoError(t, err)
	}
	return turn.State
}

func encode(t require.TestingT, v any) string {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func (p *player) parse(line string) (kind string, e workflow.Event, word map[string]string) {
	word = map[string]string{}
	rest := strings.TrimPrefix(line, "> ")
	if i := strings.IndexAny(rest, "{[\""); i >= 0 && !strings.Contains(rest[:i], ": ") {
		e.Output, rest = json.RawMessage(rest[i:]), rest[:i]
	} else if head, text, ok := strings.Cut(rest, ": "); ok {
		e.Text, rest = text, head
	}
	p.now += int64(time.Second / time.Microsecond)
	for i, w := range strings.Fields(rest) {
		key, value, pair := strings.Cut(w, "=")
		switch {
		case i == 0:
			kind = w
		case strings.HasPrefix(w, "+"):
			d, err := time.ParseDuration(w[1:])
			require.NoError(p.t, err, line)
			p.now += int64(d / time.Microsecond)
		case pair:
			word[key] = value
		default:
			word[w] = "yes"
		}
	}
	e.Kind, e.At, e.By, e.OK = workflow.EventKind(kind), p.now, word["by"], word["ok"] != ""
	if of := word["of"]; of != "" {
		e.Of = "w/" + of
	}
	e.After, e.Keep, e.Tree, e.Ask = word["after"] != "", word["keep"] != "", word["tree"] != "", word["ask"]
	if v := word["left"]; v != "" {
		e.Left = []workflow.Deed{{Step: "inner", Why: "nothing undoes it"}}
		require.NoError(p.t, e.Left[0].Effect.UnmarshalText([]byte(v)))
	}
	for _, x := range []string{"rejected", "expired"} {
		if word[x] != "" {
			e.Text = x
		}
	}
	if v := word["version"]; v != "" {
		e.Text = v
	}
	if v := word["effect"]; v != "" {
		require.NoError(p.t, e.Effect.UnmarshalText([]byte(v)))
	}
	var cost action.Cost
	if n := word["tokens"]; n != "" {
		_, err := fmt.Sscan(n, &cost.Tokens)
		require.NoError(p.t, err)
	}
	var failure *action.Failure
	if code := word["code"]; code != "" && code != "OK" {
		failure = action.Fail(action.Code(code), "%s", e.Text).With(action.DetailApproval, word["approval"])
	}
	switch e.Kind {
	case workflow.Called:
		o := action.Outcome{Intent: word["intent"], Code: action.Code(word["code"]), Output: e.Output, Cost: cost, Failure: failure}
		e.Outcome, e.Output, e.Text = &o, nil, ""
	default:
		e.Failure, e.Cost = failure, cost
	}
	return kind, e, word
}

func (p *player) show(turn workflow.Turn) {
	p.state = turn.State
	if turn.Absorbed != "" {
		fmt.Fprintf(&p.out, "  absorbed: %s\n\n", turn.Absorbed)
		return
	}
	for _, l := range turn.Trail {
		fmt.Fprintf(&p.out, "  - %s\n", entry(l))
	}
	for _, c := range turn.Commands {
		fmt.Fprintf(&p.out, "  ! %s\n", p.command(c))
	}
	fmt.Fprintf(&p.out, "  = %s\n\n", standing(turn.State))
}

func entry(l workflow.Entry) string {
	s := string(l.Kind)
	for _, part := range []string{l.Phase, l.Step, l.Child, string(l.Code), l.By, l.Text} {
		if part != "" {
			s += " " + part
		}
	}
	if l.Failure != nil && l.Code == "" {
		s += " (" + string(l.Failure.Code) + ")"
	}
	return s
}

func (p *player) command(c workflow.Command) string {
	s := strings.TrimPrefix(c.ID, "w/")
	add := func(key, value string) {
		if value != "" {
			s += " " + key + "=" + value
		}
	}
	add("subject", string(c.Subject))
	add("planner", c.Planner)
	add("verifier", c.Verifier)
	add("action", c.Action)
	add("workflow", c.Workflow)
	add("child", c.Child)
	if c.Keep {
		add("keep", "yes")
	}
	if c.Kind == workflow.Call && c.Call != c.ID {
		add("call", strings.TrimPrefix(c.Call, "w/"))
	}
	if c.Guard != nil {
		add("guard", c.Guard.Name+string(c.Guard.Schema))
	}
	if c.Kind == workflow.Timer {
		add("in", time.Duration((c.At-p.now)*1000).String())
	}
	add("undoes", strings.TrimPrefix(c.Undoes, "w/"))
	add("for", strings.TrimPrefix(c.Ask, "w/"))
	add("who", strings.Join(c.Who, ","))
	if c.OK {
		add("ok", "yes")
	}
	add("critique", c.Critique)
	add("input", string(c.Input))
	add("document", string(c.Document))
	for _, g := range c.Intakes {
		add("said:"+g.Step, string(g.Data))
	}
	return s
}

func standing(s workflow.State) string {
	out := string(s.Status)
	if s.Held {
		out += " held"
	}
	if s.Above {
		out += " from above"
	}
	if s.Parked() {
		out += " parked"
	}
	for _, st := range s.Steps {
		if st.Stage == workflow.StagePending {
			continue
		}
		out += " " + st.Name + ":" + string(st.Stage)
		if st.Wait != nil {
			out += "(" + string(st.Wait.For) + " " + strings.TrimPrefix(st.Wait.ID, "w/") + ")"
		}
	}
	if s.Unwind != nil && s.Unwind.Wait != nil {
		out += " undo(" + string(s.Unwind.Wait.For) + " " + strings.TrimPrefix(s.Unwind.Wait.ID, "w/") + ")"
	}
	for _, d := range s.Deeds {
		out += " +" + d.Step
	}
	for _, d := range s.Left {
		out += " left:" + d.Step
	}
	if len(s.Output) > 0 {
		out += " output=" + string(s.Output)
	}
	return out
}

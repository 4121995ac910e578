package workflowfile_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/workflow"
	"github.com/seed-ab2cfece/delta-agents/workflowfile"
)

// Every fault is named with its line, all of them at once.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":         {"", "it is empty"},
		"two documents":   {"workflow: a\n---\nworkflow: b\n", "there is more than one document in it"},
		"no YAML":         {"a: [", "line 1: did not find expected node content"},
		"no mapping":      {"[]", "line 1: a workflow is a mapping"},
		"unknown keys":    {"workflow: a\nversoin: 1\nsteps:\n  - {name: a, tpye: HUMAN}\n", "line 2: a workflow has no key \"versoin\"; did you mean version?\nline 4: a step has no key \"tpye\"; did you mean type?"},
		"a key twice":     {"workflow: a\nworkflow: b\n", "version of workflow a: name is empty\nline 1: workflow \"a\" has no steps\nline 2: the key \"workflow\" was given in line 1 already"},
		"aliases":         {"workflow: &x a\nversion: *x\n", "line 1: aliases are not supported\nline 2: aliases are not supported"},
		"wrong kinds":     {"workflow: [a]\nsteps: 5\nlimits: {time: soon, cost: {tokens: many}}\n", "line 1: want text\nline 2: steps is a list\nline 3: want a time such as 30s, 5m or 24h\nline 3: want a whole number"},
		"steps or phases": {"workflow: a\nsteps: []\nphases: []\n", "version of workflow a: name is empty\nline 1: workflow \"a\" has no steps\nline 2: phase \"a\" has no steps"},
		"a number JSON has not": {"workflow: a\nversion: \"1\"\nsteps:\n  - name: a\n    type: EXECUTION\n    action: x\n    input: {maximum: .inf}\n",
			"line 7: .inf is not a number as JSON writes it"},
		"a schema": {"workflow: a\nversion: \"1\"\nsteps:\n  - name: a\n    type: EXECUTION\n    action: x\n    output: {$ref: \"http://x.org/y\"}\n",
			"line 4: step \"a\": output: schema at #/$ref: reference \"http://x.org/y\" is not local; want \"#/…\", nothing is fetched"},
		"what the machine says": {"workflow: a\nversion: \"1\"\nphases:\n  - name: p\n    supervision: pray\n    steps:\n      - name: a\n        type: THINKING\n      - name: b\n        type: EXECUTION\n        action: x\n        needs: [c]\n",
			"line 4: phase \"p\": there is no supervision \"pray\"; want one of [\"retry\" \"restart\" \"resume\" \"escalate\" \"abort-subtree\" \"abort-tree\"]\nline 7: step \"a\": there is no type \"THINKING\"; want HUMAN, REASONING, EXECUTION or SUB_SOP\nline 9: step \"b\" needs step \"c\", which there is not; did you mean a?"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := workflowfile.Parse([]byte(c.text))
			require.Error(t, err)
			assert.Equal(t, c.want, err.Error())
		})
	}
}

// Faults of all kinds are named at once, whatever is found first; what only follows from others is not.
func TestFaultsOfAllKindsAtOnce(t *testing.T) {
	const text = `workflow: w
version: "1"
owner: [ana]
output:
  total: steps.gone.output
steps:
  - {name: ask, type: HUMAN, hitl: {intake: {type: object, required: [n], properties: {n: {type: integer}}, additionalProperties: false}}}
  - {name: think, tpye: REASONING, planner: p}
  - {name: pay, type: EXECUTION, action: x, needs: [ask, lost], atempts: 3,
     input: {type: object, required: [id, n], properties: {id: {type: string}, n: {type: string}}}, map: {n: steps.ask.output.n}}
  - {name: after, type: EXECUTION, action: x, needs: [think], map: {v: steps.think.output.v, m: steps.ask.output.m}}
  - {name: one, type: EXECUTION, action: x, needs: [two]}
  - {name: two, type: EXECUTION, action: x, needs: [one], output: {$ref: "#/none"}, map: {x: inputs.y}}
  - {name: late, type: EXECUTION, action: x, needs: [two], map: {x: steps.one.output.a, n: steps.think.output.z}}
`
	_, err := workflowfile.Parse([]byte(text))
	require.Error(t, err)
	assert.Equal(t, strings.Join([]string{
		`line 3: a workflow has no key "owner"; did you mean owners?`,
		`line 4: the output of the workflow maps "total" from "steps.gone.output": there is no step "gone"; did you mean one?`,
		`line 8: a step has no key "tpye"; did you mean type?`,
		`line 9: a step has no key "atempts"`,
		`line 9: step "pay" needs step "lost", which there is not`,
		`line 9: step "pay" maps "n" from "steps.ask.output.n": is integer, where string is wanted`,
		`line 9: step "pay" maps nothing to "id", which its input contract requires`,
		`line 11: step "after" maps "m" from "steps.ask.output.m", which need not have ended before: let it need "ask"`,
		`line 12: steps need each other: one → two → one`,
		`line 13: step "two" maps "x" from "inputs.y": sources are input, intake, instance, steps.NAME.output and steps.NAME.failure`,
		`line 13: step "two": output: schema at #/$ref: there is no schema at #/none`,
	}, "\n"), err.Error())
}

// Faults between files name both; what a file that cannot be read may hold is not missed.
func TestLoadAllNamesBothFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	parent := file("parent.yaml", "workflow: parent\nversion: \"1\"\nsteps:\n  - {name: a, type: SUB_SOP, workflow: child, map: {n: {const: 1}}}\n  - {name: b, type: SUB_SOP, workflow: none}\n  - {name: c, type: SUB_SOP, workflow: broken}\n")
	child := file("child.yaml", "workflow: child\nversion: \"1\"\ninput: {type: object, required: [id], properties: {id: {type: string}}, additionalProperties: false}\nsteps:\n  - {name: a, type: EXECUTION, action: x}\n")
	broken := file("broken.yaml", "workflow: broken\nversion: \"1\"\nsteps:\n  - {name: a, type: EXECUTION}\n")
	one := file("one.yaml", "workflow: one\nversion: \"1\"\nsteps:\n  - {name: a, type: SUB_SOP, workflow: two}\n")
	two := file("two.yaml", "workflow: two\nversion: \"1\"\nsteps:\n  - {name: a, type: SUB_SOP, workflow: one}\n")
	again := file("again.yaml", "workflow: child\nversion: \"2\"\nsteps:\n  - {name: a, type: EXECUTION, action: x}\n")

	_, err := workflowfile.LoadAll(parent, child, broken, one, two)
	require.Error(t, err)
	assert.Equal(t, strings.Join([]string{
		broken + `: line 4: step "a": action: name is empty`,
		parent + `: line 4: workflow "parent": step "a" maps "n", which its input contract does not have (` + child + `, line 3)`,
		parent + `: line 4: workflow "parent": step "a" maps nothing to "id", which its input contract requires (` + child + `, line 3)`,
		parent + `: line 5: workflow "parent": step "b" runs workflow "none", which there is not`,
		one + `: workflows run each other: one → two → one (` + two + `)`,
	}, "\n"), err.Error())

	_, err = workflowfile.LoadAll(child, again)
	require.EqualError(t, err, again+`: workflow "child" is there twice (`+child+`)`)
	all, err := workflowfile.LoadAll(child)
	require.NoError(t, err)
	assert.Len(t, all, 1)
	_, err = workflowfile.LoadAll(filepath.Join(dir, "none.yaml"), child)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	require.NoError(t, os.WriteFile(good, []byte(refund), 0o600))
	require.NoError(t, os.WriteFile(bad, []byte("workflow: a\nx: 1\ny: 2\n"), 0o600))
	d, err := workflowfile.Load(good)
	require.NoError(t, err)
	assert.Equal(t, "refund", d.Name())
	_, err = workflowfile.Load(bad)
	require.EqualError(t, err, strings.Join([]string{bad + `: version of workflow a: name is empty`, bad + `: line 1: workflow "a" has no steps`,
		bad + `: line 2: a workflow has no key "x"`, bad + `: line 3: a workflow has no key "y"`}, "\n"))
	_, err = workflowfile.Load(filepath.Join(dir, "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// What is written reads as the same definition.
func TestRoundTrip(t *testing.T) {
	files, err := filepath.Glob("../workflow/testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		head, _, _ := strings.Cut(string(text), "\n---\n")
		same(t, head)
	}
	same(t, refund)
	text, err := os.ReadFile("../examples/workflow/refund.yaml")
	require.NoError(t, err)
	same(t, string(text))
}

func same(t require.TestingT, text string) {
	d, err := workflowfile.Parse([]byte(text))
	require.NoError(t, err)
	back, err := workflowfile.Format(d)
	require.NoError(t, err)
	again, err := workflowfile.Parse(back)
	require.NoError(t, err, string(back))
	require.Equal(t, d.Digest(), again.Digest(), string(back))
	twice, err := workflowfile.Format(again)
	require.NoError(t, err)
	require.Equal(t, string(back), string(twice))
}

// Whatever a definition can hold can be written: strange texts, exact numbers, schemas of every form.
func TestAnythingRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ -~é\n\t:#&*!|>'"%@]{0,12}`)
		s := workflow.Step{
			Name: "a", Type: workflow.Execution, Action: "x", Description: text.Draw(t, "description"), Effect: action.Effect(rapid.IntRange(0, 3).Draw(t, "effect")),
			Map: workflow.Mapping{"k": {Const: json.RawMessage(encode(t, text.Draw(t, "const")))}, "n": {Const: json.RawMessage("1.50e+2")}, "o": {From: "input.o", Default: json.RawMessage("[]")}},
			Hitl: &workflow.Hitl{Who: []string{"ana"}, Prompt: text.Draw(t, "prompt"), Intake: json.RawMessage(`{"enum":[` + encode(t, text.Draw(t, "enum")) + `,null,true,12345678901234567890]}`),
				Reprompts: rapid.IntRange(-1, 3).Draw(t, "reprompts")},
			Limits: workflow.Limits{Attempts: 2, Cost: action.Limit{Tokens: action.Max(0), Money: action.Max(5), Currency: "EUR", Duration: action.Max(1500)}},
			Hints:  workflow.Hints{Tools: []string{text.Draw(t, "tool")}},
			Ladder: []workflow.Rung{{Kind: workflow.RungRetry, Attempts: 2, Cost: action.Limit{Calls: action.Max(1)}}},
		}
		d, err := workflow.Compile(workflow.Spec{Name: "w", Version: "1", Description: text.Draw(t, "about"), Phases: []workflow.Phase{{Name: "p", Storyline: text.Draw(t, "story"), Steps: []workflow.Step{s}}}})
		require.NoError(t, err)
		back, err := workflowfile.Format(d)
		require.NoError(t, err)
		again, err := workflowfile.Parse(back)
		require.NoError(t, err, string(back))
		require.Equal(t, d.Digest(), again.Digest(), string(back))
	})
}

func encode(t require.TestingT, v any) string {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// Any graph is drawn with each step once and in its place, no two over each other, and the picture is well-formed.
func TestDrawings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := workflow.New("w", "1")
		n := rapid.IntRange(1, 9).Draw(t, "steps")
		for i := range n {
			s := workflow.Execute(fmt.Sprintf("step-%d", i), strings.Repeat("x", rapid.IntRange(1, 20).Draw(t, "long"))).Effect(action.None)
			for j := range i {
				switch rapid.IntRange(0, 8).Draw(t, "need") {
				case 0:
					s = s.Needs(fmt.Sprintf("step-%d", j))
				case 1:
					s = s.NeedsEnd(fmt.Sprintf("step-%d", j))
				}
			}
			b = b.Step(s)
		}
		d := b.MustBuild()
		text := workflowfile.Text(d)
		for i := range n {
			require.Equal(t, 1, strings.Count(text, fmt.Sprintf("│ step-%d ", i)), text)
		}
		require.Equal(t, n, strings.Count(text, "EXECUTION x"), text)
		svg := workflowfile.SVG(d)
		dec := xml.NewDecoder(strings.NewReader(string(svg)))
		for {
			_, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
		require.Equal(t, string(svg), string(workflowfile.SVG(d)))
		require.Equal(t, n+1, strings.Count(string(svg), "<rect"))
	})
}

func TestSVGEscapes(t *testing.T) {
	d := workflow.New("w", "1").Phase(workflow.InPhase("p").Storyline(`a <b> & "c"`).Step(workflow.Execute("a", "x"))).MustBuild()
	assert.Contains(t, string(workflowfile.SVG(d)), `a &lt;b&gt; &amp; &#34;c&#34;`)
}

// Any text is read or refused, and what is read is written and drawn.
func FuzzParse(f *testing.F) {
	f.Add([]byte(refund))
	f.Add([]byte("workflow: a\nversion: \"1\"\nphases:\n  - name: p\n    ordered: true\n    guard: {schema: {}}\n    supervision: {strategy: retry, max: 2, then: resume, backoff: {base: 1s}}\n    hints: {tools: [a]}\n    steps:\n      - {name: a, type: SUB_SOP, workflow: b, breaker: {failures: 1, window: 1s, cooldown: 1s}}\n"))
	f.Add([]byte("? [a]\n: !!binary aGk=\n<<: {a: b}\n"))
	f.Add([]byte("a: &a [*a, *a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := workflowfile.Parse(text)
		if err != nil {
			return
		}
		back, err := workflowfile.Format(d)
		require.NoError(t, err)
		again, err := workflowfile.Parse(back)
		require.NoError(t, err, string(back))
		require.Equal(t, d.Digest(), again.Digest(), string(back))
		_, _ = workflowfile.Text(d), workflowfile.SVG(d)
	})
}

package explain

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func explained(t *testing.T, src string) map[string]Action {
	t.Helper()
	r, err := Run(context.Background(), []byte(src))
	require.NoError(t, err)
	out := map[string]Action{}
	for _, a := range r.Actions {
		out[a.Name] = a
	}
	return out
}

func TestStanding(t *testing.T) {
	const two = "actions:\n  - {name: find, risk: 1}\n  - {name: pay, risk: 2, cost: {tokens: 90}, needs: [{action: find, on: order}]}\n"
	const flow = "actions:\n  - {name: open, risk: 2, needs: [{workflow: admit, bind: [{on: customer}, {on: file, output: file}]}]}\n"
	tests := []struct {
		name, src, of string
		want          action.Status
		why, path     string
	}{
		{"legal", two, "find", action.Legal, "", ""},
		{"blocked by a prerequisite", two, "pay", action.Blocked, "needs find on order", "find → pay"},
		{"unlocked by what was done", two + "done: [{action: find, input: {order: A}}]", "pay", action.Legal, "", ""},
		{"not unlocked by a failure", two + "done: [{action: find, input: {order: A}, ok: false}]", "pay", action.Blocked, "needs find on order", "find → pay"},
		{"too dear", two + "goal: {limit: {tokens: 50}}", "pay", action.Blocked, "budget: ", "find → pay"},
		{"over the ceiling", two + "goal: {ceiling: 1.5}", "pay", action.Blocked, "above the ceiling 1.50", "find → pay"},
		{"not granted", "actions: [{name: a, granted: false}]", "a", action.Blocked, "no permission", ""},
		{"asks for approval", "actions: [{name: a, approval: true}]\ngoal: {approvers: [ana]}", "a", action.Gated, "asks for an approval", ""},
		{"nobody to ask", "actions: [{name: a, approval: {until_trust: 0.8}}]", "a", action.Blocked, "NO_APPROVER", ""},
		{"context missing", "actions: [{name: a, context: [customer]}]", "a", action.Blocked, "CONTEXT_MISSING", ""},
		{"context brought", "actions: [{name: a, context: [customer]}]\ngoal: {context: [customer]}", "a", action.Legal, "", ""},
		{"used up", "actions: [{name: a}, {name: b, needs: [{action: a, on: k, consumed: true}]}]\ndone: [{action: a, input: {k: x}}, {action: b, input: {k: x}}]",
			"b", action.Blocked, "it was used up", "a → b"},
		{"output of an earlier call", "actions: [{name: ls}, {name: rm, risk: 2, needs: [{action: ls, on: path, output: entries.*.path}]}]\ndone: [{action: ls, output: {entries: [{path: /a}]}}, {action: rm, input: {path: /a}}]",
			"rm", action.Legal, "", ""},
		{"joint bindings", "actions: [{name: a}, {name: b, needs: [{action: a, bind: [{on: x}, {on: y, as: z.w}]}]}]\ndone: [{action: a, input: {x: '1', z: {w: '2'}}}, {action: b, input: {x: '1', y: '2'}}]",
			"b", action.Legal, "", ""},
		{"an approval that was needed was given", "actions: [{name: a, risk: 5, effect: none}]\ngoal: {approvers: [ana]}\ndone: [{action: a}]", "a", action.Gated, "reaches the threshold", ""},
		{"a workflow that did not complete", flow, "open", action.Blocked, "admit", "workflow admit → open"},
		{"a workflow that completed", flow + "done: [{workflow: admit, input: {customer: ada}, output: {file: F1}}]", "open", action.Legal, "", ""},
		{"a workflow within a budget", flow + "goal: {limit: {calls: 9, tokens: 900}}\ndone: [{workflow: admit, input: {customer: ada}, output: {file: F1}}, {action: open, input: {customer: ada, file: F1}}]",
			"open", action.Legal, "", ""},
		{"a workflow in another version", strings.Replace(flow, "admit,", "admit, version: '2',", 1) + "done: [{workflow: admit, input: {customer: ada}}]", "open", action.Blocked, "admit", "workflow admit in version 2 → open"},
		{"in that version", strings.Replace(flow, "admit,", "admit, version: '2',", 1) + "done: [{workflow: admit, version: '2', input: {customer: ada}, output: {file: F1}}]", "open", action.Legal, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := explained(t, tt.src)[tt.of]
			assert.Equal(t, tt.want, a.Status, a.Why)
			assert.Contains(t, strings.Join(a.Why, "; "), tt.why)
			assert.Equal(t, tt.why == "", len(a.Why) == 0, a.Why)
			if tt.path == "" {
				assert.Nil(t, a.Path)
				return
			}
			require.NotNil(t, a.Path)
			assert.Equal(t, tt.path, a.Path.Text)
		})
	}
}

func TestFaultsNameTheirLine(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"not a mapping", "- a", "line 1: the file is a list, want a mapping"},
		{"no actions", "agent: a", "line 1: the file declares no actions"},
		{"unknown key", "actions:\n  - name: a\n    neds: [b]", `line 3: an action has no key "neds"; did you mean "needs"?`},
		{"unknown key like none", "actions: []\nzzzzzz: 1", `line 2: the file has no key "zzzzzz"; known are agent, role, actions, goal, done`},
		{"merge key", "x: &x {risk: 1}\nactions: [{name: a, <<: *x}]", `line 2: an action has no key "<<"`},
		{"a need of nothing", "actions:\n  - name: a\n    needs:\n      - {on: x}", "line 4: a need names no action, and no workflow"},
		{"a need of both", "actions: [{name: a, needs: [{action: b, workflow: c}]}]", "line 1: a need names an action and a workflow"},
		{"a version of an action", "actions: [{name: a}, {name: b, needs: [{action: a, version: '2'}]}]", "which only workflows have"},
		{"a workflow that was not ok", "actions: [{name: a}]\ndone: [{workflow: w, ok: false}]", "line 2: a workflow that is not ok did not complete"},
		{"a list for text", "agent: [a]\nactions: [{name: a}]", "line 1: agent is a list, want text"},
		{"a number for text", "actions: [{name: 7}]", "line 1: name is a number, want text"},
		{"a fraction for a level", "actions: [{name: a, risk: 2.5}]", "line 1: risk is a number, want a whole number"},
		{"a number for a duration", "actions: [{name: a, cost: {duration: 5}}]", "line 1: duration is a number, want a duration such as 10m"},
		{"money too fine", "actions: [{name: a, cost: {money: 0.0000001, currency: EUR}}]", `line 1: money is "0.0000001", want an amount`},
		{"money without currency", "actions: [{name: a, cost: {money: 1}}]", "line 1: cost money needs a currency"},
		{"negative limit", "actions: [{name: a}]\ngoal: {limit: {tokens: -1}}", "line 2: limit tokens is -1"},
		{"risk out of range", "actions:\n  - name: a\n    risk: 9", `line 2: action "a": risk is 9, want 1 to 5`},
		{"name ill-formed", "actions: [{name: a b}]", "line 1: action"},
		{"binding without on", "actions: [{name: a, needs: [{action: b, as: x}]}]", `line 1: a binding needs "on"`},
		{"binding both ways", "actions: [{name: a, needs: [{action: b, on: x, as: y, output: z}]}]", `has "as" or "output", not both`},
		{"several on with as", "actions: [{name: a, needs: [{action: b, on: [x, y], as: z}]}]", "several fields"},
		{"need without action", "actions: [{name: a, needs: [{on: x}]}]", "a need names no action"},
		{"bound types differ", "actions: [{name: a, input: {type: object, properties: {k: {type: integer}}}}, {name: b, input: {type: object, properties: {k: {type: string}}}, needs: [{action: a, on: k}]}]",
			`"k"`},
		{"ignored schema keyword", "actions: [{name: a, input: {type: object, propertys: {}}}]", "propertys"},
		{"self reference", "actions: [{name: a, needs: [a]}]", "a"},
		{"threshold out of range", "actions: [{name: a}]\ngoal: {threshold: 9}", "threshold is 9"},
		{"done unknown", "actions: [{name: a}]\ndone:\n  - {action: b}", "line 3: done: this call of \"b\" could not have been made: ACTION_UNKNOWN"},
		{"done twice too often", "actions: [{name: a}]\ndone: [{action: a, times: 100000}]", "times is 100000, want 1 to 1000"},
		{"failed with output", "actions: [{name: a}]\ndone: [{action: a, ok: false, output: {}}]", "has no output"},
		{"done refused for want of an approver", "actions: [{name: a, risk: 5}]\ndone: [{action: a}]", "NO_APPROVER"},
		{"two documents", "actions: [{name: a}]\n---\nactions: []", "more than one document"},
		{"infinity in an input", "actions: [{name: a}]\ndone: [{action: a, input: {n: .inf}}]", "cannot be written as JSON"},
		{"complex key", "actions: [{name: a}]\ndone: [{action: a, input: {[1]: 2}}]", "key is not plain text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Run(context.Background(), []byte(tt.src))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// A field that is bound has the type that the other side's schema gives it, also over several actions.
func TestGeneratedInputs(t *testing.T) {
	s, err := parse([]byte(`actions:
  - {name: a, input: {type: object, properties: {n: {type: integer}}}}
  - {name: b, needs: [{action: a, on: id, as: n}]}
  - {name: c, needs: [{action: b, on: order.id, as: id}, {action: b, on: who, output: x.*.y}]}
  - {name: d}
`))
	require.NoError(t, err)
	got := inputs(s.actions)
	assert.JSONEq(t, `{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`, string(got["b"]))
	assert.JSONEq(t, `{"type":"object","properties":{"order":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]},"who":{"type":"string"}},"required":["order","who"]}`, string(got["c"]))
	assert.JSONEq(t, `{"type":"object"}`, string(got["d"]))
}

func TestDocumentsKeepWhatIsWritten(t *testing.T) {
	s, err := parse([]byte("actions: [{name: a}]\ndone: [{action: a, input: {n: 12345678901234567890, f: 0.10, h: 0x10, d: 2026-11-30, s: '7', t: yes, b: true, z: ~, l: [1, {k: v}], \"on\": x}}]"))
	require.NoError(t, err)
	assert.Equal(t, `{"n":12345678901234567890,"f":0.10,"h":16,"d":"2026-11-30","s":"7","t":"yes","b":true,"z":null,"l":[1,{"k":"v"}],"on":"x"}`, string(s.done[0].input))
}

func TestReportIsStable(t *testing.T) {
	src, err := os.ReadFile("../../../../examples/explain/orders.yaml")
	require.NoError(t, err)
	var first []byte
	for range 3 {
		r, err := Run(context.Background(), src)
		require.NoError(t, err)
		raw, err := json.Marshal(r)
		require.NoError(t, err)
		if first == nil {
			first = raw
		}
		assert.Equal(t, string(first), string(raw))
	}
}

// No text makes the reader panic or the generated schemas malformed.
func FuzzParse(f *testing.F) {
	src, err := os.ReadFile("../../../../examples/explain/orders.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(src)
	f.Add([]byte("actions: [{name: a, needs: [b, {action: c, bind: [{on: a.*.b}]}]}]\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("done: [{input: {? {a: b} : c}}]"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := parse(src)
		if err != nil {
			return
		}
		for name, raw := range inputs(s.actions) {
			if !json.Valid(raw) {
				t.Fatalf("%s: %s", name, raw)
			}
		}
	})
}

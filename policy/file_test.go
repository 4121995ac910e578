package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/policy"
)

const fileOfRules = `{
	"version": "2026-11", "include": ["desk.cedar"], "policies": "@id(\"x\") permit (principal in Team::\"desk\", action, resource);",
	"grants": [{"name": "cover", "agent": "mia", "actions": ["refund"], "tools": ["stripe"], "until": "2027-01-02T00:00:00Z", "when": "context.input.amount <= 50"}],
	"actions": {"refund": {"tool": "stripe", "groups": ["payments"], "input": {"type": "object", "properties": {"amount": {"type": "integer"}, "note": {"enum": [null]}}, "required": ["amount"]}}},
	"teams": {"desk": ["mia"]}, "toolsets": {"money": ["stripe"]}, "autonomy": {"mia": "act-on-gated"}
}`

func TestParseSources(t *testing.T) {
	s, include, err := policy.ParseSources("rules.json", []byte(fileOfRules))
	require.NoError(t, err)
	assert.Equal(t, []string{"desk.cedar"}, include)
	assert.Equal(t, []policy.Grant{{
		Name: "cover", Agent: "mia", Actions: []string{"refund"}, Tools: []string{"stripe"}, Until: time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC), When: "context.input.amount <= 50",
	}}, s.Grants)
	assert.Equal(t, map[string]policy.Autonomy{"mia": policy.ActOnGated}, s.Autonomy)
	b, err := s.Compile()
	require.NoError(t, err)
	assert.Equal(t, 2, b.Len())
	assert.Regexp(t, "^2026-11@policy-", b.Version())
	assert.Equal(t, []string{"mia"}, b.Agents())
	assert.Equal(t, []string{"refund"}, b.Actions())
}

func TestFilesAreReadStrictly(t *testing.T) {
	for _, c := range []struct{ name, text, err string }{
		{"a misspelt key", `{"grnats": []}`, `/: there is no key "grnats" here; did you mean "grants"?`},
		{"a misspelt key within", `{"grants": [{"agnet": "a"}]}`, `/grants/0/: there is no key "agnet" here; did you mean "agent"?`},
		{"another case", `{"Grants": []}`, `did you mean "grants"?`},
		{"a key twice", `{"teams": {}, "teams": {}}`, `duplicate`},
		{"an agent twice", `{"autonomy": {"a": "act", "a": "propose-only"}}`, `duplicate`},
		{"a list that was forgotten", `{"grants": [{"agent": "a", "actions": ["x"], "tools": null}]}`, "/grants/0/tools: it has no value"},
		{"a grant of whatever", `{"grants": [{"agent": "a"}]}`, "/grants/0: it does not say which actions"},
		{"a level that does not exist", `{"autonomy": {"a": "some"}}`, `/autonomy/a: autonomy "some": want act, act-on-gated or propose-only`},
		{"an end that is no time", `{"grants": [{"until": "tomorrow"}]}`, "/grants/0/until"},
		{"another type", `{"teams": []}`, "/teams"},
		{"not JSON", `{`, "EOF"},
		{"nothing", ``, "EOF"},
		{"what follows", `{} {}`, "after top-level value"},
		{"invalid UTF-8", "{\"version\": \"\xff\"}", "UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := policy.ParseSources("rules.json", []byte(c.text))
			require.ErrorContains(t, err, "rules.json: ")
			require.ErrorContains(t, err, c.err)
		})
	}
	s, _, err := policy.ParseSources("rules.json", []byte(`{"grants": [{"agent": "a", "actions": []}, {"agent": "a", "actions": ["x"], "tools": []}]}`))
	require.NoError(t, err)
	b, err := s.Compile()
	require.NoError(t, err)
	assert.Zero(t, b.Len(), "empty is none")
}

func ExampleParseSources() {
	s, include, err := policy.ParseSources("rules.json", []byte(`{
		"version": "2026-11",
		"include": ["desk.cedar"],
		"grants": [{"agent": "mia", "actions": ["refund"], "when": "context.input.amount <= 50"}]
	}`))
	fmt.Println(len(s.Grants), include, err)
	_, _, err = policy.ParseSources("rules.json", []byte(`{"grants": [{"agent": "mia", "actons": ["refund"]}]}`))
	fmt.Println(err)
	// Output:
	// 1 [desk.cedar] <nil>
	// rules.json: /grants/0/: there is no key "actons" here; did you mean "actions"?
}

// No file of rules makes the reader or the compiler panic, hang or permit by accident: whatever compiles decides the same
// with and without the index.
func FuzzParseSources(f *testing.F) {
	f.Add([]byte(fileOfRules))
	f.Add([]byte(`{"policies": "permit (principal, action, resource) when { context.input.n < 5 };"}`))
	f.Add([]byte(`{"actions": {"x": {"input": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, _, err := policy.ParseSources("f", text)
		if err != nil {
			return
		}
		agree(t, s)
	})
}

// FuzzCedar is FuzzParseSources for the text of policies alone.
func FuzzCedar(f *testing.F) {
	f.Add(`permit (principal == Agent::"support", action in [Action::"charge"], resource is Tool) when { context.input has n && context.input.n > 1 };`)
	f.Add(`@id("x") forbid (principal, action, resource) unless { context.risk.effective.lessThan(decimal("-0.5")) || [1, "a", {b: principal}].contains(context) };`)
	f.Add(`permit (principal, action, resource) when { if context.trust == decimal("0.5") then 1 like "*" else ip("::1").isLoopback() };`)
	f.Fuzz(func(t *testing.T, text string) {
		agree(t, policy.Sources{Policies: []policy.File{{Name: "f", Text: []byte(text)}}})
	})
}

func agree(t *testing.T, s policy.Sources) {
	b, err := s.Compile()
	if err != nil {
		return
	}
	for _, input := range []string{`{}`, `{"n":1,"amount":50}`, `{"n":"a","amount":1e99}`} {
		r := asked(input)
		require.Equal(t, policy.Evaluate(b.Linear(), r), policy.Evaluate(b, r))
		open := r
		open.AnyInput = true
		if policy.Evaluate(b, r).Permit {
			require.True(t, policy.Evaluate(b, open).Permit)
		}
	}
}

// The example that ships with the repository compiles without a warning.
func TestTheExampleCompiles(t *testing.T) {
	dir := filepath.Join("..", "examples", "policy")
	text, err := os.ReadFile(filepath.Join(dir, "desk.cedar"))
	require.NoError(t, err)
	b, err := policy.Sources{Policies: []policy.File{{Name: "desk.cedar", Text: text}}}.Compile()
	require.NoError(t, err)
	assert.Empty(t, b.Warnings())
}

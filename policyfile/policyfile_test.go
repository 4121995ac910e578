package policyfile_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/policyfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files writes files into a folder of their own: name, text, name, text, …
func files(t testing.TB, pairs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(pairs); i += 2 {
		write(t, filepath.Join(dir, pairs[i]), pairs[i+1])
	}
	return dir
}

func write(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

var call = policy.Request{Agent: "mia", Action: "refund", Declared: 2, Effective: 2, Trust: 0.5, Now: 1}

const (
	permit = `@id("yes") permit (principal, action, resource);`
	forbid = `@id("no") forbid (principal, action, resource);`
)

func TestLoad(t *testing.T) {
	dir := files(t, "rules.yaml", "include: [a.cedar]\nautonomy:\n  mia: propose-only # for now\n", "a.cedar", permit, "rules.json", `{"include": ["a.cedar"]}`)
	for _, name := range []string{"rules.yaml", "rules.json", "a.cedar"} {
		b, err := policyfile.Load(filepath.Join(dir, name))
		require.NoError(t, err, name)
		assert.Equal(t, "permitted by yes", policy.Evaluate(b, call).Reason, name)
	}
	b, err := policyfile.Load("../examples/policy/rules.yaml")
	require.NoError(t, err)
	assert.Equal(t, []string{"bo", "mia", "nox"}, b.Agents())
	assert.Empty(t, b.Warnings())
	assert.Regexp(t, "^2026-11@policy-", b.Version())
}

// YAML and JSON that say the same are the same rules.
func TestYAMLAndJSONAreTheSameRules(t *testing.T) {
	dir := files(t, "r.yaml", `
version: "7"
grants:
  - {agent: mia, actions: [refund], until: 2027-01-02T00:00:00Z, when: context.input.n <= 5}
actions:
  refund: {input: {type: object, properties: {n: {type: integer, maximum: 1e3}}, required: [n]}}
`, "r.json", `{"version": "7", "grants": [{"agent": "mia", "actions": ["refund"], "until": "2027-01-02T00:00:00Z", "when": "context.input.n <= 5"}],
"actions": {"refund": {"input": {"type":"object","properties":{"n":{"type":"integer","maximum":1e3}},"required":["n"]}}}}`)
	a, err := policyfile.Load(filepath.Join(dir, "r.yaml"))
	require.NoError(t, err)
	b, err := policyfile.Load(filepath.Join(dir, "r.json"))
	require.NoError(t, err)
	assert.Equal(t, a.Version(), b.Version())
}

func TestWhatIsNotAFileOfRules(t *testing.T) {
	for _, c := range []struct{ name, text, err string }{
		{"r.txt", "", "files named .cedar, .yaml, .yml or .json"},
		{"r.yaml", "", "the file is empty"},
		{"r.yaml", "a: &x [1]\nteams: *x", "aliases are not supported"},
		{"r.yaml", "teams:\n  a: [b]\nteams: {}", `line 3: the key "teams" was given in line 1 already`},
		{"r.yaml", "teams: {}\n---\nteams: {}", "more than one document"},
		{"r.yaml", "grants:\n  - agent: a\n    actions: [x]\n    tools:\n", "/grants/0/tools: it has no value"},
		{"r.yaml", "grnats: []", `did you mean "grants"?`},
		{"r.yaml", "[a]: 1", "line 1: a key is not text"},
		{"r.yaml", "<<: {a: 1}", "line 1: a key is not text"},
		{"r.yaml", "version: 0x10", "not a number as JSON writes it"},
		{"r.yaml", "version: !!binary aGk=", "!!binary is not supported"},
		{"r.yaml", strings.Repeat("[", 100), "line 1"},
		{"r.json", `{"include": ["../x.cedar"]}`, `include "../x.cedar": want a .cedar file in its folder or below`},
		{"r.json", `{"include": ["x.cedar"]}`, "no such file"},
		{"r.cedar", "permit (", "r.cedar: "},
		{"r.cedar", strings.Repeat(" ", policyfile.MaxFile+1), "larger than"},
	} {
		_, err := policyfile.Load(filepath.Join(files(t, c.name, c.text), c.name))
		require.ErrorContains(t, err, c.err, c.text[:min(len(c.text), 40)])
	}
	_, err := policyfile.Load(t.TempDir() + "/none.cedar")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.Mkdir(filepath.Join(t.TempDir(), "d"), 0o700))
}

// New rules are in force at once; broken ones change nothing and say what is wrong.
func TestReload(t *testing.T) {
	path := filepath.Join(files(t, "r.cedar", permit), "r.cedar")
	l, err := policyfile.Open(path)
	require.NoError(t, err)
	first := l.Bundle().Version()
	assert.Equal(t, policyfile.Change{From: first, To: first}, l.Reload())
	assert.Contains(t, l.Reload().String(), "still those of "+first)

	write(t, path, permit+"permit (")
	c := l.Reload()
	require.ErrorContains(t, c.Err, "r.cedar")
	assert.Contains(t, c.String(), "the rules stay those of "+first)
	assert.True(t, policy.Evaluate(l, call).Permit, "the earlier rules")

	write(t, path, permit+forbid)
	c = l.Reload()
	require.NoError(t, c.Err)
	assert.Equal(t, []string{"yes: it permits every agent every action"}, c.Warnings)
	d := policy.Evaluate(l, call)
	assert.Equal(t, policy.Decision{Forbid: true, Reason: "forbidden by no", Version: c.To}, d)
	assert.NotEqual(t, first, c.To)

	require.NoError(t, os.Remove(path))
	require.ErrorIs(t, l.Reload().Err, os.ErrNotExist)
	assert.Equal(t, d, policy.Evaluate(l, call), "a file that is gone permits nothing new and forbids nothing less")

	_, err = policyfile.Open(path)
	require.Error(t, err)
	var none policyfile.Live
	assert.False(t, policy.Evaluate(&none, call).Permit)
	require.Error(t, none.Reload().Err)
}

// Whoever asks while rules are replaced gets the answer of one set or of the other.
func TestReloadWhileAsked(t *testing.T) {
	path := filepath.Join(files(t, "r.cedar", permit), "r.cedar")
	l, err := policyfile.Open(path)
	require.NoError(t, err)
	versions := map[string]bool{l.Bundle().Version(): true}
	other, err := policyfile.Load(filepath.Join(files(t, "r.cedar", forbid), "r.cedar"))
	require.NoError(t, err)
	versions[other.Version()] = false
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		all.Go(func() {
			for {
				d := policy.Evaluate(l, call)
				assert.Equal(t, versions[d.Version], d.Permit, d.Reason)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for i := range 20 {
		write(t, path, []string{forbid, permit}[i%2])
		assert.NoError(t, l.Reload().Err)
	}
	close(stop)
	all.Wait()
}

func TestWatchTellsOfEveryChangeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(files(t, "r.cedar", permit), "r.cedar")
		l, err := policyfile.Open(path)
		require.NoError(t, err)
		require.ErrorContains(t, l.Watch(t.Context(), time.Millisecond, nil), "at least 100ms")
		ctx, stop := context.WithCancel(t.Context())
		var told []policyfile.Change
		done := make(chan error)
		go func() {
			done <- l.Watch(ctx, time.Second, func(c policyfile.Change) { told = append(told, c) })
		}()
		for _, text := range []string{permit, "permit (", "permit (", forbid, forbid} {
			write(t, path, text)
			time.Sleep(1500 * time.Millisecond)
		}
		stop()
		require.NoError(t, <-done)
		require.Len(t, told, 2)
		require.Error(t, told[0].Err)
		require.NoError(t, told[1].Err)
		assert.Equal(t, l.Bundle().Version(), told[1].To)
		assert.False(t, told[1].At.IsZero())
	})
}

func FuzzYAML(f *testing.F) {
	f.Add("version: a\ngrants:\n  - {agent: a, actions: [b], until: 2027-01-02T00:00:00Z}\n")
	f.Add("a: &x {b: *x}\n")
	f.Add("? [a]\n: 1\n--- !t\n'x'")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "r.yaml")
		if os.WriteFile(path, []byte(text), 0o600) != nil {
			return
		}
		s, err := policyfile.Read(path)
		if err == nil {
			_, _ = s.Compile()
		}
	})
}

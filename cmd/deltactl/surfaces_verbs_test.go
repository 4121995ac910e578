package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// storeless are the verbs that read what they are given and nothing of a store: there is no secret for them to tell.
var storeless = []string{
	"bench gate", "bench risk", "explain", "keys list", "keys new", "keys rotate", "ledger keygen", "policy check", "policy explain", "replay", "version",
	"whoami", "workflow check",
}

// verbs runs every verb that looks into a store, in both of its forms, and has what is printed looked at. Verbs that change
// something come last, in an order in which each finds something to change.
func (p *plot) verbs(t *testing.T, look func(*testing.T, string, string)) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	rules := file("rules.yaml", "version: \"1\"\ngrants:\n  - name: some\n    agent: clerk\n    actions: [charge]\n    when: context.input.top == \"x\"\n")
	key, sealed := filepath.Join(dir, "audit.key"), file("proof", "")
	var out bytes.Buffer
	require.Zero(t, p.ctl(&out, "ledger", "keygen", "a.example", "--out", key), out.String())
	heads := filepath.Join(dir, "heads")
	why := []string{"--reason", "because"}
	with := func(args ...string) []string { return append(args, why...) }
	export := filepath.Join(dir, "export.jsonl")
	reads := [][]string{
		{"approvals", "list"}, {"approvals", "show", p.ids["approval"]}, {"approvals", "show", p.ids["about"]},
		{"approvals", "show", "--all", p.ids["approval"]}, {"approvals", "show", "--all", p.ids["about"]},
		{"budget", "clerk~open"}, {"doctor", "--fold"}, {"escalations", "list"}, {"glass", "show", "clerk~open"}, {"halt", "list"}, {"intents", "list"},
		{"ledger", "export", "clerk", "nurse", "--tasks", "--out", export, "--key", key, "--heads", heads},
		{"ledger", "fold", "clerk~open"}, {"ledger", "fold", "nurse~about"}, {"ledger", "fold", "clerk~asks"},
		{"ledger", "prove", "clerk~open", "--record", "3", "--key", key}, {"ledger", "check", sealed, "--public", key + ".pub"},
		{"ledger", "show", "clerk~open", "--limit", "500"}, {"ledger", "show", "nurse~about", "--limit", "500"}, {"ledger", "show", "clerk"}, {"ledger", "show", "clerk~parks", "--limit", "500"},
		{"ledger", "tail", "clerk~open", "--payload", "-n", "500"}, {"ledger", "tail", "nurse~about", "--payload", "-n", "500"}, {"ledger", "tail", "clerk~asks", "--payload", "-n", "500"},
		{"ledger", "verify", "clerk~open"}, {"policy", "what-if", rules, "clerk", "nurse"}, {"policy", "what-if", rules, "clerk~open"},
		{"pools"}, {"risk", "clerk"}, {"tasks", "list", "--ended"}, {"trace", p.ids["intent"], "clerk~open"}, {"trace", p.ids["approval"]}, {"trace", "clerk~open"}, {"trace", "nurse~about"}, {"trace", "clerk~asks"},
		{"trace", p.ids["escalation"]}, {"trust"}, {"watch"}, {"workflow", "list"}, {"workflow", "show", "clerk~asks"}, {"workflow", "show", "clerk~parks"},
		{"workflow", "show", "clerk~asks", "--graph"}, {"workflow", "show", "clerk~asks", "--svg"}, {"workflow", "wait", "clerk~asks", "--timeout", "1s"},
	}
	changes := [][]string{
		// Nobody works here: what is said of the input, and that no worker has it, is all there is to read.
		{"workflow", "run", "outer", "--agent", "clerk", "--no-ask", "--timeout", "1s", "--input", `{"id":"w2","top":"MARKED-run"}`},
		{"workflow", "run", "outer", "--agent", "clerk", "--no-ask", "--timeout", "1s", "--input", `{"id":7,"top":"MARKED-run"}`},
		with("workflow", "migrate", "clerk~asks", "--to", "7"),
		{"keys", "rewrap"}, with("halt", "action", "clerk", "charge"), with("lift", "action", "clerk", "charge"), with("halt", "agent", "clerk"), with("lift", "agent", "clerk"),
		with("halt", "everything"), with("lift", "everything"), with("halt", "task", "clerk~planned"), with("lift", "task", "clerk~planned"),
		with("glass", "break", "clerk~open", "--for", "1m", "--actions", "charge"), with("glass", "restore", "clerk~open"),
		with("tasks", "threshold", "clerk~open", "4"), with("tasks", "top-up", "clerk~open", "--calls", "5"), with("beliefs", "reset", "clerk", "--action", "fail"),
		{"workflow", "signal", "clerk~asks", "--step", "last", "7"}, {"workflow", "signal", "clerk~asks", "--step", "last", `"yes"`},
		{"workflow", "amend", "clerk~parks", "--step", "close", `{"id":7,"top":"MARKED-amended"}`},
		with("workflow", "pause", "clerk~parks"), with("workflow", "resume", "clerk~parks"), with("workflow", "resume", "clerk~parks", "--step", "close", "--fail"), with("workflow", "cancel", "clerk~parks"),
		with("intents", "cancel", "clerk~open", p.ids["intent"]), with("intents", "resolve", "clerk~open", p.ids["intent"], "--ok", "--output", strings.Replace(marked, "o1", "o9", 1)),
		with("escalations", "resume", p.ids["escalation"]), with("escalations", "end", p.ids["escalation"]),
		with("approvals", "revoke", p.ids["approval"]), with("approvals", "approve", p.ids["approval"]), with("approvals", "withdraw", p.ids["about"]), with("approvals", "reject", p.ids["about"]),
		with("tasks", "conclude", "clerk~open", "reached"), with("tasks", "cancel", "clerk~planned"), with("tasks", "kill", "clerk"), with("erase", "customer-1042"),
		with("prune", "--older-than", "1ns", "--own", "--key", key, "--export", filepath.Join(dir, "pruned")),
		{"ledger", "tail", "clerk~open", "--payload", "-n", "500"}, {"trace", "clerk~open"}, {"workflow", "show", "clerk~parks"}, {"workflow", "list", "--ended"},
	}
	ran := map[string]bool{}
	for i, run := range append(reads, changes...) {
		verb, _, err := newRoot().Find(run)
		require.NoError(t, err)
		name := strings.TrimPrefix(verb.CommandPath(), "deltactl ")
		ran[name] = true
		forms := [][]string{run}
		if verb.Flags().Lookup("json") != nil {
			forms = append(forms, append(slices.Clone(run), "--json"))
		}
		for form, args := range forms {
			if verb.Flags().Lookup("store") != nil {
				args = append(args, "--store", p.server.URL(), "--keys", p.ring, "--operators", p.people)
			}
			var out bytes.Buffer
			code := p.ctl(&out, args...)
			assert.NotEqual(t, exitUsage, code, "%q: %s", args, out.String())
			if i < len(reads) && form == 0 && name != "doctor" { // who may change what is up to who runs this, and that server is not to keep anything
				assert.Equal(t, exitOK, code, "%q: %s", args, out.String())
			}
			if name == "ledger prove" && code == exitOK {
				require.NoError(t, os.WriteFile(sealed, out.Bytes(), 0o600))
			}
			t.Logf("%q exits with %d: %.200s", run, code, out.String())
			look(t, strings.Join(run, " "), out.String()+"\n")
		}
	}
	for _, name := range leaves(newRoot()) {
		assert.True(t, ran[name] || slices.Contains(storeless, name), "deltactl %s is not run: say how to look into what it prints", name)
	}
	kept := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		kept++
		text, err := os.ReadFile(path)
		look(t, path, string(text)+"\n")
		return err
	}))
	assert.Greater(t, kept, 5)
}

// leaves are the verbs that do something, by their path.
func leaves(c *cobra.Command) (names []string) {
	if c.HasParent() && c.Runnable() && !c.HasSubCommands() {
		names = append(names, strings.TrimPrefix(c.CommandPath(), "deltactl "))
	}
	for _, sub := range c.Commands() {
		names = append(names, leaves(sub)...)
	}
	return names
}

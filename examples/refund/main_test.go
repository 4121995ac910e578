package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// where says how the tool can be run on this machine: confined, or else not. CI must confine.
func where(t *testing.T) []string {
	t.Helper()
	b, err := openBank(true, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer func() { require.NoError(t, b.close()) }()
	r := b.box.Probe(t.Context())
	if r.OK() {
		return nil
	}
	require.Empty(t, os.Getenv("CI"), r.Err)
	return []string{"--no-sandbox"}
}

func told(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	require.Zero(t, run(t.Context(), append(where(t), args...), strings.NewReader(""), &out, &errs), out.String()+errs.String())
	return out.String()
}

// inOrder checks that the lines stand in the text one after the other; what is between does not matter.
func inOrder(t *testing.T, text string, lines ...string) {
	t.Helper()
	rest := strings.Join(strings.Fields(text), " ")
	for _, l := range lines {
		_, after, ok := strings.Cut(rest, l)
		require.True(t, ok, "%q is not there, or not there in its order:\n%s", l, text)
		rest = after
	}
}

// An answer that breaks the schema is asked for again, a proposal that breaks its contract is made anew, and the money goes
// back once.
func TestRefunded(t *testing.T) {
	inOrder(t, told(t, "--script"),
		"verdict ask INPUT_INVALID", "hitl_escalation ask", "hitl_intake ask ana",
		"verdict triage OUTPUT_INVALID", "verdict triage OK", "step_complete triage",
		"tool_call charge-back OK", "step_complete charge-back", "child tell started", "tool_call mail OK", "child tell completed",
		"workflow_end completed", "The workflow has completed. The bank's books: back ORD-7 40")
}

// The customer cannot be told, by two notifications: the refund is undone.
func TestUndone(t *testing.T) {
	text := told(t, "--script", "--fail")
	inOrder(t, text,
		"step_complete charge-back", "child tell started", "the mail server is down", "child tell started",
		"tool_call mail APPROVAL_REQUIRED", "ana approves", // what fails that often has become riskier than it was declared
		"step_failed tell FAILED",
		"supervision tell abort-subtree", "compensation charge-back", "compensated charge-back OK",
		"workflow_end failed", "The workflow has failed. The bank's books: back ORD-7 40 charge ORD-7 40")
	assert.NotContains(t, text, "completed")
}

// What the triage refuses moves no money.
func TestRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "answers")
	require.NoError(t, os.WriteFile(file, []byte(`{"amount": 400, "reason": "changed my mind"}`+"\n"), 0o600))
	text := told(t, "--script="+file)
	inOrder(t, text, "step_skipped charge-back", "(nothing)")
	assert.NotContains(t, text, "tool_call")
}

func TestPersonAtATerminal(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in, keys := io.Pipe()
	defer keys.Close()
	go func() { _, _ = io.WriteString(keys, "forty\nbroken\n40\nit was broken\n") }()
	var out bytes.Buffer
	o := options{confined: where(t) == nil}
	require.NoError(t, tell(ctx, o, newTypist(ctx, whoAmI(), in, &out), &out, io.Discard), out.String())
	inOrder(t, out.String(), whoAmI()+` says {"amount":"forty","reason":"broken"}`, "verdict ask INPUT_INVALID", "hitl_intake ask "+whoAmI(), "back ORD-7 40")
}

// What one process left behind another one goes on with.
func TestResumed(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("CI") == "" {
		t.Skip("make deps installs redis-server")
	}
	store := "--store=" + redistest.Start(t).URL()
	file := filepath.Join(t.TempDir(), "answers")
	require.NoError(t, os.WriteFile(file, []byte(`{"amount": 0, "reason": "none"}`), 0o600))
	var out, errs bytes.Buffer
	require.Equal(t, 1, run(t.Context(), append(where(t), store, "--script="+file), nil, &out, &errs))
	_, id, ok := strings.Cut(out.String(), "Runs as workflow refund as ")
	require.True(t, ok, out.String())
	id, _, _ = strings.Cut(id, ".\n")
	inOrder(t, told(t, "--script", store, "--resume="+id), "hitl_intake ask ana", "step_complete charge-back", "The workflow has completed.", "back ORD-7 40")
}

func TestWithoutBubblewrap(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out, errs bytes.Buffer
	require.Equal(t, 1, run(t.Context(), []string{"--script"}, nil, &out, &errs))
	assert.Contains(t, errs.String(), "there is no bubblewrap")
	assert.Contains(t, errs.String(), "or give --no-sandbox, which confines nothing")
	assert.Empty(t, out.String(), "nothing ran")
}

// Running without a sandbox is asked for by name, and logged.
func TestWaived(t *testing.T) {
	t.Setenv("PATH", t.TempDir()+":/usr/bin:/bin")
	var out, errs bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"--script", "--no-sandbox"}, nil, &out, &errs), errs.String())
	assert.Contains(t, errs.String(), `level=WARN msg="tools run without a sandbox" reason="--no-sandbox was given"`)
	inOrder(t, out.String(), "The workflow has completed.", "back ORD-7 40")
}

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	short, bad := filepath.Join(dir, "short"), filepath.Join(dir, "bad")
	require.NoError(t, os.WriteFile(short, []byte(`{"amount": 0, "reason": "none"}`), 0o600))
	require.NoError(t, os.WriteFile(bad, []byte("{}\nyes\n"), 0o600))
	tests := []struct {
		name string
		args []string
		code int
		want string // part of what is printed on either output
	}{
		{"help", []string{"--help"}, 0, "--no-sandbox"},
		{"nobody to ask", nil, 2, "the input is no terminal: run it on one, or with --script"},
		{"no such file", []string{"--script=" + short + "x"}, 2, "no such file"},
		{"a script of no JSON", []string{"--script=" + bad}, 2, "line 2 of " + bad + " is no JSON document"},
		{"a file without an equals sign", []string{"--script", short}, 2, "write --script=FILE with its equals sign"},
		{"an unknown flag", []string{"--yes"}, 2, "-yes"},
		{"a script that is too short", []string{"--no-sandbox", "--script=" + short}, 1, "the script answers 1 questions, and there was one more"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			assert.Equal(t, tt.code, run(t.Context(), tt.args, strings.NewReader(""), &out, &errs), errs.String())
			assert.Contains(t, out.String()+errs.String(), tt.want)
		})
	}
}

package readme

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the module's folder.
const root = "../.."

var fence = regexp.MustCompile("(?s)```(\\w+)\n(.*?)```")

// blocks returns the README's fenced blocks of a language.
func blocks(t *testing.T, language string) (out []string) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
		if m[1] == language {
			out = append(out, m[2])
		}
	}
	require.NotEmpty(t, out, "the README has no %s block", language)
	return out
}

// commands returns the shell commands of the README, without their comments.
func commands(t *testing.T) (out []string) {
	for _, b := range blocks(t, "sh") {
		for line := range strings.Lines(b) {
			line, _, _ = strings.Cut(line, "#")
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, line)
			}
		}
	}
	return out
}

const module = "github.com/seed-ab2cfece/delta-agents"

// run compiles and runs a program in a module of its own, as a user's, and returns the lines it prints.
func run(t *testing.T, program string) []string {
	dir := t.TempDir()
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	mod = []byte(strings.Replace(string(mod), "module "+module, "module program", 1) +
		"\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + here + "\n")
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	for name, text := range map[string][]byte{"main.go": []byte(program), "go.mod": mod, "go.sum": sum} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	cmd := exec.Command("go", "run", "-mod=mod", ".")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func TestProgramRuns(t *testing.T) {
	lines := run(t, blocks(t, "go")[0])
	require.Len(t, lines, 4)
	require.Contains(t, lines[0], "NOT_LEGAL")
	require.Equal(t, "confirmed ORD-1", lines[1])
	require.Contains(t, lines[2], "NOT_LEGAL")
	require.Equal(t, "charged ORD-1", lines[3])
}

// around makes a program of the README's second block: it is a fragment, the names it uses come from here.
const around = `package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

type Refund struct {
	ID string %[1]sjson:"orderId"%[1]s
}

func main() {
	refund := delta.Define("refund-order", func(_ *delta.Context, in Refund) mo.Result[string] {
		fmt.Println("refunded", in.ID)
		return mo.Ok(in.ID)
	}).Describe("Refund an order").RequireApproval().MustBuild()
	desk := delta.NewAgent("desk").Grant(refund).MustBuild()
	sessions := delta.AuthenticatorFunc(func(_ context.Context, s any) (string, error) { return s.(string), nil })
	ctx, session, raw := context.Background(), any("ana"), json.RawMessage(%[1]s{"orderId":"ORD-1"}%[1]s)
%[2]s
	fmt.Println(out.Code, err)
	again, err := task.Do(ctx, call).Get()
	fmt.Println(again.Code, again.Recorded, err)
	fmt.Println(engine.Close(ctx))
}
`

func TestApprovalRuns(t *testing.T) {
	lines := run(t, fmt.Sprintf(around, "`", blocks(t, "go")[1]))
	require.Equal(t, []string{"refunded ORD-1", "OK <nil>", "OK true <nil>", "<nil>"}, lines)
}

// TestLinksLead: every relative link of the README names a file that is there.
func TestLinksLead(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	links := regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, links)
	for _, m := range links {
		if !strings.Contains(m[1], "://") {
			_, err := os.Stat(filepath.Join(root, m[1]))
			require.NoError(t, err)
		}
	}
}

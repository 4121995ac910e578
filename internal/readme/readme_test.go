package readme

import (
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

func TestProgramRuns(t *testing.T) {
	program := blocks(t, "go")[0]
	dir, err := os.MkdirTemp(".", "program_")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
	cmd := exec.Command("go", "run", "./"+dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, 4, "%s", out)
	require.Contains(t, lines[0], "NOT_LEGAL")
	require.Equal(t, "confirmed ORD-1", lines[1])
	require.Contains(t, lines[2], "NOT_LEGAL")
	require.Equal(t, "charged ORD-1", lines[3])
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

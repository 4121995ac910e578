//go:build heavy

package readme

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
)

// TestCommandsRun runs every command of the README as it stands there. The one that runs all tests, this one included, is
// what runs this test.
func TestCommandsRun(t *testing.T) {
	server := sync.OnceValue(func() string { return redistest.Start(t).URL() }) // one for them all
	for _, line := range commands(t) {
		if line == "make test" {
			continue
		}
		t.Run(line, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "sh", "-c", line)
			cmd.Dir = root
			if strings.Contains(section(t, line), "DELTA_STORE") {
				cmd.Env = append(os.Environ(), "DELTA_STORE="+server())
			}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.NotEmpty(t, out)
		})
	}
}

// section is the part of the README that a command stands in.
func section(t *testing.T, command string) string {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	for _, s := range strings.Split(string(text), "\n## ") {
		if strings.Contains(s, command) {
			return s
		}
	}
	return ""
}

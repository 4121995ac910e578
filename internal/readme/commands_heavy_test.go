//go:build heavy

package readme

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCommandsRun runs every command of the README as it stands there. The one that runs all tests, this one included, is
// what runs this test.
func TestCommandsRun(t *testing.T) {
	for _, line := range commands(t) {
		if line == "make test" {
			continue
		}
		t.Run(line, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "sh", "-c", line)
			cmd.Dir = root
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.NotEmpty(t, out)
		})
	}
}

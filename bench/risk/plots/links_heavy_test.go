//go:build heavy

package plots

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Nobody who builds on the library, and no example, links the plotting: only deltactl draws.
func TestOnlyDeltactlLinksPlotting(t *testing.T) {
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`, "./...")
	cmd.Dir = "../../.."
	out, err := cmd.Output()
	require.NoError(t, err)
	var linking []string
	for line := range strings.Lines(string(out)) {
		name, deps, _ := strings.Cut(line, " ")
		if strings.Contains(deps, "gonum.org/v1/plot") {
			linking = append(linking, name[strings.Index(name, "delta-agents/")+len("delta-agents/"):])
		}
	}
	assert.Equal(t, []string{"bench/risk/plots", "cmd/deltactl"}, linking)
}

package workers

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The table of doc/reliability.md says of each play what is seen.
func TestEachPlayIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../doc/reliability.md")
	require.NoError(t, err)
	section := regexp.MustCompile(`(?s)\n\| several workers .*?\n\n`).FindString(string(text))
	var rows []play
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+?) \| [^|]+ \|$`).FindAllStringSubmatch(section, -1) {
		rows = append(rows, play(m[1]))
	}
	require.NotEmpty(t, rows)
	assert.Equal(t, append([]play{"several workers"}, plays...), rows)
}

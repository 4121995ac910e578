package crash

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The table of doc/reliability.md says of each point what is seen afterwards.
func TestEachPointIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../doc/reliability.md")
	require.NoError(t, err)
	section := regexp.MustCompile(`(?s)\n\| killed at .*?\n\n`).FindString(string(text))
	var rows []point
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+?) \| [^|]+ \| [^|]+ \|$`).FindAllStringSubmatch(section, -1) {
		rows = append(rows, point(m[1]))
	}
	require.NotEmpty(t, rows)
	assert.Equal(t, append([]point{"killed at"}, points...), rows)
}

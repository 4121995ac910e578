package table_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		line  string
		width int
		want  string
		why   string
	}{
		{"desk", 4, "desk", "it fits"},
		{"desks", 4, "des…", "an ellipsis says that there is more"},
		{"desks", 1, "…", "nothing but that"},
		{"desks", 0, "desks", "unbounded"},
		{"日本語", 6, "日本語", "wide, and it fits"},
		{"日本語x", 6, "日本…", "no half of a wide one"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…", "what combines stays together"},
	} {
		assert.Equal(t, c.want, table.Cut(c.line, c.width), c.why)
	}
}

package statespace_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/statespace"
)

func TestReadsSaysWhatIsLookedAt(t *testing.T) {
	g, err := statespace.Compile([]statespace.Node{{Name: "free"}, {Name: "listed"}, {Name: "asked"},
		{Name: "after", Needs: []statespace.Need{{Action: "free"}, {Action: "listed", Bind: []statespace.Bind{{Mine: "id", Theirs: "ids.*", Output: true}}}, {Action: "asked", Bind: []statespace.Bind{{Mine: "id", Theirs: "id"}}}}}})
	require.NoError(t, err)
	for _, c := range []struct {
		name                    string
		required, input, output bool
	}{
		{"free", false, false, false},
		{"listed", false, false, true},
		{"asked", false, true, false},
		{"after", true, false, false},
		{"unknown", true, true, true},
	} {
		required, input, output := g.Reads(c.name)
		assert.Equal(t, []bool{c.required, c.input, c.output}, []bool{required, input, output}, c.name)
	}
}

package conformance_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/conformance"
)

var update = flag.Bool("update", false, "write the table of doc/conformance.md anew")

const document, begin = "../doc/conformance.md", "<!-- go test ./conformance -run TestDocument -update -->\n"

func TestDocument(t *testing.T) {
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	head, table, found := strings.Cut(string(text), begin)
	require.True(t, found, "%s has lost its marker", document)
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(head+begin+conformance.Document()), 0o644))
		return
	}
	assert.Equal(t, conformance.Document(), table, "the cases changed: go test ./conformance -run TestDocument -update")
}

func TestCasesAreWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range conformance.Cases() {
		assert.Regexp(t, regexp.MustCompile(`^C\d\d$`), c.ID)
		assert.False(t, seen[c.ID], "%s twice", c.ID)
		seen[c.ID] = true
		assert.NotEmpty(t, c.Symptom, c.ID)
		assert.NotEmpty(t, c.Guards, c.ID)
		assert.GreaterOrEqual(t, len(c.Variants), 2, "%s: one input is no kind", c.ID)
		for _, v := range c.Variants {
			assert.False(t, seen[c.ID+v.Name], "%s: %s twice", c.ID, v.Name)
			seen[c.ID+v.Name] = true
			assert.NotContains(t, v.Name, "|")
		}
	}
}

package schema

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDocumentListsEveryKeyword walks doc/schema.md: each keyword and format stands in the section of what becomes of it.
func TestDocumentListsEveryKeyword(t *testing.T) {
	text, err := os.ReadFile("../doc/schema.md")
	require.NoError(t, err)
	sections := map[string]string{}
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		sections[title] = body
	}
	for name := range keywords {
		enforced, idle := strings.Contains(sections["Enforced"], "`"+name+"`"), strings.Contains(sections["Annotations"], "`"+name)
		assert.True(t, enforced != idle, "keyword %s: enforced %v, annotation %v", name, enforced, idle)
	}
	for name := range formats {
		assert.Contains(t, sections["Enforced"], "`"+name+"`")
	}
	for name := range refused {
		assert.Contains(t, sections["Refused at declaration"], "`"+name+"`")
		assert.NotContains(t, keywords, name)
	}
}

func TestSchemaIsSafeForConcurrentUse(t *testing.T) {
	ours := mustDeclare(t, orderSchema)
	theirs, err := Foreign([]byte(orderSchema))
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				for _, s := range []*Schema{ours, theirs} {
					_, f := s.Check([]byte(benchInput))
					assert.Nil(t, f)
					_, f = s.Check([]byte(`{"orderId":1}`))
					assert.NotNil(t, f)
					_, err := Narrow(s, []Allowed{{Fields: []string{"orderId"}, Tuples: nil}})
					assert.Error(t, err)
				}
			}
		})
	}
	wg.Wait()
}

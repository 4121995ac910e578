//go:build heavy && amd64

package plots

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	riskbench "github.com/seed-ab2cfece/delta-agents/bench/risk"
)

const page = "../../../doc/risk.md"

var tableInPage = regexp.MustCompile(`(?s)(<!-- table: .*? -->\n)(.*?)(<!-- end of table -->)`)

// What the page shows is what a run gives. With DOC=write the table and the two pictures are written instead. Elsewhere than
// on amd64 the compiler may fuse multiply and add, and the last digit shown may differ.
func TestPageShowsWhatIsMeasured(t *testing.T) {
	r, err := riskbench.Run(t.Context(), riskbench.Config{})
	require.NoError(t, err)
	table := riskbench.Markdown(r.Table())
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	parts := tableInPage.FindSubmatch(text)
	require.Len(t, parts, 4, "the page has a table between its marks")
	dir := t.TempDir()
	paths, err := Gaps(dir, r)
	require.NoError(t, err)
	for _, s := range riskbench.Scenarios() {
		if s.Name == "step" {
			more, err := Trace(dir, s, 0)
			require.NoError(t, err)
			paths = append(paths, more...)
		}
	}
	if os.Getenv("DOC") == "write" {
		text = tableInPage.ReplaceAll(text, []byte("${1}"+table+"${3}"))
		require.NoError(t, os.WriteFile(page, text, 0o644))
		parts = tableInPage.FindSubmatch(text)
	}
	require.Equal(t, table, string(parts[2]), "DOC=write go test -tags heavy -run TestPage ./bench/risk/plots writes it anew")
	for _, p := range paths {
		if filepath.Ext(p) != ".svg" {
			continue
		}
		drawn, err := os.ReadFile(p)
		require.NoError(t, err)
		kept := filepath.Join(filepath.Dir(page), "img", filepath.Base(p))
		if os.Getenv("DOC") == "write" {
			require.NoError(t, os.WriteFile(kept, drawn, 0o644))
		}
		have, err := os.ReadFile(kept)
		require.NoError(t, err)
		require.True(t, string(have) == string(drawn), "%s is drawn anew by DOC=write", kept)
	}
}

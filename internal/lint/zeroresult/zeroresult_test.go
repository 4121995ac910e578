package zeroresult_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/seed-ab2cfece/delta-agents/internal/lint/zeroresult"
)

// The expectations stand beside the code they are about, in testdata/src/a.
func TestAnalyzer(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), zeroresult.Analyzer, "a")
}

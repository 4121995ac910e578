package conformance_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/conformance"
	"github.com/seed-ab2cfece/delta-agents/conformance/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) { conformance.Run(t, subject.Open(subject.InProcess)) }

// TestTable prints what TestConformance checks; -v shows it.
func TestTable(t *testing.T) {
	if !testing.Verbose() {
		t.Skip("prints a table; run with -v")
	}
	verdicts := conformance.Check(subject.Open(subject.InProcess), conformance.Cases())
	require.NoError(t, conformance.Table(os.Stdout, verdicts))
}

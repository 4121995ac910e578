//go:build heavy

package sandbox_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/sandbox"
)

func TestTakesNotAllTheTime(t *testing.T) {
	began := time.Now()
	out, err := sh(t, sandbox.Config{Limits: sandbox.Limits{CPU: time.Second, Time: 20 * time.Second}}, "while :; do :; done")
	var exit *sandbox.ExitError
	require.ErrorAs(t, err, &exit, out)
	assert.GreaterOrEqual(t, exit.Code, 128, "it was ended")
	assert.Less(t, time.Since(began), 15*time.Second)
}

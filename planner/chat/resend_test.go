package chat

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/delta"
)

// A reply that broke off is asked for again under a reservation of its own where the first does not cover it, and as often
// as configured all the same.
func TestAResendThatDoesNotFitIsReservedAnew(t *testing.T) {
	cut := say{Reply{Text: strings.Repeat("x", 300)}, fmt.Errorf("read: %w", ErrCut)}
	for _, lines := range [][]say{{cut, calls(call("", "read", "{}"))}, {cut, cut}} {
		m := &mouth{lines: lines}
		p, r := planner(t, m, Config{FirstPrompt: 1}), first()
		prop, err := p.Plan(context.Background(), r)
		require.NoError(t, err)
		assert.True(t, prop.More)
		assert.Empty(t, prop.Calls)
		assert.Positive(t, prop.Used.Tokens)
		assert.Len(t, m.heard, 1)
		r.More = true
		prop, err = p.Plan(context.Background(), r)
		require.Len(t, m.heard, 2)
		assert.Equal(t, m.heard[0].Messages, m.heard[1].Messages)
		if len(lines[1].Calls) == 0 {
			require.ErrorIs(t, err, ErrCut)
			continue
		}
		require.NoError(t, err)
		assert.Len(t, prop.Calls, 1)
	}
	p := planner(t, &mouth{}, Config{})
	_, err := p.Plan(context.Background(), delta.Request{Step: 1, More: true})
	assert.ErrorContains(t, err, "does not go on")
}

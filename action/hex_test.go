package action_test

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func TestAppendHex(t *testing.T) {
	for from := range 8 {
		var sum [32]byte
		for i := range sum {
			sum[i] = byte(from*32 + i)
		}
		require.Equal(t, "x"+hex.EncodeToString(sum[:]), string(action.AppendHex([]byte("x"), &sum)))
	}
}

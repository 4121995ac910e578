package ledger

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Eight bytes together say what one after the other says, wherever the odd one stands.
func TestScansAreThoseByByte(t *testing.T) {
	bytewise := func(b []byte, i int, ascii bool) int {
		for i < len(b) && (b[i] >= 0x80 && !ascii || b[i] < 0x80 && plain[b[i]]) {
			i++
		}
		return i
	}
	for n := range 20 {
		for at := range n {
			for c := range 256 {
				b := make([]byte, n)
				for i := range b {
					b[i] = 'a'
				}
				b[at] = byte(c)
				require.Equal(t, bytewise(b, 0, true), asciiFrom(string(b), 0), "%q", b)
				require.Equal(t, bytewise(b, 0, false), textFrom(b, 0), "%q", b)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "b")
		i := rapid.IntRange(0, len(b)).Draw(t, "i")
		assert.Equal(t, bytewise(b, i, true), asciiFrom(string(b), i))
		assert.Equal(t, bytewise(b, i, false), textFrom(b, i))
	})
}

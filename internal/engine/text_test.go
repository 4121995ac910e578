package engine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// Strings cut out of pieces stay what they were, however long they are and whatever is cut out after them.
func TestWhatIsCutOutNeverChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &piece{}
		if rapid.Bool().Draw(t, "none") {
			p = nil
		}
		var got, want []string
		for i, n := range rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 7, 300, pieceLeft, pieceLeft + 1, pieceSize - 1, pieceSize, 3 * pieceSize}), 1, 40).Draw(t, "lengths") {
			s := strings.Repeat(string(rune('a'+i%26)), n)
			want = append(want, s)
			got = append(got, p.end(append(p.begin(), s...)))
		}
		assert.Equal(t, want, got)
	})
}

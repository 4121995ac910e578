package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Of more calls than are handed on it is said of which actions they are: nothing is forgotten, and what is handed on stays small.
func TestI16_NothingIsLeftOutOfWhatIsHandedOn(t *testing.T) {
	few := []string{"unknown/b/2", "unknown/a/1", "unknown/b/2"}
	assert.Equal(t, []string{"unknown/a/1", "unknown/b/2"}, bounded(few))
	many := make([]string, 0, 2*maxHanded)
	for i := range 2 * maxHanded {
		name := []string{"pay", "bank/out"}[i%2]
		many = append(many, unknownKeys(name, fmt.Sprintf(`{"n":%d}`, i), fmt.Sprintf(`{"n/=":%d}`, i))...)
	}
	all := bounded(many)
	assert.Equal(t, []string{anyInput("bank/out"), anyInput("pay")}, all)
	assert.Equal(t, []string{anyInput("bank/out"), anyInput("pay")}, bounded(append(all, all...)))
	assert.Empty(t, bounded(nil))
}

func TestTheActionOfAKey(t *testing.T) {
	for _, name := range []string{"pay", "bank/out/now"} {
		for _, key := range append(unknownKeys(name, `{}`, `{"a/=":"/="}`), anyInput(name)) {
			assert.Equal(t, name, actionOf(key), key)
		}
	}
}

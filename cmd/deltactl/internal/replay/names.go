package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// escapePrefix begins every escaped name.
const escapePrefix = "escaped-"

// names gives recorded names, which may be anything, names that the engine accepts. A name stays as it is where it can;
// where it is not well formed, is reserved, reads as an escaped one, or could be taken for another of the same set, it
// becomes "escaped-" and its bytes in hexadecimal, of more than 60 bytes "escaped-z" and their SHA-256. Names that read alike to a person are
// refused by an agent's Build for good reason, but a recording is history and has to be taken as it is.
type names struct {
	to, from map[string]string
}

func newNames(originals []string) names {
	sorted := slices.Sorted(slices.Values(originals))
	n := names{to: map[string]string{}, from: map[string]string{}}
	alike := map[string]bool{}
	for _, s := range sorted {
		skeleton := action.Skeleton(s)
		name := s
		if reserved(s) || alike[skeleton] || action.CheckName(s) != nil {
			name = escape(s)
		} else {
			alike[skeleton] = true
		}
		n.to[s], n.from[name] = name, s
	}
	return n
}

// reserved names would be refused, or could be taken for an escaped name.
func reserved(s string) bool {
	return strings.HasPrefix(s, "delta.") || strings.HasPrefix(action.Skeleton(s), action.Skeleton(escapePrefix)) || len(s) > action.MaxName
}

func escape(s string) string {
	text := hex.EncodeToString([]byte(s))
	if len(escapePrefix)+len(text) > action.MaxName {
		sum := sha256.Sum256([]byte(s))
		text = "z" + hex.EncodeToString(sum[:]) // no digit: kept apart from a name of these very bytes
	}
	return escapePrefix + text
}

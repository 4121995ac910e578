package statespace

import (
	"crypto/hmac"
	"crypto/sha256"
	"slices"
)

// Hash says how values that must not be read are written into keys. Whoever looks for a fact must hash as whoever
// established it did.
type Hash struct {
	Key []byte // of an HMAC-SHA-256, so that nobody without it can test a guess; nil: a plain SHA-256
	All bool   // hashes every value under the key; else those that are secret, and what is too long to show has a plain hash
}

func (h *Hash) sum(text string, secret bool) [sha256.Size]byte {
	if h.Key == nil || !secret && !h.All {
		return sha256.Sum256([]byte(text))
	}
	m := hmac.New(sha256.New, h.Key)
	m.Write([]byte(text))
	return [sha256.Size]byte(m.Sum(nil))
}

// Under returns the graph that hashes in this way. It shares everything else with g.
func (g *Graph) Under(h Hash) *Graph {
	c := *g
	c.hash = h
	return &c
}

// Under returns the set, for reading, of which [Set.Check] hashes in this way. It is good until the set changes.
func (s *Set) Under(h Hash) *Set {
	c := *s
	c.g = s.g.Under(h)
	return &c
}

// Hashes reports whether keys that an Ok of the action writes, or that its calls need, hold secret values.
func (g *Graph) Hashes(name string) bool {
	i, ok := g.index[name]
	return ok && (slices.ContainsFunc(g.setsOf[i], func(id int) bool { return g.sets[id].hashed }) ||
		slices.ContainsFunc(g.needs[i], func(n need) bool { return g.sets[n.set].hashed }))
}

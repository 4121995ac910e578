package delta

import (
	"bytes"
	"slices"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// handed is the offer that was handed out last, apart from the engine's own, whose bytes nobody else sees. As long as the
// engine's is the same and nobody wrote to what was handed out, it is handed out again without copying the schemas.
type handed struct {
	mu  sync.Mutex
	own []action.Offered // the engine's, never changed
	out []action.Offered // the same with schemas of its own
}

// hand returns what a caller gets of the engine's offer.
func (h *handed) hand(o action.Offer) action.Offer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.same(o.Actions) {
		h.own, h.out = o.Actions, action.Offer{Actions: o.Actions}.Clone().Actions
	}
	o.Actions, o.Guidance = slices.Clone(h.out), slices.Clone(o.Guidance)
	return o
}

// same reports whether what was handed out still says what the engine's own list does.
func (h *handed) same(own []action.Offered) bool {
	if len(own) == 0 || len(own) != len(h.own) || &own[0] != &h.own[0] {
		return false
	}
	for i := range own {
		if !bytes.Equal(h.out[i].Schema, own[i].Schema) {
			return false
		}
	}
	return true
}

package statespace

import (
	"iter"
	"maps"
	"math/bits"
	"slices"
)

// Set is the prerequisite-legal set of one task, kept up to date fact by fact. It is not safe for concurrent use.
type Set struct {
	g     *Graph
	held  []*holding // by field set, nil where nothing ever happened
	unmet []int32    // by action: needs whose field set holds nothing
	legal []uint64   // bits by action: unmet is 0
}

// holding is what is held of one field set: value → store time of the Ok, µs.
type holding struct {
	tokens, bulk Cell
	removed      map[string]bool // used up and not established again
}

func (h *holding) empty() bool { return h == nil || len(h.tokens) == 0 && len(h.bulk) == 0 }

func (h *holding) remove(value string) {
	if h.removed == nil {
		h.removed = map[string]bool{}
	}
	h.removed[value] = true
}

// NewSet returns the set of a task in which nothing has happened.
func (g *Graph) NewSet() *Set {
	n := len(g.nodes)
	s := &Set{g: g, held: make([]*holding, len(g.sets)), unmet: make([]int32, n), legal: make([]uint64, (n+63)/64)}
	for i, needs := range g.needs {
		s.unmet[i] = int32(len(needs))
		s.mark(i)
	}
	return s
}

// Clear makes the set that of a task in which nothing has happened.
func (s *Set) Clear() { *s = *s.g.NewSet() }

// mark sets the legal bit of an action from its count.
func (s *Set) mark(i int) {
	if bit := uint64(1) << (i % 64); s.unmet[i] == 0 {
		s.legal[i/64] |= bit
	} else {
		s.legal[i/64] &^= bit
	}
}

// Put notes that a fact is held, by a token set at store time at (µs). It reports whether the graph knows its field set:
// facts nobody needs are ignored.
func (s *Set) Put(key string, at int64) bool {
	id, value, ok := s.locate(key)
	if !ok {
		return false
	}
	s.change(id, func(h *holding) {
		if h.tokens == nil {
			h.tokens = Cell{}
		}
		h.tokens[value] = at
		delete(h.removed, value)
	})
	return true
}

// Remove notes that a fact was used up. It need not be held: Explain remembers the removal all the same, so that a set
// built anew from stored tokens knows of it too.
func (s *Set) Remove(key string) {
	if id, value, ok := s.locate(key); ok {
		s.change(id, func(h *holding) {
			delete(h.tokens, value)
			h.remove(value)
		})
	}
}

// PutBulk notes that the values are held by the bulk cell of a field set, since store time at (µs), along with what the
// cell held before.
func (s *Set) PutBulk(setKey string, values []string, at int64) bool {
	id, ok := s.g.byKey[setKey]
	if !ok {
		return false
	}
	s.change(id, func(h *holding) {
		if h.bulk == nil {
			h.bulk = make(Cell, len(values))
		}
		for _, v := range values {
			h.bulk[v] = at
			delete(h.removed, v)
		}
	})
	return true
}

// PutCell notes what the bulk cell of a field set holds now; what it held before and lacks now was used up.
func (s *Set) PutCell(setKey string, cell Cell) bool {
	id, ok := s.g.byKey[setKey]
	if !ok {
		return false
	}
	s.change(id, func(h *holding) {
		for v := range h.bulk {
			h.remove(v)
		}
		h.bulk = maps.Clone(cell)
		for v := range cell {
			delete(h.removed, v)
		}
	})
	return true
}

// RemoveBulk notes that the bulk cell of a field set lost the values or, where none are given, everything.
func (s *Set) RemoveBulk(setKey string, values ...string) {
	id, ok := s.g.byKey[setKey]
	if !ok {
		return
	}
	s.change(id, func(h *holding) {
		if len(values) == 0 {
			values = slices.Collect(maps.Keys(h.bulk))
		}
		for _, v := range values {
			delete(h.bulk, v)
			h.remove(v)
		}
	})
}

func (s *Set) locate(key string) (id int, value string, ok bool) {
	set, value, ok := splitKey(key)
	if !ok {
		return 0, "", false
	}
	id, ok = s.g.byKey[set]
	return id, value, ok && (value == "") == (len(s.g.sets[id].fields) == 0)
}

// change applies f and, where the field set became empty or is so no more, visits those who watch it.
func (s *Set) change(id int, f func(*holding)) {
	if s.held[id] == nil {
		s.held[id] = &holding{}
	}
	h := s.held[id]
	was := h.empty()
	f(h)
	if h.empty() == was {
		return
	}
	delta := int32(-1)
	if !was {
		delta = 1
	}
	for _, i := range s.g.sets[id].watchers {
		s.unmet[i] += delta
		s.mark(int(i))
	}
}

// Legal reports whether every need of the action has at least one fact, however old. Unknown actions are not legal.
func (s *Set) Legal(name string) bool {
	i, ok := s.g.index[name]
	return ok && s.unmet[i] == 0
}

// Fresh reports whether the action is legal at store time now (µs), considering how old the facts may be.
func (s *Set) Fresh(name string, now int64) bool {
	i, ok := s.g.index[name]
	return ok && s.unmet[i] == 0 && !slices.ContainsFunc(s.g.needs[i], func(n need) bool { return !s.met(&n, now) })
}

// met reports whether some fact of the need's field set is fresh enough.
func (s *Set) met(n *need, now int64) bool {
	h := s.held[n.set]
	if h.empty() || n.within == 0 {
		return !h.empty()
	}
	return anyFresh(h.tokens, n.within, now) || anyFresh(h.bulk, n.within, now)
}

func anyFresh(values Cell, within, now int64) bool {
	for _, at := range values {
		if isFresh(at, within, now) {
			return true
		}
	}
	return false
}

// isFresh has the meaning of a Have clause: set at most within ago.
func isFresh(at, within, now int64) bool { return within == 0 || now-at <= within }

// All yields the legal actions in declaration order, freshness not considered.
func (s *Set) All(yield func(string) bool) {
	for w, word := range s.legal {
		for ; word != 0; word &= word - 1 {
			if !yield(s.g.nodes[w*64+bits.TrailingZeros64(word)].Name) {
				return
			}
		}
	}
}

// Names returns the legal actions in declaration order, freshness not considered.
func (s *Set) Names() []string { return slices.Collect(iter.Seq[string](s.All)) }

// Use notes that a fact was used up, whether a token or the bulk cell of its field set held it.
func (s *Set) Use(key string) {
	if id, value, ok := s.locate(key); ok {
		s.change(id, func(h *holding) {
			delete(h.tokens, value)
			delete(h.bulk, value)
			h.remove(value)
		})
	}
}

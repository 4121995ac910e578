package statespace

import (
	"iter"
	"math/bits"
	"slices"
)

// Set is the prerequisite-legal set of one task, kept up to date fact by fact. It is not safe for concurrent use.
type Set struct {
	g     *Graph
	held  []*holding // by field set, nil where nothing ever happened
	unmet []int32    // by action: needs whose field set holds nothing
	legal []uint64   // bits by action: unmet is 0
	clock uint64     // counts changes
	floor uint64     // its count when the set was last cleared
}

// holding is what is held of one field set, value by value.
type holding struct {
	values map[string]*standing
	done   *standing // of the value "", that of a set without fields
	live   int       // values that are held
	gone   int       // values that are not held and once were
	moved  uint64    // the set's count at the last change
}

// standing is how one value stands.
type standing struct {
	token, bulk      int64 // store time of the Ok that established it, µs
	hasToken, inBulk bool
	removed          bool // used up and not established again
}

func (v *standing) live() bool { return v.hasToken || v.inBulk }

func (h *holding) empty() bool { return h == nil || h.live == 0 }

// at returns how a value stands, for a change of it.
func (h *holding) at(value string) *standing {
	if value == "" && h.done != nil {
		return h.done
	}
	v := h.values[value]
	if v == nil {
		if h.values == nil {
			h.values = map[string]*standing{}
		}
		v = &standing{}
		if h.values[value] = v; value == "" {
			h.done = v
		}
	}
	return v
}

// NewSet returns the set of a task in which nothing has happened.
func (g *Graph) NewSet() *Set {
	n := g.actions
	s := &Set{g: g, held: make([]*holding, len(g.sets)), unmet: make([]int32, n), legal: make([]uint64, (n+63)/64)}
	for i, needs := range g.needs[:n] {
		if s.unmet[i] = int32(len(needs)); len(needs) == 0 {
			s.legal[i/64] |= 1 << (i % 64)
		}
	}
	return s
}

// Clear makes the set that of a task in which nothing has happened.
func (s *Set) Clear() {
	n := s.g.NewSet()
	n.clock = s.clock + 1
	n.floor = n.clock
	*s = *n
}

// Moved returns a number that is another one after anything changed that the needs of the action rest on. What merely
// grew too old did not change, see [Graph.Timed]. The action must be one of the graph.
func (s *Set) Moved(name string) uint64 {
	last, needs := s.floor, s.g.needs[s.g.index[name]]
	for k := range needs {
		if h := s.held[needs[k].set]; h != nil {
			last = max(last, h.moved)
		}
	}
	return last
}

// Put notes that a fact is held, by a token set at store time at (µs). It reports whether the graph knows its field set:
// facts nobody needs are ignored.
func (s *Set) Put(key string, at int64) bool {
	id, value, ok := s.locate(key)
	if !ok {
		return false
	}
	h := s.holding(id)
	v, was := h.at(value), h.live
	set(h, v, standing{token: at, hasToken: true, bulk: v.bulk, inBulk: v.inBulk})
	s.note(id, was)
	return true
}

// Remove notes that a fact was used up. It need not be held: Explain remembers the removal all the same, so that a set
// built anew from stored tokens knows of it too.
func (s *Set) Remove(key string) {
	if id, value, ok := s.locate(key); ok {
		h := s.holding(id)
		v, was := h.at(value), h.live
		set(h, v, standing{bulk: v.bulk, inBulk: v.inBulk, removed: true})
		s.note(id, was)
	}
}

// Use notes that a fact was used up, whether a token or the bulk cell of its field set held it.
func (s *Set) Use(key string) {
	if id, value, ok := s.locate(key); ok {
		h := s.holding(id)
		v, was := h.at(value), h.live
		set(h, v, standing{removed: true})
		s.note(id, was)
	}
}

// PutBulk notes that the values are held by the bulk cell of a field set, since store time at (µs), along with what the
// cell held before.
func (s *Set) PutBulk(setKey string, values []string, at int64) bool {
	id, ok := s.g.byKey[setKey]
	if !ok {
		return false
	}
	h := s.holding(id)
	was := h.live
	for _, value := range values {
		v := h.at(value)
		set(h, v, standing{token: v.token, hasToken: v.hasToken, bulk: at, inBulk: true})
	}
	s.note(id, was)
	return true
}

// PutCell notes what the bulk cell of a field set holds now; what it held before and lacks now was used up.
func (s *Set) PutCell(setKey string, cell Cell) bool {
	id, ok := s.g.byKey[setKey]
	if !ok {
		return false
	}
	h := s.holding(id)
	was := h.live
	for _, v := range h.values {
		leaveBulk(h, v)
	}
	for value, at := range cell {
		v := h.at(value)
		set(h, v, standing{token: v.token, hasToken: v.hasToken, bulk: at, inBulk: true})
	}
	s.note(id, was)
	return true
}

// RemoveBulk notes that the bulk cell of a field set lost the values or, where none are given, everything.
func (s *Set) RemoveBulk(setKey string, values ...string) {
	id, ok := s.g.byKey[setKey]
	if !ok {
		return
	}
	h := s.holding(id)
	was := h.live
	for _, value := range values {
		v := h.at(value)
		set(h, v, standing{token: v.token, hasToken: v.hasToken, removed: true})
	}
	if len(values) == 0 {
		for _, v := range h.values {
			leaveBulk(h, v)
		}
	}
	s.note(id, was)
}

func leaveBulk(h *holding, v *standing) {
	if v.inBulk {
		set(h, v, standing{token: v.token, hasToken: v.hasToken, removed: true})
	}
}

func (s *Set) locate(key string) (id int, value string, ok bool) {
	set, value, ok := splitKey(key)
	if !ok {
		return 0, "", false
	}
	id, ok = s.g.byKey[set]
	return id, value, ok && (value == "") == (len(s.g.sets[id].fields) == 0)
}

func (s *Set) holding(id int) *holding {
	if s.held[id] == nil {
		s.held[id] = &holding{}
	}
	return s.held[id]
}

// set moves a value to where it stands now, and keeps the counts.
func set(h *holding, v *standing, now standing) {
	if v.live() != now.live() {
		h.live++
		if v.live() {
			h.live -= 2
		}
	}
	if v.removed != now.removed {
		h.gone++
		if v.removed {
			h.gone -= 2
		}
	}
	*v = now
}

// note counts a change of a field set that held was values and, where it became empty or is so no more, visits those who watch it.
func (s *Set) note(id, was int) {
	h := s.held[id]
	s.clock++
	h.moved = s.clock
	if (h.live == 0) == (was == 0) {
		return
	}
	if was == 0 {
		for _, i := range s.g.sets[id].watchers {
			if s.unmet[i]--; s.unmet[i] == 0 {
				s.legal[i/64] |= 1 << (i % 64)
			}
		}
		return
	}
	for _, i := range s.g.sets[id].watchers {
		if s.unmet[i]++; s.unmet[i] == 1 {
			s.legal[i/64] &^= 1 << (i % 64)
		}
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
	for _, v := range h.values {
		if v.fresh(n.within, now) {
			return true
		}
	}
	return false
}

// fresh reports whether the value is held by what is fresh enough.
func (v *standing) fresh(within, now int64) bool {
	return v.hasToken && isFresh(v.token, within, now) || v.inBulk && isFresh(v.bulk, within, now)
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

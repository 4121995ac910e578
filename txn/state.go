package txn

import "maps"

// Cell is a versioned value. A cell that is absent has version 0.
type Cell struct {
	Ver int64
	Val string
}

// Token is something that exists once and is handed on by state: a satisfied fact, an approval.
type Token struct {
	State string
	At    int64 // store time at which it was set, µs
	Exp   int64 // store time at which it expires, µs; 0 never
	Val   string
}

// Live reports whether the token has not expired at store time now.
func (t Token) Live(now int64) bool { return t.Exp == 0 || t.Exp > now }

// Space is the state of one scope. Rev counts the accepted transactions that wrote to it. Its zero value is empty and
// ready to use: maps are made when something is written.
type Space struct {
	Rev      int64
	Cells    map[string]Cell
	Counters map[string]int64
	Tokens   map[string]Token
}

// NewSpace returns an empty space that has its maps.
func NewSpace() Space {
	return Space{Cells: map[string]Cell{}, Counters: map[string]int64{}, Tokens: map[string]Token{}}
}

// Clone returns a copy that shares nothing and has its maps.
func (s Space) Clone() Space {
	c := Space{Rev: s.Rev, Cells: maps.Clone(s.Cells), Counters: maps.Clone(s.Counters), Tokens: maps.Clone(s.Tokens)}
	made(&c.Cells)
	made(&c.Counters)
	made(&c.Tokens)
	return c
}

// State is what conditions look at and writes change.
type State struct{ Task, Record, Agent Space }

// NewState returns an empty state.
func NewState() State { return State{NewSpace(), NewSpace(), NewSpace()} }

// Clone returns a copy that shares nothing.
func (s State) Clone() State { return State{s.Task.Clone(), s.Record.Clone(), s.Agent.Clone()} }

// Space returns the space of a scope.
func (s *State) Space(k Scope) *Space {
	switch k {
	case Task:
		return &s.Task
	case Record:
		return &s.Record
	default:
		return &s.Agent
	}
}

// Holds reports whether the clause's condition holds at store time now. Clauses without a condition always hold, and so
// do soft ones.
func (s *State) Holds(c *Clause, now int64) bool {
	switch c.Op {
	case Expect:
		return s.Space(c.Scope).Cells[c.Key].Ver == c.N
	case Count:
		v := s.Space(c.Scope).Counters[c.Key]
		return c.Soft || v >= c.Min && v+c.N <= c.Max && v+c.N >= NoMin
	case Have:
		return s.matches(c, now)
	case Take:
		return c.Soft || s.matches(c, now)
	case Time:
		return c.Min <= now && now <= c.Max
	}
	return true
}

func (s *State) matches(c *Clause, now int64) bool {
	t, has := s.Space(c.Scope).Tokens[c.Key]
	if c.From == "" {
		return !has || !t.Live(now)
	}
	if !has || t.State != c.From {
		return false
	}
	return c.N < 0 || t.Live(now) && (c.N == 0 || t.At+c.N >= now)
}

// Write applies the clause's write, if it has one; the conditions of the whole transaction must have been checked.
func (s *State) Write(c *Clause, now int64) {
	sp := s.Space(c.Scope)
	switch c.Op {
	case Put:
		made(&sp.Cells)
		sp.Cells[c.Key] = Cell{sp.Cells[c.Key].Ver + 1, c.Val}
	case Count:
		if c.N != 0 {
			made(&sp.Counters)
			sp.Counters[c.Key] = min(max(sp.Counters[c.Key]+c.N, NoMin), NoMax) // only a soft one can reach beyond
		}
	case Set:
		t := Token{State: c.To, At: now, Val: c.Val}
		if c.N > 0 {
			t.Exp = now + c.N
		}
		made(&sp.Tokens)
		sp.Tokens[c.Key] = t
	case Take:
		s.take(sp, c, now)
	}
}

func (s *State) take(sp *Space, c *Clause, now int64) {
	if c.Soft && !s.matches(c, now) {
		return
	}
	if c.To == "" {
		delete(sp.Tokens, c.Key)
		return
	}
	t, has := sp.Tokens[c.Key]
	switch {
	case c.From == "":
		t = Token{At: now}
	case !has: // a snapshot that never saw it: half a token would pass for the whole
		return
	}
	t.State = c.To
	made(&sp.Tokens)
	sp.Tokens[c.Key] = t
}

// made makes the map where there is none yet.
func made[V any](m *map[string]V) {
	if *m == nil {
		*m = map[string]V{}
	}
}

// Apply checks every condition, then writes; a space that was the zero value has maps afterwards. It returns the index of the first condition that does not hold, or -1.
func (s *State) Apply(cs []Clause, now int64) int {
	for i := range cs {
		if !s.Holds(&cs[i], now) {
			return i
		}
	}
	s.Replay(cs, now)
	return -1
}

// Replay writes without checking: for transactions that a store has accepted.
func (s *State) Replay(cs []Clause, now int64) {
	for i := range cs {
		s.Write(&cs[i], now)
	}
}

package risk

import (
	"math"
	"slices"
)

// The shared parts of an agent are g = (agent, slope, tag, tag, …), g ~ N(m, P). What an action has of its own is
//
//	x | g ~ N(a + b'g, v)
//
// and different x are independent given g. This is the joint Gaussian of all actions in a form whose cost does not grow
// with their number: an outcome of one action changes m and P and that action's a, b and v, and no other's.
//
// Only the drift of the agent's part does: with g₀ the agent's part before it moved, other actions are tied to g₀ and not
// to what it became. Seen from the new g, g₀ is Gaussian again, so that b, a and v of every action pass through one linear
// step. Those steps are accumulated in the shared block and applied when an action is next looked at; see [era].
const (
	iAgent = 0
	iSlope = 1
	fixed  = 2 // shared parts before the tags
)

// shared is the part that every observation changes.
type shared struct {
	trust   gauss // log-odds of Err of the agent as a whole; variance 0 before the first observation
	ok, err uint64
	agent   track
	tags    []string // in order of first appearance
	members int
	eras    []era
	f       []float64 // weights, then mean and covariance of each member, then the steps of each era; see the methods
}

// track is the state of a change detector and what it found last.
type track struct {
	sums    sums
	changed Event
	at      uint64 // the observation, counted from 1, of the last change
}

// era is a stretch of time over which the drift of the agent is accumulated. An action that was last looked at within an
// era is kept as it would have been at its beginning. An era ends when the memory of its beginning has faded to a quarter,
// which keeps the accumulated sums exact; it is joined with the one before it when no action was last looked at within it.
// So there are never more eras than actions, plus one, and for agents whose actions are all in use there are a few.
type era struct {
	id   uint64
	refs int // actions last looked at within; not encoded
}

// offsets into the step of an era
const (
	sKeep = 0 // b₀ ← keep·b₀
	sVar  = 1 // v ← v + var·b₀²
	sMean = 2 // a ← a + mean·b₀
	sRest = 3 // b_c ← b_c − rest_c·b₀ for the parts from iSlope on
)

const fade = 0.25

func (s *shared) empty() bool { return s.trust.variance == 0 }
func (s *shared) k() int      { return fixed + len(s.tags) }

func packed(k int) int { return k * (k + 1) / 2 }

func (s *shared) weights() []float64 { return s.f[:s.members] }

func (s *shared) mean(member int) []float64 {
	k := s.k()
	at := s.members + member*(k+packed(k))
	return s.f[at : at+k]
}

// cov returns the lower triangle of P, row by row.
func (s *shared) cov(member int) []float64 {
	k := s.k()
	at := s.members + member*(k+packed(k)) + k
	return s.f[at : at+packed(k)]
}

func (s *shared) step(era, member int) []float64 {
	k := s.k()
	at := s.members*(1+k+packed(k)) + (era*s.members+member)*(k+2)
	return s.f[at : at+k+2]
}

func floats(members, k, eras int) int {
	return members * (1 + k + packed(k) + eras*(k+2))
}

func (s shared) clone() shared {
	s.eras, s.f = slices.Clone(s.eras), slices.Clone(s.f)
	return s
}

// learnTag adds a shared part that is independent of all that is known.
func (s *shared) learnTag(tag string, members []Member) {
	old := *s
	s.tags = append(slices.Clip(s.tags), tag)
	k := s.k()
	s.f = make([]float64, floats(s.members, k, len(s.eras)))
	copy(s.weights(), old.weights())
	for i := range s.members {
		copy(s.mean(i), old.mean(i))
		c := s.cov(i)
		copy(c, old.cov(i))
		c[packed(k)-1] = members[i].Tag
		for e := range s.eras {
			copy(s.step(e, i), old.step(e, i))
		}
	}
}

// begin starts an era.
func (s *shared) begin() {
	id := uint64(1)
	if n := len(s.eras); n > 0 {
		id = s.eras[n-1].id + 1
	}
	s.eras = append(s.eras, era{id: id})
	for range s.members {
		s.f = append(s.f, 1)
		for range s.k() + 1 {
			s.f = append(s.f, 0)
		}
	}
}

func (s *shared) current() int { return len(s.eras) - 1 }

func (s *shared) faded() bool {
	for i := range s.members {
		if s.step(s.current(), i)[sKeep] < fade {
			return true
		}
	}
	return false
}

// maxEras is what the encoding can count.
const maxEras = 1<<16 - 1

// last reports whether no era can follow the current one.
func (s *shared) last() bool {
	return len(s.eras) >= maxEras || s.eras[s.current()].id >= maxCount
}

// find returns the index of an era, −1 where it is not held.
func (s *shared) find(id uint64) int {
	for i := len(s.eras) - 1; i >= 0; i-- {
		if s.eras[i].id == id {
			return i
		}
	}
	return -1
}

// sweep joins eras that nothing needs to be told apart.
func (s *shared) sweep() {
	for i := len(s.eras) - 2; i >= 0; i-- {
		if s.eras[i].refs == 0 {
			s.join(i)
		}
	}
}

// join adds the steps of an era to those of the one before it, and drops it.
func (s *shared) join(i int) {
	if i > 0 {
		for m := range s.members {
			into, from := s.step(i-1, m), s.step(i, m)
			keep := into[sKeep]
			into[sVar] += keep * keep * from[sVar]
			into[sMean] += keep * from[sMean]
			for c := sRest; c < len(into); c++ {
				into[c] += keep * from[c]
			}
			into[sKeep] = keep * from[sKeep]
			tame(into[sVar:], maxPart)
		}
	}
	k := s.k()
	at := s.members * (1 + k + packed(k) + i*(k+2))
	s.f = slices.Delete(s.f, at, at+s.members*(k+2))
	s.eras = slices.Delete(s.eras, i, i+1)
}

// maxPart bounds every number of the state that is not a variance. Nothing that was observed comes near.
const maxPart = 1e4

// tame makes numbers finite and bounded, whatever arithmetic did to them.
func tame(fs []float64, reach float64) {
	for i, f := range fs {
		switch {
		case f != f:
			fs[i] = 0
		case f > reach:
			fs[i] = reach
		case f < -reach:
			fs[i] = -reach
		}
	}
}

// factor writes the upper triangular U with P = U·U' over out, column by column, and returns the least of its squared
// diagonal: 0 or less where P is not positive definite with room for rounding.
func factor(out, p []float64, k int) (least float64) {
	copy(out, p[:packed(k)])
	least = maxPart
	for j := k - 1; j >= 0; j-- {
		col := out[packed(j) : packed(j)+j+1]
		d := col[j]
		if !(d > leastPivot) || !(d < maxPart) {
			return 0
		}
		least = math.Min(least, d)
		d = math.Sqrt(d)
		col[j] = d
		for i := range col[:j] {
			col[i] /= d
		}
		at := 0
		for i, f := range col[:j] {
			to := out[at : at+i+1]
			at += i + 1
			for l := range to {
				to[l] -= f * col[l]
			}
		}
	}
	return least
}

// leastPivot is well above what rounding leaves of a variance of one, and below the least variance.
const leastPivot = 1e-4 * minVariance

// firstColumn solves P·r = e₀ from the factor.
func firstColumn(r, u []float64) {
	r[0] = 1 / (u[0] * u[0])
	for i := 1; i < len(r); i++ {
		row := u[packed(i):]
		var sum float64
		for l := range i {
			sum -= row[l] * r[l]
		}
		r[i] = sum / row[i]
	}
}

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

// frame is the state of one action together with the shared parts, unpacked to be worked on.
type frame struct {
	members []Member
	sh      *shared
	st      *state
	h       []float64 // regressors of the shared parts
	leaves  [maxMembers]leaf
	base    [maxMembers]float64
	factor  []float64
	column  []float64
}

// leaf is one member's state of the action as of now, and what a prediction leaves for the correction that follows.
type leaf struct {
	a, v    float64
	b, u, p []float64 // u = h + b, p = P·u
	pu, um  float64   // p'u, u'm
	least   float64   // bound on the squared diagonal of the factor of P; 0 where it is not known
}

// open unpacks an action; the tags of its declaration must be known to the shared parts.
func (f *frame) open(m *Model, sh *shared, st *state, d Declaration) {
	f.members, f.sh, f.st = m.cfg.Members, sh, st
	k := sh.k()
	f.h = resize(f.h, k)
	clear(f.h)
	f.h[iAgent], f.h[iSlope] = 1, float64(d.Risk-middle)
	for _, t := range d.Tags {
		f.h[fixed+slices.Index(sh.tags, t)] = 1
	}
	f.factor, f.column = resize(f.factor, packed(k)), resize(f.column, k)
	for i := range f.members {
		f.base[i] = m.base(i, d.Risk, len(d.Tags))
		l := &f.leaves[i]
		l.b, l.u, l.p = resize(l.b, k), resize(l.u, k), resize(l.p, k)
	}
	f.read()
}

func resize(s []float64, n int) []float64 {
	if cap(s) < n {
		return make([]float64, n)
	}
	return s[:n]
}

// read unpacks the action as of now.
func (f *frame) read() {
	first := f.sh.find(f.st.era)
	for i := range f.members {
		l := &f.leaves[i]
		clear(l.b)
		if f.st.k == 0 {
			l.a, l.v = 0, f.members[i].Action
			continue
		}
		own := f.st.leaf(i)
		l.v, l.a = own[0], own[1]
		copy(l.b, own[2:])
		for e := first; e < len(f.sh.eras); e++ {
			l.through(f.sh.step(e, i))
		}
		l.v = math.Max(l.v, minVariance)
	}
}

// through takes a leaf from the beginning of a step to its end.
func (l *leaf) through(s []float64) {
	b := l.b[iAgent]
	if b == 0 {
		return
	}
	l.v += s[sVar] * b * b
	l.a += s[sMean] * b
	for c := iSlope; c < len(l.b); c++ {
		l.b[c] -= s[sRest+c-iSlope] * b
	}
	l.b[iAgent] = s[sKeep] * b
}

// back takes a leaf from the end of a step to its beginning.
func (l *leaf) back(s []float64) {
	b := l.b[iAgent] / s[sKeep]
	l.b[iAgent] = b
	l.v -= s[sVar] * b * b
	l.a -= s[sMean] * b
	for c := iSlope; c < len(l.b); c++ {
		l.b[c] += s[sRest+c-iSlope] * b
	}
}

// predict returns mean and variance of the log-odds, without the base.
func (f *frame) predict(member int) (mean, variance float64) {
	l, m, cov := &f.leaves[member], f.sh.mean(member), f.sh.cov(member)
	for i, h := range f.h {
		l.u[i] = h + l.b[i]
	}
	multiply(l.p, cov, l.u)
	l.pu, l.um = 0, 0
	for i, u := range l.u {
		l.pu += l.p[i] * u
		l.um += m[i] * u
	}
	return l.um + l.a, l.pu + l.v
}

// multiply sets p = P·u.
func multiply(p, cov, u []float64) {
	at := 0
	for i := range u {
		row := cov[at : at+i+1]
		at += i + 1
		ui, sum := u[i], row[i]*u[i]
		for j, c := range row[:i] {
			sum += c * u[j]
			p[j] += c * ui
		}
		p[i] = sum
	}
}

// correct moves the joint state along the prediction just made: mean of the log-odds by S·al, variance by S²·be.
// Given g the outcome speaks of x alone, with a gain of k = −be·v/(1+be·p'u): b, a and v follow without subtraction.
func (f *frame) correct(member int, al, be float64) {
	l, m, cov := &f.leaves[member], f.sh.mean(member), f.sh.cov(member)
	left := 1 + be*l.pu
	gain := be * l.v / left
	for i, u := range l.u {
		l.b[i] += gain * u
	}
	l.a += l.v / left * (al - be*l.um)
	l.v = clamp(l.v*(1+be*(l.pu+l.v))/left, minVariance, maxPart)
	at := 0
	for i, p := range l.p {
		m[i] += al * p
		bp := be * p
		for j, q := range l.p[:i+1] {
			cov[at+j] += bp * q
		}
		at += i + 1
	}
	l.least *= left // what a rank-one correction takes from the factor at most
	f.keepProper(member)
}

// keepProper mends what rounding broke, which takes a covariance that is singular to the last digits.
func (f *frame) keepProper(member int) {
	l, m, cov := &f.leaves[member], f.sh.mean(member), f.sh.cov(member)
	tame(m, maxPart)
	tame(l.b, maxPart)
	if !(math.Abs(l.a) <= maxPart) {
		l.a = clamp(l.a, -maxPart, maxPart)
		if l.a != l.a {
			l.a = 0
		}
	}
	if l.least > 1e3*leastPivot {
		return
	}
	for ridge := minVariance; factor(f.factor, cov, len(m)) <= 0; ridge *= 100 {
		tame(cov, maxVariance)
		for i := range m {
			at := packed(i) + i
			cov[at] = math.Min(math.Max(cov[at], 0)+ridge, maxVariance)
			for j := range i {
				cov[packed(i)+j] *= .9
			}
		}
	}
}

func (f *frame) weights() []float64 { return f.sh.weights() }

// agentVariance returns the variance of the agent's part.
func (f *frame) agentVariance(member int) float64 { return f.sh.cov(member)[0] }

// age lets the agent's part and the action's own have moved. P gains q at the agent; with r the first column of its inverse
// thereafter, seen from the new g the old agent's part is g₀ − q·r'(g−m) with variance q·(1−q·r₀).
func (f *frame) age(member int, agent, own float64) {
	l, m, cov := &f.leaves[member], f.sh.mean(member), f.sh.cov(member)
	l.v += own
	l.least = 0
	if agent <= 0 {
		return
	}
	if l.least = factor(f.factor, cov, len(m)); l.least <= 0 {
		return
	}
	r := f.column
	firstColumn(r, f.factor)
	keep := 1 / (1 + agent*r[0])
	var rm float64
	for i := range r {
		r[i] *= agent * keep
		rm += r[i] * m[i]
	}
	step := f.sh.step(f.sh.current(), member)
	pi := step[sKeep]
	step[sKeep] = pi * keep
	step[sVar] += pi * pi * agent * keep
	step[sMean] += pi * rm
	for c := iSlope; c < len(r); c++ {
		step[sRest+c-iSlope] += pi * r[c]
	}
	tame(step, maxPart)
	if b := l.b[iAgent]; b != 0 {
		l.v += b * b * agent * keep
		l.a += b * rm
		for c := iSlope; c < len(r); c++ {
			l.b[c] -= b * r[c]
		}
		l.b[iAgent] = b * keep
	}
	cov[0] += agent
}

// settle packs the action again, and reads it as it will be read from now on.
func (f *frame) settle() {
	if f.sh.faded() {
		f.sh.begin()
	}
	cur := f.sh.current()
	if id := f.sh.eras[cur].id; f.st.k == 0 || f.st.era != id {
		if f.st.k > 0 {
			f.sh.eras[f.sh.find(f.st.era)].refs--
		}
		f.sh.eras[cur].refs++
		f.st.era = id
		f.sh.sweep()
		cur = f.sh.current()
	}
	k := f.sh.k()
	if f.st.k != k {
		f.st.k = k
		f.st.f = make([]float64, len(f.members)*(k+2))
	}
	for i := range f.members {
		l, own := &f.leaves[i], f.st.leaf(i)
		l.back(f.sh.step(cur, i))
		tame(l.b, maxPart)
		own[0], own[1] = l.v, l.a
		copy(own[2:], l.b)
		tame(own, maxPart)
	}
	f.read()
}

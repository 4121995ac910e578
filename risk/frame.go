package risk

import (
	"math"
	"slices"
)

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
	if pi*keep < fade && f.sh.last() {
		return // drifts no further: what would follow could not be written down
	}
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

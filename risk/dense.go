package risk

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// Dense is the same model with the joint Gaussian kept as one mean and one covariance of all parts, corrected by symmetric
// rank-one updates (Bierman 1977 for what this does to rounding: nothing, where every update only removes variance). Its
// cost grows with the square of the number of actions and tags. It exists to check [Tracker] against, and to compare with;
// it has no trust, no costs and no encoding. It is not safe for concurrent use.
type Dense struct {
	m       *Model
	w       []float64
	agent   track
	runs    uint64
	parts   map[part]int // index of every tag and action
	records map[string]*record
	joints  []joint
	n       int

	h    []float64 // of the action being looked at
	own  int
	last []float64 // P·h of the last prediction
}

type part struct {
	action bool
	name   string
}

// joint is the state of one member.
type joint struct {
	x []float64
	p blas64.Symmetric
}

// NewDense returns a dense filter that never saw anything.
func NewDense(m *Model) *Dense {
	d := &Dense{m: m, parts: map[part]int{}, records: map[string]*record{}, joints: make([]joint, len(m.cfg.Members))}
	for range d.joints {
		d.w = append(d.w, 1/float64(len(d.joints)))
	}
	d.add(func(c Member) float64 { return c.Agent })
	d.add(func(Member) float64 { return m.cfg.Slope })
	return d
}

// add appends a part that is independent of the others.
func (d *Dense) add(variance func(Member) float64) int {
	at := d.n
	d.n++
	for i := range d.joints {
		j := &d.joints[i]
		j.x = append(j.x, 0)
		if j.p.Stride < d.n {
			j.p = widened(j.p, max(8, 2*d.n))
		}
		j.p.N = d.n
		j.p.Data[at*j.p.Stride+at] = variance(d.m.cfg.Members[i])
	}
	d.h, d.last = make([]float64, d.n), make([]float64, d.n)
	return at
}

func widened(p blas64.Symmetric, stride int) blas64.Symmetric {
	wide := blas64.Symmetric{N: p.N, Stride: stride, Data: make([]float64, stride*stride), Uplo: blas.Upper}
	for i := range p.N {
		copy(wide.Data[i*stride:], p.Data[i*p.Stride:i*p.Stride+p.N])
	}
	return wide
}

// open looks at an action, which is given its parts where it has none yet.
func (d *Dense) open(decl Declaration) (*record, []float64) {
	index := func(p part, variance func(Member) float64) int {
		at, ok := d.parts[p]
		if !ok {
			at = d.add(variance)
			d.parts[p] = at
		}
		return at
	}
	on := []int{iAgent}
	for _, t := range decl.Tags {
		on = append(on, index(part{name: t}, func(c Member) float64 { return c.Tag }))
	}
	d.own = index(part{true, decl.Name}, func(c Member) float64 { return c.Action })
	clear(d.h)
	for _, i := range append(on, d.own) {
		d.h[i] = 1
	}
	d.h[iSlope] = float64(decl.Risk - middle)
	r := d.records[decl.Name]
	if r == nil {
		r = new(record)
		d.records[decl.Name] = r
	}
	base := make([]float64, len(d.joints))
	for i := range base {
		base[i] = d.m.base(i, decl.Risk, len(decl.Tags))
	}
	return r, base
}

// Observe folds one executed outcome of the action. On an error nothing changed.
func (d *Dense) Observe(decl Declaration, o Observation) (Innovation, error) {
	if err := d.m.Check(decl); err != nil {
		return Innovation{}, err
	}
	r, base := d.open(decl)
	in, _ := d.m.learn(d, base, d.m.look(d, base), &d.agent, d.runs, r, decl.Risk, o.Err)
	d.runs++
	return in, nil
}

// Risk returns the estimate for the action, which counts as known from then on.
func (d *Dense) Risk(decl Declaration) Estimate {
	if d.m.Check(decl) != nil {
		return unknown
	}
	r, base := d.open(decl)
	return d.m.estimated(r, d.m.look(d, base), decl.Risk)
}

func (d *Dense) weights() []float64 { return d.w }

func (d *Dense) settle() {}

func (d *Dense) agentVariance(member int) float64 { return d.joints[member].p.Data[0] }

func (d *Dense) age(member int, agent, own float64) {
	p := d.joints[member].p
	p.Data[0] += agent
	p.Data[d.own*p.Stride+d.own] += own
}

func vector(f []float64) blas64.Vector { return blas64.Vector{N: len(f), Inc: 1, Data: f} }

func (d *Dense) predict(member int) (mean, variance float64) {
	j := d.joints[member]
	blas64.Symv(1, j.p, vector(d.h), 0, vector(d.last))
	return blas64.Dot(vector(d.h), vector(j.x)), blas64.Dot(vector(d.h), vector(d.last))
}

func (d *Dense) correct(member int, al, be float64) {
	j := d.joints[member]
	blas64.Axpy(al, vector(d.last), vector(j.x))
	blas64.Syr(be, vector(d.last), j.p)
}

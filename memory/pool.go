package memory

// pool holds values that come and go in pages, so that none is an allocation of its own and none moves. Places are
// numbered from 1; 0 is none.
type pool[E any] struct {
	pages [][]E
	n     int32 // places ever taken
	free  []int32
}

// onPage is how many values a page of a pool holds.
const (
	onPageLog = 6
	onPage    = 1 << onPageLog
)

// take returns the place of a zero value.
func (p *pool[E]) take() int32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		return i
	}
	if int(p.n) == len(p.pages)*onPage {
		p.pages = append(p.pages, make([]E, onPage))
	}
	p.n++
	return p.n
}

// at returns the value at a place.
func (p *pool[E]) at(i int32) *E { return &p.pages[(i-1)>>onPageLog][(i-1)&(onPage-1)] }

// give takes a place back and forgets what it held.
func (p *pool[E]) give(i int32) {
	var zero E
	*p.at(i) = zero
	p.free = append(p.free, i)
}

// push appends to a slice that loses elements at its front: without room to spare, each such append would allocate.
func push[E any](s []E, e E) []E {
	if len(s) == cap(s) {
		n := make([]E, len(s), max(64, 2*len(s)))
		copy(n, s)
		s = n
	}
	return append(s, e)
}

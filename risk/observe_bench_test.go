//go:build unix

package risk

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// cpu is the processor time this process used: unlike the clock it says little about what else the machine does.
func cpu() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// timed runs f and reports processor time per call, and its ratio to that of the first timed in this process where there
// was one: the plain scalar update.
func timed(b *testing.B, f func(i int)) {
	b.ReportAllocs()
	i, start := 0, cpu()
	for b.Loop() {
		f(i)
		i++
	}
	per := float64(cpu()-start) / float64(i)
	b.ReportMetric(per, "cpu-ns/op")
	if scalar == 0 {
		scalar = per
	}
	b.ReportMetric(per/scalar, "×scalar")
}

var scalar float64

var spent = action.Cost{Tokens: 120, Duration: time.Second, Calls: 1}

// one is a single member, to compare forms of the same algebra.
func one(b *testing.B) *Model {
	m, err := New(Config{Members: Bank()[1:2]})
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// BenchmarkForms sets the star form beside a plain scalar update, the dense filter and the textbook's (I−KH)P, per
// observation and member, and the whole of what is done per observation: all members, trust and costs.
func BenchmarkForms(b *testing.B) {
	scalar = 0
	b.Run("scalar", func(b *testing.B) {
		r, g := newRule(), gauss{-3, 1}
		timed(b, func(i int) {
			g, _ = r.match(g.age(1e-3), i%20 == 0)
		})
	})
	for _, n := range []int{10, 100, 1000} {
		w := newTown(1, n, 0)
		for i := range w.acts {
			w.acts[i].Tags = []string{fmt.Sprintf("t%d", i%8)}
		}
		b.Run(fmt.Sprintf("star/actions=%d", n), func(b *testing.B) { star(b, one(b), w, Observation{}) })
		b.Run(fmt.Sprintf("whole/actions=%d", n), func(b *testing.B) {
			m, _ := New(Config{})
			star(b, m, w, Observation{Cost: spent})
		})
		b.Run(fmt.Sprintf("dense/actions=%d", n), func(b *testing.B) {
			d := NewDense(one(b))
			for _, a := range w.acts {
				_ = d.Risk(a)
			}
			timed(b, func(i int) { _, _ = d.Observe(w.acts[i%n], Observation{Err: i%20 == 0}) })
		})
		if n <= 100 {
			b.Run(fmt.Sprintf("textbook/actions=%d", n), func(b *testing.B) { textbook(b, n+10) })
		}
	}
}

func star(b *testing.B, m *Model, w *town, o Observation) {
	t, _ := m.Track(m.Prior())
	for range 3 {
		for _, a := range w.acts {
			_, _ = t.Observe(a, o)
		}
	}
	timed(b, func(i int) {
		o.Err = i%20 == 0
		_, _ = t.Observe(w.acts[i%len(w.acts)], o)
	})
}

// textbook is P ← (I−KH)P with matrices, as it is written down.
func textbook(b *testing.B, n int) {
	r := newRule()
	p, x := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
	unit := mat.NewDiagDense(n, nil)
	for i := range n {
		p.Set(i, i, 1)
		unit.SetDiag(i, 1)
	}
	timed(b, func(i int) {
		h := mat.NewVecDense(n, nil)
		for _, j := range []int{0, 2 + i%8, 10 + i%(n-10)} {
			h.SetVec(j, 1)
		}
		var ph, k mat.VecDense
		ph.MulVec(p, h)
		s := mat.Dot(h, &ph)
		g := gauss{mat.Dot(h, x), s}
		post, _ := r.match(g, i%20 == 0)
		x.AddScaledVec(x, (post.mean-g.mean)/s, &ph)
		k.ScaleVec((s-post.variance)/(s*s), &ph)
		var kh, left, next mat.Dense
		kh.Outer(1, &k, h)
		left.Sub(unit, &kh)
		next.Mul(&left, p)
		p = &next
	})
}

package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// figure is one thing that is promised: what costs, beside what, and how much of it at most.
type figure struct {
	name   string
	beside string  // what it is measured against
	bar    float64 // the ratio may be at most this; 0 is none
	faster float64 // what is beside must take at least this many times as long; 0 is none
	allocs float64 // the subject may allocate at most this often; less than 0 is any number
	open   func(ctx context.Context) (pair, error)
	// heavy says that so much is held that collecting garbage takes longer than a sample. Each begins with none, or now the one
	// and now the other of the two would pay for both; and both are done as often, so that they leave as much.
	heavy bool
	// long is how long a sample takes at least, where what is begun and ended with each of them costs as much as many turns.
	long time.Duration
}

// pair is a figure made ready.
type pair struct {
	subject, beside work
	close           func()
}

// work does something n times and returns how long that took, without what does not count.
type work func(n int) (time.Duration, error)

// timed is work of which everything counts.
func timed(once func() error) work {
	return func(n int) (time.Duration, error) {
		from := time.Now()
		for range n {
			if err := once(); err != nil {
				return 0, err
			}
		}
		return time.Since(from), nil
	}
}

// measured is what came out, in nanoseconds a turn.
type measured struct {
	subject, beside float64
	low, high       float64 // quarters of the ratios
	allocs          float64
}

func (m measured) ratio() float64 { return m.subject / m.beside }

// verdict says whether the bars are kept: "ok", "missed", or "-" where there are none.
func (f *figure) verdict(m measured) string {
	switch {
	case f.bar == 0 && f.faster == 0:
		return "-"
	case f.bar > 0 && m.ratio() > f.bar, f.faster > 0 && 1/m.ratio() < f.faster, f.allocs >= 0 && m.allocs > f.allocs+0.1: // what grows now and then, a fraction a turn, is not counted
		return "missed"
	}
	return "ok"
}

// measure takes samples of both sides in turns, each at least as long as given.
func (f *figure) measure(ctx context.Context, samples int, each time.Duration) (measured, error) {
	p, err := f.open(ctx)
	if err != nil {
		return measured{}, fmt.Errorf("%s: %w", f.name, err)
	}
	defer p.close()
	each = max(each, f.long)
	a, err := turns(p.subject, each)
	if err != nil {
		return measured{}, fmt.Errorf("%s: %w", f.name, err)
	}
	b, err := turns(p.beside, each)
	if err != nil {
		return measured{}, fmt.Errorf("%s, beside: %w", f.name, err)
	}
	if f.heavy {
		a = min(a, b)
		b = a
	}
	var subject, beside, ratios, allocs []float64
	for range samples {
		f.tidy()
		s, mallocs, err := counted(p.subject, a)
		if err != nil {
			return measured{}, fmt.Errorf("%s: %w", f.name, err)
		}
		f.tidy()
		o, _, err := counted(p.beside, b)
		if err != nil {
			return measured{}, fmt.Errorf("%s, beside: %w", f.name, err)
		}
		subject, beside, ratios, allocs = append(subject, s), append(beside, o), append(ratios, s/o), append(allocs, mallocs)
	}
	return measured{quantile(subject, 0.5), quantile(beside, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75), quantile(allocs, 0.5)}, nil
}

func (f *figure) tidy() {
	if f.heavy {
		runtime.GC()
	}
}

// turns finds how often the work must be done to take that long; it warms it up by the way.
func turns(w work, each time.Duration) (int, error) {
	for n := 1; ; {
		d, err := w(n)
		if err != nil {
			return 0, err
		}
		if d >= each || n >= 1<<30 {
			return n, nil
		}
		n = max(n+1, min(100*n, int(1.2*float64(n)*float64(each)/float64(max(d, 1)))))
	}
}

// counted does the work and returns nanoseconds and allocations a turn.
func counted(w work, n int) (ns, mallocs float64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d, err := w(n)
	runtime.ReadMemStats(&after)
	return float64(d.Nanoseconds()) / float64(n), float64(after.Mallocs-before.Mallocs) / float64(n), err
}

func quantile(xs []float64, q float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	return xs[int(q*float64(len(xs)-1)+0.5)]
}

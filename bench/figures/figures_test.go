package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// BenchmarkFigures is every figure as a benchmark, with what it is measured against.
func BenchmarkFigures(b *testing.B) {
	for _, f := range figures {
		b.Run(f.name, func(b *testing.B) {
			p, err := f.open(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			defer p.close()
			for name, w := range map[string]work{"it": p.subject, "beside": p.beside} {
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					b.ResetTimer()
					d, err := w(b.N)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(d.Nanoseconds())/float64(b.N), "ns/op")
				})
			}
		})
	}
}

// What is cheap to make ready is measured here for a moment, so that the table cannot rot.
func TestPrint(t *testing.T) {
	for _, only := range []string{"edge", "governed call, fold queued", "step of a run", "step of a workflow", "completion of 8", "decision by 1,000"} {
		var out bytes.Buffer
		if _, err := print(t.Context(), &out, only, 1, time.Microsecond); err != nil {
			t.Fatal(only, err)
		}
		if !strings.Contains(out.String(), only) || !strings.Contains(out.String(), "×") {
			t.Fatal(out.String())
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		want string
		f    figure
		m    measured
	}{
		{"-", figure{allocs: unbounded}, measured{subject: 9, beside: 1}},
		{"ok", figure{bar: 3, allocs: unbounded}, measured{subject: 3, beside: 1, allocs: 99}},
		{"missed", figure{bar: 3, allocs: unbounded}, measured{subject: 3.1, beside: 1}},
		{"ok", figure{bar: 3, allocs: 0}, measured{subject: 3, beside: 1, allocs: 0.04}},
		{"missed", figure{bar: 3, allocs: 0}, measured{subject: 3, beside: 1, allocs: 1}},
		{"ok", figure{faster: 2, allocs: unbounded}, measured{subject: 1, beside: 2}},
		{"missed", figure{faster: 2, allocs: unbounded}, measured{subject: 1, beside: 1.9}},
	} {
		if got := c.f.verdict(c.m); got != c.want {
			t.Errorf("%+v %+v: %s, want %s", c.f, c.m, got, c.want)
		}
	}
}

func TestTurnsTakeLongEnough(t *testing.T) {
	n, err := turns(func(n int) (time.Duration, error) { return time.Duration(n) * time.Microsecond, nil }, time.Millisecond)
	if err != nil || n < 1000 || n > 2000 {
		t.Fatal(n, err)
	}
	if _, err := turns(func(int) (time.Duration, error) { return 0, errors.New("no") }, time.Millisecond); err == nil {
		t.Fatal("an error is one")
	}
}

func TestShareIsWhole(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 1000} {
		sum := 0
		for i := range agents {
			sum += share(n, i)
		}
		if sum != n {
			t.Fatalf("%d shared out as %d", n, sum)
		}
	}
}

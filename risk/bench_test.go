package risk_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/risk"
)

func world(b *testing.B, n int) (*risk.Model, risk.Belief, []risk.Declaration) {
	m, _ := risk.New(risk.Config{})
	bel := m.Prior()
	ds := make([]risk.Declaration, n)
	for i := range ds {
		ds[i] = risk.Declaration{Name: fmt.Sprintf("action-%d", i), Risk: 1 + i%5, Estimate: action.Cost{Tokens: 100}}
		bel, _, _ = m.Update(bel, ds[i], risk.Observation{})
	}
	return m, bel, ds
}

var used = action.Cost{Tokens: 120, Duration: time.Second, Calls: 1}

func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{1, 50, 1000} {
		b.Run(fmt.Sprintf("actions=%d", n), func(b *testing.B) {
			m, bel, ds := world(b, n)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				bel, _, _ = m.Update(bel, ds[i%n], risk.Observation{Err: i%20 == 0, Cost: used})
			}
		})
	}
}

func BenchmarkRisk(b *testing.B) {
	m, bel, ds := world(b, 1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = m.Risk(bel, ds[i%len(ds)])
	}
}

func BenchmarkForecast(b *testing.B) {
	m, bel, ds := world(b, 1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = m.Forecast(bel, ds[i%len(ds)])
	}
}

func BenchmarkEncodeAction(b *testing.B) {
	m, bel, ds := world(b, 1)
	bel, _, _ = m.Update(bel, ds[0], risk.Observation{Cost: used})
	b.ReportAllocs()
	for b.Loop() {
		_, _ = bel.Action(ds[0].Name)
		_ = bel.Shared()
	}
}

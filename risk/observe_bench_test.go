package risk_test
import ("testing";"fmt"
"github.com/seed-ab2cfece/delta-agents/risk")
func BenchmarkObserve(b *testing.B) {
	for _, n := range []int{1, 50, 1000} {
		b.Run(fmt.Sprintf("actions=%d", n), func(b *testing.B) {
			m, bel, ds := world(b, n)
			t, _ := m.Track(bel)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_, _ = t.Observe(ds[i%n], risk.Observation{Err: i%20 == 0, Cost: used})
			}
		})
	}
}

//go:build heavy

package memorytest

import "testing"

func TestHeavyReference(t *testing.T) {
	for seed := range uint64(3) {
		Workload(t, openReference("")(t), Load{Workers: 16, Intents: 200, Seed: seed, Lost: 0.2})
	}
}

func TestHeavyTeethOfRandom(t *testing.T) {
	for _, rule := range rules(t) {
		if unseen.MatchString(rule) {
			continue
		}
		if !notices(t, func(tb testing.TB) { Random(tb, openReference(rule)(tb), 20_000, 99) }) {
			t.Errorf("%s: a long run of one seed does not notice", rule)
		}
	}
}

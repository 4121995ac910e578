package statespace_test

import (
	"fmt"
	"testing"

	"github.com/seed-ab2cfece/delta-agents/statespace"
)

// among declares n actions, of which some need the first one bound on a field.
func among(b *testing.B, n, dependents int) *statespace.Graph {
	nodes := make([]statespace.Node, n)
	for i := range nodes {
		nodes[i] = node(fmt.Sprintf("action-%d", i))
		if i > 0 && i <= dependents {
			nodes[i].Needs = []statespace.Need{on("action-0", "id")}
		}
	}
	return compile(b, nodes...)
}

func benchmarkPut(b *testing.B, n, dependents int) {
	s := among(b, n, dependents).NewSet()
	b.ReportAllocs()
	for b.Loop() { // in and out: each visits every dependent
		s.Put(`action-0@id="ORD-1"`, 1)
		s.Remove(`action-0@id="ORD-1"`)
	}
}

// BenchmarkDone_8Of10000 is a completion that needs no value.
func BenchmarkDone_8Of10000(b *testing.B) {
	nodes := make([]statespace.Node, 10_000)
	for i := range nodes {
		nodes[i] = node(fmt.Sprintf("action-%d", i))
		if i > 0 && i <= 8 {
			nodes[i].Needs = []statespace.Need{{Action: "action-0"}}
		}
	}
	s := compile(b, nodes...).NewSet()
	b.ReportAllocs()
	for b.Loop() {
		s.Put("action-0", 1)
		s.Remove("action-0")
	}
}

func BenchmarkPutRemove_8Of10000(b *testing.B)   { benchmarkPut(b, 10_000, 8) }
func BenchmarkPutRemove_500Of10000(b *testing.B) { benchmarkPut(b, 10_000, 500) }

// BenchmarkCopyBits_10000 is what a set of that many actions costs to copy, and nothing else.
func BenchmarkCopyBits_10000(b *testing.B) {
	from, to := make([]uint64, 10_000/64+1), make([]uint64, 10_000/64+1)
	for b.Loop() {
		copy(to, from)
	}
}

func BenchmarkNewSet_10000(b *testing.B) {
	g := among(b, 10_000, 8)
	b.ReportAllocs()
	for b.Loop() {
		g.NewSet()
	}
}

func BenchmarkNames_10000(b *testing.B) {
	s := among(b, 10_000, 8).NewSet()
	b.ReportAllocs()
	for b.Loop() {
		for range s.All {
		}
	}
}

func BenchmarkFactsAndRequired(b *testing.B) {
	g := among(b, 10, 8)
	in := map[string]any{"id": "ORD-1"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Facts("action-0", in, nil); err != nil {
			b.Fatal(err)
		}
		if _, err := g.Required("action-1", in); err != nil {
			b.Fatal(err)
		}
	}
}

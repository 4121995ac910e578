package bench

import (
	"reflect"
	"testing"

	"github.com/seed-ab2cfece/delta-agents/schema"
)

// BenchmarkEdge is the strict edge, the schema and the canonical form of an input, in one pass over its bytes: into a
// buffer that is used again, and as the document that a call is made of.
func BenchmarkEdge(b *testing.B) {
	s, err := schema.Reflect(reflect.TypeFor[order]())
	if err != nil {
		b.Fatal(err)
	}
	in := []byte(input)
	b.Run("pass", func(b *testing.B) {
		var buf []byte
		b.ReportAllocs()
		for b.Loop() {
			var ok bool
			if buf, ok = s.Pass(buf[:0], in); !ok {
				b.Fatal("refused")
			}
		}
		note(b)
	})
	b.Run("document", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, f := s.Check(in); f != nil {
				b.Fatal(f)
			}
		}
		note(b)
	})
}

// TestEdgeAllocatesNothing holds what the pass promises of a buffer with room.
func TestEdgeAllocatesNothing(t *testing.T) {
	if raced {
		t.Skip("under the race detector pools drop what they are given, now and then")
	}
	s, err := schema.Reflect(reflect.TypeFor[order]())
	if err != nil {
		t.Fatal(err)
	}
	in, buf := []byte(input), make([]byte, 0, 2*len(input))
	if n := testing.AllocsPerRun(100, func() { s.Pass(buf, in) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

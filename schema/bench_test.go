package schema

import (
	"encoding/json"
	"testing"
)

const benchInput = `{"orderId":"ORD-42","amount":125000,"customer":{"id":42,"token":"tok_4111"},"entries":[{"path":"/var/log/a"},{"path":"/var/log/b"}],"labels":{"gift":true,"late":false},"kind":"a","free":[1,2.5,"three",null]}`

func BenchmarkCanonical(b *testing.B) {
	in := []byte(benchInput)
	b.ReportAllocs()
	for b.Loop() {
		if _, f := Canonical(in, 0); f != nil {
			b.Fatal(f)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	s, err := Declared([]byte(orderSchema))
	if err != nil {
		b.Fatal(err)
	}
	in := []byte(benchInput)
	run := func(name string, s *Schema) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, f := s.Check(in); f != nil {
					b.Fatal(f)
				}
			}
		})
	}
	run("both judges", s)
	alone := *s
	alone.judge = &own{root: s.root, limit: maxSteps}
	run("compiled alone", &alone)
}

func BenchmarkUnmarshal(b *testing.B) {
	in := []byte(benchInput)
	b.ReportAllocs()
	for b.Loop() {
		var v any
		if err := json.Unmarshal(in, &v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPass(b *testing.B) {
	s, err := Declared([]byte(orderSchema))
	if err != nil {
		b.Fatal(err)
	}
	in := []byte(benchInput)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		var ok bool
		if buf, ok = s.Pass(buf[:0], in); !ok {
			b.Fatal("refused")
		}
	}
}

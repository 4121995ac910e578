package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// BenchmarkCall is a governed call of one client, and of 64 agents at once, for those who want a profile.
func BenchmarkCall(b *testing.B) {
	s, err := startServer()
	if err != nil {
		b.Skip(err)
	}
	defer s.stop()
	for name, agents := range map[string]int{"one": 1, "64": connections} {
		b.Run(name, func(b *testing.B) {
			if err := s.client.FlushAll(b.Context()).Err(); err != nil {
				b.Fatal(err)
			}
			d, err := open(b.Context(), s, agents, 1, 1)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = d.close() }()
			b.ReportAllocs()
			b.ResetTimer()
			if err := d.calls(b.Context(), b.N); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// The cheapest of the figures is measured for a moment, so that the table cannot rot.
func TestRun(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed; make deps installs it")
	}
	var out bytes.Buffer
	if _, err := run(t.Context(), &out, "server time", 1); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "server time of a governed call") {
		t.Fatal(out.String())
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		want string
		row  row
	}{
		{"-", row{got: 9}},
		{"ok", row{bar: 5, got: 5}},
		{"missed", row{bar: 5, got: 5.1}},
		{"ok", row{bar: 70, least: true, got: 70}},
		{"missed", row{bar: 70, least: true, got: 69}},
	} {
		if got := c.row.verdict(); got != c.want {
			t.Errorf("%+v is %q, want %q", c.row, got, c.want)
		}
	}
}

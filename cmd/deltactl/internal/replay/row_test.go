package replay

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func TestParseRow(t *testing.T) {
	base := Row{Agent: "a", Run: "r", Tool: "t", OK: true}
	with := func(c action.Cost) Row { r := base; r.Cost = c; return r }
	const head = `{"agent":"a","run":"r","tool":"t","ok":true`
	tests := []struct {
		name, line string
		want       Row
		err        string
	}{
		{"the least", head + `}`, base, ""},
		{"every field", `{"dataset":"d","step":3,"group":"g","task":"1","latency_ms":5.5,"task_reward":-0.5,` + head[1:] + `}`, base, ""},
		{"null is unknown", head + `,"cost":null,"group":null,"step":null}`, base, ""},
		{"a field of its own", head + `,"note":{"ok":"no"}}`, base, ""},
		{"tokens", head + `,"cost":1723573}`, with(action.Cost{Tokens: 1723573}), ""},
		{"money", head + `,"cost":0.0011013}`, with(action.Cost{Money: 1101, Currency: "USD"}), ""},
		{"a whole amount is tokens", head + `,"cost":3.0}`, with(action.Cost{Tokens: 3}), ""},
		{"money below a micro-unit", head + `,"cost":1e-9}`, with(action.Cost{Currency: "USD"}), ""},

		{"not JSON", `agent`, Row{}, "unexpected 'a' where a value is expected"},
		{"not an object", `[1]`, Row{}, "the row is an array, want an object"},
		{"two rows", head + `}` + head + `}`, Row{}, "after"},
		{"no agent", `{"run":"r","tool":"t","ok":true}`, Row{}, `field "agent" is missing, want a string`},
		{"no run", `{"agent":"a","tool":"t","ok":true}`, Row{}, `field "run" is missing, want a string`},
		{"empty tool", `{"agent":"a","run":"r","tool":"","ok":true}`, Row{}, `field "tool" is empty`},
		{"null ok", `{"agent":"a","run":"r","tool":"t","ok":null}`, Row{}, `field "ok" is null, want true or false`},
		{"ok as a number", `{"agent":"a","run":"r","tool":"t","ok":1}`, Row{}, `field "ok" is a number, want true or false`},
		{"agent as an object", `{"agent":{},"run":"r","tool":"t","ok":true}`, Row{}, `field "agent" is an object, want a string`},
		{"another case", `{"Agent":"a","run":"r","tool":"t","ok":true}`, Row{}, `write "agent" in lower case`},
		{"step as text", head + `,"step":"1"}`, Row{}, `field "step" is a string, want a number`},
		{"group as a number", head + `,"group":1}`, Row{}, `field "group" is a number, want a string`},
		{"negative latency", head + `,"latency_ms":-1}`, Row{}, `field "latency_ms" is -1, want 0 or more`},
		{"cost as text", head + `,"cost":"1"}`, Row{}, `field "cost" is a string, want a number`},
		{"negative cost", head + `,"cost":-0.5}`, Row{}, `field "cost" is -0.5, want 0 to`},
		{"too many tokens", head + `,"cost":9007199254740992}`, Row{}, `field "cost" is 9007199254740992, want 0 to`},
		{"cost out of range", head + `,"cost":1e300}`, Row{}, "out of range"},
		{"a number no float holds", head + `,"cost":1e1000001}`, Row{}, "number"},
		{"a key twice", head + `,"ok":false}`, Row{}, "ok"},
		{"invalid UTF-8", `{"agent":"` + "\xff" + `"}`, Row{}, "UTF-8"},
		{"deep", head + `,"x":` + strings.Repeat("[", 100_000) + `}`, Row{}, "nesting is deeper"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseRow([]byte(tt.line))
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func FuzzParseRow(f *testing.F) {
	f.Add([]byte(`{"agent":"a","run":"r","tool":"t","ok":true,"cost":12,"latency_ms":3}`))
	f.Add([]byte(`{"agent":"a","run":"r","tool":"t","ok":false,"cost":0.25}`))
	f.Add([]byte(`{"agent":1}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := ParseRow(line)
		if err != nil {
			return
		}
		if r.Agent == "" || r.Run == "" || r.Tool == "" || r.Cost.Check() != nil {
			t.Fatalf("%s gives %+v", line, r)
		}
	})
}

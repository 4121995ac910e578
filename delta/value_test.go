package delta

import (
	"encoding/json"
	"math/big"
	"net"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/schema"
)

type inner struct {
	Text  string            `json:"text,omitempty"`
	Whole int8              `json:"whole,omitempty"`
	Real  float64           `json:"real,omitempty"`
	Small float32           `json:"small,omitempty"`
	Bytes []byte            `json:"bytes,omitempty"`
	Time  time.Time         `json:"time,omitzero"`
	Addr  netip.Addr        `json:"addr,omitzero"`
	IP    net.IP            `json:"ip,omitempty"`
	Ptr   *int              `json:"ptr,omitempty" jsonschema:"nullable"`
	List  []inner           `json:"list,omitempty"`
	Map   map[string]string `json:"map,omitempty"`
	Any   any               `json:"any,omitempty"`
	Pair  *[2]bool          `json:"pair,omitempty"`
}

// spelt has a type with a JSON form of its own as well, of which no schema is reflected.
type spelt struct {
	inner
	Big *big.Int `json:"big,omitempty"`
}

func decoded[T any](t require.TestingT, text string) T {
	doc, f := schema.Canonical([]byte(text), 0)
	require.Nil(t, f, text)
	var v T
	require.NoError(t, action.Input{Document: doc}.Decode(&v), text)
	return v
}

func TestValueOf(t *testing.T) {
	for _, c := range []struct{ name, a, b string }{
		{"an optional zero written out", `{}`, `{"whole":0,"text":"","real":-0.0,"ptr":null}`},
		{"a time's zone and fraction", `{"time":"2024-01-01T00:00:00Z"}`, `{"time":"2024-01-01T02:00:00.000+02:00"}`},
		{"an address", `{"addr":"::1"}`, `{"addr":"0:0:0:0:0:0:0:1"}`},
		{"an address as text", `{"ip":"1.2.3.4"}`, `{"ip":"::ffff:1.2.3.4"}`},
		{"deep inside", `{"list":[{"list":[{"time":"2024-01-01T00:00:00Z"}]}]}`, `{"list":[{"whole":0,"list":[{"time":"2024-01-01T00:00:00+00:00"}]}]}`},
		{"the digits of a number", `{"any":{"a":1}}`, `{"any":{"a":1.0}}`},
	} {
		require.Equal(t, valueOf(decoded[spelt](t, c.a)), valueOf(decoded[spelt](t, c.b)), c.name)
	}
	seen := map[string]string{}
	for _, text := range []string{
		`{}`, `{"text":"a"}`, `{"whole":1}`, `{"real":1}`, `{"small":1}`, `{"bytes":"YQ=="}`, `{"time":"2024-01-01T00:00:00Z"}`,
		`{"time":"2024-01-01T00:00:01Z"}`, `{"ptr":0}`, `{"ptr":1}`, `{"list":[{}]}`, `{"list":[{},{}]}`, `{"list":[{"list":[{}]}]}`,
		`{"map":{"a":"b"}}`, `{"map":{"a":"","b":""}}`, `{"map":{"ab":""}}`, `{"any":1}`, `{"any":"1"}`, `{"any":[1]}`, `{"any":[[1]]}`,
		`{"any":9007199254740993}`, `{"any":9007199254740992}`, `{"any":true}`, `{"big":-1}`, `{"big":1}`, `{"pair":[true,false]}`, `{"pair":[false,true]}`, `{"pair":[false,false]}`,
	} {
		name := valueOf(decoded[spelt](t, text))
		require.NotEmpty(t, name, text)
		require.NotContains(t, seen, name, "%s is taken for %s", text, seen[name])
		seen[name] = text
	}
	for _, empty := range []string{`{"bytes":""}`, `{"list":[]}`, `{"map":{}}`, `{"list":null}`} {
		require.Equal(t, valueOf(decoded[spelt](t, `{}`)), valueOf(decoded[spelt](t, empty)), "%s is as good as left out: it must not pass for another call", empty)
	}
	type cyclic struct{ Next *cyclic }
	loop := &cyclic{}
	loop.Next = loop
	require.Empty(t, valueOf(loop), "what cannot be named is told apart by its text")
	require.Empty(t, valueOf(struct{ F func() }{func() {}}))
}

// TestI09_EqualValuesHaveOneName: inputs that decode to equal values, empty ones as good as none, have one name, others have another.
func TestI09_EqualValuesHaveOneName(t *testing.T) {
	s, err := schema.Reflect(reflect.TypeFor[inner]())
	require.NoError(t, err)
	values := map[string][]string{
		"text": {`""`, `"a"`, `"\u0061"`}, "whole": {`0`, `-0`, `1`, `1.0`, `10e-1`}, "real": {`0.1`, `1e-1`, `0.10`, `0`, `5e-324`, `1e300`},
		"small": {`0.1`, `16777216`, `1e-45`}, "bytes": {`""`, `"aGk="`, `"aGl="`, `"\u0061Gk="`}, "ptr": {`null`, `0`, `1`},
		"time": {`"2024-01-01T00:00:00Z"`, `"2024-01-01T00:00:00+00:00"`, `"2024-01-01T00:00:00.0Z"`, `"2024-01-01T01:00:00Z"`},
		"addr": {`"::1"`, `"0::1"`, `"1.2.3.4"`}, "ip": {`"1.2.3.4"`, `"::ffff:1.2.3.4"`}, "map": {`{}`, `{"a":"b"}`, `{"\u0061":"b"}`},
		"any": {`null`, `1`, `1.0`, `{"a":[]}`, `"1"`}, "list": {`[]`, `[{}]`, `[{"whole":0}]`, `[{"whole":1}]`}, "pair": {`[true,false]`, `[true, false]`},
	}
	draw := func(t *rapid.T, label string) (inner, string, bool) {
		m := map[string]json.RawMessage{}
		for _, field := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"text", "whole", "real", "small", "bytes", "ptr", "time", "addr", "ip", "map", "any", "list", "pair"}), 0, 2, rapid.ID).Draw(t, label) {
			m[field] = json.RawMessage(rapid.SampledFrom(values[field]).Draw(t, field))
		}
		raw, err := json.Marshal(m)
		require.NoError(t, err)
		doc, f := s.Check(raw)
		if f != nil {
			return inner{}, "", false
		}
		var v inner
		require.NoError(t, action.Input{Document: doc}.Decode(&v))
		return v, doc.Text(), true
	}
	rapid.Check(t, func(t *rapid.T) {
		a, textA, okA := draw(t, "a")
		b, textB, okB := draw(t, "b")
		if !okA || !okB {
			return
		}
		same := valueOf(a) == valueOf(b)
		for _, v := range []*inner{&a, &b} { // DeepEqual tells zones apart, and what is empty from what is not there
			v.Time = v.Time.UTC()
			if len(v.Bytes) == 0 {
				v.Bytes = nil
			}
			if len(v.List) == 0 {
				v.List = nil
			}
			if len(v.Map) == 0 {
				v.Map = nil
			}
		}
		require.Equal(t, reflect.DeepEqual(a, b), same, "%s and %s", textA, textB)
	})
}

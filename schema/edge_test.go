package schema

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/cputime"
)

func TestI02_StrictEdgeRefuses(t *testing.T) {
	for _, c := range []struct{ name, in, field, message string }{
		{"empty", "", "", "empty"},
		{"only space", " \n\t", "", "empty"},
		{"trailing data", `{} {}`, "", "after the value at byte 3"},
		{"trailing garbage", `1x`, "", "after the value at byte 1"},
		{"byte order mark", "\ufeff{}", "", "unexpected"},
		{"invalid UTF-8 in a string", "{\"a\":\"\xff\"}", "/a", "invalid UTF-8 at byte 6"},
		{"overlong UTF-8", "\"\xc0\x80\"", "", "invalid UTF-8"},
		{"surrogate in UTF-8", "[\"\xed\xa0\x80\"]", "/0", "surrogate"},
		{"lone high surrogate", `{"a":["\ud800"]}`, "/a/0", "lone surrogate"},
		{"lone low surrogate", `"\udc00x"`, "", "lone surrogate"},
		{"high surrogate before a letter", `"\ud800\u0041"`, "", "lone surrogate"},
		{"surrogate in a name", `{"\ud800":1}`, "/", "lone surrogate"},
		{"duplicate name", `{"a":1,"b":{"x":1,"x":2}}`, "/b/x", `duplicate member name "x" at byte 18`},
		{"duplicate name once unescaped", `{"a":1,"\u0061":2}`, "/a", "duplicate"},
		{"exponent of a million", `{"n":1e1000001}`, "/n", "too large"},
		{"beyond float64", `{"n":99999e308}`, "/n", "too large"},
		{"below float64", `{"n":1e-10000000}`, "/n", "too small"},
		{"below float64, by little", `1e-400`, "", "too small"},
		{"a million digits", `{"n":` + strings.Repeat("9", 1_000_000) + `}`, "/n", "longer than 64"},
		{"65 digits", strings.Repeat("1", 65), "", "longer than 64"},
		{"leading zero", `01`, "", "malformed number"},
		{"bare minus", `-`, "", "malformed number"},
		{"no fraction", `1.`, "", "malformed number"},
		{"no exponent", `1e+`, "", "malformed number"},
		{"two signs", `1e+-1`, "", "malformed number"},
		{"plus", `+1`, "", "unexpected '+'"},
		{"NaN", `NaN`, "", "unexpected 'N'"},
		{"65 arrays", strings.Repeat("[", 65) + strings.Repeat("]", 65), strings.Repeat("/0", 64), "deeper than 64"},
		{"100,000 arrays", strings.Repeat("[", 100_000), strings.Repeat("/0", 64), "deeper than 64"},
		{"100,000 objects", strings.Repeat(`{"a":`, 100_000), strings.Repeat("/a", 64), "deeper than 64"},
		{"control character", "\"a\nb\"", "", "control character"},
		{"unknown escape", `"\x"`, "", "invalid escape"},
		{"short escape", `"\u12"`, "", "invalid escape"},
		{"open string", `{"a":"b`, "/a", "ends inside a string"},
		{"open array", `[1,`, "/1", "input ends"},
		{"trailing comma", `[1,]`, "/1", "unexpected ']'"},
		{"trailing comma in an object", `{"a":1,}`, "/a", "member name"},
		{"single quotes", `{'a':1}`, "/", "member name"},
		{"no colon", `{"a" 1}`, "/a", "':'"},
		{"half a word", `tru`, "", "unexpected"},
		{"comment", `{/**/}`, "/", "member name"},
		{"10 MiB", `"` + strings.Repeat("x", 10<<20) + `"`, "", "longer than the limit of 1048576"},
		{"place is escaped", `{"a/b~":[1e999]}`, "/a~1b~0/0", "too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := cputime.Now()
			_, f := Canonical([]byte(c.in), 0)
			require.NotNil(t, f)
			assert.Equal(t, action.InputMalformed, f.Code)
			assert.Contains(t, f.Message, c.message)
			if c.field != "/" { // the place inside an object before its first name is not a member
				assert.Equal(t, c.field, f.Details[action.DetailField])
			}
			assert.Less(t, len(f.Message), 400)
			assert.Less(t, cputime.Now()-start, time.Second)
		})
	}
}

func TestCanonicalForm(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"space", " { \"b\" : [ 1 , 2 ] , \"a\" : null } ", `{"a":null,"b":[1,2]}`},
		{"one is one", `[1,1.0,10e-1,1E0,0.1e1,100e-2]`, `[1,1,1,1,1,1]`},
		{"zero", `[0,-0,0.0,-0.0e5,0e99999999999999999999]`, `[0,0,0,0,0]`},
		{"beyond 2^53", `[9007199254740993,9007199254740992]`, `[9007199254740993,9007199254740992]`},
		{"decimals", `[0.10,12.50,-3.25e1,1e-3]`, `[0.1,12.5,-32.5,0.001]`},
		{"int64 from an exponent", `[1e18,9.223372036854775807e18]`, `[1000000000000000000,9223372036854775807]`},
		{"large", `[1e300,1.50e300,10e299]`, `[1e300,15e299,1e300]`},
		{"small", `[1e-300,2.5e-80,5e-324]`, `[1e-300,25e-81,5e-324]`},
		{"63 zeros", `[1e63,-1e63]`, `[1` + strings.Repeat("0", 63) + `,-1e63]`},
		{"escapes", `"\u0041\/\u000a\u001f\u007f\u2028\"\\\u00e9"`, "\"A/\\n\\u001f\u007f\u2028\\\"\\\\é\""},
		{"surrogate pair", `"\ud83d\ude00"`, `"😀"`},
		{"UTF-16 order", `{"\ufb33":1,"\ud83d\ude00":2,"\u20ac":3,"a":4,"":5}`, `{"":5,"a":4,"€":3,"😀":2,"` + "\ufb33" + `":1}`},
		{"64 arrays", strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 64) + strings.Repeat("]", 64)},
		{"words", `[true,false,null]`, `[true,false,null]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc, f := Canonical([]byte(c.in), 0)
			require.Nil(t, f)
			assert.Equal(t, c.want, doc.Text())
		})
	}
}

func TestCanonicalIntegerDecodesToInt64(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n")
		doc, f := Canonical([]byte(json.Number(big.NewInt(n).String())+".0"), 0)
		require.Nil(t, f)
		var got int64
		require.NoError(t, json.Unmarshal([]byte(doc.Text()), &got))
		require.Equal(t, n, got)
	})
}

// numberToken draws tokens of the JSON grammar, most of which the edge accepts.
func numberToken() *rapid.Generator[string] {
	return rapid.StringMatching(`-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?`)
}

func jsonText(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		top := 5
		if depth == 0 {
			top = 3
		}
		switch rapid.IntRange(0, top).Draw(t, "kind") {
		case 0, 1:
			return numberToken().Draw(t, "number")
		case 2:
			b, _ := json.Marshal(rapid.String().Draw(t, "string"))
			return string(b)
		case 3:
			return rapid.SampledFrom([]string{"true", "false", "null", `"\ud83d\ude00"`}).Draw(t, "word")
		case 4:
			return "[" + strings.Join(rapid.SliceOfN(jsonText(depth-1), 0, 4).Draw(t, "list"), " ,\n") + "]"
		default:
			m := rapid.MapOfN(rapid.String(), jsonText(depth-1), 0, 4).Draw(t, "map")
			var parts []string
			for k, v := range m {
				b, _ := json.Marshal(k)
				parts = append(parts, string(b)+" : "+v)
			}
			return "{" + strings.Join(parts, ",") + "}"
		}
	})
}

func TestCanonicalIsAFunctionOfTheValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := jsonText(3).Draw(t, "in")
		doc, f := Canonical([]byte(in), 0)
		if f != nil {
			return
		}
		again, f := Canonical([]byte(doc.Text()), 0)
		require.Nil(t, f, "canonical text %s", doc.Text())
		require.Equal(t, doc.Text(), again.Text(), "idempotent")
		require.True(t, reflect.DeepEqual(doc.Tree(), again.Tree()))
		require.Equal(t, exact(t, in), exact(t, doc.Text()), "same value as encoding/json reads")
	})
}

func TestEqualTextExactlyWhereNumbersAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := numberToken().Draw(t, "a"), numberToken().Draw(t, "b")
		da, fa := Canonical([]byte(a), 0)
		db, fb := Canonical([]byte(b), 0)
		if fa != nil || fb != nil {
			return
		}
		ra, _ := new(big.Rat).SetString(a)
		rb, _ := new(big.Rat).SetString(b)
		require.Equal(t, ra.Cmp(rb) == 0, da.Text() == db.Text())
		require.LessOrEqual(t, len(da.Text()), MaxNumber)
		require.Equal(t, ra.IsInt(), isInteger(json.Number(da.Text())))
	})
}

// exact reads a text with encoding/json, numbers as fractions in lowest terms.
func exact(t *rapid.T, text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case json.Number:
			r, _ := new(big.Rat).SetString(string(v))
			return r.String()
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = walk(v[k])
			}
		}
		return v
	}
	return walk(v)
}

// A document that is read into room of the caller's is the one that Canonical reads.
func TestCanonicalInRoom(t *testing.T) {
	var room action.Lazy
	for _, raw := range []string{`{"b": 1, "a": [null, 2.50]}`, `{"a":1,"a":2}`} {
		want, no := Canonical([]byte(raw), 0)
		got, bad := CanonicalIn(&room, []byte(raw), 0)
		if no != nil {
			if bad == nil || bad.Error() != no.Error() {
				t.Errorf("%s: %v, want %v", raw, bad, no)
			}
			continue
		}
		if got.Text() != want.Text() || !reflect.DeepEqual(got.Tree(), want.Tree()) {
			t.Errorf("%s: %s %v, want %s %v", raw, got.Text(), got.Tree(), want.Text(), want.Tree())
		}
	}
}

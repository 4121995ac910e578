package schema

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
)

type money float64

type floats struct {
	F64   float64              `json:"f64,omitempty" jsonschema:"exclusiveMaximum=1"`
	F32   float32              `json:"f32,omitempty" jsonschema:"exclusiveMinimum=0"`
	Ptr   *float64             `json:"ptr,omitempty" jsonschema:"nullable"`
	Named money                `json:"named,omitempty"`
	List  []float64            `json:"list,omitempty"`
	Map   map[string][]float32 `json:"map,omitempty"`
	Any   any                  `json:"any,omitempty"`
	Num   json.Number          `json:"num,omitempty"`
	Deep  []floats             `json:"deep,omitempty"`
}

// TestI02_FloatsAreWhatWasChecked: a number that the Go field cannot hold exactly would be another one for the function
// than for the schema and for the person who approved it.
func TestI02_FloatsAreWhatWasChecked(t *testing.T) {
	s, err := Reflect(reflect.TypeFor[floats]())
	require.NoError(t, err)
	for _, c := range []struct{ input, fault string }{
		{`{"f64":0.1,"f32":0.1,"named":19.99,"list":[1e300,9007199254740992],"map":{"a":[0.3]},"ptr":null}`, ""},
		{`{"any":0.99999999999999999999,"num":9007199254740993}`, ""}, // what keeps all digits may have them
		{`{"f64":0.99999999999999999999}`, "/f64"},
		{`{"f32":1e-50}`, "/f32"},
		{`{"f32":16777217}`, "/f32"},
		{`{"ptr":9007199254740993}`, "/ptr"},
		{`{"named":0.1000000000000000055511151231257827}`, "/named"},
		{`{"list":[1,123456789012345678901234567890]}`, "/list/1"},
		{`{"map":{"a":[0.1,0.10000000149011612]}}`, "/map/a/1"},
		{`{"deep":[{"deep":[{"f64":0.99999999999999999999}]}]}`, "/deep/0/deep/0/f64"},
	} {
		_, f := s.Check([]byte(c.input))
		if c.fault == "" {
			require.Nil(t, f, c.input)
			continue
		}
		require.NotNil(t, f, c.input)
		assert.Equal(t, action.InputInvalid, f.Code, c.input)
		assert.Contains(t, f.Message, c.fault+" is not held exactly by a ", c.input)
	}
}

// Every float passes as Go writes it, and what passes is decoded to the float that is written so: one text for each.
func TestOneDecimalForEachFloat(t *testing.T) {
	s, err := Reflect(reflect.TypeFor[struct {
		D float64 `json:"d"`
		F float32 `json:"f"`
	}]())
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.OneOf(rapid.Float64(), rapid.Map(rapid.Int64(), func(n int64) float64 { return float64(n) })).Draw(t, "d")
		f := rapid.OneOf(rapid.Float32(), rapid.Map(rapid.Int32(), func(n int32) float32 { return float32(n) })).Draw(t, "f")
		raw, err := json.Marshal(map[string]any{"d": d, "f": f})
		require.NoError(t, err)
		doc, fault := s.Check(raw)
		require.Nil(t, fault, "%s", raw)
		var back struct {
			D float64
			F float32
		}
		require.NoError(t, action.Input{Document: doc}.Decode(&back))
		require.Equal(t, d+0, back.D)
		require.Equal(t, f+0, back.F)
		// Another decimal for the same float is refused, however near.
		text := strings.TrimRight(rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?`).Draw(t, "text"), ".")
		doc, fault = s.Check([]byte(`{"d":` + text + `,"f":0}`))
		if fault != nil {
			return
		}
		require.NoError(t, action.Input{Document: doc}.Decode(&back))
		again, err := json.Marshal(map[string]any{"d": back.D, "f": 0})
		require.NoError(t, err)
		canonical, _ := Canonical(again, 0)
		require.Equal(t, canonical.Text(), doc.Text())
	})
	for _, d := range []float64{math.MaxFloat64, math.SmallestNonzeroFloat64, 1 << 60, 0.1, -1e21, 1e-7} {
		raw, _ := json.Marshal(map[string]any{"d": d, "f": 0})
		_, fault := s.Check(raw)
		require.Nil(t, fault, "%s", raw)
	}
}

// TestI02_EveryPropertyReachesItsField: what encoding/json makes of a tag is what the schema says, or the declaration is
// refused; a function would see zeros where values were checked.
func TestI02_EveryPropertyReachesItsField(t *testing.T) {
	tagged := func(tag reflect.StructTag) reflect.Type { // linters refuse such tags in a declaration
		return reflect.StructOf([]reflect.StructField{{Name: "F", Type: reflect.TypeFor[int](), Tag: tag}})
	}
	for name, typ := range map[string]reflect.Type{
		"a vowel sign is no letter": tagged(`json:"नाम"`),
		"a backslash":               tagged(`json:"a\\b"`),
		"a quote":                   tagged(`json:"q\"q"`),
		"nested":                    reflect.SliceOf(reflect.MapOf(reflect.TypeFor[string](), tagged(`json:"'"`))),
	} {
		_, err := Reflect(typ)
		require.ErrorContains(t, err, "encoding/json does not read", name)
		_, err = ReflectOutput(typ)
		require.ErrorContains(t, err, "encoding/json does not read", name)
	}
	_, err := Reflect(reflect.TypeFor[struct {
		A int `json:"имя"`
		B int `json:"a-b.c/d:e f@g"`
		C int `json:"日本"`
		D int `json:",omitempty"`
	}]())
	require.NoError(t, err)
}

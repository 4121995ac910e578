package schema

import (
	"encoding/json"
	"errors"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
)

type base struct {
	ID string `json:"id" jsonschema:"pattern=^ORD-[0-9]+$"`
	//lint:ignore U1000 what is not exported does not count
	skip chan int
}

type Base2 struct {
	Tenant string `json:"tenant,omitempty"`
}

type line struct {
	SKU   string   `json:"sku" jsonschema:"minLength=1"`
	Count uint8    `json:"count" jsonschema:"minimum=1,maximum=200"`
	Tags  []string `json:"tags,omitempty" jsonschema:"maxItems=2,uniqueItems=true,enum=a,enum=b"`
}

type everything struct {
	base
	*Base2
	Kind   string            `json:"kind" jsonschema:"enum=gift,enum=own,description=what it is\\, roughly"`
	When   time.Time         `json:"when"`
	Lines  []line            `json:"lines" jsonschema:"minItems=1"`
	Pair   [2]int            `json:"pair,omitzero"`
	Labels map[string]string `json:"labels,omitempty"`
	Next   *line             `json:"next,omitempty"`
	Maybe  *string           `json:"maybe,omitempty" jsonschema:"nullable,maxLength=3"`
	Price  float64           `json:"price,omitempty" jsonschema:"exclusiveMinimum=0,multipleOf=0.01"`
	Ratio  float32           `json:"ratio,omitempty"`
	Blob   []byte            `json:"blob,omitempty"`
	Raw    json.RawMessage   `json:"raw,omitempty"`
	Any    any               `json:"any,omitempty"`
	Num    json.Number       `json:"num,omitempty"`
	Addr   netip.Addr        `json:"addr,omitzero"`
	IP     net.IP            `json:"ip,omitempty"`
	Wait   time.Duration     `json:"wait,omitempty"`
	On     bool              `json:"on,omitempty"`
	Mail   string            `json:"mail,omitempty" jsonschema:"format=email"`
	Card   string            `json:"card,omitempty" delta:"secret"`
	Nested struct{ A int }   `json:"nested,omitzero"`
	Hidden func()            `json:"-"`
	//lint:ignore U1000 what is not exported does not count
	internal chan int
}

func TestReflectedTypesAreChecked(t *testing.T) {
	s, err := Reflect(reflect.TypeFor[everything]())
	require.NoError(t, err)
	require.NoError(t, s.IsObject())
	assert.Equal(t, []string{"card"}, s.Secrets())
	minimal := func(more string) string {
		return `{"id":"ORD-1","kind":"gift","when":"2026-11-30T12:00:00Z","lines":[{"sku":"x","count":1}]` + more + `}`
	}
	for _, more := range []string{``, `,"pair":[1,2]`, `,"labels":{"a":"b"}`, `,"next":{"sku":"x","count":200}`, `,"maybe":null`,
		`,"maybe":"abc"`, `,"price":4.35`, `,"ratio":0.5`, `,"blob":"YWI="`, `,"raw":[1,{}]`, `,"any":null`, `,"num":1.5`, `,"addr":"1.2.3.4"`,
		`,"ip":"::1"`, `,"wait":1e9`, `,"on":true`, `,"mail":"a@b.de"`, `,"card":"4111"`, `,"nested":{"A":1}`, `,"tenant":"t"`} {
		doc, f := s.Check([]byte(minimal(more)))
		if assert.Nil(t, f, more) {
			var v everything
			assert.NoError(t, json.Unmarshal([]byte(doc.Text()), &v), "what is accepted can be decoded: %s", more)
		}
	}
	for more, want := range map[string]string{
		`,"pair":[1]`: "/pair", `,"labels":{"a":1}`: "/labels/a", `,"next":{"sku":"","count":1}`: "/next/sku", `,"next":null`: "/next",
		`,"next":{"sku":"x","count":201}`: "/next/count", `,"maybe":"abcd"`: "/maybe", `,"price":4.355`: "/price", `,"price":0`: "/price",
		`,"ratio":1e300`: "/ratio", `,"blob":"?"`: "/blob", `,"num":"1"`: "/num", `,"addr":1`: "/addr", `,"ip":"x"`: "/ip", `,"wait":1.5`: "/wait",
		`,"wait":9223372036854775808`: "/wait", `,"on":1`: "/on", `,"mail":"x"`: "/mail", `,"nested":{}`: "/nested/A", `,"Hidden":1`: "/Hidden",
		`,"internal":1`: "/internal", `,"skip":1`: "/skip", `,"labels":null`: "/labels",
	} {
		_, f := s.Check([]byte(minimal(more)))
		if assert.NotNil(t, f, more) {
			assert.Equal(t, action.InputInvalid, f.Code)
			assert.Equal(t, want, f.Details[action.DetailField], f.Message)
		}
	}
	_, f := s.Check([]byte(`{"id":"1","kind":"other","when":"today","lines":[{"sku":"x","count":256,"tags":["a","a","b"]}]}`))
	require.NotNil(t, f)
	for _, want := range []string{"/id does not match", `/kind want one of "gift", "own"`, "/when is not a valid date-time", "/lines/0/count want at most 200", "/lines/0/tags want at most 2"} {
		assert.Contains(t, f.Message, want)
	}
	assert.Contains(t, string(s.JSON()), `"description":"what it is, roughly"`)
}

func TestReflectOthers(t *testing.T) {
	for _, c := range []struct {
		t       reflect.Type
		want    string
		in      string
		refused string
	}{
		{reflect.TypeFor[string](), `{"type":"string"}`, `"x"`, `1`},
		{reflect.TypeFor[[]string](), `{"items":{"type":"string"},"type":["array","null"]}`, `null`, `[1]`},
		{reflect.TypeFor[map[string]int64](), `{"additionalProperties":{"format":"int64","type":"integer"},"type":["object","null"]}`, `{"a":1}`, `{"a":"b"}`},
		{reflect.TypeFor[bool](), `{"type":"boolean"}`, `true`, `1`},
		{reflect.TypeFor[int64](), `{"format":"int64","type":"integer"}`, `1`, `1.5`},
		{reflect.TypeFor[struct{}](), `{"additionalProperties":false,"properties":{},"type":"object"}`, `{}`, `{"a":1}`},
		{reflect.TypeFor[any](), `{}`, `[1,null]`, ``},
		{reflect.TypeFor[[]byte](), `{"format":"base64","type":["string","null"]}`, `null`, `"?"`},
		{reflect.TypeFor[*line](), ``, `null`, `{}`},
		{reflect.TypeFor[struct {
			P *int           `json:"p"`
			L []*line        `json:"l"`
			M map[string]any `json:"m"`
		}](), ``, `{"p":null,"l":null,"m":null}`, `{"p":"x","l":[],"m":{}}`},
		{reflect.TypeFor[struct {
			L []*line `json:"l"`
			K *string `json:"k" jsonschema:"enum=a"`
		}](), ``, `{"l":[null],"k":null}`, `{"l":[],"k":"b"}`},
	} {
		t.Run(c.t.String(), func(t *testing.T) {
			s, err := ReflectOutput(c.t)
			require.NoError(t, err)
			if c.want != "" {
				assert.Equal(t, c.want, string(s.JSON()))
			}
			_, f := s.CheckOutput([]byte(c.in))
			assert.Nil(t, f)
			_, f = s.CheckOutput([]byte(c.refused))
			if assert.NotNil(t, f) {
				assert.Equal(t, action.OutputInvalid, f.Code)
			}
		})
	}
}

type tree struct {
	Name string          `json:"name"`
	Kids []*tree         `json:"kids,omitempty" jsonschema:"maxItems=2"`
	By   map[string]tree `json:"by,omitempty"`
	Up   *tree           `json:"up,omitempty" jsonschema:"description=the parent"`
	Pair page[*tree]     `json:"pair,omitzero"`
}

type page[T any] struct {
	Items []T `json:"items"`
}

type forest struct {
	Root tree `json:"root"`
	Else tree `json:"else,omitzero" jsonschema:"title=other"`
}

func TestReflectRecursive(t *testing.T) {
	for _, c := range []struct {
		t   reflect.Type
		in  string
		bad string
		at  string
	}{
		{reflect.TypeFor[tree](), `{"name":"a","kids":[{"name":"b"}],"by":{"x":{"name":"c"}},"up":{"name":"d"},"pair":{"items":[{"name":"e"}]}}`,
			`{"name":"a","kids":[{"name":"b","kids":[{"name":1}]}]}`, "/kids/0/kids/0/name"},
		{reflect.TypeFor[forest](), `{"root":{"name":"a","kids":[{"name":"b"}]}}`, `{"root":{"name":"a","up":{"nam":"b"}}}`, "/root/up/name"},
	} {
		for _, reflected := range []func(reflect.Type) (*Schema, error){Reflect, ReflectOutput} {
			s, err := reflected(c.t)
			require.NoError(t, err)
			_, f := s.Check([]byte(c.in))
			require.Nil(t, f)
			_, f = s.Check([]byte(c.bad))
			require.NotNil(t, f)
			assert.Contains(t, f.Message, c.at)
			_, f = s.Check([]byte(strings.Replace(c.in, `"kids":[`, `"kids":[{"name":"1"},{"name":"2"},`, 1)))
			require.NotNil(t, f, "tags beside a recursive type hold")
		}
	}
	s, err := ReflectOutput(reflect.TypeFor[forest]())
	require.NoError(t, err)
	again, err := Declared(s.JSON())
	require.NoError(t, err)
	assert.Equal(t, s.Hash(), again.Hash())
}

func innerOrder() reflect.Type {
	type Order struct {
		N int `json:"n"`
	}
	return reflect.TypeFor[struct {
		Order Order `json:"order"`
	}]()
}

func TestReflectTypesOfOneName(t *testing.T) {
	inner := innerOrder().Field(0).Type
	type Order struct {
		ID string `json:"id"`
	}
	outer := reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[Order](), Tag: `json:"a"`}, {Name: "B", Type: inner, Tag: `json:"b"`}})
	s, err := Reflect(outer)
	require.NoError(t, err)
	_, f := s.Check([]byte(`{"a":{"id":"x"},"b":{"n":1}}`))
	assert.Nil(t, f)
	s, err = Reflect(reflect.TypeFor[line2]())
	require.NoError(t, err)
	_, f = s.Check([]byte(`{"line":{"id":"x"}}`))
	assert.Nil(t, f)
}

type line2 struct {
	Line struct {
		ID string `json:"id"`
	} `json:"line"`
}

type embedsItself struct {
	//lint:ignore U1000 it is there to be refused
	*embedsItself
}

type own1 struct{}

func (*own1) UnmarshalJSON([]byte) error { return errors.New("no") }

type own2 struct{}

func (own2) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

func TestReflectOutputNamesFormsOfTheirOwn(t *testing.T) {
	_, err := ReflectOutput(reflect.TypeFor[struct{ O []own2 }]())
	require.Error(t, err)
	assert.Contains(t, err.Error(), "field O.*: type schema.own2 has a JSON form of its own")
}

type (
	twice struct {
		ID string `json:"id"`
		Base3
	}
	Base3 struct {
		Other int `json:"ID"`
	}
	recursiveSecret struct {
		Token string           `json:"token" delta:"secret"`
		Next  *recursiveSecret `json:"next,omitempty"`
	}
)

func TestReflectNamesWhatHasNoSchema(t *testing.T) {
	for _, c := range []struct {
		name string
		t    reflect.Type
		want []string
	}{
		{"channel", reflect.TypeFor[struct {
			A struct {
				C chan int `json:"c"`
			} `json:"a"`
		}](), []string{"field a.c: type chan int has no JSON form"}},
		{"function", reflect.TypeFor[struct{ F func() }](), []string{"field F: type func() has no JSON form"}},
		{"complex", reflect.TypeFor[struct{ L []complex128 }](), []string{"field L.*: type complex128"}},
		{"root", reflect.TypeFor[chan int](), []string{"(the type itself)"}},
		{"map key", reflect.TypeFor[struct{ M map[int]string }](), []string{"field M: type map[int]string: the keys of a map"}},
		{"interface", reflect.TypeFor[struct{ E error }](), []string{"field E: type error is an interface"}},
		{"several", reflect.TypeFor[struct {
			A chan int
			B func()
		}](), []string{"field A", "field B"}},
		{"own form", reflect.TypeFor[struct{ O own1 }](), []string{"field O: type schema.own1 has a JSON form of its own; give it a method JSONSchema"}},
		{"text and JSON form", reflect.TypeFor[struct{ N *big.Int }](), []string{"field N: type big.Int has a JSON form of its own"}},
		{"URL", reflect.TypeFor[struct{ U *url.URL }](), []string{"field U: type url.URL has no JSON form"}},
		{"embeds itself", reflect.TypeFor[embedsItself](), []string{"embedded pointer"}},
		{"delta tag", reflect.TypeFor[struct {
			A string `delta:"secrte"`
		}](), []string{`field A: unknown tag delta:"secrte", did you mean "secret"?`}},
		{"misspelt item", reflect.TypeFor[struct {
			A string `jsonschema:"minLenght=1"`
		}](), []string{`field A: jsonschema tag "minLenght" is unknown or means nothing for type string, did you mean "minLength"?`}},
		{"item of another type", reflect.TypeFor[struct {
			A int `jsonschema:"minLength=1"`
		}](), []string{`"minLength" is unknown or means nothing for type int`}},
		{"item without a value", reflect.TypeFor[struct {
			A string `jsonschema:"requird"`
		}](), []string{`"requird" has no value, did you mean "required"?`}},
		{"bad value", reflect.TypeFor[struct {
			A string `jsonschema:"minLength=x"`
		}](), []string{`jsonschema tag minLength: "x" is not a value for it`}},
		{"bad pattern", reflect.TypeFor[struct {
			A string `json:"a" jsonschema:"pattern=(?=x)"`
		}](), []string{"#/properties/a/pattern", "RE2"}},
		{"bad format", reflect.TypeFor[struct {
			A string `jsonschema:"format=duration"`
		}](), []string{`unknown format "duration"`}},
		{"extras", reflect.TypeFor[struct {
			A string `jsonschema_extras:"x-order=1"`
		}](), []string{`unknown keyword "x-order"`}},
		{"string option", reflect.TypeFor[struct {
			A int `json:",string"`
		}](), []string{"field A: the json option"}},
		{"case variants", reflect.TypeFor[twice](), []string{"field ID: is declared twice, as schema.twice.ID and schema.Base3.Other"}},
		{"recursive secret", reflect.TypeFor[recursiveSecret](), []string{"recursive"}},
		{"nil", nil, []string{"want a type"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Reflect(c.t)
			require.Error(t, err)
			for _, want := range c.want {
				assert.Contains(t, err.Error(), want)
			}
		})
	}
}

func TestReflectMakesTheSchemaOfATypeOnce(t *testing.T) {
	type wish struct {
		Text string `json:"text"`
	}
	in, err := Reflect(reflect.TypeFor[wish]())
	require.NoError(t, err)
	again, err := Reflect(reflect.TypeFor[wish]())
	require.NoError(t, err)
	assert.Same(t, in, again)
	out, err := ReflectOutput(reflect.TypeFor[wish]())
	require.NoError(t, err)
	assert.NotSame(t, in, out, "an output is another contract")
	in.JSON()[0] = 'x'
	assert.Equal(t, byte('{'), again.JSON()[0], "what a caller does to its bytes stays with it")
}

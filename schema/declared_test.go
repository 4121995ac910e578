package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/cputime"
)

// enforced has a schema, documents that satisfy it and documents that do not, per keyword and format.
var enforced = []struct {
	keyword, schema string
	valid, invalid  []string
}{
	{"type", `{"type":"integer"}`, []string{`1`, `1.0`, `-0`, `1e3`}, []string{`1.5`, `"1"`, `null`, `true`, `[]`, `{}`}},
	{"type", `{"type":["string","null"]}`, []string{`"a"`, `null`}, []string{`1`}},
	{"type", `{"type":"number"}`, []string{`1`, `1.5`, `1e300`}, []string{`"1"`}},
	{"enum", `{"enum":["a",1,{"x":[2]},null]}`, []string{`"a"`, `1.0`, `{"x":[2e0]}`, `null`}, []string{`"b"`, `1.5`, `{"x":2}`, `{}`}},
	{"enum", `{"enum":[9007199254740993]}`, []string{`9007199254740993`}, []string{`9007199254740992`}},
	{"const", `{"const":{"a":[1,true]}}`, []string{`{"a":[1,true]}`}, []string{`{"a":[1]}`, `{"a":[1,true],"b":1}`}},
	{"const", `{"const":9007199254740993}`, []string{`9007199254740993`}, []string{`9007199254740992`}},
	{"const", `{"not":{"const":9007199254740993}}`, []string{`9007199254740992`}, []string{`9007199254740993`}},
	{"allOf", `{"allOf":[{"minimum":1},{"maximum":3}]}`, []string{`2`}, []string{`0`, `4`}},
	{"anyOf", `{"anyOf":[{"type":"string"},{"minimum":3,"type":"number"}]}`, []string{`"a"`, `3`}, []string{`2`, `null`}},
	{"oneOf", `{"oneOf":[{"minimum":1},{"maximum":3}]}`, []string{`0`, `4`}, []string{`2`}},
	{"not", `{"not":{"type":"string"}}`, []string{`1`}, []string{`"a"`}},
	{"if", `{"if":{"type":"string"},"then":{"minLength":2},"else":{"minimum":2}}`, []string{`"ab"`, `2`}, []string{`"a"`, `1`}},
	{"then", `{"if":{"type":"string"},"then":{"minLength":2}}`, []string{`"ab"`, `1`}, []string{`"a"`}},
	{"else", `{"if":{"type":"string"},"else":{"minimum":2}}`, []string{`"a"`, `2`}, []string{`1`}},
	{"$ref", `{"$ref":"#/$defs/a~1b%20c","$defs":{"a/b c":{"type":"string"}}}`, []string{`"x"`}, []string{`1`}},
	{"$defs", `{"type":"object","properties":{"next":{"$ref":"#"},"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}},"additionalProperties":false}`,
		[]string{`{"next":{"next":{"n":1}}}`}, []string{`{"next":{"next":{"n":"1"}}}`, `{"next":{"x":1}}`}},
	{"definitions", `{"items":{"$ref":"#/definitions/s"},"definitions":{"s":{"type":"string"}}}`, []string{`["a"]`}, []string{`[1]`}},
	{"properties", `{"properties":{"a":{"type":"string"}}}`, []string{`{"a":"x"}`, `{"b":1}`, `1`}, []string{`{"a":1}`}},
	{"patternProperties", `{"patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}`, []string{`{"x-a":"1"}`}, []string{`{"x-a":1}`, `{"y":"1"}`}},
	{"additionalProperties", `{"properties":{"a":true},"additionalProperties":{"type":"string"}}`, []string{`{"a":1,"b":"x"}`}, []string{`{"b":1}`}},
	{"additionalProperties", `{"properties":{"a":true},"additionalProperties":false}`, []string{`{"a":1}`}, []string{`{"b":1}`}},
	{"propertyNames", `{"propertyNames":{"maxLength":2}}`, []string{`{"ab":1}`}, []string{`{"abc":1}`}},
	{"required", `{"required":["a","b"]}`, []string{`{"a":1,"b":null}`, `[]`}, []string{`{"a":1}`}},
	{"dependencies", `{"dependencies":{"a":["b"],"c":{"required":["d"]}}}`, []string{`{"a":1,"b":1}`, `{"c":1,"d":1}`, `{}`}, []string{`{"a":1}`, `{"c":1}`}},
	{"minProperties", `{"minProperties":1}`, []string{`{"a":1}`}, []string{`{}`}},
	{"maxProperties", `{"maxProperties":1}`, []string{`{"a":1}`}, []string{`{"a":1,"b":1}`}},
	{"items", `{"items":{"type":"string"}}`, []string{`["a"]`, `[]`}, []string{`["a",1]`}},
	{"items", `{"items":[{"type":"string"},{"type":"integer"}]}`, []string{`["a",1,true]`, `["a"]`}, []string{`[1]`, `["a","b"]`}},
	{"additionalItems", `{"items":[true],"additionalItems":{"type":"string"}}`, []string{`[1,"a"]`}, []string{`[1,1]`}},
	{"additionalItems", `{"items":[true],"additionalItems":false}`, []string{`[1]`}, []string{`[1,1]`}},
	{"contains", `{"contains":{"minimum":5}}`, []string{`[1,5]`}, []string{`[1,2]`, `[]`}},
	{"minItems", `{"minItems":1}`, []string{`[1]`}, []string{`[]`}},
	{"maxItems", `{"maxItems":1}`, []string{`[1]`}, []string{`[1,2]`}},
	{"uniqueItems", `{"uniqueItems":true}`, []string{`[1,"1",{"a":1},{"a":2}]`, `[9007199254740993,9007199254740992]`}, []string{`[1,1.0]`, `[{"a":1,"b":2},{"b":2,"a":1}]`}},
	{"uniqueItems", `{"not":{"uniqueItems":true}}`, []string{`[1,1]`}, []string{`[1,2]`, `[9007199254740993,9007199254740992]`}},
	{"minLength", `{"minLength":2}`, []string{`"ab"`, `"é😀"`, `1`}, []string{`"a"`, `"😀"`}},
	{"maxLength", `{"maxLength":2}`, []string{`"ab"`, `"é😀"`}, []string{`"abc"`}},
	{"pattern", `{"pattern":"^a+$"}`, []string{`"aa"`}, []string{`"ab"`}},
	{"minimum", `{"minimum":9007199254740993}`, []string{`9007199254740993`}, []string{`9007199254740992`}},
	{"maximum", `{"maximum":0.1}`, []string{`0.1`}, []string{`0.10000000000000000001`}},
	{"exclusiveMinimum", `{"exclusiveMinimum":0.1}`, []string{`0.10000000000000000001`}, []string{`0.1`}},
	{"exclusiveMaximum", `{"exclusiveMaximum":1e300}`, []string{`1`}, []string{`1e300`}},
	{"multipleOf", `{"multipleOf":0.01}`, []string{`4.35`, `1.1`, `0`}, []string{`4.355`}},
	{"multipleOf", `{"multipleOf":1e-300}`, []string{`1e300`}, []string{`5e-301`}},
	{"format", `{"format":"date"}`, []string{`"2026-02-28"`, `1`}, []string{`"2026-02-30"`}},
	{"format", `{"format":"time"}`, []string{`"10:11:12Z"`, `"10:11:12.5+01:00"`}, []string{`"10:11:12"`, `"1:11:12Z"`}},
	{"format", `{"format":"date-time"}`, []string{`"2026-02-28T10:11:12Z"`}, []string{`"2026-02-28"`, `"10:11:12"`, `"2026-02-28T10:11:12,5Z"`, `"2026-02-28T1:11:12Z"`}},
	{"format", `{"format":"email"}`, []string{`"a@b.de"`}, []string{`"a"`, `"A <a@b.de>"`}},
	{"format", `{"format":"hostname"}`, []string{`"a.de"`}, []string{`"-a.de"`}},
	{"format", `{"format":"ipv4"}`, []string{`"1.2.3.4"`}, []string{`"1.2.3"`, `"::1"`}},
	{"format", `{"format":"ipv6"}`, []string{`"::1"`}, []string{`"1.2.3.4"`, `"fe80::1%eth0"`}},
	{"format", `{"format":"uri"}`, []string{`"https://a.de/x"`}, []string{`"/x"`}},
	{"format", `{"format":"uri-reference"}`, []string{`"/x"`}, []string{`"\\x"`}},
	{"format", `{"format":"uri-template"}`, []string{`"/x/{id}"`}, []string{`"/x/{id"`}},
	{"format", `{"format":"uuid"}`, []string{`"0d4a9a1c-66d6-4f1c-9d2c-0b1a2c3d4e5f"`, `"0D4A9A1C-66d6-4f1c-9d2c-0b1a2c3d4e5f"`}, []string{`"0d4a"`}},
	{"format", `{"format":"regex"}`, []string{`"a+"`}, []string{`"(?=a)"`}},
	{"format", `{"format":"json-pointer"}`, []string{`"/a/0"`}, []string{`"a"`}},
	{"format", `{"format":"relative-json-pointer"}`, []string{`"1/a"`}, []string{`"/a"`}},
	{"format", `{"format":"base64"}`, []string{`"YWI="`}, []string{`"YWI"`, `"YW\nI="`, `"YWJ="`, `"Y==="`}},
	{"format", `{"format":"int8"}`, []string{`127`}, []string{`128`}},
	{"format", `{"format":"int16"}`, []string{`32767`}, []string{`32768`}},
	{"format", `{"format":"int32"}`, []string{`2147483647`}, []string{`2147483648`}},
	{"format", `{"format":"int64"}`, []string{`9223372036854775807`, `-9223372036854775808`}, []string{`9223372036854775808`, `1e19`}},
	{"format", `{"format":"uint8"}`, []string{`255`}, []string{`256`, `-1`}},
	{"format", `{"format":"uint16"}`, []string{`65535`}, []string{`65536`}},
	{"format", `{"format":"uint32"}`, []string{`4294967295`}, []string{`4294967296`}},
	{"format", `{"format":"uint64"}`, []string{`18446744073709551615`}, []string{`18446744073709551616`}},
	{"format", `{"format":"float"}`, []string{`1e38`, `0.1`, `16777216`, `0`, `1e-45`, `"x"`}, []string{`1e39`, `16777217`, `0.10000000149011612`, `1e-50`}},
	{"format", `{"format":"double"}`, []string{`0.1`, `1e-1`, `1e308`, `9007199254740992`, `1e300`, `5e-324`, `123456789012345`}, []string{`9007199254740993`,
		`0.99999999999999999999`, `0.1000000000000000055511151231257827`, `1152921504606846976`, `123456789012345678901234567890`, `4e-324`}},
	{"false", `{"properties":{"a":false}}`, []string{`{}`}, []string{`{"a":1}`}},
}

func TestDeclaredKeywordsAreEnforced(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range enforced {
		seen[c.keyword] = true
		if f, ok := strings.CutPrefix(c.schema, `{"format":"`); ok {
			seen[strings.TrimSuffix(f, `"}`)] = true
		}
		s, err := Declared([]byte(c.schema))
		require.NoError(t, err, c.schema)
		for _, in := range c.valid {
			_, f := s.Check([]byte(in))
			assert.Nil(t, f, "%s takes %s", c.schema, in)
		}
		for _, in := range c.invalid {
			_, f := s.Check([]byte(in))
			if assert.NotNil(t, f, "%s refuses %s", c.schema, in) {
				assert.Equal(t, action.InputInvalid, f.Code)
				assert.NotEmpty(t, f.Message)
			}
			_, f = s.CheckOutput([]byte(in))
			require.NotNil(t, f)
			assert.Equal(t, action.OutputInvalid, f.Code)
		}
	}
	for name := range keywords {
		idle := []string{"$comment", "$id", "$schema", "default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"}
		if !assert.True(t, seen[name] || contains(idle, name), "no case for keyword %s", name) {
			continue
		}
	}
	for name := range formats {
		assert.True(t, seen[name], "no case for format %s", name)
	}
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func TestDeclaredNamesWhatWouldBeIgnored(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"not JSON", `{"type":}`, "not acceptable JSON: unexpected '}'"},
		{"duplicate keyword", `{"type":"string","type":"number"}`, "duplicate member name"},
		{"not a schema", `[]`, "schema at #: want a schema"},
		{"misspelt keyword", `{"properties":{"a":{"requird":["x"]}}}`, `schema at #/properties/a/requird: unknown keyword "requird", did you mean "required"?`},
		{"unknown keyword", `{"x-order":1}`, `unknown keyword "x-order"`},
		{"beside $ref", `{"properties":{"a":{"$ref":"#/$defs/a","minLength":1}},"$defs":{"a":{}}}`, `schema at #/properties/a/minLength: keyword "minLength" beside $ref`},
		{"$dynamicRef", `{"$dynamicRef":"#x"}`, `"$dynamicRef" would be ignored`},
		{"$anchor", `{"$anchor":"x"}`, `"$anchor" would be ignored`},
		{"dependentRequired", `{"dependentRequired":{"a":["b"]}}`, `use "dependencies"`},
		{"dependentSchemas", `{"dependentSchemas":{"a":{}}}`, `use "dependencies"`},
		{"prefixItems", `{"prefixItems":[{}]}`, `use "items" with a list`},
		{"unevaluatedProperties", `{"unevaluatedProperties":false}`, `use "additionalProperties"`},
		{"unevaluatedItems", `{"unevaluatedItems":false}`, `use "additionalItems"`},
		{"minContains", `{"contains":{},"minContains":2}`, `"minContains" would be ignored`},
		{"maxContains", `{"contains":{},"maxContains":2}`, `"maxContains" would be ignored`},
		{"contentEncoding", `{"contentEncoding":"base64"}`, `use "format": "base64"`},
		{"format duration", `{"format":"duration"}`, `unknown format "duration"`},
		{"misspelt format", `{"format":"datetime"}`, `did you mean "date-time"?`},
		{"format of another type", `{"type":"integer","format":"date"}`, `format "date" means nothing for type integer`},
		{"keyword of another type", `{"type":"integer","minLength":1}`, `schema at #/minLength: keyword "minLength" means nothing for type integer`},
		{"unknown type", `{"type":"strin"}`, `unknown type "strin", did you mean "string"?`},
		{"type twice", `{"type":["string","string"]}`, `given twice`},
		{"remote $ref", `{"$ref":"https://example.com/s.json"}`, "is not local"},
		{"file $ref", `{"$ref":"file:///etc/passwd"}`, "is not local"},
		{"relative $ref", `{"$ref":"other.json#/a"}`, "is not local"},
		{"$ref to an anchor", `{"$ref":"#foo"}`, "is not local"},
		{"$ref to nothing", `{"$ref":"#/$defs/a"}`, "there is no schema at #/$defs/a"},
		{"$ref to no schema", `{"properties":{"a":{"$ref":"#/properties"}}}`, "there is no schema at #/properties"},
		{"$ref to itself", `{"$ref":"#"}`, "cyclic"},
		{"$ref in a ring", `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`, "cyclic"},
		{"unused ring", `{"$defs":{"a":{"$ref":"#/$defs/a"}}}`, "cyclic"},
		{"lookahead", `{"pattern":"(?=a)b"}`, "is not RE2"},
		{"pattern of a property", `{"patternProperties":{"(":{}}}`, "is not RE2"},
		{"draft 4 bound", `{"minimum":1,"exclusiveMinimum":true}`, "schema at #/exclusiveMinimum: want a number"},
		{"negative count", `{"minLength":-1}`, "want a whole number"},
		{"multiple of zero", `{"multipleOf":0}`, "above zero"},
		{"empty enum", `{"enum":[]}`, "at least one value"},
		{"enum twice", `{"enum":[1,1.0]}`, "given twice"},
		{"then alone", `{"then":{}}`, `"then" without if`},
		{"if alone", `{"if":{}}`, `"if" without then`},
		{"additionalItems alone", `{"items":{},"additionalItems":false}`, `"additionalItems" would be ignored`},
		{"required but no property", `{"properties":{"orderId":{}},"required":["orderID"],"additionalProperties":false}`, `did you mean "orderId"?`},
		{"unknown dialect", `{"$schema":"http://json-schema.org/draft-04/schema#"}`, "schema at #/$schema"},
		{"nested $id", `{"properties":{"a":{"$id":"x"}}}`, "at the root only"},
		{"bounds that exclude each other", `{"minLength":3,"maxLength":2}`, "minLength"},
		{"huge number", `{"minimum":1e1000001}`, "too large"},
		{"required of a string", `{"required":"a"}`, "list of names"},
		{"properties of a list", `{"properties":[]}`, "want an object of schemas"},
		{"secret document", `{"writeOnly":true}`, "whole document"},
		{"secret in a recursive schema", `{"properties":{"s":{"writeOnly":true},"next":{"$ref":"#"}}}`, "recursive schema has no path"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Declared([]byte(c.schema))
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.want)
		})
	}
	t.Run("all faults at once", func(t *testing.T) {
		_, err := Declared([]byte(`{"foo":1,"minimum":"x","pattern":"("}`))
		require.Error(t, err)
		for _, want := range []string{`"foo"`, "#/minimum", "#/pattern"} {
			assert.Contains(t, err.Error(), want)
		}
	})
	t.Run("annotations are fine", func(t *testing.T) {
		_, err := Declared([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"x","title":"t","description":"d","$comment":"c",
			"properties":{"a":{"$ref":"#/$defs/a","description":"beside"}},"$defs":{"a":{"default":{"$ref":"#"},"examples":[1],"deprecated":true,"readOnly":true}}}`))
		require.NoError(t, err)
	})
}

func TestCheckNamesThePlace(t *testing.T) {
	s, err := Declared([]byte(`{"type":"object","additionalProperties":false,"required":["orderId"],"properties":{
		"orderId":{"type":"string","minLength":3},"amount":{"type":"integer","minimum":1},
		"customer":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}},
		"lines":{"type":"array","items":{"$ref":"#/$defs/line"}}},
		"$defs":{"line":{"type":"object","properties":{"sku":{"type":"string"}},"additionalProperties":false}}}`))
	require.NoError(t, err)
	require.NoError(t, s.IsObject())
	for _, c := range []struct {
		name, in string
		code     action.Code
		field    string
		message  string
	}{
		{"missing", `{}`, action.InputInvalid, "/orderId", "/orderId is required"},
		{"wrong type", `{"orderId":1}`, action.InputInvalid, "/orderId", "/orderId want string, got integer"},
		{"root type", `[]`, action.InputInvalid, "", "want object, got array"},
		{"unknown", `{"orderId":"ORD","amonut":1}`, action.InputInvalid, "/amonut", `is not a known property, did you mean "amount"?`},
		{"unknown and far", `{"orderId":"ORD","zzz":1}`, action.InputInvalid, "/zzz", "known are amount, customer, lines, orderId"},
		{"nested", `{"orderId":"ORD","customer":{"id":1.5}}`, action.InputInvalid, "/customer/id", "want integer, got number"},
		{"in a list", `{"orderId":"ORD","lines":[{},{"sku":1}]}`, action.InputInvalid, "/lines/1/sku", "want string"},
		{"several", `{"amount":0,"lines":[1],"orderId":"x"}`, action.InputInvalid, "/amount",
			"/amount want at least 1; /lines/0 want object, got integer; /orderId want at least 3 characters, got 1"},
		{"case variant", `{"orderId":"ORD","orderID":"ORD"}`, action.InputMalformed, "/orderID", `differs only in case from the property "orderId"`},
		{"case variant alone", `{"ORDERID":"ORD"}`, action.InputMalformed, "/ORDERID", `"orderId"`},
		{"case variant below", `{"orderId":"ORD","customer":{"ID":1}}`, action.InputMalformed, "/customer/ID", `"id"`},
		{"case variant behind a reference", `{"orderId":"ORD","lines":[{"SKU":"x"}]}`, action.InputMalformed, "/lines/0/SKU", `"sku"`},
		{"case variant by Unicode", "{\"orderId\":\"ORD\",\"line\u017f\":[]}", action.InputMalformed, "/line\u017f", `"lines"`},
		{"duplicate", `{"orderId":"ORD","orderId":"ORE"}`, action.InputMalformed, "/orderId", "duplicate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 5 { // no order of a map may show
				_, f := s.Check([]byte(c.in))
				require.NotNil(t, f)
				assert.Equal(t, c.code, f.Code)
				assert.Equal(t, c.field, f.Details[action.DetailField])
				assert.Contains(t, f.Message, c.message)
			}
		})
	}
	doc, f := s.Check([]byte(` {"amount":1e2,"orderId":"ORD"} `))
	require.Nil(t, f)
	assert.Equal(t, `{"amount":100,"orderId":"ORD"}`, doc.Text())
}

func TestCheckIsBounded(t *testing.T) {
	list := func(n int, each func(i int) string) []byte {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = each(i)
		}
		return []byte("[" + strings.Join(parts, ",") + "]")
	}
	deep := `{}`
	for range 30 {
		deep = `{"n":` + deep + `}`
	}
	for _, c := range []struct {
		name, schema string
		in           []byte
		ok           bool
	}{
		{"unique", `{"uniqueItems":true}`, list(50_000, func(i int) string { return fmt.Sprint(i) }), true},
		{"all the same", `{"uniqueItems":true}`, list(50_000, func(int) string { return "1" }), false},
		{"all of the wrong type", `{"items":{"type":"string"}}`, list(60_000, func(int) string { return "1" }), false},
		{"branches of a recursive schema", `{"anyOf":[{"properties":{"n":{"$ref":"#"}},"required":["x"]},{"properties":{"n":{"$ref":"#"}},"required":["y"]},{"properties":{"n":{"$ref":"#"}},"required":["z"]}]}`, []byte(deep), false},
		{"unknown members", `{"properties":{"some":{},"known":{},"names":{}},"additionalProperties":false}`,
			[]byte(strings.NewReplacer("[", "{", "]", "}").Replace(string(list(20_000, func(i int) string { return fmt.Sprintf(`"nam%d":1`, i) })))), false},
		{"exponents", `{"multipleOf":0.01}`, []byte(`1e300`), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Declared([]byte(c.schema))
			require.NoError(t, err)
			s.judge.(*own).limit = maxSteps / 50 // the race detector makes a step slow
			start := cputime.Now()
			_, f := s.Check(c.in)
			assert.Equal(t, c.ok, f == nil)
			assert.Less(t, cputime.Now()-start, 5*time.Second)
			if f != nil {
				assert.Less(t, len(f.Message), 10_000)
			}
		})
	}
}

func TestSchemaHash(t *testing.T) {
	a, err := Declared([]byte(`{"type":"object","minProperties":1.0}`))
	require.NoError(t, err)
	b, err := Declared([]byte(`{ "minProperties":1,"type":"object"}`))
	require.NoError(t, err)
	assert.Equal(t, a.Hash(), b.Hash())
	assert.Len(t, a.Hash(), 64)
	assert.Equal(t, `{"minProperties":1,"type":"object"}`, string(a.JSON()))
	assert.True(t, json.Valid(a.JSON()))
}

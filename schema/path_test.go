package schema

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const orderSchema = `{"type":"object","additionalProperties":false,"required":["orderId"],"properties":{
	"orderId":{"type":"string","minLength":3},"amount":{"type":["integer","null"]},"kind":{"enum":["a",1]},"free":{},
	"a.b":{"type":"string"},"customer":{"$ref":"#/$defs/customer"},
	"entries":{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"}}}},
	"labels":{"type":"object","additionalProperties":{"type":"boolean"}}},
	"$defs":{"customer":{"type":"object","properties":{"id":{"type":"integer"},"token":{"type":"string","writeOnly":true}}}}}`

func mustDeclare(t *testing.T, text string) *Schema {
	t.Helper()
	s, err := Declared([]byte(text))
	require.NoError(t, err)
	return s
}

func TestKind(t *testing.T) {
	s := mustDeclare(t, orderSchema)
	for path, want := range map[string]Kind{
		"orderId": "string", "amount": "integer|null", "kind": "integer|string", "free": AnyKind, `a\.b`: "string",
		"customer": "object", "customer.id": "integer", "entries": "array", "entries.*": "object", "entries.*.path": "string",
		"labels.*": "boolean", "labels.x": "boolean",
	} {
		got, err := s.Kind(path)
		require.NoError(t, err, path)
		assert.Equal(t, want, got, path)
	}
	for path, want := range map[string]string{
		"orderID":       `field "orderID": the schema has no property "orderID", did you mean "orderId"?`,
		"customer.idd":  `"customer" has no property "idd", did you mean "id"?`,
		"customer.zzzz": "it has id, token",
		"entries.path":  `"entries" is an array, write * for its elements`,
		"orderId.*":     `"orderId" has no elements`,
		"":              "empty segment",
		"customer..id":  "empty segment",
	} {
		_, err := s.Kind(path)
		require.Error(t, err, path)
		assert.Contains(t, err.Error(), want)
	}
	assert.True(t, Kind("integer|null").Comparable("integer"))
	assert.False(t, Kind("integer").Comparable("string"))
	assert.False(t, AnyKind.Comparable(AnyKind))

	r, err := Reflect(reflect.TypeFor[everything]())
	require.NoError(t, err)
	for path, want := range map[string]Kind{"id": "string", "lines.*.sku": "string", "next.count": "integer", "maybe": "null|string"} {
		got, err := r.Kind(path)
		require.NoError(t, err, path)
		assert.Equal(t, want, got, path)
	}
}

func TestRedact(t *testing.T) {
	s := mustDeclare(t, orderSchema)
	assert.Equal(t, []string{"customer.token"}, s.Secrets())
	doc, f := s.Check([]byte(`{"orderId":"ORD","customer":{"id":1,"token":"tk"}}`))
	require.Nil(t, f)
	out := Redact(doc, s.Secrets(), func(path, text string) string { return path + "=" + text })
	assert.Equal(t, `{"customer":{"id":1,"token":"customer.token=\"tk\""},"orderId":"ORD"}`, out.Text())
	assert.Equal(t, `{"customer":{"id":1,"token":"tk"},"orderId":"ORD"}`, doc.Text(), "the document is not changed")
	assert.Equal(t, "tk", doc.Tree().(map[string]any)["customer"].(map[string]any)["token"])

	doc, f = Canonical([]byte(`{"cards":[{"n":1},{"n":2},{}],"by":{"x.y":"s"}}`), 0)
	require.Nil(t, f)
	out = Redact(doc, []string{"cards.*.n", "by.*", "none.here", ""}, func(path, _ string) string { return path })
	assert.Equal(t, `{"by":{"x.y":"by.x\\.y"},"cards":[{"n":"cards.0.n"},{"n":"cards.1.n"},{}]}`, out.Text())
}

func TestValues(t *testing.T) {
	doc, f := Canonical([]byte(`{"entries":[{"path":"b"},{"path":"a"},{}],"m":{"y":1.0,"x":2},"id":null}`), 0)
	require.Nil(t, f)
	for path, want := range map[string]string{"entries.*.path": `["b","a"]`, "m.*": `[2,1]`, "id": `[null]`, "none": `null`, "id.x": `null`} {
		text, err := json.Marshal(Values(doc, path))
		require.NoError(t, err)
		assert.Equal(t, want, string(text), path)
	}
}

func raws(texts ...string) []json.RawMessage {
	var out []json.RawMessage
	for _, t := range texts {
		out = append(out, json.RawMessage(t))
	}
	return out
}

// TestNarrowedIsTheSchemaAndTheValues holds a narrowed schema against its definition: it takes a document exactly where the
// schema does and the bound fields have one of the tuples.
func TestNarrowedIsTheSchemaAndTheValues(t *testing.T) {
	for _, schema := range []string{orderSchema, `{"$ref":"#/$defs/o","$defs":{"o":` + strings.ReplaceAll(orderSchema, "#/$defs", "#/$defs/o/$defs") + `}}`} {
		s := mustDeclare(t, schema)
		values := map[string][]string{"orderId": {`"ORD-1"`, `"ORD-2"`, `"x"`}, "amount": {`1`, `2.0`, `null`}, "kind": {`"a"`, `1`, `3`}}
		names := []string{"orderId", "amount", "kind"}
		rapid.Check(t, func(t *rapid.T) {
			fields := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID).Draw(t, "fields")
			a := Allowed{Fields: fields}
			allowed := map[string]bool{}
			for range rapid.IntRange(1, 4).Draw(t, "tuples") {
				var tuple []json.RawMessage
				key := ""
				for _, f := range fields {
					v := rapid.SampledFrom(values[f]).Draw(t, f)
					doc, _ := Canonical([]byte(v), 0)
					tuple, key = append(tuple, json.RawMessage(v)), key+doc.Text()+" "
				}
				a.Tuples = append(a.Tuples, tuple)
				allowed[key] = true
			}
			text, err := Narrow(s, []Allowed{a})
			if err != nil {
				require.Contains(t, err.Error(), "no allowed value satisfies")
				return
			}
			narrowed, err := Declared(text)
			require.NoError(t, err)
			parts, key := []string{}, ""
			has := map[string]string{}
			for _, name := range names {
				if rapid.IntRange(0, 5).Draw(t, "absent") > 0 {
					has[name] = rapid.SampledFrom(values[name]).Draw(t, "value")
					parts = append(parts, `"`+name+`":`+has[name])
				}
			}
			for _, f := range fields {
				doc, _ := Canonical([]byte(has[f]), 0)
				key += doc.Text() + " "
			}
			in := []byte("{" + strings.Join(parts, ",") + "}")
			_, before := s.Check(in)
			_, after := narrowed.Check(in)
			require.Equal(t, before == nil && allowed[key], after == nil, "%s on %s: %v", text, in, after)
		})
	}
}

func TestNarrow(t *testing.T) {
	s := mustDeclare(t, orderSchema)
	for _, c := range []struct {
		name    string
		allowed []Allowed
		holds   []string
		refuses []string
		text    string
	}{
		{"one field", []Allowed{{[]string{"orderId"}, [][]json.RawMessage{raws(`"ORD-2"`), raws(`"ORD-1"`), raws(`"ORD-2"`)}}},
			[]string{`{"orderId":"ORD-1"}`, `{"orderId":"ORD-2","amount":1}`}, []string{`{"orderId":"ORD-3"}`, `{"orderId":"ORD-1","x":1}`, `{}`},
			`"orderId":{"enum":["ORD-1","ORD-2"],"minLength":3,"type":"string"}`},
		{"numbers in order", []Allowed{{[]string{"amount"}, [][]json.RawMessage{raws(`10`), raws(`9.0`), raws(`null`)}}},
			[]string{`{"orderId":"ORD","amount":9}`}, []string{`{"orderId":"ORD","amount":11}`, `{"orderId":"ORD"}`}, `"enum":[null,9,10]`},
		{"behind a reference", []Allowed{{[]string{"customer.id"}, [][]json.RawMessage{raws(`1`), raws(`2`)}}},
			[]string{`{"orderId":"ORD","customer":{"id":1}}`}, []string{`{"orderId":"ORD","customer":{"id":3}}`, `{"orderId":"ORD","customer":{}}`, `{"orderId":"ORD"}`}, ``},
		{"elements", []Allowed{{[]string{"entries.*.path"}, [][]json.RawMessage{raws(`"/a"`)}}},
			[]string{`{"orderId":"ORD","entries":[{"path":"/a"}]}`}, []string{`{"orderId":"ORD","entries":[{"path":"/b"}]}`}, ``},
		{"own enum", []Allowed{{[]string{"kind"}, [][]json.RawMessage{raws(`"a"`), raws(`"b"`)}}},
			[]string{`{"orderId":"ORD","kind":"a"}`}, []string{`{"orderId":"ORD","kind":"b"}`, `{"orderId":"ORD","kind":1}`}, `"enum":["a"]`},
		{"joint", []Allowed{{[]string{"orderId", "customer.id"}, [][]json.RawMessage{raws(`"ORD-2"`, `2`), raws(`"ORD-1"`, `1`)}}},
			[]string{`{"orderId":"ORD-1","customer":{"id":1}}`}, []string{`{"orderId":"ORD-1","customer":{"id":2}}`, `{"orderId":"ORD-1"}`},
			`"oneOf":[{"properties":{"customer":{"properties":{"id":{"const":1}},"required":["id"]},"orderId":{"const":"ORD-1"}},"required":["orderId","customer"]},`},
		{"two joint ones and a field", []Allowed{
			{[]string{"orderId", "amount"}, [][]json.RawMessage{raws(`"ORD-1"`, `1`)}},
			{[]string{"orderId", "kind"}, [][]json.RawMessage{raws(`"ORD-1"`, `"a"`)}},
			{[]string{"free"}, [][]json.RawMessage{raws(`{"b":1,"a":2}`)}}},
			[]string{`{"orderId":"ORD-1","amount":1,"kind":"a","free":{"a":2,"b":1}}`}, []string{`{"orderId":"ORD-1","amount":1,"kind":1,"free":{"a":2,"b":1}}`, `{"orderId":"ORD-1","amount":1,"kind":"a","free":1}`}, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := Narrow(s, c.allowed)
			require.NoError(t, err)
			assert.Contains(t, string(text), c.text)
			narrowed := mustDeclare(t, string(text))
			for _, in := range c.holds {
				_, f := narrowed.Check([]byte(in))
				assert.Nil(t, f, in)
			}
			for _, in := range c.refuses {
				_, f := narrowed.Check([]byte(in))
				assert.NotNil(t, f, in)
			}
			assert.Equal(t, mustDeclare(t, orderSchema).Hash(), s.Hash(), "the schema is not changed")
		})
	}
	for _, c := range []struct {
		name    string
		allowed Allowed
		want    string
	}{
		{"unknown", Allowed{[]string{"orderID"}, [][]json.RawMessage{raws(`"x"`)}}, "did you mean"},
		{"secret", Allowed{[]string{"customer.token"}, [][]json.RawMessage{raws(`"x"`)}}, "secret"},
		{"around a secret", Allowed{[]string{"customer"}, [][]json.RawMessage{raws(`{}`)}}, "secret"},
		{"nothing", Allowed{[]string{"orderId"}, nil}, "no value"},
		{"nothing left", Allowed{[]string{"kind"}, [][]json.RawMessage{raws(`"b"`)}}, "no allowed value"},
		{"bad value", Allowed{[]string{"orderId"}, [][]json.RawMessage{raws(`x`)}}, "unexpected"},
		{"arity", Allowed{[]string{"orderId", "amount"}, [][]json.RawMessage{raws(`"x"`)}}, "1 values for 2 fields"},
		{"joint star", Allowed{[]string{"orderId", "entries.*.path"}, [][]json.RawMessage{raws(`"x"`, `"y"`)}}, "star"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Narrow(s, []Allowed{c.allowed})
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.want)
		})
	}
}

func TestMembers(t *testing.T) {
	for _, c := range []struct {
		reason, schema string
		limit          int
		want           []string
	}{
		{"what it names, nearest first", `{"properties":{"b":{"properties":{"c":{}}},"a":{}}}`, 9, []string{"a", "b", "b.c"}},
		{"elements are not named one by one", `{"properties":{"l":{"items":{"properties":{"x":{}}}}}}`, 9, []string{"l"}},
		{"nor is what may have any name", `{"properties":{"a":{}},"additionalProperties":{"properties":{"x":{}}}}`, 9, []string{"a"}},
		{"in branches, and behind references", `{"allOf":[{"properties":{"a":{}}}],"properties":{"r":{"$ref":"#/definitions/d"}},"definitions":{"d":{"properties":{"x.y":{}}}}}`, 9,
			[]string{"a", "r", `r.x\.y`}},
		{"one that may not be there", `{"properties":{"a":false,"b":true}}`, 9, []string{"b"}},
		{"recursion ends at the limit", `{"properties":{"next":{"$ref":"#"}}}`, 3, []string{"next", "next.next", "next.next.next"}},
		{"the limit", `{"properties":{"a":{},"b":{}}}`, 1, []string{"a"}},
	} {
		s, err := Declared([]byte(c.schema))
		require.NoError(t, err, c.reason)
		assert.Equal(t, c.want, s.Members(c.limit), c.reason)
	}
}

package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// maker draws schemas and documents from so few names and values that they meet.
type maker struct {
	*rapid.T
	compact bool // documents without white space
}

var (
	madeNames   = []string{"a", "b", "A", "aa", "é", "a/b", "\uffee", "\U0001f600", "\"", "k", "\u212a", ""}
	madeNumbers = []string{"0", "1", "2", "3", "-1", "1.5", "0.1", "10", "100", "1e2", "0.25", "9007199254740993", "9007199254740992", "1e300", "-0.5", "127", "128"}
	madeStrings = []string{"", "a", "b", "ab", "abc", "é", "😀", "2026-02-28", "\n", "\u0001", "a@b.de", "YWI="}
	madeFormats = []string{"date", "email", "base64", "int8", "int64", "uint8", "uint64", "double", "float"}
	patterns    = []string{"^a", "b$", "^.$", "é"}
)

func (m maker) of(list ...string) string { return rapid.SampledFrom(list).Draw(m.T, "of") }
func (m maker) n(low, high int) int      { return rapid.IntRange(low, high).Draw(m.T, "n") }
func (m maker) yes() bool                { return rapid.Bool().Draw(m.T, "yes") }
func (m maker) number() json.Number      { return json.Number(m.of(madeNumbers...)) }

// names draws some names, each once.
func (m maker) names(most int) []string {
	var out []string
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(madeNames), 0, most).Draw(m.T, "names") {
		if !contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// value draws a value as Go holds it.
func (m maker) value(depth int) any {
	kinds := 7
	if depth == 0 {
		kinds = 5
	}
	switch m.n(0, kinds-1) {
	case 0:
		return nil
	case 1:
		return m.yes()
	case 2, 3:
		return m.number()
	case 4:
		return m.of(madeStrings...)
	case 5:
		list := make([]any, m.n(0, 3))
		for i := range list {
			list[i] = m.value(depth - 1)
		}
		return list
	}
	object := map[string]any{}
	for _, name := range m.names(4) {
		object[name] = m.value(depth - 1)
	}
	return object
}

// schema draws a schema; not every one is acceptable.
func (m maker) schema(depth int) any {
	if m.n(0, 9) == 0 {
		return m.n(0, 3) > 0
	}
	s := map[string]any{}
	for range m.n(0, 3) {
		m.keyword(s, depth)
	}
	return s
}

func (m maker) schemas(depth int) []any {
	out := make([]any, m.n(1, 3))
	for i := range out {
		out[i] = m.schema(depth)
	}
	return out
}

func (m maker) byName(names []string, depth int) map[string]any {
	out := map[string]any{}
	for _, name := range names {
		out[name] = m.schema(depth)
	}
	return out
}

func (m maker) keyword(s map[string]any, depth int) {
	plain := []string{"type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
		"maxLength", "pattern", "format", "required", "minProperties", "maxProperties", "minItems", "maxItems", "uniqueItems", "needs"}
	deep := []string{"properties", "properties", "properties", "patternProperties", "additionalProperties", "propertyNames", "items", "tuple",
		"contains", "dependencies", "allOf", "anyOf", "oneOf", "not", "if", "$ref"}
	k := m.of(plain...)
	if depth > 0 && m.yes() {
		k = m.of(deep...)
	}
	switch k {
	case "type":
		s[k] = m.of("null", "boolean", "integer", "number", "string", "array", "object")
		if m.yes() {
			s[k] = []any{s[k], "null"}
		}
	case "enum":
		s[k] = []any{m.value(2), m.value(1), m.value(0)}
	case "const":
		s[k] = m.value(2)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		s[k] = m.number()
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		s[k] = m.n(0, 3)
	case "pattern":
		s[k] = m.of(patterns...)
	case "format":
		s[k] = m.of(madeFormats...)
	case "required":
		s[k] = m.names(3)
	case "uniqueItems":
		s[k] = m.yes()
	case "needs":
		s["dependencies"] = map[string]any{m.of(madeNames...): m.names(2)}
	case "properties":
		s[k] = m.byName(m.names(4), depth-1)
	case "patternProperties":
		s[k] = m.byName([]string{m.of(patterns...), m.of(patterns...)}, depth-1)
	case "dependencies":
		s[k] = m.byName(m.names(2), depth-1)
	case "additionalProperties", "propertyNames", "items", "contains", "not":
		s[k] = m.schema(depth - 1)
	case "tuple":
		s["items"] = m.schemas(depth - 1)
		if m.yes() {
			s["additionalItems"] = m.schema(depth - 1)
		}
	case "allOf", "anyOf", "oneOf":
		s[k] = m.schemas(depth - 1)
	case "if":
		s[k], s["then"], s["else"] = m.schema(depth-1), m.schema(depth-1), m.schema(depth-1)
	case "$ref":
		clear(s)
		s[k] = m.of("#", "#/$defs/x", "#/$defs/y")
	}
}

// spelt writes a value in one of the many ways it can be written, at times wrong.
func (m maker) spelt(b *strings.Builder, v any) {
	space := func() {
		if !m.compact {
			b.WriteString(m.of("", "", "", " ", "\n\t "))
		}
	}
	space()
	switch v := v.(type) {
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			m.spelt(b, e)
		}
		space()
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		names := sortedNames(v)
		if m.yes() {
			names = rapid.Permutation(names).Draw(m.T, "order")
		}
		if len(names) > 0 && m.n(0, 30) == 0 {
			names = append(names, names[0])
		}
		for i, name := range names {
			if i > 0 {
				b.WriteByte(',')
			}
			space()
			m.text(b, name)
			space()
			b.WriteByte(':')
			m.spelt(b, v[name])
		}
		space()
		b.WriteByte('}')
	case string:
		m.text(b, v)
	case json.Number:
		b.WriteString(m.of(string(v), string(v), string(v)+"e0", string(v)+".0"))
	default:
		text, _ := json.Marshal(v)
		b.Write(text)
	}
	space()
}

func (m maker) text(b *strings.Builder, s string) {
	text, _ := json.Marshal(s)
	if m.n(0, 3) == 0 {
		text = []byte(strings.ReplaceAll(string(text), "a", `\u0061`))
	}
	b.Write(text)
}

// checkMade draws a schema and documents and compares the pass with the judges. It reports how many were compared.
func checkMade(rt *rapid.T, counts *[3]int) {
	m := maker{T: rt}
	root := map[string]any{}
	for range m.n(1, 5) {
		m.keyword(root, 3)
	}
	root["$defs"] = map[string]any{"x": m.schema(2), "y": m.schema(1)}
	raw, err := json.Marshal(root)
	require.NoError(rt, err)
	s, err := Declared(raw)
	if err != nil {
		return
	}
	compiled, why := s.Compiled()
	require.True(rt, compiled, "%s: %s", raw, why)
	counts[0]++
	for range 12 {
		var b strings.Builder
		m.compact = m.yes()
		m.spelt(&b, m.value(3))
		passAgrees(rt, s, []byte(b.String()))
		if _, ok := s.Pass(nil, []byte(b.String())); ok {
			counts[1]++
		} else {
			counts[2]++
		}
	}
}

// TestPassAgreesOnMadeSchemas is the fuzz test's sibling: schemas and documents that were made to fit.
func TestPassAgreesOnMadeSchemas(t *testing.T) {
	var counts [3]int
	rapid.Check(t, func(rt *rapid.T) {
		for range 4 {
			checkMade(rt, &counts)
		}
	})
	t.Logf("%d schemas, %d documents taken, %d refused", counts[0], counts[1], counts[2])
	require.Greater(t, counts[0], 20)
	require.Greater(t, counts[1], 50)
	require.Greater(t, counts[2], 50)
}

// FuzzPassMade lets the fuzzer do the drawing.
func FuzzPassMade(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(rt *rapid.T) { checkMade(rt, new([3]int)) }))
}

package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/cputime"
)

// TestDocumentSaysWhoEnforces walks the tables of doc/schema.md: what stands there as enforced by the pass has cases of
// either kind that the pass decides by itself.
func TestDocumentSaysWhoEnforces(t *testing.T) {
	text, err := os.ReadFile("../doc/schema.md")
	require.NoError(t, err)
	_, part, _ := strings.Cut(string(text), "\n## Enforced")
	part, _, _ = strings.Cut(part, "\n## ")
	by := map[string]string{}
	for _, row := range strings.Split(part, "\n") {
		cells := strings.Split(row, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		who := strings.TrimSpace(cells[len(cells)-3])
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			assert.Empty(t, by[name[1]], "%s has two rows", name[1])
			by[name[1]] = who
		}
	}
	decided := map[string]map[bool]bool{}
	for _, d := range readDraft7(t) {
		s := mustDeclare(t, string(d.Schema))
		name := strings.TrimPrefix(d.Keyword, "format ")
		if decided[name] == nil {
			decided[name] = map[bool]bool{}
		}
		compiled, _ := s.Compiled()
		for _, c := range d.Cases {
			_, ok := s.Pass(nil, c.Data)
			decided[name][c.Valid] = decided[name][c.Valid] || compiled && ok == c.Valid
		}
	}
	decided["format"] = map[bool]bool{true: true, false: true} // by its formats
	for name := range keywords {
		if contains(idleKeywords, name) {
			assert.NotContains(t, by, name)
			continue
		}
		assert.Equal(t, "pass", by[name], "who enforces %s", name)
		assert.True(t, decided[name][true] && decided[name][false], "the pass decides %s", name)
	}
	for name := range formats {
		assert.Equal(t, "pass", by[name], "who enforces format %s", name)
		assert.True(t, decided[name][true] && decided[name][false], "the pass decides format %s", name)
	}
	for _, limit := range []string{"10,000", "2,000,000", "more than 6 ", "5,000,000"} {
		assert.Contains(t, string(text), limit)
	}
	assert.Equal(t, []int{10_000, 2_000_000, 6, 5_000_000}, []int{maxPlan, maxPlan * maxLooks, maxPatterns, maxSteps}, "the document names them")
}

// TestNoPass: what has no pass is judged all the same, and says why.
func TestNoPass(t *testing.T) {
	foreign, err := Foreign([]byte(`{"type":"object","properties":{"a":{"type":"string"}}}`))
	require.NoError(t, err)
	crowded := mustDeclare(t, combinations(7))
	ok, why := crowded.Compiled()
	require.True(t, ok, why)
	crowded.pass, err = plan(crowded.root, 100)
	require.Error(t, err)
	crowded.why = err.Error()
	many := map[string]any{}
	for i := range maxPatterns + 1 {
		many[fmt.Sprintf("^%c", 'a'+i)] = map[string]any{"type": "string"}
	}
	patterns, _ := json.Marshal(map[string]any{"patternProperties": many})
	for _, c := range []struct {
		reason string
		s      *Schema
	}{
		{"from elsewhere", foreign},
		{"patternProperties", mustDeclare(t, string(patterns))},
		{"combinations of places", crowded},
	} {
		ok, why := c.s.Compiled()
		assert.False(t, ok, c.reason)
		assert.Contains(t, why, c.reason)
		out, ok := c.s.Pass([]byte("before"), []byte(`{"a":"x"}`))
		assert.Equal(t, "before", string(out))
		assert.False(t, ok)
		doc, f := c.s.Check([]byte(`{"a":"x"}`))
		require.Nil(t, f, c.reason)
		assert.Equal(t, `{"a":"x"}`, doc.Text())
		_, f = c.s.Check([]byte(`{"a":1}`))
		require.NotNil(t, f, c.reason)
	}
}

// combinations makes a schema whose branches lead to another set of places for each sequence of n steps of two kinds, as
// an automaton that guesses does.
func combinations(n int) string {
	defs := map[string]any{}
	for i := range n {
		next := map[string]any{"$ref": fmt.Sprintf("#/$defs/s%d", i+1)}
		defs[fmt.Sprintf("s%d", i)] = map[string]any{"properties": map[string]any{"a": next, "b": next, "a1": true}}
	}
	defs[fmt.Sprintf("s%d", n)] = map[string]any{"properties": map[string]any{"a": map[string]any{"type": "string"}, "last": true}}
	again := map[string]any{"$ref": "#/$defs/top"}
	defs["top"] = map[string]any{"anyOf": []any{
		map[string]any{"properties": map[string]any{"a": again, "b": again}},
		map[string]any{"properties": map[string]any{"a": map[string]any{"$ref": "#/$defs/s0"}}},
	}}
	raw, _ := json.Marshal(map[string]any{"properties": map[string]any{"a": map[string]any{"type": "string"}}, "allOf": []any{again}, "$defs": defs})
	return string(raw)
}

// TestPassKeepsItsBounds: nothing makes a pass much slower than the input is long.
func TestPassKeepsItsBounds(t *testing.T) {
	list := func(n int, each func(i int) string) []byte {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = each(i)
		}
		return []byte(strings.Join(parts, ","))
	}
	deep := strings.Repeat(`{"n":`, 60) + `1` + strings.Repeat("}", 60)
	wide := `{"z":"` + strings.Repeat("x", 300_000) + `","n":` + deep + `}`
	branches := `{"anyOf":[{"properties":{"n":{"$ref":"#"}},"required":["x"]},{"properties":{"n":{"$ref":"#"}},"required":["y"]}]}`
	reversed := list(10_000, func(i int) string { return fmt.Sprintf(`"k%06d":%d`, 10_000-i, i) })
	nest := `{}`
	for range 60 {
		nest = `{"b":` + nest + `,"a":"` + strings.Repeat("y", 5_000) + `"}`
	}
	for _, c := range []struct {
		name, schema, in string
		ok               bool
	}{
		{"branches of a recursive schema", branches, deep, false},
		{"branches over a long text", branches, wide, false},
		{"members in the wrong order", `{}`, "{" + string(reversed) + "}", true},
		{"members in the wrong order, all the way down", `{}`, nest, true},
		{"unique", `{"uniqueItems":true}`, "[" + string(list(20_000, func(i int) string { return fmt.Sprint(i * 7919 % 20_000) })) + "]", true},
		{"long exponents", `{"items":{"multipleOf":0.01}}`, "[" + string(list(10_000, func(int) string { return "123456789e290" })) + "]", true},
		{"many required", `{"required":[` + string(list(1000, func(i int) string { return fmt.Sprintf(`"k%06d"`, i+1) })) + `]}`, "{" + string(reversed) + "}", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustDeclare(t, c.schema)
			start := cputime.Now()
			_, ok := s.pass.run(nil, []byte(c.in), maxSteps/50)
			assert.Equal(t, c.ok, ok)
			assert.Less(t, cputime.Now()-start, 5*time.Second)
		})
	}
}

// TestPassRefusesWhatPanics: a format of a library that panics is a refusal, worded by the judges.
func TestPassRefusesWhatPanics(t *testing.T) {
	s := mustDeclare(t, `{"format":"email"}`)
	s.root.fast.text.format = func(string) bool { panic("no") }
	dst := []byte("before")
	out, ok := s.Pass(dst, []byte(`"a@b.de"`))
	assert.False(t, ok)
	assert.Equal(t, dst, out)
}

func TestCompareUnitsIsTheCanonicalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune{'a', 'b', 'é', 0xD7FF, 0xE000, 0xFFFD, 0xFFEE, 0x10000, 0x1F600, 0x10FFFF}))
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		require.Equal(t, compareUTF16(a, b), cmp.Compare(compareUnits(a, []byte(b)), 0), "%q %q", a, b)
		require.Equal(t, fold(a), string(appendFolded(nil, []byte(a))))
	})
}

func TestNumbersOfThePassAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,12})?([eE][-+]?[0-9]{1,3})?`)
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		x, fault := parseTree([]byte(a), 0)
		y, other := parseTree([]byte(b), 0)
		p := pass{src: []byte(a)}
		text, _, ok := p.canonicalNumber(p.src)
		require.Equal(t, fault == nil, ok, a)
		if fault != nil || other != nil {
			return
		}
		m, n := x.(json.Number), y.(json.Number)
		require.Equal(t, string(m), string(text), a)
		var d, e dec
		require.True(t, d.read([]byte(m)) && e.read([]byte(n)))
		require.Equal(t, rat(m).Cmp(rat(n)), cmp.Compare(d.compare(&e), 0), "%s %s", a, b)
		if rat(n).Sign() > 0 {
			rule := &numberRule{multipleOf: &e, divide: limit(n)}
			require.Equal(t, rat(m).Quo(rat(m), rat(n)).IsInt(), d.divides(rule, []byte(m)), "%s %s", a, b)
		}
	})
}

// TestSureFormatsHold: what is taken for sure has the format, and the usual forms of it are.
func TestSureFormatsHold(t *testing.T) {
	likely := map[string]string{
		"date": `[0-9]{4}-[0-1][0-9]-[0-3][0-9]`, "time": `[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,10})?(Z|[+-][0-2][0-9]:[0-6][0-9])`,
		"date-time": `[0-9]{4}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,10})?(Z|z|[+-][0-2][0-9]:[0-6][0-9])`,
		"uuid":      `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fg]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "base64": `([a-zA-Z0-9+/]{4}){0,200}([a-zA-Z0-9+/]{2,3}={0,2})?\n?`,
	}
	usual := map[string][]string{
		"date": {"2026-11-28", "0000-01-01", "9999-12-28"}, "time": {"23:59:59Z", "00:00:00.123456789+14:00", "07:30:00-05:30"},
		"date-time": {"2026-11-28T23:59:59Z", "2026-02-28T00:00:00.5-11:00"}, "uuid": {"00000000-0000-0000-0000-000000000000", "DEADbeef-1234-4abc-8def-0123456789ab"},
		"base64": {"", "aGk=", "aA==", "aGV5"},
	}
	for _, name := range sortedNames(sure) {
		for _, text := range usual[name] {
			assert.True(t, sure[name]([]byte(text)), "%s: %q", name, text)
			assert.True(t, formats[name].text(text), "%s: %q", name, text)
		}
		assert.NotEmpty(t, usual[name])
		gen := rapid.OneOf(rapid.StringMatching(likely[name]), rapid.StringMatching(likely[name]), rapid.StringMatching(`[0-9a-fZT:.+-]{0,36}`))
		rapid.Check(t, func(t *rapid.T) {
			text := gen.Draw(t, "text")
			if sure[name]([]byte(text)) {
				require.True(t, formats[name].text(text), "%s: %q", name, text)
			}
		})
	}
}

// TestNamesAreFoundByHash holds the index against a map for names that a hash of few bytes confuses.
func TestNamesAreFoundByHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab]{0,12}`), 0, 60, rapid.ID[string]).Draw(t, "names")
		pl := &place{}
		for i, name := range names {
			pl.entries = append(pl.entries, entry{name: name, rank: i})
		}
		pl.index = newNameIndex(pl.entries)
		for i, name := range names {
			e := pl.find([]byte(name))
			require.NotNil(t, e)
			require.Equal(t, i, e.rank)
		}
		other := rapid.StringMatching(`[abc]{0,12}`).Draw(t, "other")
		require.Equal(t, contains(names, other), pl.find([]byte(other)) != nil)
	})
}

func TestLazyTreeIsReadOnce(t *testing.T) {
	doc, f := Canonical([]byte(`{"a":[1]}`), 0)
	require.Nil(t, f)
	doc.Tree().(map[string]any)["a"] = true
	assert.Equal(t, map[string]any{"a": true}, doc.Tree(), "one value, that the engine shares")
	assert.Equal(t, map[string]any{"a": []any{json.Number("1")}}, doc.Detached().Tree(), "and one for each stranger")
	assert.Equal(t, map[string]any{"a": []any{json.Number("1")}}, action.NewLazyDocument(doc.Text()).Tree())
}

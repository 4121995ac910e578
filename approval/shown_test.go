package approval_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
)

func ExampleLook_Fields() {
	l := approval.Look{Declared: []string{"amount", "iban", "items"}}
	was := json.RawMessage(`{"amount":10,"iban":"DE1"}`)
	now := json.RawMessage(`{"Amount ":1,"amount":10,"iban":"DE2","items":["a","b"]}`)
	shown, _ := l.Fields(now, was)
	for _, f := range shown.Fields {
		fmt.Println(f.Name(), "=", f.Value, f.Changed)
	}
	// Output:
	// iban = "DE2" true
	// items.0 = "a" true
	// items.1 = "b" true
	// "Amount " [reads like amount] = 1 true
	// amount = 10 false
}

func ExampleLook_Differences() {
	text := strings.Repeat("As agreed. ", 100)
	was := json.RawMessage(`{"note":"` + text + `Pay Ann. ` + text + `"}`)
	now := json.RawMessage(`{"note":"` + text + `Pay Eve. ` + text + `"}`)
	differs, _, _ := approval.Look{Declared: []string{"note"}}.Differences(was, now)
	fmt.Println(differs[0].Was)
	fmt.Println(differs[0].Now)
	fmt.Printf("%+v\n", *differs[0].Cut)
	// Output:
	// …d. As agreed. As agreed. As agreed. Pay Ann. As agreed. As agreed. As agreed. As ag…
	// …d. As agreed. As agreed. As agreed. Pay Eve. As agreed. As agreed. As agreed. As ag…
	// {At:1105 Tail:1103 WasSize:2211 NowSize:2211}
}

func ExampleLook_Text() {
	lines, _ := approval.Look{Secrets: []string{"card"}}.Text(json.RawMessage(`{"card":"4111","to":{"name":"Bo","pаid":true},"tags":[]}`))
	fmt.Println(strings.Join(lines, "\n"))
	// Output:
	// {
	//   card: (secret)
	//   tags: []
	//   to: {
	//     name: "Bo"
	//     "pаid" [mixes Latin and Cyrillic letters]: true
	//   }
	// }
}

// Whatever else an input holds, what its schema names is shown, and that it differs is told.
func TestShownWhateverElseTheInputHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := func(name string) map[string]any {
			m := map[string]any{"amount": rapid.IntRange(0, 3).Draw(t, name+" amount"), "to": map[string]any{"iban": rapid.IntRange(0, 3).Draw(t, name+" iban")}}
			for _, list := range []string{"items", "lines"} {
				m[list] = rapid.SliceOfN(anyJSON(2), 0, 30).Draw(t, name+" "+list)
			}
			for k, v := range rapid.MapOfN(rapid.StringMatching(`[a!]{1,4}`), anyJSON(2), 0, 60).Draw(t, name+" free") {
				m[k] = v
			}
			return m
		}
		was, now := doc("was"), doc("now")
		a, err := json.Marshal(was)
		require.NoError(t, err)
		b, err := json.Marshal(now)
		require.NoError(t, err)
		l := approval.Look{Declared: []string{"amount", "to.iban", "items", "lines"}}
		shown, err := l.Fields(b, a)
		require.NoError(t, err)
		differs, more, err := l.Differences(a, b)
		require.NoError(t, err)
		for _, c := range []struct {
			path     string
			was, now any
		}{{"amount", was["amount"], now["amount"]}, {"to.iban", was["to"].(map[string]any)["iban"], now["to"].(map[string]any)["iban"]}} {
			i := slices.IndexFunc(shown.Fields, func(f approval.Field) bool { return f.Path == c.path })
			require.GreaterOrEqual(t, i, 0, c.path)
			require.Equal(t, c.was != c.now, shown.Fields[i].Changed)
			require.Equal(t, fmt.Sprint(c.now), shown.Fields[i].Value)
			require.Equal(t, c.was != c.now, slices.ContainsFunc(differs, func(d approval.Difference) bool { return d.Path == c.path }))
		}
		require.LessOrEqual(t, len(shown.Fields), approval.MaxFields)
		require.LessOrEqual(t, len(differs), approval.MaxFields)
		rest := 0
		for _, r := range shown.Rest {
			rest += r.More
		}
		require.Equal(t, shown.More, rest, "what is left out is told of each")
		require.Equal(t, string(a) == string(b), len(differs)+more == 0)
		if i := slices.IndexFunc(shown.Fields, func(f approval.Field) bool { return !f.Changed }); i >= 0 {
			first := shown.Fields[i:]
			require.False(t, slices.ContainsFunc(first, func(f approval.Field) bool { return f.Changed }), "what differs comes first")
		}
	})
}

// A long list, and very many names, keep nothing else from being seen: of each some is shown, and what it is in all.
func TestFields_Share(t *testing.T) {
	doc := func(items, free int) json.RawMessage {
		m := map[string]any{"amount": 1, "tags": []string{"x", "y", "z"}, "items": make([]int, items)}
		for i := range free {
			m[fmt.Sprintf("a%04d", i)] = i
		}
		text, err := json.Marshal(m)
		require.NoError(t, err)
		return text
	}
	l := approval.Look{Declared: []string{"amount", "items", "items.*", "tags"}}
	got, err := l.Fields(doc(1000, 2000), nil)
	require.NoError(t, err)
	count := map[string]int{}
	for _, f := range got.Fields {
		head, _, _ := strings.Cut(f.Path, ".")
		count[strings.TrimRight(head, "0123456789")]++
		assert.False(t, f.Changed, "nothing was approved before")
	}
	assert.Equal(t, map[string]int{"amount": 1, "items": 18, "tags": 3, "a": 18}, count)
	require.Len(t, got.Rest, 2)
	assert.Equal(t, []string{"items", ""}, []string{got.Rest[0].Path, got.Rest[1].Path})
	assert.Equal(t, []int{982, 1982}, []int{got.Rest[0].More, got.Rest[1].More})
	assert.Equal(t, 982+1982, got.More)
	longer, err := l.Fields(doc(1001, 2000), nil)
	require.NoError(t, err)
	assert.NotEqual(t, got.Rest[0].Digest, longer.Rest[0].Digest)
	assert.Equal(t, got.Rest[1].Digest, longer.Rest[1].Digest, "of the free-form members alone")
	many := make([]string, approval.MaxDeclared+10)
	wide := map[string]int{}
	for i := range many {
		many[i] = fmt.Sprintf("m%03d", i)
		wide[many[i]] = i
	}
	text, err := json.Marshal(wide)
	require.NoError(t, err)
	got, err = approval.Look{Declared: many}.Fields(text, nil)
	require.NoError(t, err)
	assert.Len(t, got.Fields, approval.MaxDeclared)
	assert.Equal(t, 10, got.More)
}

// What stands for what is not shown tells nothing of a secret in it.
func TestFields_DigestsOfSecrets(t *testing.T) {
	of := func(pin string) string {
		doc := json.RawMessage(`{"items":[{"pin":"` + pin + `"}` + strings.Repeat(`,{"n":1}`, 60) + `]}`)
		got, err := approval.Look{Secrets: []string{"items.*.pin"}, Declared: []string{"items"}}.Fields(doc, nil)
		require.NoError(t, err)
		require.Len(t, got.Rest, 1)
		return got.Rest[0].Digest
	}
	assert.Equal(t, of("1"), of("2"))
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		reason, doc, want string
	}{
		{"plain", `{"unit_price-2":1}`, `unit_price-2`},
		{"a space, which would look like a longer path", `{"a = 5, b":1}`, `"a = 5, b"`},
		{"a member that looks like an element", `{"l":{"0":1}}`, `l."0"`},
		{"an element", `{"l":[1]}`, `l.0`},
		{"a dot", `{"a.b":1}`, `"a.b"`},
		{"no name", `{"":1}`, `""`},
		{"invisible", `{"a\u202eb":1}`, `"a\u202eb"`},
		{"a Cyrillic letter among Latin ones", `{"pаy":1}`, `"pаy" [mixes Latin and Cyrillic letters; reads like pay]`},
		{"a Greek one", `{"pαx":1}`, `"pαx" [mixes Latin and Greek letters]`},
		{"one script that is not Latin", `{"сумма":1}`, `"сумма"`},
		{"one that reads like what is declared", `{"аmount":1}`, `"аmount" [mixes Cyrillic and Latin letters; reads like amount]`},
		{"all of it in another script", `{"рау":1}`, `"рау" [reads like pay]`},
		{"ASCII that reads like it", `{"arnount":1}`, `arnount [reads like amount]`},
		{"full-width", `{"ａmount":1}`, `"ａmount" [mixes Unusual and Latin letters]`},
	} {
		got, err := approval.Look{Declared: []string{"amount", "pay", "l"}}.Fields(json.RawMessage(c.doc), nil)
		require.NoError(t, err, c.reason)
		assert.Equal(t, c.want, got.Fields[0].Name(), c.reason)
	}
	got, err := approval.Look{}.Fields(json.RawMessage(`{"id1":1,"idl":2}`), nil)
	require.NoError(t, err)
	assert.Equal(t, "id1 [reads like idl]", got.Fields[0].Name(), "of two free-form ones each is marked")
	assert.Equal(t, "idl [reads like id1]", got.Fields[1].Name())
	got, err = approval.Look{Declared: []string{"id1", "idl"}}.Fields(json.RawMessage(`{"id1":1,"idl":2}`), nil)
	require.NoError(t, err)
	assert.Empty(t, got.Fields[0].Label+got.Fields[1].Label, "what is declared was named so by the action's author")
}

// What two long values differ in is shown, wherever it stands; where that is long, both its ends.
func TestDifferences_Windows(t *testing.T) {
	long := strings.Repeat("é", 3000)
	for _, c := range []struct {
		reason, was, now string
		wasHas, nowHas   []string
	}{
		{"in the middle", long + "ADA" + long, long + "EVE" + long, []string{"ADA"}, []string{"EVE"}},
		{"at the end", long + "ADA", long + "EVE", []string{`ADA"`}, []string{`EVE"`}},
		{"at the beginning", "ADA" + long, "EVE" + long, []string{`"ADA`}, []string{`"EVE`}},
		{"something harmless first", "a" + long + "ADA" + long, "b" + long + "EVE" + long, []string{`"a`, "ADA"}, []string{`"b`, "EVE"}},
		{"one is short", long, "EVE", nil, []string{`"EVE"`}},
		{"within a character", long + "à" + long, long + "á" + long, []string{"à"}, []string{"á"}},
	} {
		quoted := func(s string) json.RawMessage {
			text, err := json.Marshal(map[string]string{"t": s})
			require.NoError(t, err)
			return text
		}
		got, _, err := approval.Look{}.Differences(quoted(c.was), quoted(c.now))
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.NotNil(t, got[0].Cut, c.reason)
		assert.Equal(t, []int{len(c.was) + 2, len(c.now) + 2}, []int{got[0].Cut.WasSize, got[0].Cut.NowSize}, c.reason)
		for _, s := range c.wasHas {
			assert.Contains(t, got[0].Was, s, c.reason)
		}
		for _, s := range c.nowHas {
			assert.Contains(t, got[0].Now, s, c.reason)
		}
		assert.Less(t, len(got[0].Was)+len(got[0].Now), 3*approval.MaxValue, c.reason)
		assert.NotContains(t, got[0].Was, `\x`, "%s: cut between characters", c.reason)
	}
	secret := json.RawMessage(`{"t":"` + long + `"}`)
	got, _, err := approval.Look{Secrets: []string{"t"}}.Differences(secret, json.RawMessage(`{"t":"x"}`))
	require.NoError(t, err)
	assert.Equal(t, []approval.Difference{{Path: "t", Was: "(secret)", Now: "(secret)"}}, got, "not even how long it is")
}

// All of an input is all of it.
func TestText_IsAllOfIt(t *testing.T) {
	doc := json.RawMessage(`{"l":[` + strings.Repeat("{\"a\":1},", 500) + `{"a":2}],"t":"` + strings.Repeat("x", 5000) + `\u202e"}`)
	lines, err := approval.Look{}.Text(doc)
	require.NoError(t, err)
	text := strings.Join(lines, "\n")
	assert.Len(t, lines, 2+2+3*501+1)
	assert.Contains(t, text, "500: {\n      a: 2\n")
	assert.Contains(t, text, strings.Repeat("x", 5000)+`\u{202E}"`)
	_, err = approval.Look{}.Text(json.RawMessage(`{`))
	assert.Error(t, err)
}

// FuzzLook: whatever an input holds, it is shown on lines of its own with nothing invisible in them, and bounded.
func FuzzLook(f *testing.F) {
	f.Add(`{"a":[1,{"b":"\u202e"}],"c\nd":{}}`, `{"a":[2],"\u0430":1,"a":"x"}`, "a.*.b")
	f.Add(`[]`, `"x"`, `\`)
	f.Fuzz(func(t *testing.T, a, b, path string) {
		l := approval.Look{Secrets: []string{"s", path}, Declared: []string{"a", path}}
		plain := func(s string) {
			if s != action.Visible(s) {
				t.Fatalf("%q is not plain", s)
			}
		}
		lines, err := l.Text(json.RawMessage(b))
		if err != nil {
			return
		}
		for _, s := range lines {
			plain(s)
		}
		shown, err := l.Fields(json.RawMessage(b), json.RawMessage(a))
		if err != nil {
			return // a is no document
		}
		for _, f := range shown.Fields {
			plain(f.Name() + f.Path + f.Value)
		}
		for _, r := range shown.Rest {
			plain(r.Name() + r.Path + r.Digest)
		}
		if len(shown.Fields) > approval.MaxFields {
			t.Fatalf("%d fields", len(shown.Fields))
		}
		if a == "" {
			return
		}
		differs, _, err := l.Differences(json.RawMessage(a), json.RawMessage(b))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range differs {
			plain(d.Name() + d.Path + d.Was + d.Now)
		}
	})
}

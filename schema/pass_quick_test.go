package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// Numbers with a point are compared by the whole numbers beside them where that is enough, and exactly where it is not.
func TestPassOfNumbersNearTheirBounds(t *testing.T) {
	number := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("%d.%s", rapid.IntRange(-3, 3).Draw(t, "whole"), rapid.StringMatching("[0-9]{1,3}").Draw(t, "digits"))
		}),
		rapid.SampledFrom([]string{"-0.5", "-0.0", "0.05", "00.5", "1.", ".5", "1.5e1", "1.5.5", "99999999999999999.5", "999999999999999999.5", "-9223372036854775808.5", "9223372036854775807.25", "2", "-3"}),
	)
	rapid.Check(t, func(r *rapid.T) {
		rules := map[string]any{"type": rapid.SampledFrom([]string{"number", "integer"}).Draw(r, "type")}
		for _, name := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
			if rapid.IntRange(0, 2).Draw(r, name) == 0 {
				rules[name] = json.Number(rapid.SampledFrom([]string{"-2.5", "-2", "-1", "0", "0.5", "1", "1.25", "3", "9223372036854775807"}).Draw(r, "bound"))
			}
		}
		if rapid.IntRange(0, 5).Draw(r, "multiple") == 0 {
			rules["multipleOf"] = json.Number("0.25")
		}
		text, _ := json.Marshal(rules)
		if s, err := Declared(text); err == nil {
			passAgrees(r, s, []byte(number.Draw(r, "number")))
		}
	})
}

// Members come in any order, with space anywhere, and are listed values or not.
func TestPassOfMembersInAnyOrder(t *testing.T) {
	names := []string{"a", "id", "seven77", "eight888", "fourteen-bytes", "a-name-of-more-than-16-bytes", "é", "q\"q", "with\\slash"}
	props, required := map[string]any{}, []string{}
	for i, name := range names {
		props[name] = []any{
			map[string]any{"enum": []any{"x", "yes", 1.5, []any{1, "é"}}},
			map[string]any{"type": "string", "minLength": 1, "maxLength": 3},
			map[string]any{"type": "object", "properties": map[string]any{"z": true, "b": map[string]any{"enum": []any{"x", nil}}}, "required": []string{"z", "b"}},
		}[i%3]
		required = append(required, name)
	}
	text, _ := json.Marshal(map[string]any{"type": "object", "properties": props, "required": required, "additionalProperties": false})
	s := mustDeclare(t, string(text))
	value := rapid.SampledFrom([]string{`"x"`, `"yes"`, `"\u0078"`, `1.50`, ` [ 1, "\u00e9" ]`, `"é"`, `"four"`, `{"z":{"y":1,"x":"x"},"b":"x"}`, `{"b":null ,"z":0.10}`, `{"z":1}`, `""`})
	space := rapid.SampledFrom([]string{"", "", "", " ", "\n\t"})
	ok := 0
	rapid.Check(t, func(r *rapid.T) {
		order := rapid.Permutation(names).Draw(r, "order")
		if rapid.IntRange(0, 3).Draw(r, "as declared") == 0 {
			order = names
		}
		var b strings.Builder
		for i, name := range order {
			if i == len(order)-1 && rapid.IntRange(0, 9).Draw(r, "left out") == 0 {
				break
			}
			fits := []string{`"x"`, `"éé"`, `{"z":[{"b":2,"a":1}],"b":"x"}`}
			v := fits[max(0, indexOf(names, name)%3)]
			if rapid.IntRange(0, 4).Draw(r, "any") == 0 {
				v = value.Draw(r, "value")
			}
			quoted, _ := json.Marshal(name)
			fmt.Fprintf(&b, "%s%s%s%s:%s%s%s", map[bool]string{true: ","}[i > 0], space.Draw(r, "s"), quoted, space.Draw(r, "s"), space.Draw(r, "s"), v, space.Draw(r, "s"))
		}
		in := []byte("{" + b.String() + "}")
		passAgrees(r, s, in)
		if _, taken := s.Pass(nil, in); taken {
			ok++
		}
	})
	assert.Positive(t, ok)
}

func indexOf(list []string, name string) int {
	for i, have := range list {
		if have == name {
			return i
		}
	}
	return -1
}

func TestPrefix(t *testing.T) {
	for n := 1; n <= 20; n++ {
		text := `"` + strings.Repeat("n", n) + `":`
		e := entry{text: text, match: newPrefix(text)}
		assert.True(t, e.begins([]byte(text)), "%q alone", text)
		assert.True(t, e.begins([]byte(text+strings.Repeat(" ", 20))), "%q before much", text)
		assert.False(t, e.begins([]byte(text[:len(text)-1])), "%q cut short", text)
		for i := range text {
			other := []byte(text + strings.Repeat(" ", 20))
			other[i] ^= 1
			assert.False(t, e.begins(other), "%q is not %q", other, text)
		}
	}
}

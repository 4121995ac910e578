package yamljson_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/seed-ab2cfece/delta-agents/internal/yamljson"
)

func TestAppend(t *testing.T) {
	day := yamljson.Form{Time: func(n *yaml.Node) (string, error) { return "on " + n.Value, nil }}
	for _, c := range []struct {
		name string
		form yamljson.Form
		yaml string
		want string // or, with a bang, part of the error
	}{
		{"all kinds", yamljson.Form{}, "b: [1, 2.50, true, ~, 'x']\na: {c: \"\\u00e9\"}", `{"b":[1,2.50,true,null,"x"],"a":{"c":"é"}}`},
		{"digits are kept", yamljson.Form{}, "9007199254740993", "9007199254740993"},
		{"a time as it is written", yamljson.Form{}, "2026-12-01", `"2026-12-01"`},
		{"a time of its own form", day, "2026-12-01", `"on 2026-12-01"`},
		{"no number of JSON", yamljson.Form{}, "a: 1\nb: 0x1f", "!line 2: 0x1f is not a number"},
		{"no number at all", yamljson.Form{}, ".nan", "!.nan is not a number"},
		{"a key twice", yamljson.Form{}, "a: 1\na: 2", `!line 2: the key "a" was given in line 1`},
		{"a key that is a list", yamljson.Form{}, "[1]: 2", "!a key is not text"},
		{"a merge", yamljson.Form{}, "<<: {a: 1}", "!a key is not text"},
		{"an anchor", yamljson.Form{}, "a: &x 1", "!aliases are not supported"},
		{"a tag", yamljson.Form{}, "!!binary aGk=", "!!!binary is not supported"},
		{"too deep", yamljson.Form{}, strings.Repeat("[", 70) + strings.Repeat("]", 70), "!nested deeper than 64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var doc yaml.Node
			require.NoError(t, yaml.Unmarshal([]byte(c.yaml), &doc))
			got, err := c.form.Append(nil, doc.Content[0])
			if want, fails := strings.CutPrefix(c.want, "!"); fails {
				require.ErrorContains(t, err, want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
		})
	}
}

package statespace_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/statespace"
)

func TestParseKey_Refuses(t *testing.T) {
	hash := strings.Repeat("0f", 32)
	for _, c := range []struct{ name, why, key, want string }{
		{"empty", "no action", "", "name is empty"},
		{"name", "names have one pattern", "a b", "not allowed"},
		{"no field", "bound on nothing", "a@", "malformed"},
		{"no value", "that is the key of a field set, not of a fact", "a@x", "malformed"},
		{"half a value", "the bracket is open", "a@x=[1", "malformed"},
		{"two values", "a value belongs to each field", `a@x=1,y`, "malformed"},
		{"one value", "a value belongs to each field", `a@x,y=1`, "2 fields but 1 values"},
		{"order", "one fact has one key", `a@y=1,x=1`, "not in order"},
		{"twice", "one field has one value", `a@x=1,x=1`, "not in order"},
		{"order of a hash", "one fact has one key", "a@y,x#" + hash, "not in order"},
		{"null", "null binds nothing", "a@x=null", "not in canonical form"},
		{"space", "one value has one text", "a@x={\"a\": 1}", "not in canonical form"},
		{"duplicate member", "one value has one text", `a@x={"a":1,"a":1}`, "not in canonical form"},
		{"escape", "one value has one text", `a@x="\u0041"`, "not in canonical form"},
		{"surrogate", "it is no character", `a@x="\ud800"`, "not in canonical form"},
		{"quoted without need", "one field has one text", `a@"x"=1`, "not in canonical form"},
		{"short hash", "it is no SHA-256", "a@x#00", "64 lower-case"},
		{"upper hash", "one hash has one text", "a@x#" + strings.ToUpper(hash), "64 lower-case"},
		{"too long", "such a value is hashed", `a@x="` + strings.Repeat("v", statespace.MaxKey) + `"`, "not in canonical form"},
		{"no age", "it says for how long it counts", "^^a@x=1", "not allowed"},
		{"age of nothing", "it would never count", "^0^a@x=1", "not allowed"},
		{"age with a zero in front", "one age has one text", "^01^a@x=1", "not allowed"},
		{"an age that no duration holds", "it would wrap around", "^9223372036854776^a@x=1", "not allowed"},
		{"empty segment", "no such path", `a@x..y=1`, "empty segment"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := statespace.ParseKey(c.key)
			require.ErrorContains(t, err, c.want, c.why)
		})
	}
}

func TestFact_Key(t *testing.T) {
	hash := strings.Repeat("0f", 32)
	for _, key := range []string{
		"a", "a@x=1", `a@"a,b=\"c\""="x"`, `a@output:e.*.path="p",x={"k":[1,"]"]}`, "a@output:y,x#" + hash,
		"^1^a", "^3600000000^a@x=1", "^3600000000^a@x,y#" + hash,
	} {
		f, err := statespace.ParseKey(key)
		require.NoError(t, err, key)
		require.Equal(t, key, f.Key())
	}
}

package schema

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/cputime"
)

func TestForeignIsChecked(t *testing.T) {
	s, err := Foreign([]byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/tool","type":"object",
		"properties":{"path":{"type":"string"},"wait":{"format":"duration"},"n":{"const":9007199254740993},
			"key":{"$ref":"#/$defs/key","description":"beside"},"pair":{"prefixItems":[{"type":"string"}],"items":false}},
		"required":["path"],"dependentRequired":{"wait":["n"]},"unevaluatedProperties":false,"x-vendor":true,
		"$defs":{"key":{"type":"string","writeOnly":true}}}`))
	require.NoError(t, err)
	require.NoError(t, s.IsObject())
	assert.Equal(t, []string{"key"}, s.Secrets())
	for in, field := range map[string]string{
		`{}`: "/path", `{"path":1}`: "/path", `{"path":"a","wait":"soon","n":9007199254740993}`: "/wait", `{"path":"a","wait":"P1D"}`: "",
		`{"path":"a","n":9007199254740992}`: "/n", `{"path":"a","key":1}`: "/key", `{"path":"a","pair":["x",1]}`: "/pair/1", `{"path":"a","other":1}`: "/other",
	} {
		_, f := s.Check([]byte(in))
		if assert.NotNil(t, f, in) {
			assert.Equal(t, action.InputInvalid, f.Code)
			assert.Equal(t, field, f.Details[action.DetailField], f.Message)
		}
	}
	_, f := s.Check([]byte(`{"path":"a","Path":"b"}`))
	require.NotNil(t, f)
	assert.Equal(t, action.InputMalformed, f.Code)
	_, f = s.Check([]byte(`{"path":"a","wait":"P1D","n":9007199254740993,"key":"k","pair":["x"]}`))
	assert.Nil(t, f)
}

// TestMessagesNeverRepeatValues gives every kind of fault a value to repeat.
func TestMessagesNeverRepeatValues(t *testing.T) {
	const secret = "tok_4111"
	for _, c := range enforced {
		if strings.Contains(c.schema, "#") {
			continue
		}
		for _, compile := range []func([]byte) (*Schema, error){Declared, Foreign} {
			s, err := compile([]byte(`{"properties":{"s":` + c.schema + `}}`))
			if err != nil {
				continue // ours alone
			}
			for _, in := range []string{`"` + secret + `"`, `["` + secret + `","` + secret + `"]`, `{"x":"` + secret + `"}`} {
				if _, f := s.Check([]byte(`{"s":` + in + `}`)); f != nil {
					assert.NotContains(t, f.Explain(), secret, c.schema)
				}
			}
		}
	}
}

func TestForeignIsLinted(t *testing.T) {
	laughs := `{"$ref":"#/$defs/d0","$defs":{`
	for i := range 30 {
		laughs += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	laughs += `"d30":{}}}`
	for _, c := range []struct{ name, schema, want string }{
		{"not JSON", `{`, "not acceptable JSON"},
		{"not a schema", `1`, "want an object"},
		{"too large", `"` + strings.Repeat("x", 2<<20) + `"`, "longer than the limit"},
		{"too deep", strings.Repeat(`{"not":`, 65) + `{}` + strings.Repeat(`}`, 65), "deeper than 64"},
		{"remote", `{"properties":{"a":{"$ref":"http://example.com/s"}}}`, "not local"},
		{"file", `{"$ref":"file:///etc/passwd"}`, "not local"},
		{"anchor", `{"$ref":"#a","$defs":{"a":{"$anchor":"a"}}}`, "not local"},
		{"itself", `{"$ref":"#"}`, "cyclic"},
		{"ancestor", `{"properties":{"next":{"$ref":"#"}}}`, "cyclic"},
		{"ring", `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"items":{"$ref":"#/$defs/a"}}}}`, "cyclic"},
		{"dangling", `{"$ref":"#/$defs/x"}`, "no schema at #/$defs/x"},
		{"dynamic", `{"$dynamicRef":"#x"}`, "not supported"},
		{"nested $id", `{"properties":{"a":{"$id":"http://x/","$ref":"#/$defs/a"}}}`, "$id below the root"},
		{"laughs", laughs, "stands for more than"},
		{"dialect", `{"$schema":"http://example.com/schema"}`, "unknown dialect"},
		{"invalid", `{"type":"strin"}`, "schema"},
		{"lookahead", `{"pattern":"(?=a)"}`, "schema"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := cputime.Now()
			_, err := Foreign([]byte(c.schema))
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.want)
			assert.Less(t, cputime.Now()-start, 2*time.Second)
		})
	}
	t.Run("names are no keywords", func(t *testing.T) {
		_, err := Foreign([]byte(`{"properties":{"$ref":{"type":"string"},"enum":{"type":"string"},"id":{"$ref":"#/$defs/$id"}},
			"enum":[{"$ref":"http://x"}],"$defs":{"$id":{"const":{"$ref":"#"}}}}`))
		require.NoError(t, err)
	})
}

func TestForeignCheckCountsSteps(t *testing.T) {
	branches := strings.TrimSuffix(strings.Repeat(`{"type":"object"},`, 1000), ",")
	for _, schema := range []string{`{"items":{"anyOf":[` + branches + `]}}`, `{"items":{"not":{"oneOf":[` + branches + `]}}}`,
		`{"contains":{"allOf":[` + branches + `]}}`} {
		s, err := Foreign([]byte(schema))
		require.NoError(t, err)
		s.judge.(*foreign).limit = maxSteps / 50
		start := cputime.Now()
		_, f := s.Check([]byte("[" + strings.Repeat("1,", 50_000) + "1]"))
		require.NotNil(t, f)
		assert.Contains(t, f.Message, "too many steps")
		assert.Less(t, cputime.Now()-start, 2*time.Second)
	}
}

func TestForeignCheckIsBounded(t *testing.T) {
	s, err := Foreign([]byte(`{"items":{"type":"string"},"uniqueItems":true}`))
	require.NoError(t, err)
	start := cputime.Now()
	_, f := s.Check([]byte("[" + strings.Repeat("1,", 50_000) + "1]"))
	require.NotNil(t, f)
	assert.Less(t, len(f.Message), 10_000)
	assert.Less(t, cputime.Now()-start, 5*time.Second)
}

package schema

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestJudgesAgree holds the compiled checker against both libraries: every schema of the keyword table, every document of
// it. gojsonschema sees the rewritten schema, in which it must be as exact; santhosh-tekuri the original one, its formats
// being its own.
func TestJudgesAgree(t *testing.T) {
	docs := map[string]any{}
	for _, c := range enforced {
		for _, in := range slices.Concat(c.valid, c.invalid) {
			doc, f := Canonical([]byte(in), 0)
			require.Nil(t, f)
			docs[doc.Text()] = doc.Tree()
		}
	}
	for _, c := range enforced {
		tree, fault := parseTree([]byte(c.schema), 0)
		require.Nil(t, fault)
		j, err := newOwn(tree)
		require.NoError(t, err)
		second, err := newGojson(tree)
		require.NoError(t, err)
		if m, ok := tree.(map[string]any); ok {
			m["$schema"] = "http://json-schema.org/draft-07/schema#"
		}
		third, err := newForeign(tree)
		require.NoError(t, err)
		for text, doc := range docs {
			k := checker{limit: maxSteps}
			want, done := k.run(j.root, doc)
			require.True(t, done)
			if !strings.Contains(c.schema, "uniqueItems") {
				assert.Equal(t, want, second.judge(doc) == nil, "gojsonschema: %s on %s", c.schema, text)
			}
			if !strings.Contains(c.schema, `"format"`) {
				assert.Equal(t, want, third.judge(doc) == nil, "santhosh-tekuri: %s on %s", c.schema, text)
			}
		}
	}
}

// TestSecondJudgeIsAsked shows that its refusal counts.
func TestSecondJudgeIsAsked(t *testing.T) {
	tree, _ := parseTree([]byte(`{"type":"string"}`), 0)
	j, err := newOwn(tree)
	require.NoError(t, err)
	strict, _ := parseTree([]byte(`{"type":"string","minLength":3}`), 0)
	j.second, err = newGojson(strict)
	require.NoError(t, err)
	assert.Empty(t, j.judge("abc"))
	assert.NotEmpty(t, j.judge("ab"))
}

// TestTooManyStepsAreARefusal holds where running out of steps would otherwise read as consent.
func TestTooManyStepsAreARefusal(t *testing.T) {
	for _, schema := range []string{`{"not":{"items":{"type":"string"}}}`, `{"items":{"type":"integer"}}`} {
		s := mustDeclare(t, schema)
		_, f := s.Check([]byte(`[1,2,3,4,5]`))
		require.Nil(t, f)
		s.judge.(*own).limit = 4
		_, f = s.Check([]byte(`[1,2,3,4,5]`))
		require.NotNil(t, f, schema)
		assert.Contains(t, f.Message, "too many steps")
	}
}

// TestPanicIsARefusal gives each judge what makes it panic.
func TestPanicIsARefusal(t *testing.T) {
	for _, j := range []judge{&own{limit: 1}, &gojson{}, &foreign{limit: 1}} {
		faults := j.judge("x")
		require.Len(t, faults, 1)
		assert.Contains(t, faults[0].text, "cannot be validated")
	}
}

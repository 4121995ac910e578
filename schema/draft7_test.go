package schema

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// draft7 is one entry of the files in testdata/draft7: a schema, and documents with what is to become of them and why.
type draft7 struct {
	Keyword string          `json:"keyword"`
	Schema  json.RawMessage `json:"schema"`
	Cases   []struct {
		Valid bool            `json:"valid"`
		Data  json.RawMessage `json:"data"`
		Why   string          `json:"why"`
	} `json:"cases"`
}

func readDraft7(t *testing.T) []draft7 {
	files, err := filepath.Glob("testdata/draft7/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []draft7
	for _, name := range files {
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		var some []draft7
		require.NoError(t, json.Unmarshal(raw, &some), name)
		all = append(all, some...)
	}
	return all
}

// TestDraft7 puts every case to the pass, and to the judges behind it.
func TestDraft7(t *testing.T) {
	for _, d := range readDraft7(t) {
		s, err := Declared(d.Schema)
		require.NoError(t, err, "%s", d.Schema)
		compiled, why := s.Compiled()
		require.True(t, compiled, "%s: %s", d.Schema, why)
		for _, c := range d.Cases {
			_, ok := s.Pass(nil, c.Data)
			assert.Equal(t, c.Valid, ok, "the pass: %s on %s: %s", d.Schema, c.Data, c.Why)
			_, f := s.worded(c.Data, 0, action.InputMalformed, action.InputInvalid)
			assert.Equal(t, c.Valid, f == nil, "the judges: %s on %s: %s", d.Schema, c.Data, c.Why)
			if f != nil {
				assert.Equal(t, action.InputInvalid, f.Code, "%s", c.Data)
			}
			passAgrees(t, s, c.Data)
		}
	}
}

// TestDraft7HasEveryKeyword: each keyword and format that is claimed has a case of either kind.
func TestDraft7HasEveryKeyword(t *testing.T) {
	seen := map[string]map[bool]bool{}
	for _, d := range readDraft7(t) {
		if seen[d.Keyword] == nil {
			seen[d.Keyword] = map[bool]bool{}
		}
		for _, c := range d.Cases {
			seen[d.Keyword][c.Valid] = true
			assert.NotEmpty(t, c.Why)
		}
	}
	both := map[bool]bool{true: true, false: true}
	for name := range keywords {
		if !contains(idleKeywords, name) && name != "format" {
			assert.Equal(t, both, seen[name], "cases of keyword %s", name)
		}
	}
	for name := range formats {
		assert.Equal(t, both, seen["format "+name], "cases of format %s", name)
	}
}

var idleKeywords = strings.Fields("$comment $id $schema default deprecated description examples readOnly title writeOnly")

package action_test

import (
	"bytes"
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// TestLazyDocumentReadsItsText: whatever the text, the value is the one that encoding/json reads from it.
func TestLazyDocumentReadsItsText(t *testing.T) {
	check := func(t require.TestingT, text string) {
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.UseNumber()
		var want any
		require.NoError(t, d.Decode(&want))
		doc := action.NewLazyDocument(text)
		require.Equal(t, text, doc.Text())
		require.Equal(t, want, doc.Detached().Tree(), text)
		require.Equal(t, want, doc.Tree(), text)
		require.False(t, doc.IsZero())
	}
	for _, text := range []string{`null`, `true`, `false`, `0`, `-1.5e300`, `""`, `{}`, `[]`, `[[],{},"a",1,null]`, `{"":{"a":[1,{"b":true}]},"é😀":"x"}`,
		`"\"\\\b\f\n\r\t\u0001\u001fé"`, `{"\\\"":"\\"}`} {
		check(t, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.MapOfN(rapid.String(), rapid.SliceOfN(rapid.String(), 0, 3), 0, 5).Draw(t, "members")
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		require.NoError(t, e.Encode(members))
		var v any
		require.NoError(t, json.Unmarshal(b.Bytes(), &v))
		check(t, string(bytes.TrimSpace(b.Bytes())))
	})
}

// TestLazyDocumentIsShared: many may ask at once, and what one stranger does to the value reaches nobody.
func TestLazyDocumentIsShared(t *testing.T) {
	doc := action.NewLazyDocument(`{"a":[1]}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			stranger, _ := doc.Detached().Tree().(map[string]any)
			stranger["a"] = nil
			require.NotNil(t, doc.Tree().(map[string]any)["a"])
		})
	}
	wg.Wait()
	require.Equal(t, map[string]any{"a": []any{json.Number("1")}}, doc.Tree())
}

package schema

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// passAgrees holds the pass against the two judges behind it and the edge before them: what it takes they take, with the
// same canonical form, and what it refuses they refuse.
func passAgrees(t require.TestingT, s *Schema, in []byte) {
	dst := []byte("before")
	out, ok := s.Pass(dst, in)
	doc, f := s.worded(in, DefaultLimit, action.InputMalformed, action.InputInvalid)
	compiled, why := s.Compiled()
	require.Equal(t, compiled, why == "")
	if !compiled {
		require.False(t, ok)
		return
	}
	require.Equal(t, f == nil, ok, "%s on %q: the judges say %v", s.doc.Text(), in, f)
	if !ok {
		require.Equal(t, "before", string(out))
		return
	}
	require.Equal(t, "before"+doc.Text(), string(out), "%s on %q", s.doc.Text(), in)
	again, ok := s.Pass(nil, out[len("before"):])
	require.True(t, ok && bytes.Equal(again, out[len("before"):]), "%s takes %q again as %q", s.doc.Text(), out, again)
	lazy, f := s.Check(in)
	require.Nil(t, f)
	require.Equal(t, doc.Tree(), lazy.Tree(), "%q", in)
	require.Equal(t, doc.Tree(), lazy.Detached().Tree(), "%q", in)
	gojsonschemaAgrees(t, s, doc)
}

// gojsonschemaAgrees asks the second judge alone, where it is asked at all. It may take more than the pass: uniqueItems is
// not put to it.
func gojsonschemaAgrees(t require.TestingT, s *Schema, doc action.Document) {
	if j, ok := s.judge.(*own); ok && j.second != nil {
		require.Empty(t, j.second.judge(doc.Tree()), "%s on %s", s.doc.Text(), doc.Text())
	}
}

// FuzzPass compares the pass with the judges on any schema and any document.
func FuzzPass(f *testing.F) {
	for _, c := range enforced {
		for _, in := range append(c.valid, c.invalid...) {
			f.Add([]byte(c.schema), []byte(in))
		}
	}
	f.Add([]byte(orderSchema), []byte(benchInput))
	f.Fuzz(func(t *testing.T, schema, in []byte) {
		if len(schema) > 4096 || len(in) > 4096 {
			return
		}
		s, err := Declared(schema)
		if err != nil {
			return
		}
		passAgrees(t, s, in)
	})
}

// FuzzPassEdge compares the pass with the edge where no schema stands between them.
func FuzzPassEdge(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"a":[1,-0.0,1e5,"\u00e9\ud83d\ude00\u0001\n"],"b":null}`, `{"b":1,"a":2,"b":3}`, `"\ud800"`, "\"\xff\"", `01`, `1e999`,
		`1e-999`, `[1,]`, `{"a":1} x`, `tru`, strings.Repeat("[", 65) + strings.Repeat("]", 65), strings.Repeat("9", 65), `{"\u0061":1,"a":2}`,
		"{\"\uffee\":1,\"\U0001f600\":2,\"z\":3}", `0.10e-3`, `1.50`, `-0`, `12345678901234567890e10`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out, ok := AppendCanonical(nil, in)
		doc, fault := parse(in, 0, action.InputMalformed)
		require.Equal(t, fault == nil, ok, "%q: %v", in, fault)
		require.Equal(t, doc.Text(), string(out))
		if ok {
			require.Equal(t, doc.Tree(), action.NewLazyDocument(string(out)).Tree())
		}
	})
}

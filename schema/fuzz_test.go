package schema

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// FuzzStrictEdge holds the edge against jsontext: what we accept it accepts, and what we refuse and it accepts, we refuse
// for the size, the depth or a number. What we accept is canonical the second time.
func FuzzStrictEdge(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"a":[1,-0.0,1e5,"\u00e9\ud83d\ude00"],"b":null}`, `{"a":1,"a":2}`, `"\ud800"`, "\"\xff\"", `01`, `1e999`,
		`1e-999`, `[1,]`, `{"a":1} x`, `tru`, strings.Repeat("[", 70) + strings.Repeat("]", 70), strings.Repeat("9", 70), "\ufeff1", `{"\u0061":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 1 << 16
		doc, failure := Canonical(in, limit)
		theirs := readAll(in)
		switch {
		case failure == nil && theirs != nil:
			t.Fatalf("accepted %q, jsontext: %v", in, theirs)
		case failure != nil && theirs == nil && len(in) <= limit &&
			!strings.HasPrefix(failure.Message, "number is ") && !strings.HasPrefix(failure.Message, "nesting is deeper"):
			t.Fatalf("refused %q: %v", in, failure)
		case failure != nil:
			return
		}
		again, failure := Canonical([]byte(doc.Text()), 2*len(doc.Text())+1)
		if failure != nil || again.Text() != doc.Text() {
			t.Fatalf("%q became %q, then %q (%v)", in, doc.Text(), again.Text(), failure)
		}
		// RFC 8785 differs from ours in numbers only.
		if theirs := jsontext.Value(doc.Text()); !strings.ContainsAny(doc.Text(), "0123456789") {
			if err := theirs.Canonicalize(); err != nil || string(theirs) != doc.Text() {
				t.Fatalf("canonical %q, JCS %q (%v)", doc.Text(), theirs, err)
			}
		}
	})
}

// readAll reads one value and nothing after it.
func readAll(in []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(in))
	if _, err := d.ReadValue(); err != nil {
		return err
	}
	return onlyEOF(d)
}

// FuzzDeclared makes a schema of anything and checks anything with it: no panic, no endless loop, and the same verdict
// and words twice.
func FuzzDeclared(f *testing.F) {
	for _, c := range enforced {
		f.Add([]byte(c.schema), []byte(c.invalid[0]))
	}
	for _, s := range []string{`{"$ref":"#"}`, `{"properties":{"a":{"$ref":"#"}}}`, `{"$ref":"#/$defs/a","$defs":{"a":{"not":{"$ref":"#/$defs/a"}}}}`, `{"$ref":"#foo","$defs":{"a":{"$anchor":"foo"}}}`} {
		f.Add([]byte(s), []byte(`{"a":{"a":1}}`))
	}
	f.Fuzz(func(t *testing.T, schema, in []byte) {
		if len(schema) > 4096 || len(in) > 4096 {
			return
		}
		for _, compile := range []func([]byte) (*Schema, error){Declared, Foreign} {
			s, err := compile(schema)
			if err != nil {
				continue
			}
			judgesAgree(t, s, in)
			_, first := s.Check(in)
			_, second := s.Check(in)
			if (first == nil) != (second == nil) || first != nil && first.Explain() != second.Explain() {
				t.Fatalf("%s on %s: %v, then %v", schema, in, first, second)
			}
			if first != nil && strings.Contains(first.Message, "cannot be validated") {
				t.Fatalf("%s on %s: %v", schema, in, first)
			}
			again, err := compile(s.JSON())
			if err != nil || again.Hash() != s.Hash() {
				t.Fatalf("%s is not itself: %v", s.JSON(), err)
			}
		}
	})
}

func onlyEOF(d *jsontext.Decoder) error {
	_, err := d.ReadToken()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		err = errors.New("data after the value")
	}
	return err
}

// judgesAgree puts a document to both judges of a declared schema, where both can be exact.
func judgesAgree(t *testing.T, s *Schema, in []byte) {
	j, ours := s.judge.(*own)
	doc, f := Canonical(in, 0)
	if !ours || f != nil || j.second == nil || strings.Contains(s.doc.Text(), "uniqueItems") {
		return
	}
	c := checker{limit: maxSecond}
	if ok, done := c.run(j.root, doc.Tree()); done && ok != (j.second.judge(doc.Tree()) == nil) {
		t.Fatalf("%s on %s: ours says %v, gojsonschema %v", s.doc.Text(), in, c.faults, j.second.judge(doc.Tree()))
	}
}

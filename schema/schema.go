package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Schema says which documents may go on. It is immutable and safe for concurrent use; the zero value is not usable, make
// one with [Reflect], [ReflectOutput], [Declared] or [Foreign].
type Schema struct {
	doc     action.Document
	hash    string
	root    *node
	judge   judge
	pass    *program
	why     string // there is no pass
	secrets []string
}

// Declared compiles a JSON schema that our user wrote, in the part of draft-07 and 2020-12 that doc/schema.md lists.
// Every keyword that would be ignored, here or by gojsonschema, is an error that names it, its place and the way out:
// unknown and misspelt keywords, unknown formats, what stands beside a $ref, references that are not local or lead
// nowhere, patterns that are not RE2. All faults are in the error. A property with "writeOnly": true is a secret.
func Declared(raw []byte) (*Schema, error) {
	tree, fault := parseTree(raw, DefaultLimit)
	if fault != nil {
		return nil, fmt.Errorf("schema is not acceptable JSON: %w", fault)
	}
	return declared(tree)
}

func declared(tree any) (*Schema, error) {
	if err := lint(tree); err != nil {
		return nil, err
	}
	j, err := newOwn(tree)
	if err != nil {
		return nil, err
	}
	s, err := finish(tree, j.root, j)
	if err != nil {
		return nil, err
	}
	if s.pass, err = plan(j.root, maxPlan); err != nil {
		s.why = err.Error()
	}
	return s, nil
}

// Foreign compiles a JSON schema of drafts 4 to 2020-12 that came from elsewhere, formats asserted. It must hold at most
// [DefaultLimit] bytes, [MaxDepth] levels and 20,000 values once its references are followed; references must be local
// JSON pointers ("#/…") and acyclic. Keywords it does not know are ignored, as the specification says.
func Foreign(raw []byte) (*Schema, error) {
	tree, fault := parseTree(raw, DefaultLimit)
	if fault != nil {
		return nil, fmt.Errorf("schema is not acceptable JSON: %w", fault)
	}
	if err := lintForeign(tree); err != nil {
		return nil, err
	}
	j, err := newForeign(tree)
	if err != nil {
		return nil, err
	}
	return finish(tree, j.root, j)
}

func finish(tree any, root *node, j judge) (*Schema, error) {
	secrets, err := secretPaths(root)
	if err != nil {
		return nil, err
	}
	doc := newDocument(tree)
	sum := sha256.Sum256([]byte(doc.Text()))
	return &Schema{doc: doc, hash: hex.EncodeToString(sum[:]), root: root, judge: j, secrets: secrets, why: errForeign.Error()}, nil
}

// JSON returns the schema in canonical form. The caller owns the bytes.
func (s *Schema) JSON() []byte { return []byte(s.doc.Text()) }

// Hash returns the SHA-256 of JSON in lower-case hex.
func (s *Schema) Hash() string { return s.hash }

// IsObject reports nil where every document that satisfies the schema is an object, as the input of an action must be.
func (s *Schema) IsObject() error {
	if !onlyObjects(s.root, map[*node]bool{}) {
		return errors.New(`the schema does not say that a document is an object; want "type": "object"`)
	}
	return nil
}

func onlyObjects(n *node, seen map[*node]bool) bool {
	if n == nil || seen[n] {
		return false
	}
	seen[n] = true
	if n.types == typeObject || onlyObjects(n.ref, seen) {
		return true
	}
	for _, m := range n.allOf {
		if onlyObjects(m, seen) {
			return true
		}
	}
	return allOnlyObjects(n.anyOf, seen) || allOnlyObjects(n.oneOf, seen)
}

func allOnlyObjects(branches []*node, seen map[*node]bool) bool {
	for _, m := range branches {
		if !onlyObjects(m, seen) {
			return false
		}
	}
	return len(branches) > 0
}

// Check passes an input of at most [DefaultLimit] bytes through the strict edge (INPUT_MALFORMED), refuses member names
// that differ only in case from a property known there (INPUT_MALFORMED: encoding/json would take one for the other), and
// then applies the schema (INPUT_INVALID). The failure names the first place (detail field) and, in its message, up to 20
// faults in an order that depends on the document and the schema alone. Messages repeat names and limits, never values.
func (s *Schema) Check(raw []byte) (action.Document, *action.Failure) {
	return s.check(raw, DefaultLimit, action.InputMalformed, action.InputInvalid)
}

// CheckWithin is Check with another limit on the size, in bytes.
func (s *Schema) CheckWithin(raw []byte, limit int) (action.Document, *action.Failure) {
	return s.check(raw, limit, action.InputMalformed, action.InputInvalid)
}

// CheckOutput is Check for what a function returned; every failure has the code OUTPUT_INVALID.
func (s *Schema) CheckOutput(raw []byte) (action.Document, *action.Failure) {
	return s.check(raw, DefaultLimit, action.OutputInvalid, action.OutputInvalid)
}

func (s *Schema) check(raw []byte, limit int, malformed, invalid action.Code) (action.Document, *action.Failure) {
	if doc, ok := s.pass.document(raw, limit, s.steps()); ok {
		return doc, nil
	}
	return s.worded(raw, limit, malformed, invalid)
}

// worded is the check by the judges, who say what is wrong.
func (s *Schema) worded(raw []byte, limit int, malformed, invalid action.Code) (action.Document, *action.Failure) {
	doc, f := parse(raw, limit, malformed)
	if f != nil {
		return action.Document{}, f
	}
	if f := caseFault(s.root, doc.Tree()); f != nil {
		return action.Document{}, failure(malformed, []fault{*f})
	}
	if faults := s.judge.judge(doc.Tree()); len(faults) > 0 {
		return action.Document{}, failure(invalid, faults)
	}
	return doc, nil
}

func failure(code action.Code, faults []fault) *action.Failure {
	lines := make([]string, len(faults))
	for i, f := range faults {
		lines[i] = f.text
		if f.place != "" {
			lines[i] = f.place + " " + f.text
		}
	}
	return action.Fail(code, "%s", strings.Join(lines, "; ")).With(action.DetailField, faults[0].place)
}

// caseFault finds the first member, in canonical order, whose name differs only in case from a property known there.
func caseFault(root *node, tree any) *fault {
	w := caseWalk{}
	if !w.found(root.here, tree, false) {
		return nil
	}
	w.path = nil
	w.found(root.here, tree, true) // again in order: which one is named must not depend on the order of a map
	return &w.fault
}

type caseWalk struct {
	path  []step
	fault fault
}

func (w *caseWalk) found(here []*node, v any, ordered bool) bool {
	if len(here) == 0 {
		return false
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if nested(e) && w.below(step{index: i}, element(here, i), e, ordered) {
				return true
			}
		}
	case map[string]any:
		if ordered {
			for _, name := range sortedNames(v) {
				if w.member(here, name, v[name], ordered) {
					return true
				}
			}
			return false
		}
		for name, e := range v {
			if w.member(here, name, e, ordered) {
				return true
			}
		}
	}
	return false
}

func nested(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

func (w *caseWalk) below(s step, here []*node, v any, ordered bool) bool {
	w.path = append(w.path, s)
	found := w.found(here, v, ordered)
	w.path = w.path[:len(w.path)-1]
	return found
}

func (w *caseWalk) member(here []*node, name string, v any, ordered bool) bool {
	if meant := meantName(here, name); meant != "" {
		w.fault = fault{placeOf(append(w.path, step{name: name, named: true})), "differs only in case from the property " + quote(meant)}
		return true
	}
	return nested(v) && w.below(step{name: name, named: true}, member(here, name), v, ordered)
}

// meantName returns the known property that name is a case variant of, or "".
func meantName(here []*node, name string) string {
	for _, n := range here {
		if n.props[name] != nil {
			return ""
		}
	}
	folded, meant := "", ""
	for _, n := range here {
		if len(n.folded) == 0 {
			continue
		}
		if folded == "" {
			folded = fold(name)
		}
		if m, ok := n.folded[folded]; ok && (meant == "" || m < meant) {
			meant = m
		}
	}
	return meant
}

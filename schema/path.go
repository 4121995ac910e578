package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Kind is what a schema says about the type of a field: a JSON type ("string", "integer", "number", "boolean", "object",
// "array", "null"), several of them in alphabetical order with '|' between, or "any".
type Kind string

// AnyKind is the kind of a field about whose type nothing is said.
const AnyKind Kind = "any"

// Comparable reports whether values of k and other can be equal for binding: the kinds are the same, null apart. A field
// of any kind is comparable with none, since nothing vouches for it.
func (k Kind) Comparable(other Kind) bool {
	a, b := k.notNull(), other.notNull()
	return a == b && a != "" && a != AnyKind
}

func (k Kind) notNull() Kind {
	parts := slices.DeleteFunc(strings.Split(string(k), "|"), func(s string) bool { return s == "null" })
	return Kind(strings.Join(parts, "|"))
}

// splitPath returns the segments of a dotted path, unescaped. A star that stands for any element is the segment "*" with
// any set.
func splitPath(path string) ([]segment, error) {
	var out []segment
	var b strings.Builder
	escaped := false
	end := func() error {
		s := segment{name: b.String()}
		s.any = s.name == "*" && !escaped
		if s.name == "" {
			return fmt.Errorf("path %s has an empty segment", quote(path))
		}
		out = append(out, s)
		b.Reset()
		escaped = false
		return nil
	}
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '\\' && i+1 < len(path):
			i++
			escaped = true
			b.WriteByte(path[i])
		case c == '.':
			if err := end(); err != nil {
				return nil, err
			}
		default:
			b.WriteByte(c)
		}
	}
	return out, end()
}

type segment struct {
	name string
	any  bool
}

func joinPath(segments []segment) string {
	parts := make([]string, len(segments))
	for i, s := range segments {
		if parts[i] = "*"; !s.any {
			parts[i] = strings.NewReplacer(`\`, `\\`, ".", `\.`, "*", `\*`).Replace(s.name)
		}
	}
	return strings.Join(parts, ".")
}

// Kind returns the type of the field at a dotted path, or an error, with a suggestion, where the schema does not know it.
func (s *Schema) Kind(path string) (Kind, error) {
	here, err := s.follow(path)
	if err != nil {
		return "", err
	}
	types := kindOf(here)
	if types == 0 {
		return AnyKind, nil
	}
	names := types.list()
	slices.Sort(names)
	return Kind(strings.Join(names, "|")), nil
}

func (s *Schema) follow(path string) ([]*node, error) {
	segments, err := splitPath(path)
	if err != nil {
		return nil, err
	}
	here := s.root.here
	for i, seg := range segments {
		next := slices.DeleteFunc(descend(here, seg), func(n *node) bool { return n.never })
		if len(next) == 0 {
			return nil, unknownField(path, here, segments[:i], seg)
		}
		here = next
	}
	return here, nil
}

// descend goes one segment down; a star is what a schema says of its elements, or of the members it does not name.
func descend(here []*node, seg segment) []*node {
	if !seg.any {
		return member(here, seg.name)
	}
	var out []*node
	for _, n := range here {
		for _, m := range append(slices.Clone(n.tuple), n.items, n.rest, n.additional) {
			if m != nil && !m.never {
				out = append(out, m.here...)
			}
		}
		for _, p := range n.patterns {
			out = append(out, p.node.here...)
		}
	}
	return distinct(out)
}

func unknownField(path string, here []*node, before []segment, seg segment) error {
	where := "the schema"
	if len(before) > 0 {
		where = quote(joinPath(before))
	}
	if seg.any {
		return fmt.Errorf("field %s: %s has no elements that the schema describes", quote(path), where)
	}
	var known []string
	for _, n := range here {
		known = append(known, n.names...)
		if n.items != nil || n.tuple != nil {
			return fmt.Errorf("field %s: %s is an array, write * for its elements", quote(path), where)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	if hint := didYouMean(seg.name, known); hint != "" || len(known) == 0 {
		return fmt.Errorf("field %s: %s has no property %s%s", quote(path), where, quote(seg.name), hint)
	}
	return fmt.Errorf("field %s: %s has no property %s; it has %s", quote(path), where, quote(seg.name), strings.Join(known, ", "))
}

// kindOf is the types a value to which all of these apply may have: the union over the alternatives that name a type.
func kindOf(here []*node) typeSet {
	var types typeSet
	for _, n := range here {
		types |= n.types
		if n.types == 0 {
			for _, text := range n.enumTexts {
				tree, _ := parseTree([]byte(text), 0)
				types |= typeOf(tree)
			}
		}
	}
	return types
}

// Members returns the dotted paths of the properties that the schema names, at most limit, those nearest to the root first.
// Properties of elements of arrays are not among them, nor what patterns or additional properties let in.
func (s *Schema) Members(limit int) []string {
	type object struct {
		here []*node
		path []segment
	}
	var out []string
	for open := []object{{here: s.root.here}}; len(open) > 0; open = open[1:] {
		var names []string
		for _, n := range open[0].here {
			names = append(names, n.names...)
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			below := slices.DeleteFunc(member(open[0].here, name), func(n *node) bool { return n.never })
			if len(below) == 0 || name == "" { // a path has no empty name
				continue
			}
			if len(out) == limit {
				return out
			}
			path := append(slices.Clone(open[0].path), segment{name: name})
			out = append(out, joinPath(path))
			open = append(open, object{below, path})
		}
	}
	return out
}

// Secrets returns the dotted paths of the fields marked as secret, sorted.
func (s *Schema) Secrets() []string { return slices.Clone(s.secrets) }

// HoldsSecrets reports whether any field is marked as secret.
func (s *Schema) HoldsSecrets() bool { return len(s.secrets) > 0 }

func secretPaths(root *node) ([]string, error) {
	w := secretWalk{on: map[*node]bool{}, holds: map[*node]bool{}}
	if err := w.walk(root.here, nil); err != nil {
		return nil, err
	}
	slices.Sort(w.found)
	return slices.Compact(w.found), nil
}

// maxSecrets bounds the paths to secrets of one schema.
const maxSecrets = 1000

type secretWalk struct {
	on    map[*node]bool // schemas above
	holds map[*node]bool
	found []string
}

func (w *secretWalk) walk(here []*node, path []segment) error {
	if len(w.found) > maxSecrets {
		return fmt.Errorf("schema: more than %d secrets", maxSecrets)
	}
	var entered []*node
	for _, n := range here {
		switch {
		case n.secret && len(path) == 0:
			return errors.New("schema: the whole document cannot be a secret")
		case n.secret:
			w.found = append(w.found, joinPath(path))
			return nil // all below it is secret with it
		case !w.holdsSecret(n):
		case w.on[n]:
			return fmt.Errorf("schema: a secret inside a recursive schema has no path (%s)", quote(joinPath(path)))
		default:
			entered = append(entered, n)
		}
	}
	var names []string
	for _, n := range entered {
		w.on[n] = true
		defer delete(w.on, n)
		names = append(names, n.names...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := w.walk(member(entered, name), append(slices.Clone(path), segment{name: name})); err != nil {
			return err
		}
	}
	star := segment{name: "*", any: true}
	if next := descend(entered, star); len(next) > 0 {
		return w.walk(next, append(slices.Clone(path), star))
	}
	return nil
}

func (w *secretWalk) holdsSecret(n *node) bool {
	h, known := w.holds[n]
	if !known {
		h = holdsSecret(n, map[*node]bool{})
		w.holds[n] = h
	}
	return h
}

func holdsSecret(n *node, seen map[*node]bool) bool {
	if n == nil || seen[n] {
		return false
	}
	seen[n] = true
	widening, turning := n.children()
	return n.secret || slices.ContainsFunc(append(widening, turning...), func(m *node) bool { return holdsSecret(m, seen) })
}

// Redact returns a copy of a document in which the value at every secret path is the string that replace gives for its
// place (a dotted path without stars) and its canonical text. Paths that are not there or not well formed are skipped.
// The result is canonical.
func Redact(doc action.Document, secrets []string, replace func(path, text string) string) action.Document {
	tree := doc.Tree()
	for _, s := range secrets {
		if segments, err := splitPath(s); err == nil {
			tree = redact(tree, segments, nil, replace)
		}
	}
	return newDocument(tree)
}

func redact(v any, rest, place []segment, replace func(path, text string) string) any {
	if len(rest) == 0 {
		return replace(joinPath(place), canonicalText(v))
	}
	down := func(name string, v any) any {
		return redact(v, rest[1:], append(slices.Clone(place), segment{name: name}), replace)
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, name := range sortedNames(v) {
			if out[name] = v[name]; rest[0].any || rest[0].name == name {
				out[name] = down(name, v[name])
			}
		}
		return out
	case []any:
		if !rest[0].any {
			return v
		}
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = down(fmt.Sprint(i), e)
		}
		return out
	}
	return v
}

// Values returns the canonical texts of the values at a dotted path of a document, in the order of the document; none
// where the path leads nowhere.
func Values(doc action.Document, path string) []json.RawMessage {
	segments, err := splitPath(path)
	if err != nil {
		return nil
	}
	var out []json.RawMessage
	var walk func(v any, rest []segment)
	walk = func(v any, rest []segment) {
		if len(rest) == 0 {
			out = append(out, json.RawMessage(canonicalText(v)))
			return
		}
		switch v := v.(type) {
		case map[string]any:
			if !rest[0].any {
				if e, ok := v[rest[0].name]; ok {
					walk(e, rest[1:])
				}
				return
			}
			for _, name := range sortedNames(v) {
				walk(v[name], rest[1:])
			}
		case []any:
			for _, e := range v {
				if rest[0].any {
					walk(e, rest[1:])
				}
			}
		}
	}
	walk(doc.Tree(), segments)
	return out
}

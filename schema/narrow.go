package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Allowed says which values some fields may have together: the i-th value of a tuple belongs to the i-th field. Fields are
// dotted paths; a single one may hold stars, joint ones may not.
type Allowed struct {
	Fields []string
	Tuples [][]json.RawMessage
}

// ErrNoValue is returned where nothing that is allowed satisfies the schema: no document would pass it.
var ErrNoValue = errors.New("narrow: no allowed value satisfies the schema")

// Narrow returns a copy of the schema's JSON that allows only the given values, for the eyes of a planner: one field gets
// an enum, several get a oneOf of tuples of consts. Whatever the schema says besides stays, and what the values are said
// about becomes required. Values are sorted, so the same sets give the same bytes. It is an error where a field is
// unknown, secret or without an allowed value, and where a value is not acceptable JSON.
func Narrow(s *Schema, allowed []Allowed) (json.RawMessage, error) {
	w := narrower{root: s.doc.Tree(), secrets: s.secrets}
	root, ok := w.root.(map[string]any)
	if !ok {
		return nil, errors.New("narrow: the schema does not describe an object")
	}
	for _, a := range allowed {
		tuples, err := w.tuples(s, a)
		if err != nil {
			return nil, err
		}
		if len(a.Fields) == 1 {
			root, err = w.single(root, a.Fields[0], tuples)
		} else {
			root, err = w.joint(root, a.Fields, tuples)
		}
		if err != nil {
			return nil, err
		}
	}
	return json.RawMessage(canonicalText(root)), nil
}

type narrower struct {
	root    any
	secrets []string
}

// tuples reads, sorts and thins out the values.
func (w *narrower) tuples(s *Schema, a Allowed) ([][]any, error) {
	if len(a.Fields) == 0 {
		return nil, errors.New("narrow: no fields")
	}
	for _, f := range a.Fields {
		if _, err := s.follow(f); err != nil {
			return nil, fmt.Errorf("narrow: %w", err)
		}
		if slices.ContainsFunc(w.secrets, func(s string) bool { return within(s, f) || within(f, s) }) {
			return nil, fmt.Errorf("narrow: field %s is secret", quote(f))
		}
	}
	var out [][]any
	for i, t := range a.Tuples {
		if len(t) != len(a.Fields) {
			return nil, fmt.Errorf("narrow: tuple %d has %d values for %d fields", i, len(t), len(a.Fields))
		}
		values := make([]any, len(t))
		for j, raw := range t {
			v, fault := parseTree(raw, 0)
			if fault != nil {
				return nil, fmt.Errorf("narrow: value %d of tuple %d: %w", j, i, fault)
			}
			values[j] = v
		}
		out = append(out, values)
	}
	slices.SortFunc(out, func(a, b []any) int { return slices.CompareFunc(a, b, compareValues) })
	out = slices.CompactFunc(out, func(a, b []any) bool { return slices.CompareFunc(a, b, compareValues) == 0 })
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: no value of %s is given", ErrNoValue, quote(a.Fields[0]))
	}
	return out, nil
}

// within reports whether the field at path is the one at above or inside it.
func within(path, above string) bool { return path == above || strings.HasPrefix(path, above+".") }

// compareValues orders by type, then numbers by value and everything else by its text.
func compareValues(a, b any) int {
	ta, tb := typeOf(a), typeOf(b)
	if ta == typeInteger {
		ta = typeNumber
	}
	if tb == typeInteger {
		tb = typeNumber
	}
	if ta != tb {
		return cmp.Compare(ta, tb)
	}
	if x, ok := a.(json.Number); ok {
		return rat(x).Cmp(rat(b.(json.Number)))
	}
	if x, ok := a.(string); ok {
		return cmp.Compare(x, b.(string))
	}
	return cmp.Compare(canonicalText(a), canonicalText(b))
}

func (w *narrower) single(root map[string]any, path string, tuples [][]any) (map[string]any, error) {
	segments, err := splitPath(path)
	if err != nil {
		return nil, err
	}
	values := make([]any, len(tuples))
	for i, t := range tuples {
		values[i] = t[0]
	}
	return w.enum(root, segments, values)
}

// enum rewrites copies along the path. Where the way leads through a reference or a branch, the constraint is laid over
// the schema by allOf instead.
func (w *narrower) enum(m map[string]any, rest []segment, values []any) (map[string]any, error) {
	if len(rest) == 0 {
		return enumOf(m, values)
	}
	out := maps.Clone(m)
	keyword, child := w.step(m, rest[0])
	if child == nil {
		over, err := w.enum(map[string]any{}, nil, values)
		if err != nil {
			return nil, err
		}
		return also(out, overlay(rest, over)), nil
	}
	narrowed, err := w.enum(child, rest[1:], values)
	if err != nil {
		return nil, err
	}
	if keyword == "properties" {
		props := maps.Clone(m["properties"].(map[string]any))
		props[rest[0].name] = narrowed
		out["properties"] = props
		return demand(out, rest[0].name), nil
	}
	out[keyword] = narrowed
	return out, nil
}

// step finds the schema of a segment where it is written in m itself.
func (w *narrower) step(m map[string]any, seg segment) (keyword string, child map[string]any) {
	if !seg.any {
		props, _ := m["properties"].(map[string]any)
		child, _ = props[seg.name].(map[string]any)
		return "properties", child
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if child, ok := m[keyword].(map[string]any); ok {
			return keyword, child
		}
	}
	return "", nil
}

// enumOf adds the values to a schema, those of its own enum or const taken into account.
func enumOf(m map[string]any, values []any) (map[string]any, error) {
	out := maps.Clone(m)
	if _, isRef := m["$ref"]; isRef {
		return also(out, map[string]any{"enum": values}), nil
	}
	var n node
	n.raw = m
	(&compiler{}).assertions(&n)
	if n.enum != nil {
		values = slices.DeleteFunc(slices.Clone(values), func(v any) bool { return !n.enum[canonicalText(v)] })
	}
	if len(values) == 0 {
		return nil, ErrNoValue
	}
	delete(out, "const")
	out["enum"] = values
	return out, nil
}

// overlay says the same of a place below without what the schema says on the way.
func overlay(rest []segment, inner map[string]any) map[string]any {
	for _, seg := range slices.Backward(rest) {
		if seg.any {
			inner = map[string]any{"items": inner, "additionalProperties": inner}
			continue
		}
		inner = map[string]any{"properties": map[string]any{seg.name: inner}, "required": []any{seg.name}}
	}
	return inner
}

// demand makes a property required.
func demand(m map[string]any, name string) map[string]any {
	list, _ := m["required"].([]any)
	if !slices.Contains(list, any(name)) {
		m["required"] = append(slices.Clone(list), any(name))
	}
	return m
}

// also adds a schema to those that must hold too. A reference moves in among them, since up to draft-07 nothing counts
// beside it; its $defs stay where references expect them.
func also(m map[string]any, more map[string]any) map[string]any {
	list, _ := m["allOf"].([]any)
	list = slices.Clone(list)
	if ref, isRef := m["$ref"]; isRef {
		delete(m, "$ref")
		list = append(list, map[string]any{"$ref": ref})
	}
	m["allOf"] = append(list, more)
	return m
}

func (w *narrower) joint(root map[string]any, fields []string, tuples [][]any) (map[string]any, error) {
	alternatives := make([]any, len(tuples))
	for i, t := range tuples {
		alternative := map[string]any{}
		for j, path := range fields {
			segments, err := splitPath(path)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(segments, func(s segment) bool { return s.any }) {
				return nil, fmt.Errorf("narrow: joint field %s must not hold a star", quote(path))
			}
			constant(alternative, segments, t[j])
		}
		alternatives[i] = alternative
	}
	out := maps.Clone(root)
	if _, taken := root["oneOf"]; taken {
		return also(out, map[string]any{"oneOf": alternatives}), nil
	}
	if _, isRef := root["$ref"]; isRef {
		return also(out, map[string]any{"oneOf": alternatives}), nil
	}
	out["oneOf"] = alternatives
	return out, nil
}

// constant demands a value at a path of a schema under construction.
func constant(m map[string]any, rest []segment, v any) {
	if len(rest) == 0 {
		m["const"] = v
		return
	}
	props, ok := m["properties"].(map[string]any)
	if !ok {
		props = map[string]any{}
		m["properties"] = props
	}
	child, ok := props[rest[0].name].(map[string]any)
	if !ok {
		child = map[string]any{}
		props[rest[0].name] = child
	}
	demand(m, rest[0].name)
	constant(child, rest[1:], v)
}

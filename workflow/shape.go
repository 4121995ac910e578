package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shape is what a JSON Schema says about the structure of a value, as far as it says it plainly: types, enumerations,
// properties, what is required, elements. Whatever it says otherwise (anyOf, patterns, conditions) is left to the validator
// at the time it runs: the shape is then open.
type shape struct {
	root     map[string]any // for local references
	s        map[string]any // nil: anything
	closed   bool           // there can be no such value
	optional bool           // on the way there was something that need not be there
	fuel     *int           // how many members are still compared: schemas may be recursive
}

func parseSchema(text json.RawMessage) shape {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return shape{}
	}
	root, _ := v.(map[string]any)
	fuel := 1000
	return shape{root: root, s: root, closed: v == false, fuel: &fuel}.resolved()
}

// resolved follows local references, as far as they do not go round in circles.
func (h shape) resolved() shape {
	for range 16 {
		ref, ok := h.s["$ref"].(string)
		if !ok {
			return h
		}
		h.s = h.local(ref)
	}
	h.s = nil
	return h
}

func (h shape) local(ref string) map[string]any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	here := h.root
	for _, seg := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if seg != "" {
			here, _ = here[strings.NewReplacer("~1", "/", "~0", "~").Replace(seg)].(map[string]any)
		}
	}
	return here
}

// sub is the shape of a schema inside.
func (h shape) sub(v any) shape {
	s, _ := v.(map[string]any)
	h.s, h.closed = s, v == false
	return h.resolved()
}

// at follows a path.
func (h shape) at(path []string) shape {
	for _, seg := range path {
		if h.closed || h.s == nil {
			return h
		}
		h = h.step(seg)
	}
	return h
}

func (h shape) step(seg string) shape {
	types := h.types()
	if isIndex(seg) && (types == nil || slices.Contains(types, "array")) {
		h = h.sub(h.s["items"])
		h.optional = true
		return h
	}
	if types != nil && !slices.Contains(types, "object") {
		h.closed = true
		return h
	}
	optional := h.optional || !slices.Contains(h.required(), seg)
	props, _ := h.s["properties"].(map[string]any)
	switch p, known := props[seg]; {
	case known:
		h = h.sub(p)
	case h.s["additionalProperties"] == false && h.s["patternProperties"] == nil && h.plain():
		h.closed = true
	default:
		h.s = nil
	}
	h.optional = optional
	return h
}

func isIndex(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// plain reports whether nothing of the schema says more about its members than what is read here.
func (h shape) plain() bool {
	for _, word := range []string{"allOf", "anyOf", "oneOf", "if", "$ref", "$dynamicRef", "dependentSchemas"} {
		if h.s[word] != nil {
			return false
		}
	}
	return true
}

// types are the JSON types of the values, nil for any.
func (h shape) types() (out []string) {
	switch t := h.s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		for _, v := range t {
			if s, ok := v.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	for _, v := range h.values() {
		out = append(out, typeOf(v))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			return "integer"
		}
		return "number"
	}
	return "object"
}

// values are those of an enumeration, nil where there is none.
func (h shape) values() []any {
	if list, ok := h.s["enum"].([]any); ok {
		return list
	}
	if v, ok := h.s["const"]; ok {
		return []any{v}
	}
	return nil
}

func (h shape) required() (out []string) {
	list, _ := h.s["required"].([]any)
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func (h shape) properties() map[string]any {
	p, _ := h.s["properties"].(map[string]any)
	return p
}

// takes reports whether a value of a type may satisfy one of the types.
func takes(types []string, t string) bool {
	return types == nil || slices.Contains(types, t) || t == "integer" && slices.Contains(types, "number")
}

// into says why no value of h can go into another shape, and why some cannot.
func (h shape) into(to shape, at string) (hard, soft string) {
	if h.s == nil || to.s == nil {
		return "", ""
	}
	where := ""
	if at != "" {
		where = fmt.Sprintf("%q ", at)
	}
	if from, want := h.types(), to.types(); from != nil && want != nil {
		fit := slices.DeleteFunc(slices.Clone(from), func(t string) bool {
			return !takes(want, t) && !(t == "number" && slices.Contains(want, "integer"))
		})
		exact := !slices.ContainsFunc(from, func(t string) bool { return !takes(want, t) })
		text := fmt.Sprintf("%sis %s, where %s is wanted", where, strings.Join(from, " or "), strings.Join(want, " or "))
		switch {
		case len(fit) == 0:
			return text, ""
		case !exact:
			soft = text
		}
	}
	if a, b := h.values(), to.values(); a != nil && b != nil {
		out := outside(a, b)
		text := fmt.Sprintf("%smay be %s, where one of %s is wanted", where, list(out), list(b))
		switch {
		case len(out) == len(a):
			return text, ""
		case len(out) > 0:
			soft = text
		}
	}
	return h.members(to, at, soft)
}

func (h shape) members(to shape, at, soft string) (string, string) {
	for _, name := range slices.Sorted(maps.Keys(to.properties())) {
		mine, theirs := h.step(name), to.step(name)
		path := strings.TrimPrefix(at+"."+name, ".")
		required := slices.Contains(to.required(), name)
		switch {
		case mine.closed && required:
			return fmt.Sprintf("%q is required and not there", path), ""
		case mine.closed || *h.fuel <= 0 || strings.Count(path, ".") > 16:
			continue
		case required && !slices.Contains(h.required(), name) && soft == "":
			soft = fmt.Sprintf("%q is required and need not be there", path)
		}
		*h.fuel--
		hard, s := mine.into(theirs, path)
		if hard != "" {
			return hard, ""
		}
		if soft == "" {
			soft = s
		}
	}
	return "", soft
}

// refuses says why a constant cannot satisfy the shape, "" where it can.
func (h shape) refuses(constant json.RawMessage) string {
	if len(constant) == 0 || h.s == nil {
		return ""
	}
	d := json.NewDecoder(bytes.NewReader(constant))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return "wants JSON"
	}
	if want := h.types(); !takes(want, typeOf(v)) {
		return "wants " + strings.Join(want, " or ")
	}
	if all := h.values(); all != nil && len(outside([]any{v}, all)) > 0 {
		return "wants one of " + list(all)
	}
	return ""
}

// outside returns the values of a that are not among b.
func outside(a, b []any) (out []any) {
	for _, v := range a {
		if !slices.ContainsFunc(b, func(w any) bool { return text(v) == text(w) }) {
			out = append(out, v)
		}
	}
	return out
}

func text(v any) string {
	t, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(t)
}

func list(values []any) string {
	var parts []string
	for _, v := range values {
		parts = append(parts, text(v))
	}
	return strings.Join(parts, ", ")
}

// unmapped returns the required members to which a mapping writes nothing.
func (h shape) unmapped(m Mapping, at string) (out []string) {
	if _, whole := m[wholeDocument]; whole {
		return nil
	}
	for _, name := range h.required() {
		path := strings.TrimPrefix(at+"."+name, ".")
		if _, mapped := m[path]; mapped {
			continue
		}
		below := false
		for _, p := range sorted(m) {
			below = below || strings.HasPrefix(p, path+".")
		}
		if !below {
			out = append(out, path)
			continue
		}
		out = append(out, h.step(name).unmapped(m, path)...)
	}
	return out
}

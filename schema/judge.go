package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xeipuuv/gojsonschema"
)

// own judges by the compiled schema first and puts what it accepts to gojsonschema as well.
type own struct {
	root   *node
	second *gojson
	limit  int // of the first judge's steps
}

// maxSecond bounds the documents that are put to the second judge, by the steps that the first took: gojsonschema renders
// a text for every fault of every branch, and cannot be stopped.
const maxSecond = 20_000

func newOwn(tree any) (*own, error) {
	second, err := newGojson(tree)
	if err != nil {
		return nil, err
	}
	root := compile(tree)
	if !mayWiden(root) {
		second = nil
	}
	return &own{root: root, second: second, limit: maxSteps}, nil
}

// mayWiden reports whether the schema without its uniqueItems holds of every document that the schema holds of, which is
// not so where one stands below a not, an if or a oneOf.
func mayWiden(root *node) bool {
	seen := map[[2]any]bool{}
	var ok func(n *node, turned bool) bool
	ok = func(n *node, turned bool) bool {
		if n == nil || seen[[2]any{n, turned}] {
			return true
		}
		seen[[2]any{n, turned}] = true
		if n.unique && turned {
			return false
		}
		below, turning := n.children()
		for _, m := range below {
			if !ok(m, turned) {
				return false
			}
		}
		for _, m := range turning {
			if !ok(m, true) {
				return false
			}
		}
		return true
	}
	return ok(root, false)
}

// children lists the schemas inside n: those that n holds of more for, where they hold of more, and the others.
func (n *node) children() (widening, turning []*node) {
	widening = slices.Concat([]*node{n.ref, n.then, n.els, n.additional, n.items, n.rest, n.contains, n.propertyNames},
		n.allOf, n.anyOf, n.tuple)
	for _, name := range n.names {
		widening = append(widening, n.props[name])
	}
	for _, p := range n.patterns {
		widening = append(widening, p.node)
	}
	for _, d := range n.dependencies {
		widening = append(widening, d.node)
	}
	return widening, append([]*node{n.not, n.ifs}, n.oneOf...)
}

func (j *own) judge(tree any) (faults []fault) {
	defer recoverFault(&faults)
	c := checker{limit: j.limit}
	ok, done := c.run(j.root, tree)
	switch {
	case !done:
		return tooManySteps()
	case c.more > 0:
		return append(c.faults, fault{"", fmt.Sprintf("and %d more faults", c.more)})
	case !ok && len(c.faults) == 0: // not reached; a verdict without a reason must not pass for consent
		return []fault{{"", "does not satisfy the schema"}}
	case !ok || j.second == nil || c.steps > maxSecond:
		return c.faults
	}
	return j.second.judge(tree)
}

func tooManySteps() []fault {
	return []fault{{"", "takes too many steps to check; use a smaller input"}}
}

// recoverFault makes a refusal of a panic: what cannot be judged does not pass.
func recoverFault(faults *[]fault) {
	if r := recover(); r != nil {
		*faults = []fault{{"", clip(fmt.Sprintf("cannot be validated: %v", r), maxPointer)}}
	}
}

// gojson is gojsonschema on a schema equivalent to the declared one.
type gojson struct{ schema *gojsonschema.Schema }

func newGojson(tree any) (j *gojson, err error) {
	defer func() {
		if r := recover(); r != nil {
			j, err = nil, fmt.Errorf("schema cannot be compiled: %v", r)
		}
	}()
	w := rewriter{root: tree, index: map[string]int{}}
	w.reference("")
	for i := 0; i < len(w.places); i++ {
		target, _ := lookup(tree, w.places[i])
		w.definitions = append(w.definitions, w.schema(target))
	}
	defs := map[string]any{}
	for i, d := range w.definitions {
		defs["d"+strconv.Itoa(i)] = d
	}
	loader := gojsonschema.NewSchemaLoader()
	loader.Draft, loader.AutoDetect = gojsonschema.Draft7, false
	s, err := loader.Compile(gojsonschema.NewGoLoader(map[string]any{"$ref": "#/definitions/d0", "definitions": defs}))
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &gojson{s}, nil
}

func (j *gojson) judge(tree any) (faults []fault) {
	defer recoverFault(&faults)
	result, err := j.schema.Validate(gojsonschema.NewRawLoader(tree))
	if err != nil {
		return []fault{{"", err.Error()}}
	}
	for _, e := range result.Errors() {
		// No name holds an invalid byte, so it separates them.
		tokens := strings.Split(e.Context().String("\xff"), "\xff")[1:]
		for i, t := range tokens {
			tokens[i] = "/" + pointerToken(t)
		}
		faults = append(faults, fault{clip(strings.Join(tokens, ""), maxPointer), clip(e.Description(), maxPointer)})
	}
	slices.SortFunc(faults, func(a, b fault) int {
		return strings.Compare(a.place+"\xff"+a.text, b.place+"\xff"+b.text)
	})
	faults = slices.Compact(faults)
	return faults[:min(len(faults), maxFaults)]
}

// rewriter writes a schema for gojsonschema that holds of the same documents: annotations are left out, references
// become definitions with plain names, formats are ours, and values with numbers in them, which gojsonschema would
// compare as floats, become exact bounds. uniqueItems, which it would compare as floats too and in more than linear time,
// is left out: the schema then holds of more documents, and the first judge has seen to the rest (see mayWiden).
type rewriter struct {
	root        any
	index       map[string]int
	places      []string
	definitions []any
}

func (w *rewriter) reference(place string) string {
	i, ok := w.index[place]
	if !ok {
		i = len(w.places)
		w.index[place] = i
		w.places = append(w.places, place)
	}
	return "#/definitions/d" + strconv.Itoa(i)
}

func (w *rewriter) schema(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	if ref, ok := m["$ref"].(string); ok {
		place, _ := refPlace(ref)
		return map[string]any{"$ref": w.reference(place)}
	}
	out := map[string]any{}
	var all []any
	for _, name := range sortedNames(m) {
		switch v := m[name]; name {
		case "$comment", "title", "description", "$schema", "$id", "default", "examples", "deprecated", "readOnly",
			"writeOnly", "$defs", "definitions", "uniqueItems":
		case "not", "if", "then", "else", "additionalProperties", "propertyNames", "additionalItems", "contains":
			out[name] = w.schema(v)
		case "allOf":
			for _, b := range v.([]any) {
				all = append(all, w.schema(b))
			}
		case "anyOf", "oneOf":
			out[name] = w.list(v.([]any))
		case "items":
			if list, ok := v.([]any); ok {
				out[name] = w.list(list)
			} else {
				out[name] = w.schema(v)
			}
		case "properties", "patternProperties", "dependencies":
			out[name] = w.members(v.(map[string]any))
		case "format":
			out[name] = judgeFormat + v.(string)
		case "const":
			all = append(all, exactly(v))
		case "enum":
			var alternatives []any
			for _, e := range v.([]any) {
				alternatives = append(alternatives, exactly(e))
			}
			all = append(all, map[string]any{"anyOf": alternatives})
		default:
			out[name] = v
		}
	}
	if all != nil {
		out["allOf"] = all
	}
	return out
}

func (w *rewriter) list(list []any) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = w.schema(v)
	}
	return out
}

func (w *rewriter) members(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for name, v := range m {
		if isSchema(v) {
			v = w.schema(v)
		}
		out[name] = v
	}
	return out
}

// exactly returns a schema that holds of v alone, without a const that holds a number.
func exactly(v any) map[string]any {
	switch v := v.(type) {
	case json.Number:
		return map[string]any{"type": "number", "minimum": v, "maximum": v}
	case []any:
		items := make([]any, len(v))
		for i, e := range v {
			items[i] = exactly(e)
		}
		n := json.Number(strconv.Itoa(len(v)))
		out := map[string]any{"type": "array", "minItems": n, "maxItems": n}
		if len(items) > 0 {
			out["items"] = items
		}
		return out
	case map[string]any:
		props, required := map[string]any{}, []any{}
		for _, name := range sortedNames(v) {
			props[name], required = exactly(v[name]), append(required, name)
		}
		return map[string]any{"type": "object", "properties": props, "required": required, "additionalProperties": false}
	}
	return map[string]any{"const": v}
}

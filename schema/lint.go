package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// keyword says what the value of a keyword must be and for which types it means anything (0: for all).
type keyword struct {
	value func(l *linter, place string, v any)
	types typeSet
}

// keywords are those that our declarations may use. Everything here is enforced or an annotation; doc/schema.md is this
// table, walked by a test.
var keywords map[string]keyword

// refused are keywords that exist but that gojsonschema ignores, with the way out.
var refused = map[string]string{
	"$anchor":               `refer to places by JSON pointer: "$ref": "#/$defs/name"`,
	"$dynamicAnchor":        `use "$ref" to a place under "$defs"`,
	"$dynamicRef":           `use "$ref" to a place under "$defs"`,
	"$recursiveAnchor":      `use "$ref" to a place under "$defs"`,
	"$recursiveRef":         `use "$ref" to a place under "$defs"`,
	"$vocabulary":           "leave it out",
	"contentEncoding":       `use "format": "base64"`,
	"contentMediaType":      "say it in the description",
	"contentSchema":         "declare the content as properties instead of as text",
	"dependentRequired":     `use "dependencies" with a list of names`,
	"dependentSchemas":      `use "dependencies" with a schema`,
	"maxContains":           `use "contains", which asks for at least one`,
	"minContains":           `use "contains", which asks for at least one`,
	"prefixItems":           `use "items" with a list of schemas`,
	"unevaluatedItems":      `use "additionalItems": false`,
	"unevaluatedProperties": `use "additionalProperties": false`,
	"nullable":              `use "type": ["…", "null"]`,
	"id":                    `use "$id", at the root`,
}

func init() { // not an initialiser: the table and the linter refer to each other
	annotation := keyword{value: func(*linter, string, any) {}}
	word := keyword{value: (*linter).word}
	flag := keyword{value: (*linter).flag}
	schema := func(t typeSet) keyword { return keyword{(*linter).schema, t} }
	schemas := func(t typeSet) keyword { return keyword{(*linter).schemaMap, t} }
	list := keyword{value: (*linter).schemaList}
	counts := func(t typeSet) keyword { return keyword{(*linter).count, t} }
	number := keyword{(*linter).number, typeNumber | typeInteger}
	keywords = map[string]keyword{
		"$comment": word, "title": word, "description": word, "$schema": {value: (*linter).dialect},
		"$id": {value: (*linter).id}, "default": annotation, "examples": annotation,
		"deprecated": flag, "readOnly": flag, "writeOnly": flag,
		"$ref": {value: (*linter).ref}, "$defs": schemas(0), "definitions": schemas(0),
		"type": {value: (*linter).typ}, "enum": {value: (*linter).enum}, "const": annotation,
		"allOf": list, "anyOf": list, "oneOf": list, "not": schema(0), "if": schema(0), "then": schema(0), "else": schema(0),
		"properties": schemas(typeObject), "patternProperties": {(*linter).patternMap, typeObject},
		"additionalProperties": schema(typeObject), "propertyNames": schema(typeObject),
		"required": {(*linter).names, typeObject}, "dependencies": {(*linter).dependencies, typeObject},
		"minProperties": counts(typeObject), "maxProperties": counts(typeObject),
		"items": {(*linter).items, typeArray}, "additionalItems": schema(typeArray), "contains": schema(typeArray),
		"minItems": counts(typeArray), "maxItems": counts(typeArray), "uniqueItems": {(*linter).flag, typeArray},
		"minLength": counts(typeString), "maxLength": counts(typeString), "pattern": {(*linter).pattern, typeString},
		"format":  {value: (*linter).format},
		"minimum": number, "maximum": number, "exclusiveMinimum": number, "exclusiveMaximum": number,
		"multipleOf": {(*linter).positive, typeNumber | typeInteger},
	}
}

// maxPlaces bounds the schemas inside a declared one.
const maxPlaces = 10_000

// annotations may stand beside a $ref: they constrain nothing.
var annotations = []string{"$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
	"$schema", "$id", "$defs", "definitions"}

// linter walks a schema of our own declarations and collects every fault.
type linter struct {
	root   any
	places map[string]bool // where schemas are
	refs   map[string]string
	faults []error
}

// lint reports every keyword of a declared schema that would not be enforced, and where.
func lint(root any) error {
	l := &linter{root: root, places: map[string]bool{}, refs: map[string]string{}}
	l.schema("", root)
	for _, place := range sortedNames(l.refs) {
		if !l.places[l.refs[place]] {
			l.fault(place+"/$ref", "there is no schema at #%s", l.refs[place])
		}
	}
	if len(l.faults) == 0 {
		l.progress()
	}
	return errors.Join(l.faults...)
}

func (l *linter) fault(place, format string, args ...any) {
	if len(l.faults) < maxFaults {
		l.faults = append(l.faults, fmt.Errorf("schema at #%s: %s", clip(place, maxPointer), fmt.Sprintf(format, args...)))
	}
}

func (l *linter) schema(place string, v any) {
	if l.places[place] = true; len(l.places) > maxPlaces {
		if len(l.places) == maxPlaces+1 {
			l.fault(place, "more than %d schemas in one", maxPlaces)
		}
		return
	}
	m, ok := v.(map[string]any)
	if !ok {
		if _, ok := v.(bool); !ok {
			l.fault(place, "want a schema: an object, true or false")
		}
		return
	}
	types := l.types(m)
	for _, name := range sortedNames(m) {
		at := place + "/" + pointerToken(name)
		k, known := keywords[name]
		switch {
		case !known:
			l.unknown(at, name)
			continue
		case k.types != 0 && types != 0 && k.types&types == 0:
			l.fault(at, "keyword %s means nothing for type %s", quote(name), strings.Join(types.list(), " or "))
		}
		k.value(l, at, m[name])
	}
	l.together(place, m)
}

func (l *linter) types(m map[string]any) typeSet {
	var n node
	n.raw = m
	(&compiler{}).assertions(&n)
	return n.types
}

func (l *linter) unknown(place, name string) {
	if way, ok := refused[name]; ok {
		l.fault(place, "keyword %s would be ignored by the validator; %s", quote(name), way)
		return
	}
	l.fault(place, "unknown keyword %s%s", quote(name), didYouMean(name, sortedNames(keywords)))
}

// together reports keywords that would be ignored because of another that is there or missing.
func (l *linter) together(place string, m map[string]any) {
	have := func(name string) bool { _, ok := m[name]; return ok }
	if have("$ref") {
		for _, name := range sortedNames(m) {
			if name != "$ref" && !slices.Contains(annotations, name) {
				l.fault(place+"/"+pointerToken(name), "keyword %s beside $ref would be ignored; put both into allOf", quote(name))
			}
		}
	}
	for _, name := range []string{"then", "else"} {
		if have(name) && !have("if") {
			l.fault(place+"/"+name, "keyword %q without if would be ignored", name)
		}
	}
	if have("if") && !have("then") && !have("else") {
		l.fault(place+"/if", "keyword \"if\" without then or else would be ignored")
	}
	if _, tuple := m["items"].([]any); have("additionalItems") && !tuple {
		l.fault(place+"/additionalItems", "keyword \"additionalItems\" would be ignored: items is not a list of schemas")
	}
	if more, ok := m["additionalProperties"].(bool); ok && !more && !have("patternProperties") {
		props, _ := m["properties"].(map[string]any)
		list, _ := m["required"].([]any)
		for i, name := range texts(list) {
			if _, ok := props[name]; !ok {
				l.fault(place+"/required/"+strconv.Itoa(i), "%s is required but is not a property%s", quote(name), didYouMean(name, sortedNames(props)))
			}
		}
	}
}

func (l *linter) word(place string, v any) {
	if _, ok := v.(string); !ok {
		l.fault(place, "want a string")
	}
}

func (l *linter) flag(place string, v any) {
	if _, ok := v.(bool); !ok {
		l.fault(place, "want true or false")
	}
}

var dialects = []string{"https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema",
	"http://json-schema.org/draft-07/schema", "http://json-schema.org/draft-06/schema"}

func (l *linter) dialect(place string, v any) {
	s, _ := v.(string)
	if place != "/$schema" || !slices.Contains(dialects, strings.TrimSuffix(s, "#")) {
		l.fault(place, "want one of %s, at the root only", strings.Join(dialects, ", "))
	}
}

func (l *linter) id(place string, v any) {
	if _, ok := v.(string); !ok || place != "/$id" {
		l.fault(place, "want a string, at the root only")
	}
}

func (l *linter) ref(place string, v any) {
	s, _ := v.(string)
	target, ok := refPlace(s)
	if !ok {
		l.fault(place, "reference %s is not local; want \"#/…\", nothing is fetched", quote(s))
		return
	}
	l.refs[strings.TrimSuffix(place, "/$ref")] = target
}

func (l *linter) typ(place string, v any) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	if len(list) == 0 {
		l.fault(place, "the list of types is empty")
	}
	var seen typeSet
	for _, t := range list {
		s, _ := t.(string)
		bit := typeNamed(s)
		switch {
		case bit == 0:
			l.fault(place, "unknown type %s%s", clip(canonicalText(t), maxShown), didYouMean(s, typeNames))
		case seen&bit != 0:
			l.fault(place, "type %q is given twice", s)
		}
		seen |= bit
	}
}

func (l *linter) enum(place string, v any) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		l.fault(place, "want a list of at least one value")
	}
	seen := map[string]bool{}
	for i, e := range list {
		text := canonicalText(e)
		if seen[text] {
			l.fault(place+"/"+strconv.Itoa(i), "the value is given twice")
		}
		seen[text] = true
	}
}

func (l *linter) number(place string, v any) {
	if _, ok := v.(json.Number); !ok {
		l.fault(place, "want a number")
	}
}

func (l *linter) positive(place string, v any) {
	if n, ok := v.(json.Number); !ok || rat(n).Sign() <= 0 {
		l.fault(place, "want a number above zero")
	}
}

func (l *linter) count(place string, v any) {
	if n := count(v); n == nil || *n < 0 {
		l.fault(place, "want a whole number from 0 on")
	}
}

func (l *linter) names(place string, v any) {
	list, ok := v.([]any)
	names := texts(list)
	if !ok || len(names) != len(list) {
		l.fault(place, "want a list of names")
		return
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(list) {
		l.fault(place, "a name is given twice")
	}
}

func (l *linter) pattern(place string, v any) {
	s, ok := v.(string)
	if !ok {
		l.fault(place, "want a string")
		return
	}
	l.re(place, s)
}

func (l *linter) re(place, s string) {
	if _, err := regexp.Compile(s); err != nil {
		l.fault(place, "pattern is not RE2, as Go's regexp takes it: %v", err)
	}
}

func (l *linter) format(place string, v any) {
	s, ok := v.(string)
	f, known := formats[s]
	if !ok || !known {
		l.fault(place, "unknown format %s%s; known are %s", clip(canonicalText(v), maxShown), didYouMean(s, formatNames()), strings.Join(formatNames(), ", "))
		return
	}
	parent, _ := lookup(l.root, place[:strings.LastIndexByte(place, '/')])
	m, _ := parent.(map[string]any)
	want := typeString
	if f.number != nil {
		want = typeNumber | typeInteger
	}
	if types := l.types(m); types != 0 && types&want == 0 {
		l.fault(place, "format %q means nothing for type %s", s, strings.Join(types.list(), " or "))
	}
}

func (l *linter) schemaMap(place string, v any) {
	m, ok := v.(map[string]any)
	if !ok {
		l.fault(place, "want an object of schemas")
	}
	for _, name := range sortedNames(m) {
		l.schema(place+"/"+pointerToken(name), m[name])
	}
}

func (l *linter) patternMap(place string, v any) {
	l.schemaMap(place, v)
	m, _ := v.(map[string]any)
	for _, name := range sortedNames(m) {
		l.re(place+"/"+pointerToken(name), name)
	}
}

func (l *linter) schemaList(place string, v any) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		l.fault(place, "want a list of at least one schema")
	}
	for i, e := range list {
		l.schema(place+"/"+strconv.Itoa(i), e)
	}
}

func (l *linter) items(place string, v any) {
	if _, ok := v.([]any); ok {
		l.schemaList(place, v)
		return
	}
	l.schema(place, v)
}

func (l *linter) dependencies(place string, v any) {
	m, ok := v.(map[string]any)
	if !ok {
		l.fault(place, "want an object")
	}
	for _, name := range sortedNames(m) {
		at := place + "/" + pointerToken(name)
		if _, ok := m[name].([]any); ok {
			l.names(at, m[name])
			continue
		}
		l.schema(at, m[name])
	}
}

// progress reports references that lead back to themselves without going into the document: no validator ends on them.
func (l *linter) progress() {
	c := compiler{root: l.root, nodes: map[string]*node{}}
	for _, place := range sortedNames(l.places) { // those under $defs too, used or not
		v, _ := lookup(l.root, place)
		c.at(place, v)
	}
	state := map[*node]int{} // 1 on the way, 2 done
	var walk func(n *node) bool
	walk = func(n *node) bool {
		if n == nil || state[n] == 2 {
			return false
		}
		if state[n] == 1 {
			return true
		}
		state[n] = 1
		defer func() { state[n] = 2 }()
		next := slices.Concat([]*node{n.ref, n.not, n.ifs, n.then, n.els}, n.allOf, n.anyOf, n.oneOf)
		for _, d := range n.dependencies {
			next = append(next, d.node)
		}
		return slices.ContainsFunc(next, walk)
	}
	for _, place := range sortedNames(c.nodes) {
		if walk(c.nodes[place]) {
			l.fault(place, "reference is cyclic: it leads back to itself without going into the document")
			return
		}
	}
}

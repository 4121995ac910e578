package schema

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/jsonschema"
)

// Reflect compiles the schema of a Go type as encoding/json decodes it, with invopop/jsonschema, so its tags hold:
//
//	type Order struct {
//		ID    string   `json:"orderId" jsonschema:"pattern=^ORD-[0-9]+$,description=the order"`
//		Kind  string   `json:"kind" jsonschema:"enum=gift,enum=own"`
//		Cents int64    `json:"cents" jsonschema:"minimum=1"`
//		Card  string   `json:"card" delta:"secret"`
//		Notes []string `json:"notes,omitempty" jsonschema:"maxItems=3"`
//	}
//
// A struct accepts its fields and nothing else. A field is required unless it says omitempty or omitzero. A pointer is as
// what it points to: it may be absent where it is optional, and null only with the tag jsonschema:"nullable". Integers
// must fit their Go type (formats int8 to uint64), []byte is base64 text, time.Time a date-time, any and json.RawMessage
// are any value. A type that implements encoding.TextUnmarshaler (for an output: TextMarshaler) is text. Recursive types become $defs.
//
// Errors name the field path and the type or tag: channels, functions, complex numbers, unsafe pointers, interfaces other
// than any, maps whose keys are not strings, types with a JSON form of their own and no JSONSchema method, the option
// ",string", two fields of one name or of names that differ only in case, tags that are unknown or mean nothing for the
// type. The tag delta:"secret" marks the field as a secret ("writeOnly": true); no other delta tag exists.
func Reflect(t reflect.Type) (*Schema, error) { return reflected(t, false) }

// ReflectOutput is Reflect for what a function returns, as encoding/json encodes it: pointers, slices, maps and byte
// slices may be null everywhere, since that is how a nil one is written.
func ReflectOutput(t reflect.Type) (*Schema, error) { return reflected(t, true) }

func reflected(t reflect.Type, output bool) (s *Schema, err error) {
	defer func() { // a JSONSchema method is user code
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("schema of %s: %v", t, r)
		}
	}()
	if t == nil {
		return nil, errors.New("schema of nil: want a type")
	}
	r := reflection{output: output, names: map[reflect.Type]string{}, state: map[reflect.Type]int{}}
	r.survey(t, "")
	if err := errors.Join(r.faults...); err != nil {
		return nil, err
	}
	tree, err := r.tree(t)
	if err != nil {
		return nil, err
	}
	s, err = declared(tree)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	return s, nil
}

// reflection makes the schema of one type.
type reflection struct {
	output    bool
	faults    []error
	state     map[reflect.Type]int    // structs: 1 on the way, 2 done
	names     map[reflect.Type]string // recursive types, by their names under $defs
	recursive []reflect.Type
}

var (
	timeType        = reflect.TypeFor[time.Time]()
	rawType         = reflect.TypeFor[json.RawMessage]()
	numberType      = reflect.TypeFor[json.Number]()
	ipType          = reflect.TypeFor[net.IP]()
	urlType         = reflect.TypeFor[url.URL]()
	schemaType      = reflect.TypeFor[interface{ JSONSchema() *jsonschema.Schema }]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
	marshalerType   = reflect.TypeFor[json.Marshaler]()
	textInType      = reflect.TypeFor[encoding.TextUnmarshaler]()
	textOutType     = reflect.TypeFor[encoding.TextMarshaler]()
)

func implements(t, face reflect.Type) bool {
	return t.Implements(face) || reflect.PointerTo(t).Implements(face)
}

// speaks reports whether the type has its own way with the direction that is reflected.
func (r *reflection) speaks(t, in, out reflect.Type) bool {
	if r.output {
		return implements(t, out)
	}
	return implements(t, in)
}

// isLeaf reports whether the schema of t is given by leaf, not by what t is made of.
func (r *reflection) isLeaf(t reflect.Type) bool { return r.leaf(t) != nil }

// leaf returns the schema of a type with a form of its own, nil for others.
func (r *reflection) leaf(t reflect.Type) *jsonschema.Schema {
	switch t {
	case timeType:
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case rawType:
		return &jsonschema.Schema{Title: ""}
	case numberType:
		return &jsonschema.Schema{Type: "number"}
	case ipType:
		return &jsonschema.Schema{Type: "string", AnyOf: []*jsonschema.Schema{{Format: "ipv4"}, {Format: "ipv6"}}}
	}
	switch {
	case t.Implements(schemaType):
		return nil // invopop calls it
	case r.speaks(t, textInType, textOutType) && !r.speaks(t, unmarshalerType, marshalerType):
		return &jsonschema.Schema{Type: "string"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return &jsonschema.Schema{Type: "string", Format: "base64"}
	}
	if format, ok := numberFormats[t.Kind()]; ok {
		kind := "integer"
		if t.Kind() == reflect.Float32 {
			kind = "number"
		}
		return &jsonschema.Schema{Type: kind, Format: format}
	}
	return nil
}

var numberFormats = map[reflect.Kind]string{
	reflect.Int: "int64", reflect.Int8: "int8", reflect.Int16: "int16", reflect.Int32: "int32", reflect.Int64: "int64",
	reflect.Uint: "uint64", reflect.Uint8: "uint8", reflect.Uint16: "uint16", reflect.Uint32: "uint32",
	reflect.Uint64: "uint64", reflect.Uintptr: "uint64", reflect.Float32: "float",
}

func (r *reflection) fault(path string, format string, args ...any) {
	if path == "" {
		path = "(the type itself)"
	}
	r.faults = append(r.faults, fmt.Errorf("field %s: %s", path, fmt.Sprintf(format, args...)))
}

// survey walks the type, reports what has no schema and finds what is recursive.
func (r *reflection) survey(t reflect.Type, path string) {
	switch {
	case t == urlType:
		r.fault(path, "type %s has no JSON form; use a string with format=uri", t)
		return
	case t.Implements(schemaType) || r.isLeaf(t):
		return
	case t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && r.speaks(t, unmarshalerType, marshalerType):
		r.fault(path, "type %s has a JSON form of its own; give it a method JSONSchema() *jsonschema.Schema", t)
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		r.survey(t.Elem(), path)
	case reflect.Slice, reflect.Array:
		r.nested(t, func() { r.survey(t.Elem(), join(path, "*")) })
	case reflect.Map:
		if t.Key().Kind() != reflect.String || implements(t.Key(), textInType) || implements(t.Key(), textOutType) {
			r.fault(path, "type %s: the keys of a map must be plain strings", t)
		}
		r.nested(t, func() { r.survey(t.Elem(), join(path, "*")) })
	case reflect.Struct:
		r.nested(t, func() { r.fields(t, path) })
	case reflect.Interface:
		if t.NumMethod() > 0 {
			r.fault(path, "type %s is an interface; only any has a schema", t)
		}
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer, reflect.Invalid:
		r.fault(path, "type %s has no JSON form", t)
	}
}

// nested surveys a type once and notes where it contains itself.
func (r *reflection) nested(t reflect.Type, inside func()) {
	switch r.state[t] {
	case 0:
		r.state[t] = 1
		inside()
		r.state[t] = 2
	case 1:
		if r.names[t] == "" {
			name := defName(t.Name())
			for n, base := 2, name; r.named(name); n++ {
				name = base + strconv.Itoa(n)
			}
			r.names[t] = name
			r.recursive = append(r.recursive, t)
		}
	}
}

func (r *reflection) named(name string) bool {
	for _, used := range r.names {
		if used == name {
			return true
		}
	}
	return false
}

// defName makes a name for $defs of a type's name, which holds brackets, dots and slashes where it is generic.
func defName(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' {
			return c
		}
		return '_'
	}, name)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// field is one member of a struct's JSON form.
type field struct {
	name   string
	at     string // where it is declared
	f      reflect.StructField
	secret bool
}

func (r *reflection) fields(t reflect.Type, path string) {
	seen := map[string]string{}
	for _, f := range r.members(t, path, map[reflect.Type]bool{}) {
		at := join(path, f.name)
		if other, dup := seen[fold(f.name)]; dup {
			r.fault(at, "is declared twice, as %s and %s; names must differ in more than case", other, f.at)
		}
		seen[fold(f.name)] = f.at
		r.tags(f.f, at)
		r.survey(f.f.Type, at)
	}
}

// members lists the fields as encoding/json and invopop see them, embedded structs opened.
func (r *reflection) members(t reflect.Type, path string, on map[reflect.Type]bool) []field {
	if on[t] {
		r.fault(path, "type %s embeds itself", t)
		return nil
	}
	on[t] = true
	defer delete(on, t)
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		if tag == "-" {
			continue
		}
		elem := f.Type
		if elem.Kind() == reflect.Pointer {
			elem = elem.Elem()
		}
		switch {
		case f.Anonymous && name == "" && elem.Kind() == reflect.Struct:
			if r.isLeaf(elem) || elem.Implements(schemaType) || implements(elem, unmarshalerType) || implements(elem, marshalerType) {
				r.fault(join(path, f.Name), "embedded type %s has a form of its own; give the field a json name", f.Type)
				continue
			}
			if f.Type.Kind() == reflect.Pointer && !f.IsExported() {
				r.fault(join(path, f.Name), "embedded pointer to the unexported type %s cannot be decoded", elem)
				continue
			}
			out = append(out, r.members(elem, path, on)...)
			continue
		case !f.IsExported():
			continue
		case name == "-":
			r.fault(join(path, f.Name), "a field cannot be named \"-\"")
			continue
		case name == "":
			name = f.Name
		}
		out = append(out, field{name: name, at: t.String() + "." + f.Name, f: f, secret: f.Tag.Get("delta") == "secret"})
	}
	return out
}

// tree reflects the type and everything recursive in it with invopop, and reads the result through the strict edge.
func (r *reflection) tree(t reflect.Type) (any, error) {
	root, err := r.invopop(t)
	if err != nil {
		return nil, err
	}
	defs := map[string]any{}
	for i := 0; i < len(r.recursive); i++ {
		d, err := r.invopop(r.recursive[i])
		if err != nil {
			return nil, err
		}
		defs[r.names[r.recursive[i]]] = d
	}
	if m, ok := root.(map[string]any); ok && len(defs) > 0 {
		m["$defs"] = defs
	}
	return root, nil
}

// invopop reflects one type, in which recursive ones below it are references. DoNotReference alone would never end on
// those, and without it the tags of a field whose type has a definition would be dropped.
func (r *reflection) invopop(t reflect.Type) (any, error) {
	whole := t
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	top := true
	// invopop finds the root again by its name: two types of one name must not be taken for each other.
	ids := map[reflect.Type]string{}
	unique := func(t reflect.Type) string {
		if ids[t] == "" {
			ids[t] = "T" + strconv.Itoa(len(ids))
		}
		return ids[t]
	}
	reflector := jsonschema.Reflector{
		Anonymous: true, ExpandedStruct: true, DoNotReference: true, Namer: unique,
		Mapper: func(m reflect.Type) *jsonschema.Schema {
			if name := r.names[m]; name != "" && !(top && m == t) {
				return &jsonschema.Schema{Ref: "#/$defs/" + name}
			}
			top = false
			return r.leaf(m)
		},
	}
	text, err := json.Marshal(reflector.ReflectFromType(t))
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	tree, fault := parseTree(text, DefaultLimit)
	if fault != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, fault)
	}
	if m, ok := tree.(map[string]any); ok {
		delete(m, "$schema")
	}
	return r.finish(whole, tree, true), nil
}

// finish walks the type and its schema together: references that have tags beside them are wrapped, secrets marked, and
// what Go writes as null is allowed to be null in an output.
func (r *reflection) finish(t reflect.Type, tree any, top bool) any {
	if t.Kind() == reflect.Pointer {
		return r.orNull(r.finish(t.Elem(), tree, top))
	}
	m, ok := tree.(map[string]any)
	if !ok {
		if tree == true {
			return map[string]any{}
		}
		return tree
	}
	if alternatives, ok := m["oneOf"].([]any); ok && len(m) == 1 && len(alternatives) == 2 { // the tag nullable
		alternatives[0] = r.finish(t, alternatives[0], top)
		return m
	}
	if _, isRef := m["$ref"]; isRef || r.names[t] != "" && !top {
		return r.orNil(t, wrapped(m))
	}
	if t.Implements(schemaType) || r.isLeaf(t) {
		return r.orNil(t, m)
	}
	switch t.Kind() {
	case reflect.Struct:
		r.finishFields(t, m)
	case reflect.Slice, reflect.Array:
		if items, ok := m["items"]; ok {
			m["items"] = r.finish(t.Elem(), items, false)
		}
	case reflect.Map:
		if more, ok := m["additionalProperties"]; ok {
			m["additionalProperties"] = r.finish(t.Elem(), more, false)
		}
	}
	return r.orNil(t, m)
}

func (r *reflection) finishFields(t reflect.Type, m map[string]any) {
	props, _ := m["properties"].(map[string]any)
	for _, f := range r.members(t, "", map[reflect.Type]bool{}) {
		p, ok := props[f.name]
		if !ok {
			continue
		}
		p = r.finish(f.f.Type, p, false)
		if f.secret {
			p = secretly(p)
		}
		props[f.name] = p
	}
}

// wrapped moves what stands beside a $ref out of its way.
func wrapped(m map[string]any) any {
	ref, ok := m["$ref"]
	if !ok || len(m) == 1 {
		return m
	}
	delete(m, "$ref")
	m["allOf"] = []any{map[string]any{"$ref": ref}}
	return m
}

func secretly(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	if _, isRef := m["$ref"]; isRef {
		m = map[string]any{"allOf": []any{m}}
	}
	m["writeOnly"] = true
	return m
}

func (r *reflection) orNil(t reflect.Type, v any) any {
	if k := t.Kind(); k == reflect.Slice || k == reflect.Map {
		return r.orNull(v)
	}
	return v
}

// orNull lets null through in an output.
func (r *reflection) orNull(v any) any {
	m, ok := v.(map[string]any)
	if !ok || !r.output || len(m) == 0 {
		return v
	}
	if list, ok := m["type"].([]any); ok && len(list) == 2 && list[1] == "null" {
		return v
	}
	name, typed := m["type"].(string)
	if _, combined := m["anyOf"]; !typed || combined {
		return map[string]any{"anyOf": []any{v, map[string]any{"type": "null"}}}
	}
	m["type"] = []any{name, "null"}
	if enum, ok := m["enum"].([]any); ok {
		m["enum"] = append(enum, nil)
	}
	return m
}

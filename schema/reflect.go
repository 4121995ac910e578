package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"

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
// must fit their Go type (formats int8 to uint64), decimals must come out of a float as they went in (float, double), []byte is base64 text, time.Time a date-time, any and json.RawMessage
// are any value. A type that implements encoding.TextUnmarshaler (for an output: TextMarshaler) is text. Recursive types become $defs.
//
// Errors name the field path and the type or tag: channels, functions, complex numbers, unsafe pointers, interfaces other
// than any, maps whose keys are not strings, types with a JSON form of their own and no JSONSchema method, the option
// ",string", two fields of one name or of names that differ only in case, tags that are unknown or mean nothing for the
// type. The tag delta:"secret" marks the field as a secret ("writeOnly": true); no other delta tag exists.
//
// The schema of a type is made once in a process.
func Reflect(t reflect.Type) (*Schema, error) { return once(t, false) }

// ReflectOutput is Reflect for what a function returns, as encoding/json encodes it: pointers, slices, maps and byte
// slices may be null everywhere, since that is how a nil one is written.
func ReflectOutput(t reflect.Type) (*Schema, error) { return once(t, true) }

// made holds the schemas of the types that were reflected. Schemas are immutable, and the runtime keeps types for ever too.
var made sync.Map // reflectedAs → *Schema

type reflectedAs struct {
	t      reflect.Type
	output bool
}

// once is reflected, remembered where it succeeds.
func once(t reflect.Type, output bool) (*Schema, error) {
	as := reflectedAs{t, output}
	if s, ok := made.Load(as); ok {
		return s.(*Schema), nil
	}
	s, err := reflected(t, output)
	if err != nil {
		return nil, err
	}
	first, _ := made.LoadOrStore(as, s)
	return first.(*Schema), nil
}

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
	if err := errors.Join(append(r.faults, err)...); err != nil {
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
	named := map[string]bool{}
	for _, f := range r.members(t, "", map[reflect.Type]bool{}) {
		p, ok := props[f.name]
		if !ok {
			r.fault(f.name, "the schema made of type %s does not have it", t)
			continue
		}
		p = r.finish(f.f.Type, p, false)
		if f.secret {
			p = secretly(p)
		}
		props[f.name] = p
		named[f.name] = true
	}
	for _, name := range sortedNames(props) {
		if !named[name] {
			r.fault(name, "the schema made of type %s has it, encoding/json does not", t)
		}
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

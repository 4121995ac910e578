package schema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/jsonschema"
)

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
		if t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64 {
			kind = "number"
		}
		return &jsonschema.Schema{Type: kind, Format: format}
	}
	return nil
}

var numberFormats = map[reflect.Kind]string{
	reflect.Int: "int64", reflect.Int8: "int8", reflect.Int16: "int16", reflect.Int32: "int32", reflect.Int64: "int64",
	reflect.Uint: "uint64", reflect.Uint8: "uint8", reflect.Uint16: "uint16", reflect.Uint32: "uint32",
	reflect.Uint64: "uint64", reflect.Uintptr: "uint64", reflect.Float32: "float", reflect.Float64: "double",
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
	fields := r.members(t, path, map[reflect.Type]bool{})
	dropped := map[string]bool{} // by encoding/json: it reads neither of two fields of one name
	for _, f := range fields {
		at := join(path, f.name)
		if other, dup := seen[fold(f.name)]; dup {
			r.fault(at, "is declared twice, as %s and %s; names must differ in more than case", other, f.at)
			dropped[fold(f.name)] = true
		}
		seen[fold(f.name)] = f.at
		r.tags(f.f, at)
		r.survey(f.f.Type, at)
	}
	for _, f := range fields {
		if !dropped[fold(f.name)] && !decodes(t, f.name) {
			r.fault(join(path, f.name), "encoding/json does not read %s.%s under this name; use letters, digits and plain punctuation in its json tag", t, f.f.Name)
		}
	}
}

// decodes reports whether encoding/json knows the name in a struct: a tag that it does not like it drops without a word,
// and the field would be absent from every input. It is asked, by a null, which changes nothing, so nobody's rules are
// repeated here. User code below it may refuse the null; then the name was known.
func decodes(t reflect.Type, name string) (known bool) {
	defer func() {
		if recover() != nil {
			known = true
		}
	}()
	text := append(appendString([]byte{'{'}, name), ":null}"...)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(reflect.New(t).Interface())
	return err == nil || !strings.Contains(err.Error(), "unknown field")
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

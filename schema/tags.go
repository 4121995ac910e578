package schema

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// What invopop reads from a jsonschema tag, by the type of the field. It drops what it does not know without a word, so
// each item is looked up here first.
var (
	tagAlways = []string{"title", "description", "type", "oneof_required", "anyof_required", "oneof_type", "anyof_type"}
	tagText   = []string{"minLength", "maxLength", "pattern", "format", "readOnly", "writeOnly", "default", "example", "enum"}
	tagNumber = []string{"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "default", "example", "enum"}
	tagList   = []string{"minItems", "maxItems", "uniqueItems", "default"}
	tagBool   = []string{"default"}
	tagFlags  = []string{"required", "nullable"}
)

// tags reports struct tags that would be ignored.
func (r *reflection) tags(f reflect.StructField, path string) {
	if tag, ok := f.Tag.Lookup("delta"); ok && tag != "secret" {
		r.fault(path, "unknown tag delta:%s%s; known is \"secret\"", quote(tag), didYouMean(tag, []string{"secret"}))
	}
	_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	for _, option := range strings.Split(options, ",") {
		if option == "string" {
			r.fault(path, "the json option \"string\" is not supported; the field's own type is")
		}
		if option == "inline" {
			r.fault(path, "encoding/json knows no option \"inline\"; embed the struct")
		}
	}
	tag := f.Tag.Get("jsonschema")
	if tag == "" {
		return
	}
	if tag == "-" {
		r.fault(path, "jsonschema:\"-\" hides a field that encoding/json still reads; use json:\"-\"")
		return
	}
	known := slices.Concat(tagAlways, r.tagsFor(f.Type))
	for _, item := range splitTag(tag) {
		name, value, hasValue := strings.Cut(item, "=")
		switch {
		case !hasValue && slices.Contains(tagFlags, name):
		case !hasValue:
			r.fault(path, "jsonschema tag item %s has no value%s", quote(item), didYouMean(name, slices.Concat(known, tagFlags)))
		case !slices.Contains(known, name):
			r.fault(path, "jsonschema tag %s is unknown or means nothing for type %s%s", quote(name), f.Type, didYouMean(name, known))
		case !tagValue(name, value, r.elemKind(f.Type)):
			r.fault(path, "jsonschema tag %s: %s is not a value for it", name, quote(value))
		}
	}
}

// splitTag splits at commas that no backslash escapes, as invopop does.
func splitTag(tag string) []string {
	var out []string
	start := 0
	for i := 0; i < len(tag); i++ {
		if tag[i] == ',' && (i == 0 || tag[i-1] != '\\') {
			out = append(out, tag[start:i])
			start = i + 1
		}
	}
	return append(out, tag[start:])
}

// tagsFor lists the items that mean something for a type.
func (r *reflection) tagsFor(t reflect.Type) []string {
	switch kind := r.jsonKind(t); kind {
	case "array":
		elem := r.elemKind(t)
		out := slices.Clone(tagList)
		switch elem {
		case "string":
			out = append(out, tagText...)
		case "number":
			out = append(out, tagNumber...)
		}
		return out
	case "string":
		return tagText
	case "number":
		return tagNumber
	case "boolean":
		return tagBool
	}
	return nil
}

func (r *reflection) jsonKind(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Implements(schemaType) || r.names[t] != "" {
		return ""
	}
	if leaf := r.leaf(t); leaf != nil {
		if leaf.Type == "integer" {
			return "number"
		}
		return leaf.Type
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Float64:
		return "number"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice, reflect.Array:
		return "array"
	}
	return ""
}

// elemKind is the kind of the elements of a list, and of anything else itself.
func (r *reflection) elemKind(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if r.jsonKind(t) == "array" {
		return r.jsonKind(t.Elem())
	}
	return r.jsonKind(t)
}

func tagValue(name, value, kind string) bool {
	switch name {
	case "minLength", "maxLength", "minItems", "maxItems":
		_, err := strconv.ParseUint(value, 10, 32)
		return err == nil
	case "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return isNumber(value)
	case "enum", "default", "example":
		return value != "" && (kind != "number" || isNumber(value)) && (kind != "boolean" || value == "true" || value == "false")
	case "uniqueItems":
		return value == "true"
	case "readOnly", "writeOnly":
		_, err := strconv.ParseBool(value)
		return err == nil
	}
	return value != ""
}

func isNumber(s string) bool {
	_, ok := splitNumber(s)
	return ok
}

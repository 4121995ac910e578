package delta

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"time"
)

// maxValueDepth bounds the walk through a value; only types with decoding of their own reach deeper than an input may.
const maxValueDepth = 200

var timeType = reflect.TypeFor[time.Time]()

// valueOf names a decoded input: equal values, as reflect.DeepEqual and time.Time.Equal see them, have one name however
// the input was spelt, and others have another. It is "" where a value cannot be named, because it holds functions or
// channels or goes too deep; then the text alone tells inputs apart. Fields that are zero do not count, so a field that a
// later release adds changes nothing, and neither does it whether an optional one is written out.
func valueOf(v any) string {
	w := valueWalk{}
	if !w.add(reflect.ValueOf(v), 0) {
		return ""
	}
	h := sha256.Sum256(w.out)
	return hex.EncodeToString(h[:16])
}

// valueWalk writes a value so that it could be read back by whoever knows its type.
type valueWalk struct{ out []byte }

func (w *valueWalk) num(n uint64) bool {
	w.out = binary.AppendUvarint(w.out, n)
	return true
}

func (w *valueWalk) text(s string) bool {
	w.num(uint64(len(s)))
	w.out = append(w.out, s...)
	return true
}

func (w *valueWalk) add(v reflect.Value, depth int) bool {
	if depth > maxValueDepth {
		return false
	}
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return w.num(1)
		}
		return w.num(0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return w.num(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return w.num(v.Uint())
	case reflect.Float32, reflect.Float64:
		return w.num(math.Float64bits(v.Float() + 0)) // -0 is 0
	case reflect.Complex64, reflect.Complex128:
		return w.num(math.Float64bits(real(v.Complex())+0)) && w.num(math.Float64bits(imag(v.Complex())+0))
	case reflect.String:
		return w.text(v.String())
	case reflect.Pointer, reflect.Interface:
		return w.held(v, depth)
	case reflect.Slice, reflect.Array:
		return w.list(v, depth)
	case reflect.Map:
		return w.entries(v, depth)
	case reflect.Struct:
		return w.fields(v, depth)
	}
	return v.IsZero() // a function, a channel
}

// held writes what a pointer or an interface holds, and of an interface the type.
func (w *valueWalk) held(v reflect.Value, depth int) bool {
	if v.IsNil() {
		return w.num(0)
	}
	w.num(1)
	if v.Kind() == reflect.Interface {
		t := v.Elem().Type()
		w.text(t.PkgPath() + " " + t.String())
	}
	return w.add(v.Elem(), depth+1)
}

func (w *valueWalk) list(v reflect.Value, depth int) bool {
	if v.Kind() == reflect.Slice {
		if v.Len() == 0 { // nothing, written or left out
			return w.num(0)
		}
		w.num(uint64(v.Len()) + 1)
		if v.Type().Elem().Kind() == reflect.Uint8 {
			w.out = append(w.out, v.Bytes()...)
			return true
		}
	}
	for i := range v.Len() {
		if !w.add(v.Index(i), depth+1) {
			return false
		}
	}
	return true
}

func (w *valueWalk) entries(v reflect.Value, depth int) bool {
	if v.Len() == 0 {
		return w.num(0)
	}
	var all [][]byte
	for i := v.MapRange(); i.Next(); {
		e := valueWalk{}
		if !e.add(i.Key(), depth+1) || !e.add(i.Value(), depth+1) {
			return false
		}
		all = append(all, e.out)
	}
	slices.SortFunc(all, bytes.Compare)
	w.num(uint64(len(all)) + 1)
	for _, e := range all {
		w.text(string(e))
	}
	return true
}

func (w *valueWalk) fields(v reflect.Value, depth int) bool {
	t := v.Type()
	if t == timeType {
		if !v.CanInterface() {
			return false
		}
		at := v.Interface().(time.Time)
		return w.num(uint64(at.Unix())) && w.num(uint64(at.Nanosecond()))
	}
	for i := range t.NumField() {
		if f := v.Field(i); !isZero(f) {
			w.text(t.Field(i).Name)
			if !w.add(f, depth+1) {
				return false
			}
		}
	}
	return w.text("")
}

// isZero reports what is as good as left out: a time that is none, in whatever zone, and a list or a map that is empty.
// Another spelling of the same call must not pass for another call.
func isZero(v reflect.Value) bool {
	switch {
	case v.Type() == timeType && v.CanInterface():
		return v.Interface().(time.Time).IsZero()
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Map:
		return v.Len() == 0
	case v.Kind() == reflect.Struct && v.Type() != timeType:
		for i := range v.NumField() {
			if !isZero(v.Field(i)) {
				return false
			}
		}
		return true
	}
	return v.IsZero()
}

var (
	unmarshalsJSON = reflect.TypeFor[json.Unmarshaler]()
	unmarshalsText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// decodesItself reports whether decoding a value of the type may run code that is not encoding/json's or of the types of
// time and numbers.
func decodesItself(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.PkgPath() {
	case "time", "math/big", "encoding/json":
		return false
	}
	if p := reflect.PointerTo(t); p.Implements(unmarshalsJSON) || p.Implements(unmarshalsText) {
		return true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return decodesItself(t.Elem(), seen)
	case reflect.Map:
		return decodesItself(t.Key(), seen) || decodesItself(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if decodesItself(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

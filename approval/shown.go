package approval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Bounds on what a person is shown of one input: more is not read.
const (
	MaxFields = 40  // fields, and differences
	MaxValue  = 200 // bytes of one value, and of one path
)

// Field is one value of an input as it is shown: nothing in it is invisible (see [action.Visible]), a secret is hidden.
type Field struct {
	Path   string `json:"path"`             // dotted, indices included: "items.0.sku"; "" is the whole input
	Value  string `json:"value"`            // JSON
	Size   int    `json:"size,omitempty"`   // bytes of the whole value, where it is cut
	Secret bool   `json:"secret,omitempty"` // Value says nothing
}

// Difference is one place in which two inputs differ, as it is shown. "" is a value that is not there.
type Difference struct {
	Path string `json:"path"`
	Was  string `json:"was,omitempty"`
	Now  string `json:"now,omitempty"`
}

// secretValue stands for what must not be shown.
const secretValue = "(secret)"

// Fields returns the values of an input in canonical form, in the order of their names, at most MaxFields, and how many
// more there are. Secrets are dotted paths, in which a star is any member or element: what is there is hidden, with the
// names of what is below it.
func Fields(input json.RawMessage, secrets []string) (fields []Field, more int, err error) {
	tree, err := parse(input)
	if err != nil {
		return nil, 0, err
	}
	hide := patterns(secrets)
	leaves(nil, tree, hide, func(at place, v any) {
		if len(fields) == MaxFields {
			more++
			return
		}
		text := textOf(v)
		f := Field{Path: at.String(), Value: shownValue(text), Secret: hide.cover(at)}
		switch {
		case f.Secret:
			f.Value = secretValue
		case len(text) > MaxValue:
			f.Size = len(text)
		}
		fields = append(fields, f)
	})
	return fields, more, nil
}

// Differences returns where two inputs in canonical form differ, at most MaxFields places, and how many more there are.
// That a secret differs is told, its values are not, nor in what of it they differ.
func Differences(was, now json.RawMessage, secrets []string) (out []Difference, more int, err error) {
	hide := patterns(secrets)
	err = differ(was, now, hide, func(at place, a, b any) bool {
		if len(out) == MaxFields {
			more++
			return true
		}
		d := Difference{Path: at.String()}
		for _, side := range []struct {
			to *string
			v  any
		}{{&d.Was, a}, {&d.Now, b}} {
			switch {
			case side.v == absent{}:
			case hide.touch(at):
				*side.to = secretValue
			default:
				*side.to = shownValue(textOf(side.v))
			}
		}
		out = append(out, d)
		return true
	})
	return out, more, err
}

// DifferOnly reports the first place where two inputs in canonical form differ that none of the paths covers: a path
// covers what is at or below it, and a star in it is any member or element. Nil: they differ there only, or not at all.
func DifferOnly(a, b json.RawMessage, paths []string) error {
	may, other := patterns(paths), ""
	found := false
	err := differ(a, b, nil, func(at place, _, _ any) bool {
		if may.cover(at) {
			return true
		}
		other, found = at.String(), true
		return false
	})
	if err == nil && found {
		err = fmt.Errorf("they differ in %q, which is not among the fields that may differ", other)
	}
	return err
}

func shownValue(text string) string {
	return action.CutTo(action.Visible(action.CutTo(text, MaxValue)), 4*MaxValue)
}

// place is where a value stands in a document: the names and indices that lead to it. It is spelt only where it is shown:
// a document may hold a long name above very many values.
type place []string

var escape = strings.NewReplacer(`\`, `\\`, ".", `\.`, "*", `\*`)

// emptyName is how a member without a name is spelt: else its path would be that of what holds it. No escaped name is this.
const emptyName = `\e`

// String returns the dotted path, cut to MaxValue.
func (p place) String() string {
	var b strings.Builder
	for i, name := range p {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(cmp.Or(escape.Replace(action.CutTo(name, MaxValue)), emptyName))
		if b.Len() > MaxValue {
			break
		}
	}
	return action.CutTo(action.Visible(action.CutTo(b.String(), MaxValue)), 4*MaxValue)
}

// pattern is a dotted path, taken apart.
type pattern []step

type step struct {
	name string
	any  bool
}

type patternList []pattern

func patterns(paths []string) (out patternList) {
	for _, p := range paths {
		out = append(out, split(p))
	}
	return out
}

// split takes a dotted path apart: a backslash makes the dot or star behind it part of a name.
func split(path string) (out pattern) {
	if path == "" {
		return nil // the whole document
	}
	var name strings.Builder
	escaped, literal := false, false
	end := func() {
		s := name.String()
		out = append(out, step{name: s, any: s == "*" && !literal})
		name.Reset()
		literal = false
	}
	for _, r := range path {
		switch {
		case escaped:
			name.WriteRune(r)
			escaped, literal = false, true
		case r == '\\':
			escaped = true
		case r == '.':
			end()
		default:
			name.WriteRune(r)
		}
	}
	end()
	return out
}

// cover reports whether the place is at or below one of the patterns.
func (l patternList) cover(at place) bool {
	return slices.ContainsFunc(l, func(p pattern) bool { return len(p) <= len(at) && p.matches(at) })
}

// touch reports whether one of the patterns is at, below or above the place: what is shown of it would show the other.
func (l patternList) touch(at place) bool {
	return slices.ContainsFunc(l, func(p pattern) bool { return p.matches(at) })
}

// matches compares as far as both go.
func (p pattern) matches(at place) bool {
	for i := range min(len(p), len(at)) {
		if !p[i].any && p[i].name != at[i] {
			return false
		}
	}
	return true
}

// leaves passes the values that have nothing below them, or are whole among the patterns. The place is valid during the call.
func leaves(at place, v any, whole patternList, pass func(place, any)) {
	if whole.cover(at) {
		pass(at, v)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			leaves(append(at, name), v[name], whole, pass)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i, e := range v {
			leaves(append(at, strconv.Itoa(i)), e, whole, pass)
		}
		if len(v) > 0 {
			return
		}
	}
	pass(at, v)
}

// absent is a value that is not there.
type absent struct{}

func differ(a, b json.RawMessage, whole patternList, pass func(place, any, any) bool) error {
	was, err := parse(a)
	if err != nil {
		return err
	}
	now, err := parse(b)
	if err != nil {
		return err
	}
	compare(nil, was, now, whole, pass)
	return nil
}

// compare passes the places where two values differ, as deep as both have something there and none of the patterns is whole,
// until pass says stop.
func compare(at place, a, b any, whole patternList, pass func(place, any, any) bool) (more bool) {
	if whole.cover(at) {
		return reflect.DeepEqual(a, b) || pass(at, a, b)
	}
	if x, ok := a.(map[string]any); ok {
		if y, ok := b.(map[string]any); ok {
			return compareMembers(at, x, y, whole, pass)
		}
	}
	if x, ok := a.([]any); ok {
		if y, ok := b.([]any); ok {
			return compareElements(at, x, y, whole, pass)
		}
	}
	if plain(a) && plain(b) && a == b {
		return true
	}
	return pass(at, a, b)
}

func plain(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func compareMembers(at place, x, y map[string]any, whole patternList, pass func(place, any, any) bool) bool {
	names := slices.AppendSeq(slices.Collect(maps.Keys(x)), maps.Keys(y))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if !compare(append(at, name), member(x, name), member(y, name), whole, pass) {
			return false
		}
	}
	return true
}

func member(m map[string]any, name string) any {
	if v, ok := m[name]; ok {
		return v
	}
	return absent{}
}

func compareElements(at place, x, y []any, whole patternList, pass func(place, any, any) bool) bool {
	element := func(l []any, i int) any {
		if i < len(l) {
			return l[i]
		}
		return absent{}
	}
	for i := range max(len(x), len(y)) {
		if !compare(append(at, strconv.Itoa(i)), element(x, i), element(y, i), whole, pass) {
			return false
		}
	}
	return true
}

// parse reads a document; numbers keep their digits.
func parse(doc json.RawMessage) (tree any, err error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("input of an approval: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("input of an approval: data behind it")
	}
	return tree, nil
}

func textOf(v any) string {
	text, _ := encode("value", v) // what was decoded can be written
	return text
}

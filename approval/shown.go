package approval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Bounds on what a person is shown of one input: more is not read.
const (
	MaxFields = 40  // fields, and differences
	MaxValue  = 200 // bytes of one value
)

// Field is one value of an input as it is shown: nothing in it is invisible (see [action.Visible]), a secret is hidden.
type Field struct {
	Path   string `json:"path"`             // dotted, indices included: "items.0.sku"; "" is the whole input
	Value  string `json:"value"`            // JSON
	Size   int    `json:"size,omitempty"`   // bytes of the whole value, where it is cut
	Secret bool   `json:"secret,omitempty"` // Value says nothing
}

// Difference is one field that differs between two inputs, as it is shown. "" is a field that is not there.
type Difference struct {
	Path string `json:"path"`
	Was  string `json:"was,omitempty"`
	Now  string `json:"now,omitempty"`
}

// secretValue stands for what must not be shown.
const secretValue = "(secret)"

// Fields returns the values of an input in canonical form, in the order of their paths, at most MaxFields, and how many
// more there are. Values at or below the places given, dotted paths without stars, are secret.
func Fields(input json.RawMessage, secrets []string) (fields []Field, more int, err error) {
	all, err := flatten(input)
	if err != nil {
		return nil, 0, err
	}
	for _, f := range all {
		if len(fields) == MaxFields {
			return fields, len(all) - MaxFields, nil
		}
		fields = append(fields, show(f, secrets))
	}
	return fields, 0, nil
}

// Differences returns where two inputs in canonical form differ, at most MaxFields places, and how many more there are.
// That a secret differs is told, its values are not.
func Differences(was, now json.RawMessage, secrets []string) (out []Difference, more int, err error) {
	all, err := differences(was, now)
	if err != nil {
		return nil, 0, err
	}
	for _, d := range all {
		if len(out) == MaxFields {
			return out, len(all) - MaxFields, nil
		}
		out = append(out, Difference{action.Visible(d.Path), value(d.Was, d.Path, secrets), value(d.Now, d.Path, secrets)})
	}
	return out, 0, nil
}

// DifferOnly reports the first place where two inputs in canonical form differ that none of the paths covers: a path
// covers what is at or below it, and a star in it is any member or element. Nil: they differ there only, or not at all.
func DifferOnly(a, b json.RawMessage, paths []string) error {
	all, err := differences(a, b)
	if err != nil {
		return err
	}
	for _, d := range all {
		if !slices.ContainsFunc(paths, func(p string) bool { return covers(p, d.Path) }) {
			return fmt.Errorf("they differ in %q, which is not among the fields that may differ", action.Visible(d.Path))
		}
	}
	return nil
}

func show(f leaf, secrets []string) Field {
	out := Field{Path: action.Visible(f.path), Value: value(f.text, f.path, secrets), Secret: hidden(f.path, secrets)}
	if len(f.text) > MaxValue && !out.Secret {
		out.Size = len(f.text)
	}
	return out
}

func value(text, path string, secrets []string) string {
	switch {
	case text == "":
		return ""
	case hidden(path, secrets):
		return secretValue
	}
	return action.CutTo(action.Visible(action.CutTo(text, MaxValue)), 4*MaxValue)
}

func hidden(path string, secrets []string) bool {
	return slices.ContainsFunc(secrets, func(s string) bool { return covers(s, path) })
}

// covers compares name by name. Both sides escape dots in names alike, so that cutting an escaped one in two does no harm.
func covers(pattern, path string) bool {
	if pattern == "" {
		return true
	}
	want, have := strings.Split(pattern, "."), strings.Split(path, ".")
	if path == "" || len(want) > len(have) {
		return false
	}
	for i, w := range want {
		if w != "*" && w != have[i] && (w != "" || have[i] != emptyName) {
			return false
		}
	}
	return true
}

// emptyName stands for a member without a name: else its path would be that of what holds it. No escaped name is this.
const emptyName = `\e`

// leaf is a value that has nothing below it. Kinds tells members from elements: "a.0" may be either.
type leaf struct{ path, kinds, text string }

func differences(was, now json.RawMessage) (out []Difference, err error) {
	before, err := flatten(was)
	if err != nil {
		return nil, err
	}
	after, err := flatten(now)
	if err != nil {
		return nil, err
	}
	for len(before)+len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].path < after[0].path:
			out = append(out, Difference{Path: before[0].path, Was: before[0].text})
			before = before[1:]
		case len(before) == 0 || after[0].path < before[0].path:
			out = append(out, Difference{Path: after[0].path, Now: after[0].text})
			after = after[1:]
		default:
			if before[0] != after[0] {
				out = append(out, Difference{before[0].path, before[0].text, after[0].text})
			}
			before, after = before[1:], after[1:]
		}
	}
	return out, nil
}

// flatten returns the leaves of a document, sorted by path.
func flatten(doc json.RawMessage) ([]leaf, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("input of an approval: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("input of an approval: data behind it")
	}
	var out []leaf
	walk(leaf{}, tree, &out)
	slices.SortFunc(out, func(a, b leaf) int { return strings.Compare(a.path, b.path) })
	return out, nil
}

var escape = strings.NewReplacer(`\`, `\\`, ".", `\.`, "*", `\*`)

func walk(at leaf, v any, out *[]leaf) {
	below := func(kind, name string, v any) {
		if at.kinds != "" {
			name = at.path + "." + name
		}
		walk(leaf{path: name, kinds: at.kinds + kind}, v, out)
	}
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v { // in any order: the leaves are sorted
			below("m", cmp.Or(escape.Replace(name), emptyName), e)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i, e := range v {
			below("e", strconv.Itoa(i), e)
		}
		if len(v) > 0 {
			return
		}
	}
	at.text, _ = encode("value", v) // what was decoded can be written
	*out = append(*out, at)
}

package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// absent is a value that is not there.
type absent struct{}

// member returns the member of an object, absent where it has none or is no object.
func member(v any, name string) any {
	if m, ok := v.(map[string]any); ok {
		if e, ok := m[name]; ok {
			return e
		}
	}
	return absent{}
}

// element returns the element of a list, absent where it has none or is no list.
func element(v any, i int) any {
	if l, ok := v.([]any); ok && i < len(l) {
		return l[i]
	}
	return absent{}
}

// same reports whether two values are one. What is there in only one of two inputs differs.
func same(a, b any) bool {
	if plain(a) && plain(b) {
		return a == b
	}
	return reflect.DeepEqual(a, b)
}

func plain(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// walker goes through an input, or through two where they differ, and says of each value what the schema makes of it.
type walker struct {
	whole patternList // what is at these is one value
	// pass is told of a value. The place is valid during the call; false stops.
	pass func(at place, was, now any, of *group) bool
	// groups are made where the schema leaves the number of values open, in the order of the walk.
	groups []*group
}

// group is the values of one list, or those of one object that its schema does not name. Nil stands for what is declared.
type group struct {
	at    place
	tree  any       // the list, or the object
	named *declared // what of the object is not in the group
	list  bool

	changed, others chosen
	total           int
}

func (w *walker) list(at place, now any) *group {
	g := &group{at: slices.Clone(at), tree: now, list: true}
	w.groups = append(w.groups, g)
	return g
}

func (w *walker) free(at place, now any, n *declared) *group {
	g := &group{at: slices.Clone(at), tree: now, named: n}
	w.groups = append(w.groups, g)
	return g
}

// values passes the values of now that have nothing below them, or are whole, with what stands there in was. n is nil where
// nothing is declared: then of says to which group it belongs.
func (w *walker) values(at place, was, now any, n *declared, of *group) bool {
	if w.whole.cover(at) {
		return w.pass(at, was, now, of)
	}
	switch v := now.(type) {
	case map[string]any:
		var free *group
		for _, name := range slices.Sorted(maps.Keys(v)) {
			next, its := n.member(name), of
			if n != nil && next == nil {
				if free == nil {
					free = w.free(at, now, n)
				}
				its = free
			}
			if !w.values(append(at, turn{name: name}), member(was, name), v[name], next, its) {
				return false
			}
		}
		if len(v) > 0 {
			return true
		}
	case []any:
		if n != nil && len(v) > 0 {
			of = w.list(at, now)
		}
		for i, e := range v {
			if !w.values(append(at, turn{strconv.Itoa(i), true}), element(was, i), e, nil, of) {
				return false
			}
		}
		if len(v) > 0 {
			return true
		}
	}
	return w.pass(at, was, now, of)
}

// differences passes the places where two values differ, as deep as both have something there and none is whole.
func (w *walker) differences(at place, was, now any, n *declared, of *group) bool {
	if w.whole.cover(at) {
		return same(was, now) || w.pass(at, was, now, of)
	}
	switch a := was.(type) {
	case map[string]any:
		if b, ok := now.(map[string]any); ok {
			return w.members(at, a, b, n, of)
		}
	case []any:
		if b, ok := now.([]any); ok {
			if n != nil {
				of = w.list(at, now)
			}
			for i := range max(len(a), len(b)) {
				if !w.differences(append(at, turn{strconv.Itoa(i), true}), element(a, i), element(b, i), nil, of) {
					return false
				}
			}
			return true
		}
	}
	if plain(was) && plain(now) && was == now {
		return true
	}
	return w.pass(at, was, now, of)
}

func (w *walker) members(at place, a, b map[string]any, n *declared, of *group) bool {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	var free *group
	for _, name := range slices.Compact(names) {
		next, its := n.member(name), of
		if n != nil && next == nil {
			if free == nil {
				free = w.free(at, b, n)
			}
			its = free
		}
		if !w.differences(append(at, turn{name: name}), member(a, name), member(b, name), next, its) {
			return false
		}
	}
	return true
}

// declared is what a schema names at a place, as a tree.
type declared struct{ below map[string]*declared }

// member is what is named below; nil where nothing is.
func (n *declared) member(name string) *declared {
	if n == nil {
		return nil
	}
	return n.below[name]
}

// declaredOf makes a tree of dotted paths. One with a star ends before it: what is in a list is not declared one by one.
func declaredOf(paths []string) *declared {
	root := &declared{}
	for _, p := range patterns(paths) {
		n := root
		for _, s := range p {
			if s.any {
				break
			}
			next := n.below[s.name]
			if next == nil {
				next = &declared{}
				if n.below == nil {
					n.below = map[string]*declared{}
				}
				n.below[s.name] = next
			}
			n = next
		}
	}
	return root
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

// parseBoth reads two documents; a first one that is empty is not there.
func parseBoth(was, now json.RawMessage) (a, b any, err error) {
	a = absent{}
	if len(was) > 0 {
		if a, err = parse(was); err != nil {
			return nil, nil, err
		}
	}
	b, err = parse(now)
	return a, b, err
}

func textOf(v any) string {
	text, _ := encode("value", v) // what was decoded can be written
	return text
}

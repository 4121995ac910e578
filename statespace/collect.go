package statespace

import "errors"

var errTooMany = errors.New("too many combinations")

// branch is a node of the tree of a set's paths. Walking all paths of a set together keeps apart what belongs to
// different elements: below one "*" every field comes from one element.
type branch struct {
	leaves []int // fields whose path ends here
	names  []string
	below  []*branch
}

// newBranch builds the tree. Its first level is the source: input or output.
func newBranch(fields []field) *branch {
	root := &branch{names: []string{"", ""}, below: []*branch{{}, {}}}
	for i, f := range fields {
		b := root.below[0]
		if f.output {
			b = root.below[1]
		}
		for _, seg := range f.segs {
			b = b.child(seg)
		}
		b.leaves = append(b.leaves, i)
	}
	return root
}

func (b *branch) child(name string) *branch {
	for i, n := range b.names {
		if n == name {
			return b.below[i]
		}
	}
	c := &branch{}
	b.names, b.below = append(b.names, name), append(b.below, c)
	return c
}

// row holds one JSON text per field, "" where the field belongs to another branch.
type row = []string

// rows returns every combination of values for width fields; none where a field has no value.
func (b *branch) rows(sources [2]any, width int) ([]row, error) {
	out := []row{make(row, width)}
	for i, sub := range b.below {
		if len(sub.names) == 0 {
			continue // nothing binds on this source
		}
		found, err := sub.walk(sources[i], width)
		if err != nil {
			return nil, err
		}
		if out, err = cross(out, found); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (b *branch) walk(tree any, width int) ([]row, error) {
	if tree == nil {
		return nil, nil
	}
	first := make(row, width)
	for _, leaf := range b.leaves {
		text, err := appendValue(nil, tree)
		if err != nil {
			return nil, err
		}
		first[leaf] = string(text)
	}
	out := []row{first}
	for i, name := range b.names {
		found, err := b.below[i].step(tree, name, width)
		if err != nil {
			return nil, err
		}
		if out, err = cross(out, found); err != nil || len(out) == 0 {
			return nil, err
		}
	}
	return out, nil
}

// step walks into the member of that name, or into every element.
func (b *branch) step(tree any, name string, width int) ([]row, error) {
	if name != every {
		m, _ := tree.(map[string]any)
		return b.walk(m[name], width)
	}
	var out []row
	add := func(v any) error {
		found, err := b.walk(v, width)
		if out = append(out, found...); len(out) > MaxBulk {
			return errTooMany
		}
		return err
	}
	switch t := tree.(type) {
	case []any:
		for _, v := range t {
			if err := add(v); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for _, v := range t { // any order: the values are sorted in the end
			if err := add(v); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// cross combines each row of a with each of b.
func cross(a, b []row) ([]row, error) {
	if len(a)*len(b) > MaxBulk {
		return nil, errTooMany
	}
	if len(a) == 1 && isBlank(a[0]) {
		return b, nil
	}
	out := make([]row, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			z := make(row, len(x))
			for i := range z {
				z[i] = x[i] + y[i] // one of them is ""
			}
			out = append(out, z)
		}
	}
	return out, nil
}

func isBlank(r row) bool {
	for _, v := range r {
		if v != "" {
			return false
		}
	}
	return true
}

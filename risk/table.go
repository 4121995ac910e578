package risk

import (
	"hash/fnv"
	"strings"
)

// table is an immutable map from name to state: a treap whose priorities are hashes of the names, so that its shape
// depends on its content alone. Its nodes are never changed once reachable from a Belief.
type table struct{ root *node }

type node struct {
	state       *state
	priority    uint64
	left, right *node
}

func priority(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name)) // never fails
	x := h.Sum64()        // the last characters hardly reach the high bits of FNV: mix (MurmurHash3's finaliser)
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// get returns the state of that name; where there is none, an empty one that must not be changed either.
func (t table) get(name string) (*state, bool) {
	for n := t.root; n != nil; {
		switch c := strings.Compare(name, n.state.name); {
		case c == 0:
			return n.state, true
		case c < 0:
			n = n.left
		default:
			n = n.right
		}
	}
	return &state{}, false
}

// with returns a table that holds s under its name.
func (t table) with(s *state) table {
	if _, ok := t.get(s.name); ok {
		return table{replace(t.root, s)}
	}
	return table{insert(t.root, &node{state: s, priority: priority(s.name)})}
}

func replace(n *node, s *state) *node {
	c := *n
	switch cmp := strings.Compare(s.name, n.state.name); {
	case cmp == 0:
		c.state = s
	case cmp < 0:
		c.left = replace(n.left, s)
	default:
		c.right = replace(n.right, s)
	}
	return &c
}

func insert(n, add *node) *node {
	if n == nil {
		return add
	}
	if add.before(n) {
		add.left, add.right = split(n, add.state.name)
		return add
	}
	c := *n
	if add.state.name < n.state.name {
		c.left = insert(n.left, add)
	} else {
		c.right = insert(n.right, add)
	}
	return &c
}

// before reports whether n belongs above m; equal hashes are told apart by name.
func (n *node) before(m *node) bool {
	return n.priority > m.priority || n.priority == m.priority && n.state.name < m.state.name
}

// split returns what is below and above a name that is not in n.
func split(n *node, name string) (below, above *node) {
	if n == nil {
		return nil, nil
	}
	c := *n
	if n.state.name < name {
		c.right, above = split(n.right, name)
		return &c, above
	}
	below, c.left = split(n.left, name)
	return below, &c
}

// without returns a table that holds nothing under that name.
func (t table) without(name string) table {
	if _, ok := t.get(name); !ok {
		return t
	}
	return table{remove(t.root, name)}
}

func remove(n *node, name string) *node {
	c := *n
	switch cmp := strings.Compare(name, n.state.name); {
	case cmp == 0:
		return join(n.left, n.right)
	case cmp < 0:
		c.left = remove(n.left, name)
	default:
		c.right = remove(n.right, name)
	}
	return &c
}

func join(a, b *node) *node {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.before(b):
		c := *a
		c.right = join(a.right, b)
		return &c
	default:
		c := *b
		c.left = join(a, b.left)
		return &c
	}
}

// names returns the names in order.
func (t table) names() []string {
	var out []string
	var walk func(*node)
	walk = func(n *node) {
		if n != nil {
			walk(n.left)
			out = append(out, n.state.name)
			walk(n.right)
		}
	}
	walk(t.root)
	return out
}

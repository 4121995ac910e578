package schema

import (
	"regexp"
	"slices"
	"strconv"
)

// place is a schema that is checked while a value is read (n, nil for none), and the names that all the schemas know
// which may say something of that value (see node.here): a case variant of one is refused wherever it is declared.
type place struct {
	node   *node
	types  typeSet
	text   *textRule
	number *numberRule
	after  *node // node, where something is said of the value as a whole

	names       *node   // propertyNames
	entries     []entry // by rank, the canonical order
	first       *entry  // the name that will come first
	index       nameIndex
	folded      map[string]bool // folded names
	other       child           // of members whose name is not declared
	patterns    []*regexp.Regexp
	byPattern   []child  // instead of other, by the set of patterns that match
	required    uint64   // by rank
	requiredToo []string // those whose rank is too high
	together    bool     // something else is said of the members together

	tuple []child
	rest  child
}

// entry is a declared name.
type entry struct {
	name  string
	text  string // the canonical name with its quotes and colon
	match prefix // text
	rank  int
	child child
	next  *entry // the name that will come next where members come as declared
}

// child is a place, and schemas that apply to its value besides.
type child struct {
	at   *place
	more []*node
}

// never is the place of the schema false.
var never = &place{}

func (pl *place) element(i int) *child {
	if i < len(pl.tuple) {
		return &pl.tuple[i]
	}
	return &pl.rest
}

const (
	maxPlan     = 10_000 // places of a program
	maxLooks    = 200    // at a schema while they are made, for each of those places
	maxPatterns = 6      // that apply to one object: each set of them has a place
)

// planner makes the places of a program. A place is a node and a set of nodes, so that their number is bounded by hand.
type planner struct {
	nodes  []*node
	places map[string]*place
	most   int // of them
	looks  int // left
	marks  []int
	round  int
	fault  error
}

// plan compiles the pass of a schema, of at most that many places; the error says why there is none.
func plan(root *node, most int) (*program, error) {
	pl := planner{places: map[string]*place{}, most: most, looks: most * maxLooks}
	pl.collect(root)
	pl.findNames()
	for _, n := range pl.nodes {
		n.fast.compile(n)
	}
	at := pl.place(root, root.here)
	if pl.fault != nil {
		return nil, pl.fault
	}
	return &program{root: at}, nil
}

func (pl *planner) collect(n *node) {
	if n == nil || n.fast != nil {
		return
	}
	n.fast = &rules{id: len(pl.nodes)}
	pl.nodes = append(pl.nodes, n)
	below, turning := n.children()
	for _, m := range slices.Concat(below, turning) {
		pl.collect(m)
	}
}

// findNames marks the nodes inside which a property is declared; the others cannot be meant by a case variant.
func (pl *planner) findNames() {
	for again := true; again; {
		again = false
		for _, n := range slices.Backward(pl.nodes) {
			if n.fast.names {
				continue
			}
			below, turning := n.children()
			if len(n.props) > 0 || slices.ContainsFunc(slices.Concat(below, turning), func(m *node) bool { return m != nil && m.fast.names }) {
				n.fast.names, again = true, true
			}
		}
	}
}

// place returns the place of a node and a set of them.
func (pl *planner) place(n *node, here []*node) *place {
	for n != nil && n.ref != nil { // nothing but annotations beside it
		n = n.ref
	}
	here = slices.DeleteFunc(slices.Clone(here), func(m *node) bool { return !m.fast.names })
	switch {
	case n != nil && n.never && len(here) == 0:
		return never
	case (n == nil || n.fast.saysNothing(n)) && len(here) == 0:
		return anything.root
	}
	slices.SortFunc(here, func(a, b *node) int { return a.fast.id - b.fast.id })
	var key []byte
	for _, m := range append([]*node{n}, here...) {
		if m != nil {
			key = strconv.AppendInt(key, int64(m.fast.id), 10)
		}
		key = append(key, ' ')
	}
	if at, ok := pl.places[string(key)]; ok {
		return at
	}
	at := &place{node: n, types: everyType}
	if pl.places[string(key)] = at; len(pl.places) > pl.most {
		pl.fault = errPlaces
	}
	if pl.fault == nil {
		pl.fill(at, here)
	}
	return at
}

func (pl *planner) fill(at *place, here []*node) {
	n := at.node
	if n != nil {
		at.types, at.text, at.number, at.names = n.fast.types, n.fast.text, n.fast.number, n.propertyNames
		if n.fast.whole {
			at.after = n
		}
	}
	pl.members(at, here)
	pl.elements(at, here)
}

func (pl *planner) members(at *place, here []*node) {
	n := at.node
	names := map[string]bool{}
	for _, m := range here {
		for _, name := range m.names {
			names[name] = true
		}
	}
	for rank, name := range sortedNames(names) {
		if pl.fault != nil {
			return
		}
		text := string(append(appendString(nil, name), ':'))
		at.entries = append(at.entries, entry{
			name: name, text: text, match: newPrefix(text), rank: rank,
			child: pl.child(n.memberNodes(name), pl.inside(here, func(m *node) []*node { return m.memberNodes(name) })),
		})
		if at.folded == nil {
			at.folded = map[string]bool{}
		}
		at.folded[fold(name)] = true
	}
	at.index = newNameIndex(at.entries)
	pl.undeclared(at, here)
	if n == nil {
		return
	}
	if n.propertyNames == nil {
		at.guess(n.required)
	}
	for _, name := range n.required {
		if e := at.find([]byte(name)); e != nil && e.rank < 64 {
			at.required |= 1 << e.rank
		} else {
			at.requiredToo = append(at.requiredToo, name)
		}
	}
	at.together = at.requiredToo != nil || n.minProperties != nil || n.maxProperties != nil || n.dependencies != nil
}

// guess notes which name follows which: a list of what is required is as good as the order of the fields, which encoding/json
// writes in.
func (pl *place) guess(required []string) {
	to := &pl.first
	for _, name := range required {
		if e := pl.find([]byte(name)); e != nil && e.next == nil && to != &e.next {
			*to = e
			to = &e.next
		}
	}
}

// memberNodes are the schemas inside n for a member.
func (n *node) memberNodes(name string) []*node {
	if n == nil {
		return nil
	}
	return n.matched(n.props[name], func(re *regexp.Regexp) bool { return re.MatchString(name) })
}

func (n *node) matched(declared *node, matches func(*regexp.Regexp) bool) []*node {
	if n == nil {
		return nil
	}
	var out []*node
	if declared != nil {
		out = append(out, declared)
	}
	for _, p := range n.patterns {
		if matches(p.re) {
			out = append(out, p.node)
		}
	}
	if out == nil && n.additional != nil {
		out = append(out, n.additional)
	}
	return out
}

// undeclared makes the places of members with a name that no schema declares: one for each set of patterns.
func (pl *planner) undeclared(at *place, here []*node) {
	all := here
	if at.node != nil && !slices.Contains(here, at.node) {
		all = append(slices.Clone(here), at.node)
	}
	for _, m := range all {
		for _, p := range m.patterns {
			if !slices.Contains(at.patterns, p.re) {
				at.patterns = append(at.patterns, p.re)
			}
		}
	}
	if len(at.patterns) > maxPatterns {
		pl.fault = errPatterns
		return
	}
	for mask := range 1 << len(at.patterns) {
		matches := func(re *regexp.Regexp) bool { return mask&(1<<slices.Index(at.patterns, re)) != 0 }
		inside := pl.inside(here, func(m *node) []*node { return m.matched(nil, matches) })
		at.byPattern = append(at.byPattern, pl.child(at.node.matched(nil, matches), inside))
	}
	at.other = at.byPattern[0]
}

func (pl *planner) elements(at *place, here []*node) {
	n, longest := at.node, 0
	if n != nil {
		longest = len(n.tuple)
	}
	for _, m := range here {
		longest = max(longest, len(m.tuple))
	}
	for i := range longest {
		if pl.fault != nil {
			return
		}
		at.tuple = append(at.tuple, pl.element(n, here, i))
	}
	at.rest = pl.element(n, here, longest)
}

func (pl *planner) element(n *node, here []*node, i int) child {
	return pl.child(n.elementNodes(i), pl.inside(here, func(m *node) []*node { return m.elementNodes(i) }))
}

// inside returns the schemas that apply to a value inside one to which the given schemas apply, each once.
func (pl *planner) inside(here []*node, of func(*node) []*node) []*node {
	pl.round++
	var out []*node
	for _, m := range here {
		if pl.looks--; pl.looks < 0 {
			pl.fault = errPlaces
			return nil
		}
		for _, k := range of(m) {
			pl.looks -= len(k.here)
			for _, h := range k.here {
				if pl.first(h.fast.id) {
					out = append(out, h)
				}
			}
		}
	}
	return out
}

// first reports whether a node is seen for the first time in this round.
func (pl *planner) first(id int) bool {
	for len(pl.marks) <= id {
		pl.marks = append(pl.marks, 0)
	}
	seen := pl.marks[id] == pl.round
	pl.marks[id] = pl.round
	return !seen
}

// elementNodes is the schema inside n for an element, none or one.
func (n *node) elementNodes(i int) []*node {
	if n == nil {
		return nil
	}
	e := n.items
	switch {
	case i < len(n.tuple):
		e = n.tuple[i]
	case n.tuple != nil:
		e = n.rest
	}
	if e == nil {
		return nil
	}
	return []*node{e}
}

func (pl *planner) child(nodes, here []*node) child {
	if len(nodes) == 0 {
		return child{at: pl.place(nil, here)}
	}
	return child{at: pl.place(nodes[0], here), more: nodes[1:]}
}

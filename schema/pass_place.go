package schema

import (
	"encoding/json"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
)

const everyType = typeNull | typeBoolean | typeInteger | typeNumber | typeString | typeArray | typeObject

// rules are what the pass needs of a node, made once.
type rules struct {
	id     int
	types  typeSet // never empty but for the schema false
	text   *textRule
	number *numberRule
	whole  bool // something is said of the value as a whole
	names  bool // a property is declared somewhere inside
}

// textRule is what a schema says of strings.
type textRule struct {
	counted     bool
	least, most int // characters
	pattern     *regexp.Regexp
	format      func(string) bool
	sure        func([]byte) bool // of some that have the format
}

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
	maxPatterns = 6      // that apply to one object: each set of them has a place
)

// planner makes the places of a program. A place is a node and a set of nodes, so that their number is bounded by hand.
type planner struct {
	nodes  []*node
	places map[string]*place
	most   int // of them
	fault  error
}

// plan compiles the pass of a schema, of at most that many places; the error says why there is none.
func plan(root *node, most int) (*program, error) {
	pl := planner{places: map[string]*place{}, most: most}
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
		at.entries = append(at.entries, entry{
			name: name, text: string(append(appendString(nil, name), ':')), rank: rank, child: pl.child(n.memberNodes(name), member(here, name)),
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
		var inside []*node
		for _, m := range here {
			for _, k := range m.matched(nil, matches) {
				inside = append(inside, k.here...)
			}
		}
		at.byPattern = append(at.byPattern, pl.child(at.node.matched(nil, matches), distinct(inside)))
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
		at.tuple = append(at.tuple, pl.child(n.elementNodes(i), element(here, i)))
	}
	at.rest = pl.child(n.elementNodes(longest), element(here, longest))
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

func (r *rules) compile(n *node) {
	r.types = n.types
	if n.types == 0 {
		r.types = everyType
	}
	if n.never {
		r.types = 0
	}
	r.whole = n.enum != nil || n.allOf != nil || n.anyOf != nil || n.oneOf != nil || n.not != nil || n.ifs != nil
	for _, d := range n.dependencies {
		r.whole = r.whole || d.node != nil
	}
	f := formats[n.formatName]
	if n.minLength != nil || n.maxLength != nil || n.pattern != nil || f.text != nil {
		r.text = &textRule{least: 0, most: math.MaxInt, pattern: n.pattern, format: f.text, sure: sure[n.formatName], counted: n.minLength != nil || n.maxLength != nil}
		if n.minLength != nil {
			r.text.least = *n.minLength
		}
		if n.maxLength != nil {
			r.text.most = *n.maxLength
		}
	}
	if n.minimum != nil || n.maximum != nil || n.above != nil || n.below != nil || n.multipleOf != nil || f.number != nil {
		r.number = newNumberRule(n)
	}
}

// saysNothing reports whether every value satisfies n, as far as the pass has to look.
func (r *rules) saysNothing(n *node) bool {
	return r.types == everyType && r.text == nil && r.number == nil && !r.whole && !n.unique && n.items == nil && n.tuple == nil &&
		n.contains == nil && n.propertyNames == nil && n.dependencies == nil && n.required == nil && n.patterns == nil && len(n.props) == 0 &&
		n.additional == nil && n.minItems == nil && n.maxItems == nil && n.minProperties == nil && n.maxProperties == nil
}

// integerFormats are the limits of the formats of whole numbers.
var integerFormats = map[string][2]json.Number{
	"int8": {"-128", "127"}, "int16": {"-32768", "32767"}, "int32": {"-2147483648", "2147483647"},
	"int64": {"-9223372036854775808", "9223372036854775807"},
	"uint8": {"0", "255"}, "uint16": {"0", "65535"}, "uint32": {"0", "4294967295"}, "uint64": {"0", "18446744073709551615"},
}

func newNumberRule(n *node) *numberRule {
	r := &numberRule{low: math.MinInt64, high: math.MaxInt64, fewDigits: 20}
	lo, hi := (*big.Rat)(nil), (*big.Rat)(nil)
	tighten := func(b *bound, to **dec, low bool, open bool) {
		if b == nil {
			return
		}
		if *to == nil || low == ((*to).compare(newDec(b)) < 0) {
			*to = newDec(b)
		}
		at := integerBound(b.rat, low, open)
		if low && (lo == nil || at.Cmp(lo) > 0) {
			lo = at
		}
		if !low && (hi == nil || at.Cmp(hi) < 0) {
			hi = at
		}
	}
	tighten(n.minimum, &r.minimum, true, false)
	tighten(n.above, &r.above, true, true)
	tighten(n.maximum, &r.maximum, false, false)
	tighten(n.below, &r.below, false, true)
	switch n.formatName {
	case "float":
		r.bits, r.fewDigits = 32, 6
	case "double":
		r.bits, r.fewDigits = 64, 15
	default:
		if limits, ok := integerFormats[n.formatName]; ok {
			tighten(limit(limits[0]), &r.minimum, true, false)
			tighten(limit(limits[1]), &r.maximum, false, false)
		}
	}
	r.low, r.high, r.noInteger = clamp(lo, hi)
	if n.multipleOf != nil {
		r.multipleOf, r.divide = newDec(n.multipleOf), n.multipleOf
		if m := n.multipleOf.rat; m.IsInt() && m.Num().IsInt64() {
			r.divisor = m.Num().Int64()
		}
	}
	return r
}

// integerBound is the first whole number within a bound.
func integerBound(r *big.Rat, low, open bool) *big.Rat {
	z := new(big.Int)
	z.Div(r.Num(), r.Denom()) // rounds down, the denominator being above zero
	whole := r.IsInt()
	switch {
	case low && (!whole || open):
		z.Add(z, big.NewInt(1))
	case !low && whole && open:
		z.Sub(z, big.NewInt(1))
	}
	return new(big.Rat).SetInt(z)
}

func clamp(lo, hi *big.Rat) (low, high int64, none bool) {
	low, high = math.MinInt64, math.MaxInt64
	least, most := new(big.Rat).SetInt64(low), new(big.Rat).SetInt64(high)
	if lo != nil {
		if none = lo.Cmp(most) > 0; !none && lo.Cmp(least) > 0 {
			low = lo.Num().Int64()
		}
	}
	if hi != nil {
		if hi.Cmp(least) < 0 {
			none = true
		} else if hi.Cmp(most) < 0 {
			high = hi.Num().Int64()
		}
	}
	return low, high, none
}

func newDec(b *bound) *dec {
	d := new(dec)
	if !d.read([]byte(b.text)) {
		panic("schema: bound " + b.text) // not reached: the edge made it
	}
	return d
}

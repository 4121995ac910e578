package schema

import (
	"bytes"
	"slices"
)

// pos is where in the canonical text the walk stands.
func (p *pass) pos() int { return len(p.out) + p.at - p.run }

// flush writes what has been read and is canonical as it is.
func (p *pass) flush() {
	if p.run < p.at {
		p.out = append(p.out, p.src[p.run:p.at]...)
		p.run = p.at
	}
}

// here returns the character that comes next, 0 at the end.
func (p *pass) here() byte {
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

// next skips white space and returns the character after it, 0 at the end.
func (p *pass) next() byte {
	if p.at < len(p.src) {
		if c := p.src[p.at]; c > ' ' {
			return c
		}
	}
	return p.nextFar()
}

func (p *pass) nextFar() byte {
	p.flush()
	defer func() { p.run = p.at }()
	for ; p.at < len(p.src); p.at++ {
		switch c := p.src[p.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// value reads the value that comes next, white space before it too, and checks it as the schema of its place says.
func (p *pass) value(pl *place) bool {
	if p.work--; p.work < 0 {
		return false
	}
	c := p.here()
	if c <= ' ' {
		c = p.nextFar()
	}
	ok, from, start := false, p.at, p.pos()
	switch c {
	case '"':
		ok = pl.types&typeString != 0 && p.textValue(pl)
	case '{':
		ok = pl.types&typeObject != 0 && p.enter() && p.object(pl, start)
	case '[':
		ok = pl.types&typeArray != 0 && p.enter() && p.array(pl)
	case 't':
		ok = pl.types&typeBoolean != 0 && p.literal("true")
	case 'f':
		ok = pl.types&typeBoolean != 0 && p.literal("false")
	case 'n':
		ok = pl.types&typeNull != 0 && p.literal("null")
	default:
		ok = pl.types&(typeInteger|typeNumber) != 0 && p.numberValue(pl)
	}
	if !ok || pl.after == nil {
		return ok
	}
	if pl.after.fast.listed && p.run <= from { // all of it is canonical as it is
		return pl.after.hasText(p.src[from:p.at])
	}
	p.flush()
	return p.whole(pl.after, start)
}

// whole applies what is said of a value as a whole, its canonical text being complete.
func (p *pass) whole(n *node, start int) bool {
	if n.enum != nil && !n.hasText(p.out[start:]) {
		return false
	}
	return p.branches(n, start)
}

// hasText reports whether the canonical text is one of the enum's.
func (n *node) hasText(text []byte) bool {
	if len(n.enumTexts) > 8 {
		return n.enum[string(text)]
	}
	for _, e := range n.enumTexts {
		if string(text) == e {
			return true
		}
	}
	return false
}

func (p *pass) hasPrefix(s string) bool {
	return len(p.src)-p.at >= len(s) && string(p.src[p.at:p.at+len(s)]) == s
}

func (p *pass) literal(word string) bool {
	if !p.hasPrefix(word) {
		return false
	}
	p.at += len(word)
	return true
}

func (p *pass) enter() bool {
	if p.depth == MaxDepth {
		return false
	}
	p.depth++
	p.at++
	return true
}

func (p *pass) leave() {
	p.depth--
	p.at++
}

func (p *pass) array(pl *place) bool {
	n, base := pl.node, len(p.spans)
	count, contained := 0, false
	for empty := p.next() == ']'; !empty; { // after a comma too an element must come
		p.next()
		start, at := p.pos(), pl.element(count)
		if len(at.more) > 0 && !p.child(at) || len(at.more) == 0 && !p.value(at.at) {
			return false
		}
		if count++; n != nil && n.contains != nil && !contained {
			p.flush()
			contained = p.holds(n.contains, start)
		}
		if n != nil && n.unique {
			p.spans = append(p.spans, span{start: start, end: p.pos()})
		}
		if c := p.next(); c == ']' {
			break
		} else if c != ',' {
			return false
		}
		p.at++
	}
	p.leave()
	if n == nil {
		return true
	}
	if n.unique {
		p.flush()
	}
	ok := n.countsElements(count) && (n.contains == nil || contained) && (!n.unique || p.allDiffer(p.spans[base:]))
	p.spans = p.spans[:base]
	return ok
}

func (n *node) countsElements(count int) bool {
	return (n.minItems == nil || count >= *n.minItems) && (n.maxItems == nil || count <= *n.maxItems)
}

// allDiffer sorts the elements by their text, so that it is not quadratic.
func (p *pass) allDiffer(list []span) bool {
	compare := func(a, b span) int { return bytes.Compare(p.out[a.start:a.end], p.out[b.start:b.end]) }
	slices.SortFunc(list, compare)
	for i := 1; i < len(list); i++ {
		if compare(list[i-1], list[i]) == 0 {
			return false
		}
	}
	return true
}

// child reads a value and checks it by the schema of its place, and by the others that apply to it too.
func (p *pass) child(c *child) bool {
	if len(c.more) == 0 {
		return p.value(c.at)
	}
	p.next()
	start := p.pos()
	if !p.value(c.at) {
		return false
	}
	p.flush()
	for _, n := range c.more {
		if _, ok := p.check(n, start); !ok {
			return false
		}
	}
	return true
}

// object reads the members of the object that opened at open in the canonical text.
func (p *pass) object(pl *place, open int) bool {
	base := len(p.spans)
	seen, last, ranked, inOrder, guess := uint64(0), -1, true, true, pl.first
	for empty := p.next() == '}'; !empty; { // after a comma too a member must come
		m := span{start: p.pos(), rank: -1}
		var at *child
		if guess != nil && guess.begins(p.src[p.at:]) {
			p.at += len(guess.text)
			m.name, m.rank = m.start+len(guess.text)-1, guess.rank
			at, guess = &guess.child, guess.next
		} else if at = p.name(pl, &m); at == nil {
			return false
		}
		switch {
		case uint(m.rank) < 64:
			if seen&(1<<m.rank) != 0 {
				return false
			}
			seen |= 1 << m.rank
			if inOrder && (m.rank < last || !ranked && p.compareNames(&p.spans[len(p.spans)-1], &m) >= 0) {
				inOrder = false
			}
		default:
			ranked = false
			inOrder = inOrder && (len(p.spans) == base || p.compareNames(&p.spans[len(p.spans)-1], &m) < 0)
		}
		last = m.rank
		if len(at.more) > 0 && !p.child(at) || len(at.more) == 0 && !p.value(at.at) {
			return false
		}
		m.end = p.pos()
		p.spans = append(p.spans, m)
		c := p.here()
		if c <= ' ' {
			c = p.nextFar()
		}
		if c == '}' {
			break
		}
		if c != ',' {
			return false
		}
		p.at++
	}
	p.leave()
	ok := seen&pl.required == pl.required
	if ok && ranked && !pl.together {
		if !inOrder {
			p.rearrange(open, p.spans[base:], seen)
		}
	} else if ok {
		ok = p.close(pl, open, base, ranked, inOrder)
	}
	p.spans = p.spans[:base]
	return ok
}

// close checks what is said of the members together, and puts them in order.
func (p *pass) close(pl *place, open, base int, ranked, inOrder bool) bool {
	members := p.spans[base:]
	if pl.together {
		p.flush()
	}
	if !inOrder {
		if ranked {
			sortRanked(members)
		} else if !p.sort(members) {
			return false
		}
	}
	if pl.together && !(p.membersHold(pl.node, members) && p.hasAll(pl.requiredToo, members)) {
		return false
	}
	if !inOrder {
		p.rewrite(open, members)
	}
	return true
}

// name reads a name and its colon and returns what is said of the value, nil where the member is refused.
func (p *pass) name(pl *place, m *span) *child {
	if p.next() != '"' {
		return nil
	}
	m.start = p.pos()
	end := plainEnd(p.src, p.at+1)
	if end+1 < len(p.src) && p.src[end] == '"' && p.src[end+1] == ':' && pl.names == nil {
		if e := pl.find(p.src[p.at+1 : end]); e != nil {
			p.at = end + 2
			m.name, m.rank = p.pos()-1, e.rank
			return &e.child
		}
	}
	return p.nameFar(pl, m)
}

func (p *pass) nameFar(pl *place, m *span) *child {
	name, _, escaped, ok := p.str()
	if !ok {
		return nil
	}
	m.name = p.pos()
	if escaped {
		name = p.plainText(name)
	}
	var c *child
	if e := pl.find(name); e != nil {
		c, m.rank = &e.child, e.rank
	} else if c = p.unknown(pl, name); c == nil {
		return nil
	}
	if pl.names != nil {
		p.flush()
		if _, ok := p.check(pl.names, m.start); !ok {
			return nil
		}
	}
	if p.next() != ':' {
		return nil
	}
	p.at++
	return c
}

// unknown finds the schemas of a member whose name is not declared, and refuses the case variant of one that is.
func (p *pass) unknown(pl *place, name []byte) *child {
	if pl.other.at == never && len(pl.patterns) == 0 {
		return nil
	}
	if len(pl.folded) > 0 {
		p.tmp = appendFolded(p.tmp[:0], name)
		if pl.folded[string(p.tmp)] {
			return nil
		}
	}
	if len(pl.patterns) == 0 {
		return &pl.other
	}
	mask := 0
	for i, re := range pl.patterns {
		if re.Match(name) {
			mask |= 1 << i
		}
	}
	return &pl.byPattern[mask]
}

// membersHold applies what is said of the members together. They are in order.
func (p *pass) membersHold(n *node, members []span) bool {
	if n.minProperties != nil && len(members) < *n.minProperties || n.maxProperties != nil && len(members) > *n.maxProperties {
		return false
	}
	for i := range n.dependencies {
		d := &n.dependencies[i]
		if len(d.needs) > 0 && p.has(members, d.name) && !p.hasAll(d.needs, members) {
			return false
		}
	}
	return true
}

func (p *pass) hasAll(names []string, members []span) bool {
	for _, name := range names {
		if !p.has(members, name) {
			return false
		}
	}
	return true
}

// has finds a name among members in order.
func (p *pass) has(members []span, name string) bool {
	_, found := slices.BinarySearchFunc(members, name, func(m span, name string) int {
		return compareUnits(p.plainText(p.out[m.start+1:m.name-1]), name)
	})
	return found
}

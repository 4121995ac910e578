package schema

import (
	"bytes"
	"slices"
)

// next skips white space and returns the character after it, 0 at the end.
func (p *pass) next() byte {
	if p.at < len(p.src) && p.src[p.at] > ' ' {
		return p.src[p.at]
	}
	return p.nextFar()
}

func (p *pass) nextFar() byte {
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
	start, ok := len(p.out), false
	switch p.next() {
	case '"':
		ok = pl.types&typeString != 0 && p.textValue(pl)
	case '{':
		ok = pl.types&typeObject != 0 && p.object(pl)
	case '[':
		ok = pl.types&typeArray != 0 && p.array(pl)
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
	p.out = append(p.out, word...)
	p.at += len(word)
	return true
}

func (p *pass) enter(bracket byte) bool {
	if p.depth == MaxDepth {
		return false
	}
	p.depth++
	p.at++
	p.out = append(p.out, bracket)
	return true
}

func (p *pass) leave(bracket byte) {
	p.depth--
	p.at++
	p.out = append(p.out, bracket)
}

func (p *pass) array(pl *place) bool {
	n, base := pl.node, len(p.spans)
	if !p.enter('[') {
		return false
	}
	count, contained := 0, false
	for c := p.next(); c != ']' || count > 0; c = p.next() { // after a comma too an element must come
		start := len(p.out)
		if !p.child(pl.element(count)) {
			return false
		}
		if count++; n != nil {
			if n.contains != nil && !contained {
				contained = p.holds(n.contains, start)
			}
			if n.unique {
				p.spans = append(p.spans, span{start: start, end: len(p.out)})
			}
		}
		if more, ok := p.comma(']'); !more {
			if !ok {
				return false
			}
			break
		}
	}
	p.leave(']')
	if n == nil {
		return true
	}
	ok := n.countsElements(count) && (n.contains == nil || contained) && (!n.unique || p.allDiffer(p.spans[base:]))
	p.spans = p.spans[:base]
	return ok
}

// comma reads the comma after an element, unless it was the last.
func (p *pass) comma(bracket byte) (more, ok bool) {
	switch p.next() {
	case ',':
		p.at++
		p.out = append(p.out, ',')
		return true, true
	case bracket:
		return false, true
	}
	return false, false
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
	start := len(p.out)
	if !p.value(c.at) {
		return false
	}
	for _, n := range c.more {
		if _, ok := p.check(n, start); !ok {
			return false
		}
	}
	return true
}

func (p *pass) object(pl *place) bool {
	open, base := len(p.out), len(p.spans)
	if !p.enter('{') {
		return false
	}
	seen, last, ranked, inOrder, guess := uint64(0), -1, true, true, pl.first
	for c := p.next(); c != '}' || len(p.spans) > base; c = p.next() { // after a comma too a member must come
		i := len(p.spans)
		p.spans = append(p.spans, span{start: len(p.out), rank: -1})
		var at *child
		if guess != nil && p.hasPrefix(guess.text) {
			p.at += len(guess.text)
			p.out = append(p.out, guess.text...)
			p.spans[i].name, p.spans[i].rank = len(p.out)-1, guess.rank
			at, guess = &guess.child, guess.next
		} else {
			at = p.name(pl, &p.spans[i])
		}
		if at == nil {
			return false
		}
		rank := p.spans[i].rank
		switch {
		case uint(rank) >= 64:
			ranked = false
			inOrder = inOrder && (i == base || p.compareNames(&p.spans[i-1], &p.spans[i]) < 0)
		case !ranked:
			inOrder = inOrder && p.compareNames(&p.spans[i-1], &p.spans[i]) < 0
		case rank < last:
			inOrder = false
		}
		if rank >= 0 && rank < 64 {
			if seen&(1<<rank) != 0 {
				return false
			}
			seen |= 1 << rank
		}
		last = rank
		if !p.child(at) {
			return false
		}
		p.spans[i].end = len(p.out)
		if more, ok := p.comma('}'); !more {
			if !ok {
				return false
			}
			break
		}
	}
	p.leave('}')
	ok := seen&pl.required == pl.required && p.close(pl, open, base, ranked, inOrder)
	p.spans = p.spans[:base]
	return ok
}

// close checks what is said of the members together, and puts them in order.
func (p *pass) close(pl *place, open, base int, ranked, inOrder bool) bool {
	members := p.spans[base:]
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

// sortRanked puts members with ranks below 64, all different, in order.
func sortRanked(members []span) {
	for i := 1; i < len(members); i++ {
		m, j := members[i], i
		for ; j > 0 && members[j-1].rank > m.rank; j-- {
			members[j] = members[j-1]
		}
		members[j] = m
	}
}

// name reads a name and its colon and returns what is said of the value, nil where the member is refused.
func (p *pass) name(pl *place, m *span) *child {
	if p.at >= len(p.src) || p.src[p.at] != '"' {
		return nil
	}
	end := plainEnd(p.src, p.at+1)
	if end+1 < len(p.src) && p.src[end] == '"' && p.src[end+1] == ':' && pl.names == nil {
		if e := pl.find(p.src[p.at+1 : end]); e != nil {
			p.out = append(p.out, p.src[p.at:end+2]...)
			p.at = end + 2
			m.name, m.rank = len(p.out)-1, e.rank
			return &e.child
		}
	}
	return p.nameFar(pl, m)
}

func (p *pass) nameFar(pl *place, m *span) *child {
	_, escaped, ok := p.str()
	if !ok {
		return nil
	}
	m.name = len(p.out)
	name := p.out[m.start+1 : m.name-1]
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
		if _, ok := p.check(pl.names, m.start); !ok {
			return nil
		}
	}
	if p.next() != ':' {
		return nil
	}
	p.at++
	p.out = append(p.out, ':')
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

// compareNames orders members as the canonical form does.
func (p *pass) compareNames(a, b *span) int {
	if a.rank >= 0 && b.rank >= 0 {
		return a.rank - b.rank
	}
	x, y := p.out[a.start+1:a.name-1], p.out[b.start+1:b.name-1]
	if bytes.IndexByte(y, '\\') >= 0 {
		y = appendUnescaped(nil, y) // the scratch holds one text at a time
	}
	return compareUnits(p.plainText(x), y)
}

// sort puts members in order and reports whether no name stands there twice.
func (p *pass) sort(members []span) bool {
	if len(members) <= 16 {
		for i := 1; i < len(members); i++ {
			m, j := members[i], i
			for ; j > 0 && p.compareNames(&members[j-1], &m) > 0; j-- {
				members[j] = members[j-1]
			}
			members[j] = m
		}
	} else {
		slices.SortFunc(members, func(a, b span) int { return p.compareNames(&a, &b) })
	}
	for i := 1; i < len(members); i++ {
		if p.compareNames(&members[i-1], &members[i]) == 0 {
			return false
		}
	}
	return true
}

// rewrite writes the members of the object that opened at open in their order.
func (p *pass) rewrite(open int, members []span) {
	p.tmp = append(p.tmp[:0], p.out[open:]...)
	p.out = p.out[:open+1]
	for i, m := range members {
		if i > 0 {
			p.out = append(p.out, ',')
		}
		p.out = append(p.out, p.tmp[m.start-open:m.end-open]...)
	}
	p.out = append(p.out, '}')
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

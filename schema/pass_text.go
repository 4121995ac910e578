package schema

import "bytes"

// check applies a schema to the value whose canonical text begins at at, as the branches of a schema are applied: without
// reading the input again. It returns where the value ends, if it satisfies the schema. What one walk costs is counted as
// steps, so that schemas that apply to much, many times over, are left to the judges.
func (p *pass) check(n *node, at int) (end int, ok bool) {
	if p.work--; p.work < 0 || n.never {
		return 0, false
	}
	if n.ref != nil {
		return p.check(n.ref, at)
	}
	r := n.fast
	switch p.out[at] {
	case '"':
		var escaped bool
		end, escaped = p.textEnd(at)
		ok = r.types&typeString != 0 && (r.text == nil || p.textHolds(r.text, p.out[at+1:end-1], -1, escaped))
	case '{':
		if r.types&typeObject != 0 {
			end, ok = p.checkObject(n, at)
		}
	case '[':
		if r.types&typeArray != 0 {
			end, ok = p.checkArray(n, at)
		}
	case 't':
		end, ok = at+4, r.types&typeBoolean != 0
	case 'f':
		end, ok = at+5, r.types&typeBoolean != 0
	case 'n':
		end, ok = at+4, r.types&typeNull != 0
	default:
		end, ok = p.checkNumber(r, at)
	}
	if !ok || !r.whole {
		return end, ok
	}
	if n.enum != nil && !n.hasText(p.out[at:end]) {
		return 0, false
	}
	return end, p.branches(n, at)
}

func (p *pass) checkNumber(r *rules, at int) (end int, ok bool) {
	end = at
	for end < len(p.out) && numeric(p.out[end]) {
		end++
	}
	text := p.out[at:end]
	whole := bytes.IndexByte(text, '.') < 0 && !bytes.Contains(text, []byte("e-"))
	if r.types&typeNumber == 0 && (!whole || r.types&typeInteger == 0) {
		return 0, false
	}
	return end, r.number == nil || p.numberHolds(r.number, text, whole)
}

// textEnd returns where a canonical string ends that opens at at.
func (p *pass) textEnd(at int) (end int, escaped bool) {
	for i := at + 1; ; i++ {
		switch p.out[i] {
		case '"':
			p.work -= (i - at) >> 6
			return i + 1, escaped
		case '\\':
			escaped = true
			i++
		}
	}
}

// skip returns where a canonical value ends that nothing is said of.
func (p *pass) skip(at int) int {
	depth := 0
	for i := at; i < len(p.out); i++ {
		switch p.out[i] {
		case '"':
			i, _ = p.textEnd(i)
			i--
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case ',', ':':
			continue
		default:
			for i+1 < len(p.out) && !bytes.ContainsRune([]byte(",]}"), rune(p.out[i+1])) {
				i++
			}
		}
		p.work--
		if depth <= 0 {
			return i + 1
		}
	}
	return len(p.out)
}

// apply checks a value by several schemas.
func (p *pass) apply(nodes []*node, at int) (end int, ok bool) {
	if len(nodes) == 0 {
		return p.skip(at), true
	}
	for _, n := range nodes {
		if end, ok = p.check(n, at); !ok {
			return 0, false
		}
	}
	return end, true
}

func (p *pass) checkArray(n *node, at int) (end int, ok bool) {
	count, contained, base := 0, n.contains == nil, len(p.spans)
	for at++; p.out[at] != ']'; count++ {
		if p.out[at] == ',' {
			at++
		}
		if end, ok = p.apply(n.elementNodes(count), at); !ok {
			return 0, false
		}
		if !contained {
			contained = p.holds(n.contains, at)
		}
		if n.unique {
			p.spans = append(p.spans, span{start: at, end: end})
		}
		at = end
	}
	ok = contained && n.countsElements(count) && (!n.unique || p.allDiffer(p.spans[base:]))
	p.spans = p.spans[:base]
	return at + 1, ok
}

func (p *pass) checkObject(n *node, at int) (end int, ok bool) {
	base := len(p.spans)
	for at++; p.out[at] != '}'; {
		if p.out[at] == ',' {
			at++
		}
		m := span{start: at, rank: -1}
		var escaped bool
		m.name, escaped = p.textEnd(at)
		name := p.out[m.start+1 : m.name-1]
		if escaped {
			name = appendUnescaped(nil, name)
		}
		if n.propertyNames != nil {
			if _, ok := p.check(n.propertyNames, at); !ok {
				return 0, false
			}
		}
		if at, ok = p.checkMember(n, name, m.name+1); !ok {
			return 0, false
		}
		m.end = at
		p.spans = append(p.spans, m)
	}
	ok = p.membersHold(n, p.spans[base:]) && p.hasAll(n.required, p.spans[base:])
	p.spans = p.spans[:base]
	return at + 1, ok
}

func (p *pass) checkMember(n *node, name []byte, at int) (end int, ok bool) {
	known := false
	if c := n.props[string(name)]; c != nil {
		if end, known = p.check(c, at); !known {
			return 0, false
		}
	}
	for i := range n.patterns {
		if n.patterns[i].re.Match(name) {
			if end, known = p.check(n.patterns[i].node, at); !known {
				return 0, false
			}
		}
	}
	switch {
	case known:
		return end, true
	case n.additional != nil:
		return p.check(n.additional, at)
	}
	return p.skip(at), true
}

// branches applies the schemas inside n that are for the same value.
func (p *pass) branches(n *node, at int) bool {
	for _, b := range n.allOf {
		if _, ok := p.check(b, at); !ok {
			return false
		}
	}
	if n.anyOf != nil && p.matches(n.anyOf, at, 1) == 0 || n.oneOf != nil && p.matches(n.oneOf, at, 2) != 1 {
		return false
	}
	if n.not != nil && p.holds(n.not, at) {
		return false
	}
	if n.ifs != nil {
		branch := n.els
		if p.holds(n.ifs, at) {
			branch = n.then
		}
		if branch != nil && !p.holds(branch, at) {
			return false
		}
	}
	if p.out[at] != '{' {
		return p.work >= 0
	}
	for i := range n.dependencies {
		d := &n.dependencies[i]
		if d.node != nil && p.hasMember(at, d.name) && !p.holds(d.node, at) {
			return false
		}
	}
	return p.work >= 0 // below a not, running out of steps must not pass for consent
}

// holds is check where it does not matter where the value ends.
func (p *pass) holds(n *node, at int) bool {
	base := len(p.spans)
	_, ok := p.check(n, at)
	p.spans = p.spans[:base] // a refusal leaves its own behind
	return ok
}

// matches counts the branches that hold, up to a number that settles the matter.
func (p *pass) matches(branches []*node, at, enough int) int {
	k := 0
	for _, b := range branches {
		if p.holds(b, at) {
			if k++; k == enough {
				break
			}
		}
	}
	return k
}

// hasMember looks for a name in the object whose canonical text begins at at.
func (p *pass) hasMember(at int, name string) bool {
	for at++; p.out[at] != '}'; {
		if p.out[at] == ',' {
			at++
		}
		end, _ := p.textEnd(at)
		if compareUnits(p.plainText(p.out[at+1:end-1]), name) == 0 {
			return true
		}
		at = p.skip(end + 1)
	}
	return false
}

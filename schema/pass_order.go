package schema

import (
	"bytes"
	"math/bits"
	"slices"
)

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

// compareNames orders members as the canonical form does.
func (p *pass) compareNames(a, b *span) int {
	if a.rank >= 0 && b.rank >= 0 {
		return a.rank - b.rank
	}
	p.flush()
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
	from, shift := p.loosen(open)
	out := p.out
	for i := range members {
		out = appendMember(out, from, members[i].start+shift, members[i].end+shift)
	}
	out[len(out)-1] = '}'
	p.out = out
}

// rearrange is rewrite for members in any order whose ranks, all of them below 64, are given.
func (p *pass) rearrange(open int, members []span, ranks uint64) {
	var of [64]uint8
	for i := range members {
		of[members[i].rank&63] = uint8(i)
	}
	from, shift := p.loosen(open)
	out := p.out
	for ; ranks != 0; ranks &= ranks - 1 {
		m := &members[of[bits.TrailingZeros64(ranks)&63]]
		out = appendMember(out, from, m.start+shift, m.end+shift)
	}
	out[len(out)-1] = '}'
	p.out = out
}

// appendMember appends a member and what stands behind it, for which a comma is put.
func appendMember(out, from []byte, start, end int) []byte {
	out = append(out, from[start:end+1]...)
	out[len(out)-1] = ','
	return out
}

// loosen makes the canonical text end behind the brace at open and returns from where, shifted by how much, the members
// that stood there can be written again: from the input where all of it is canonical as it is and has not been written yet.
func (p *pass) loosen(open int) (from []byte, shift int) {
	at := open + 1
	if open >= len(p.out) {
		shift = p.run - len(p.out)
		p.out = append(p.out, p.src[p.run:at+shift]...)
		p.run = p.at
		return p.src, shift
	}
	p.flush()
	p.tmp = append(p.tmp[:0], p.out[at:]...)
	p.out = p.out[:at]
	return p.tmp, -at
}

package schema

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// textValue reads a string and checks it.
func (p *pass) textValue(pl *place) bool {
	start := p.at + 1
	if end := plainEnd(p.src, start); end < len(p.src) && p.src[end] == '"' {
		p.at = end + 1
		r := pl.text
		if r == nil {
			return true
		}
		if n := end - start; r.lengthOnly {
			return n >= r.least && n <= r.most
		}
		return p.textHolds(r, p.src[start:end], end-start, false)
	}
	text, runes, escaped, ok := p.str()
	if !ok || pl.text == nil {
		return ok
	}
	return p.textHolds(pl.text, text, runes, escaped)
}

// textHolds checks the inside of a canonical string; runes is below zero where nobody has counted its characters.
func (p *pass) textHolds(r *textRule, text []byte, runes int, escaped bool) bool {
	if escaped {
		text = p.plainText(text)
	}
	if r.counted {
		if runes < 0 {
			runes = utf8.RuneCount(text)
		}
		if runes < r.least || runes > r.most {
			return false
		}
	}
	if r.pattern != nil && !r.pattern.Match(text) {
		return false
	}
	return r.format == nil || r.sure != nil && r.sure(text) || r.format(string(text))
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special has the high bit of each byte of w set that is no plain character, and perhaps of bytes above such a one.
func special(w uint64) uint64 {
	quotes, slashes := w^(ones*'"'), w^(ones*'\\')
	return (w | (w - ones*' ') | (quotes - ones) | (slashes - ones)) & highs
}

// plainEnd returns where the plain characters end that begin at i.
func plainEnd(src []byte, i int) int {
	for ; i+8 <= len(src); i += 8 {
		if s := special(binary.LittleEndian.Uint64(src[i:])); s != 0 {
			return i + bits.TrailingZeros64(s)>>3 // of the lowest it is sure
		}
	}
	for i < len(src) && plain(src[i]) {
		i++
	}
	return i
}

// str reads a string and returns the inside of its canonical form. It counts the characters and says whether any is
// written with an escape.
func (p *pass) str() (text []byte, runes int, escaped, ok bool) {
	start := p.at
	end := plainEnd(p.src, start+1)
	if end < len(p.src) && p.src[end] == '"' {
		p.at = end + 1
		return p.src[start+1 : end], end - start - 1, false, true
	}
	from := p.pos() + 1
	p.at = end
	p.flush()
	for runes = end - start - 1; p.at < len(p.src); runes++ {
		switch c := p.src[p.at]; {
		case c == '"':
			p.run = p.at // the quote is canonical as it is
			p.at++
			return p.out[from:], runes, escaped, true
		case c == '\\':
			r, ok := p.escape()
			if !ok {
				return nil, 0, false, false
			}
			before := len(p.out)
			p.out = appendRune(p.out, r)
			escaped = escaped || p.out[before] == '\\'
		case c < ' ':
			return nil, 0, false, false
		case c < utf8.RuneSelf:
			end := plainEnd(p.src, p.at)
			p.out = append(p.out, p.src[p.at:end]...)
			runes += end - p.at - 1
			p.at = end
		default:
			r, size := utf8.DecodeRune(p.src[p.at:])
			if r == utf8.RuneError && size == 1 {
				return nil, 0, false, false
			}
			p.out = append(p.out, p.src[p.at:p.at+size]...)
			p.at += size
		}
	}
	return nil, 0, false, false
}

// escape reads one escaped character, a pair of surrogates being one.
func (p *pass) escape() (rune, bool) {
	if p.at+1 >= len(p.src) {
		return 0, false
	}
	if c := escapes[p.src[p.at+1]]; c != 0 {
		p.at += 2
		return rune(c), true
	}
	r, ok := hex4(p.src, p.at)
	if !ok || r >= 0xDC00 && r <= 0xDFFF {
		return 0, false
	}
	p.at += 6
	if r < 0xD800 || r > 0xDFFF {
		return r, true
	}
	low, ok := hex4(p.src, p.at)
	if !ok || low < 0xDC00 || low > 0xDFFF {
		return 0, false
	}
	p.at += 6
	return (r-0xD800)<<10 | (low - 0xDC00) + 0x10000, true
}

// appendRune writes a character of a string in canonical form.
func appendRune(dst []byte, r rune) []byte {
	switch {
	case r >= utf8.RuneSelf:
		return utf8.AppendRune(dst, r)
	case plain(byte(r)):
		return append(dst, byte(r))
	}
	return appendEscape(dst, byte(r))
}

// plainText returns what the inside of a canonical string says. It may be the scratch, which holds one text at a time.
func (p *pass) plainText(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	p.scratch = appendUnescaped(p.scratch[:0], text)
	return p.scratch
}

// appendUnescaped undoes the escapes of the inside of a canonical string.
func appendUnescaped(dst, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 >= len(text) {
			return append(dst, text...)
		}
		dst = append(dst, text[:i]...)
		if c := escapes[text[i+1]]; c != 0 {
			dst, text = append(dst, c), text[i+2:]
			continue
		}
		r, _ := hex4(text, i)
		dst, text = utf8.AppendRune(dst, r), text[min(i+6, len(text)):]
	}
}

// compareUnits orders texts by their UTF-16 code units. Where UTF-8 differs from that is at the first byte of a
// character: those beyond the basic plane (0xF0 to 0xF4) come before the last of it (0xEE and 0xEF).
func compareUnits[A, B string | []byte](a A, b B) int {
	n := min(len(a), len(b))
	for i := 0; i < n; i++ {
		if x, y := a[i], b[i]; x != y {
			return int(unitOrder(x)) - int(unitOrder(y))
		}
	}
	return len(a) - len(b)
}

func unitOrder(c byte) byte {
	switch {
	case c == 0xEE || c == 0xEF:
		return c + 7
	case c >= 0xF0:
		return c - 2
	}
	return c
}

// appendFolded is fold for bytes.
func appendFolded(dst, name []byte) []byte {
	for i := 0; i < len(name); {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z':
			dst, i = append(dst, c-'a'+'A'), i+1
		case c < utf8.RuneSelf:
			dst, i = append(dst, c), i+1
		default:
			r, size := utf8.DecodeRune(name[i:])
			least := r
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				least = min(least, f)
			}
			dst, i = utf8.AppendRune(dst, least), i+size
		}
	}
	return dst
}

package schema

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// str reads a string, the parser standing on its opening quote.
func (p *parser) str() (string, *edgeFault) {
	p.at++
	start := p.at
	for p.at < len(p.in) && plain(p.in[p.at]) {
		p.at++
	}
	if p.peek() == '"' && p.at < len(p.in) {
		s := string(p.in[start:p.at])
		p.at++
		return s, nil
	}
	buf := append(make([]byte, 0, p.at-start+32), p.in[start:p.at]...)
	for p.at < len(p.in) {
		var fault *edgeFault
		switch c := p.in[p.at]; {
		case c == '"':
			p.at++
			return string(buf), nil
		case c == '\\':
			buf, fault = p.escape(buf)
		case c < ' ':
			return "", p.fault(p.at, "unescaped control character in a string")
		default:
			buf, fault = p.char(buf)
		}
		if fault != nil {
			return "", fault
		}
	}
	return "", p.fault(p.at, "input ends inside a string")
}

func plain(c byte) bool { return ' ' <= c && c < utf8.RuneSelf && c != '"' && c != '\\' }

func (p *parser) char(buf []byte) ([]byte, *edgeFault) {
	r, size := utf8.DecodeRune(p.in[p.at:])
	if r == utf8.RuneError && size == 1 {
		// The three bytes of a surrogate are no UTF-8; say so in the words that the reader will look for.
		if rest := p.in[p.at:]; len(rest) >= 2 && rest[0] == 0xED && rest[1] >= 0xA0 {
			return nil, p.fault(p.at, "invalid UTF-8: a surrogate")
		}
		return nil, p.fault(p.at, "invalid UTF-8")
	}
	buf = append(buf, p.in[p.at:p.at+size]...)
	p.at += size
	return buf, nil
}

var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (p *parser) escape(buf []byte) ([]byte, *edgeFault) {
	start := p.at
	if p.at+1 >= len(p.in) {
		return nil, p.fault(p.at, "input ends inside a string")
	}
	if c := escapes[p.in[p.at+1]]; c != 0 {
		p.at += 2
		return append(buf, c), nil
	}
	r, ok := p.hex4()
	switch {
	case !ok:
		return nil, p.fault(start, "invalid escape in a string")
	case r < 0xD800 || r > 0xDFFF:
		return utf8.AppendRune(buf, r), nil
	case r >= 0xDC00:
		return nil, p.fault(start, "lone surrogate in a string")
	}
	low, ok := p.hex4()
	if !ok || low < 0xDC00 || low > 0xDFFF {
		return nil, p.fault(start, "lone surrogate in a string")
	}
	return utf8.AppendRune(buf, (r-0xD800)<<10|(low-0xDC00)+0x10000), nil
}

// hex4 reads \uXXXX.
func (p *parser) hex4() (rune, bool) {
	r, ok := hex4(p.in, p.at)
	if ok {
		p.at += 6
	}
	return r, ok
}

func hex4(in []byte, at int) (rune, bool) {
	if at+6 > len(in) || in[at] != '\\' || in[at+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range in[at+2 : at+6] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

const hexDigits = "0123456789abcdef"

// appendString writes s as RFC 8785 does: only what must be escaped is, controls in lower-case hex.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = appendEscape(append(dst, s[done:i]...), c)
		done = i + 1
	}
	return append(append(dst, s[done:]...), '"')
}

// appendEscape writes a quote, a backslash or a control character.
func appendEscape(dst []byte, c byte) []byte {
	if short := strings.IndexByte("\b\t\n\f\r\"\\", c); short >= 0 {
		return append(dst, '\\', `btnfr"\`[short])
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// quote shows a name in a message: in quotes, and never longer than a line.
func quote(name string) string { return strconv.Quote(clip(name, maxShown)) }

const (
	maxShown   = 64  // bytes of a name in a message
	maxPointer = 256 // bytes of a place in a message
)

// clip cuts s to at most n bytes of whole characters, and shows that it did.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

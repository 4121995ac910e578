package ledger

// Eight bytes are looked at together: a record is mostly text in which nothing has to be escaped.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special reports whether any of eight bytes is a control character, a quotation mark or a backslash.
func special(w uint64) bool {
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	return ((w-ones*0x20)&^w|(quote-ones)&^quote|(slash-ones)&^slash)&highs != 0
}

func eight[T string | []byte](s T, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// asciiFrom returns the index of the first byte from i on that does not stand for itself in a string, ASCII apart.
func asciiFrom(s string, i int) int {
	for ; i+8 <= len(s); i += 8 {
		if w := eight(s, i); w&highs != 0 || special(w) {
			break
		}
	}
	for i < len(s) && s[i] < 0x80 && plain[s[i]] {
		i++
	}
	return i
}

// textFrom returns the index of the first byte from i on that a string of JSON cannot hold as it is.
func textFrom(b []byte, i int) int {
	for i+8 <= len(b) && !special(eight(b, i)) {
		i += 8
	}
	for i < len(b) && (b[i] >= 0x80 || plain[b[i]]) {
		i++
	}
	return i
}

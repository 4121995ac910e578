package action

// hexPairs are the two digits of each byte, the first one in the lower half.
var hexPairs = func() (t [256]uint16) {
	const digits = "0123456789abcdef"
	for i := range t {
		t[i] = uint16(digits[i>>4]) | uint16(digits[i&15])<<8
	}
	return t
}()

// AppendHex appends the lower-case hex of a 32-byte sum, such as digests and links are, to dst.
func AppendHex(dst []byte, sum *[32]byte) []byte {
	var text [64]byte
	for i, c := range sum {
		pair := hexPairs[c]
		text[2*i], text[2*i+1] = byte(pair), byte(pair>>8)
	}
	return append(dst, text[:]...)
}

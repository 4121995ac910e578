package ledger

// compact reports whether b is one valid JSON value, not nested absurdly deep, without white space between its parts:
// then it may stand in a record as it is. False may also mean that somebody slower has to look.
func compact(b []byte) bool {
	i := compactValue(b, 0, 0)
	return i == len(b)
}

// compactDepth is more than the strict edge lets pass.
const compactDepth = 200

// compactValue returns the index behind the value that begins at i, -1 where there is none.
func compactValue(b []byte, i, depth int) int {
	if i >= len(b) || depth > compactDepth {
		return -1
	}
	switch c := b[i]; c {
	case '"':
		return compactString(b, i)
	case '{':
		return compactMembers(b, i+1, depth+1, '}')
	case '[':
		return compactMembers(b, i+1, depth+1, ']')
	case 't':
		return compactWord(b, i, "true")
	case 'f':
		return compactWord(b, i, "false")
	case 'n':
		return compactWord(b, i, "null")
	}
	return compactNumber(b, i)
}

func compactMembers(b []byte, i, depth int, end byte) int {
	if i < len(b) && b[i] == end {
		return i + 1
	}
	for {
		if end == '}' {
			if i = compactString(b, i); i < 0 || i >= len(b) || b[i] != ':' {
				return -1
			}
			i++
		}
		if i = compactValue(b, i, depth); i < 0 || i >= len(b) {
			return -1
		}
		switch b[i] {
		case end:
			return i + 1
		case ',':
			i++
		default:
			return -1
		}
	}
}

// compactString leaves every escape but the short ones to somebody slower.
func compactString(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i++; i < len(b); i++ {
		if i = textFrom(b, i); i == len(b) {
			return -1
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\' && i+1 < len(b):
			i++
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			default:
				return -1
			}
		default:
			return -1
		}
	}
	return -1
}

func compactWord(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

func compactNumber(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	from := i
	if i = digits(b, i); i == from || b[from] == '0' && i > from+1 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		from = i + 1
		if i = digits(b, from); i == from {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		from = i
		if i = digits(b, i); i == from {
			return -1
		}
	}
	return i
}

func digits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

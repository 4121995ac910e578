package statespace

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// appendValue writes a tree as JSON, members sorted by name, so that equal values have equal text and others differ.
// Numbers are written as they come: the strict edge has normalised them.
func appendValue(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		if v {
			return append(b, "true"...), nil
		}
		return append(b, "false"...), nil
	case string:
		if !validText(v) {
			return b, fmt.Errorf("string %q is not valid UTF-8", v)
		}
		return appendQuoted(b, v), nil
	case json.Number:
		if !isNumber(string(v)) {
			return b, fmt.Errorf("number %q is not a JSON number", string(v))
		}
		return append(b, v...), nil
	case []any:
		return appendArray(b, v)
	case map[string]any:
		return appendObject(b, v)
	}
	return b, fmt.Errorf("value of type %T is not part of a JSON tree", v)
}

func appendArray(b []byte, vs []any) (_ []byte, err error) {
	b = append(b, '[')
	for i, v := range vs {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendValue(b, v); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}

func appendObject(b []byte, m map[string]any) (_ []byte, err error) {
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b = append(b, ',')
		}
		if !validText(name) {
			return b, fmt.Errorf("member name %q is not valid UTF-8", name)
		}
		b = append(appendQuoted(b, name), ':')
		if b, err = appendValue(b, m[name]); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

func validText(s string) bool { return utf8.ValidString(s) }

func quote(s string) string { return string(appendQuoted(nil, s)) }

// appendQuoted escapes what JSON demands, and DEL, so that a key is one printable line.
func appendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20 || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// isNumber reports whether s is a JSON number: anything else unquoted in a key could be taken for structure.
func isNumber(s string) bool {
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return false
	}
	if last := s[len(s)-1]; last < '0' || last > '9' {
		return false // json.Valid would forgive trailing space
	}
	return json.Valid([]byte(s))
}

// scanValue returns the end of the JSON value that starts at i, or -1. It finds structure only: whether the value is well
// formed is for who reads it.
func scanValue(s string, i int) int {
	depth := 0
	for ; i < len(s); i++ {
		switch s[i] {
		case '"':
			if i = scanString(s, i); i < 0 {
				return -1
			}
			i--
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
		if depth < 0 {
			return -1
		}
	}
	if depth != 0 {
		return -1
	}
	return i
}

// scanString returns the index after the closing quote of the JSON string that starts at i, or -1.
func scanString(s string, i int) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// splitValues separates a joined tuple again.
func splitValues(joined string) []string {
	var out []string
	for i := 0; i < len(joined); {
		end := scanValue(joined, i)
		if end < 0 {
			return nil
		}
		out = append(out, joined[i:end])
		i = end + 1
	}
	return out
}

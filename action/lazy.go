package action

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
)

// NewLazyDocument is [NewDocument] for a text whose value is not read before somebody asks for it.
func NewLazyDocument(text string) Document { return new(Lazy).Document(text) }

// Lazy is room for the value of one document, once it was asked for. Whoever has memory for it in something larger makes a
// document by it without an allocation. Its zero value is ready; it must not be copied once it has made a document.
type Lazy struct {
	once sync.Once
	tree any
}

// Document is [NewLazyDocument] with its value kept here; the room serves one document.
func (l *Lazy) Document(text string) Document { return Document{text: text, lazy: l} }

func (l *Lazy) of(text string) any {
	l.once.Do(func() { l.tree = readCanonical(text) })
	return l.tree
}

// readCanonical reads a text in canonical form, of which nothing needs to be checked any more. Names and strings without
// escapes are pieces of the text.
func readCanonical(text string) any {
	r := reader{text: text}
	return r.value()
}

type reader struct {
	text string
	at   int
}

func (r *reader) value() any {
	switch r.text[r.at] {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '"':
		return r.str()
	case 't':
		r.at += len("true")
		return true
	case 'f':
		r.at += len("false")
		return false
	case 'n':
		r.at += len("null")
		return nil
	}
	start := r.at
	for r.at < len(r.text) && !strings.ContainsRune(",]}", rune(r.text[r.at])) {
		r.at++
	}
	return json.Number(r.text[start:r.at])
}

func (r *reader) object() any {
	members := map[string]any{}
	for r.at++; r.text[r.at] != '}'; {
		if r.text[r.at] == ',' {
			r.at++
		}
		name := r.str()
		r.at++ // the colon
		members[name] = r.value()
	}
	r.at++
	return members
}

func (r *reader) array() any {
	list := []any{}
	for r.at++; r.text[r.at] != ']'; {
		if r.text[r.at] == ',' {
			r.at++
		}
		list = append(list, r.value())
	}
	r.at++
	return list
}

func (r *reader) str() string {
	r.at++
	start, escaped := r.at, false
	for ; r.text[r.at] != '"'; r.at++ {
		if r.text[r.at] == '\\' {
			escaped = true
			r.at++
		}
	}
	r.at++
	if s := r.text[start : r.at-1]; !escaped {
		return s
	}
	return unescaped(r.text[start : r.at-1])
}

// unescaped undoes the escapes of the canonical form: those that Go has too, and \u00xx for other control characters.
func unescaped(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, `\`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if rest[0] == 'u' {
			c, _ := strconv.ParseUint(rest[1:5], 16, 16)
			b.WriteRune(rune(c))
			s = rest[5:]
			continue
		}
		if i := strings.IndexByte(`btnfr`, rest[0]); i >= 0 {
			b.WriteByte("\b\t\n\f\r"[i])
		} else {
			b.WriteByte(rest[0])
		}
		s = rest[1:]
	}
}

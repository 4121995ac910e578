package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

func flags(of ...bool) string {
	b := make([]byte, len(of))
	for i, f := range of {
		b[i] = '0'
		if f {
			b[i] = '1'
		}
	}
	return string(b)
}

func soft(hard, soft string, c *txn.Clause) string {
	if c.Soft {
		return soft
	}
	return hard
}

// version is a cell's version as it is stored; no cell has a negative one.
func (e *encoder) version(n int64) {
	switch {
	case n < 0:
		e.add("none")
	case n == 0:
		e.add(noVersion)
	default:
		e.padded(n)
	}
}

// padded is a number with so many digits that it compares as text.
func (e *encoder) padded(n int64) {
	from := len(e.arena)
	e.arena = append(e.arena, noVersion[:digits-min(digits, width(n))]...)
	e.arena = strconv.AppendInt(e.arena, n, 10)
	e.text = append(e.text, e.since(from))
}

const noVersion = "0000000000000000"

func width(n int64) (w int) {
	for ; n > 0; n /= 10 {
		w++
	}
	return w
}

// state is a token's state with its length before it; "" stays "".
func (e *encoder) state(s string) {
	if s == "" {
		e.add("")
		return
	}
	e.longState(s, "")
}

func (e *encoder) longState(s, val string) {
	from := len(e.arena)
	e.arena = append(e.arena, "0000"[:max(0, 4-max(1, width(int64(len(s)))))]...)
	e.arena = strconv.AppendInt(e.arena, int64(len(s)), 10)
	e.arena = append(append(e.arena, s...), val...)
	e.text = append(e.text, e.since(from))
}

// command is what is sent to run a script: its name and hash, then keys and arguments.
func (e *encoder) command(hash string) []any {
	e.args = appendCommand(e.args[:0], hash, e.k, e.text)
	return e.args
}

func command(hash string, keys, args []string) []any { return appendCommand(nil, hash, keys, args) }

func appendCommand(c []any, hash string, keys, args []string) []any {
	c = slices.Grow(c, 3+len(keys)+len(args))
	c = append(c, "evalsha", hash, len(keys))
	for i := range keys {
		c = append(c, &keys[i]) // a pointer costs no memory of its own
	}
	for i := range args {
		c = append(c, &args[i])
	}
	return c
}

// maxName is the longest name of a cell of the records that a lease can list, and maxState the longest state that longState can say.
const (
	maxName  = 9998
	maxState = 9999
)

// checkForm reports what cannot be stored: a state that is too long, a view whose key is that of something else.
func checkForm(t *txn.Txn) error {
	if strings.Contains(t.Owner, "\x00") {
		return fmt.Errorf("owner %q has a NUL", t.Owner)
	}
	for i := range t.Clauses {
		if c := &t.Clauses[i]; c.Scope == txn.Record && c.Op == txn.Put && strings.HasPrefix(c.Val, "\x01") {
			return fmt.Errorf("clause %d (%c %s): a value that begins with the byte 1", i, c.Op, c.Key)
		}
		if c := &t.Clauses[i]; c.Op == txn.Show && slices.Contains(reserved, c.Key) {
			return fmt.Errorf("clause %d: a view named %s would stand in the place of the store's own", i, c.Key)
		}
		if c := &t.Clauses[i]; c.Scope == txn.Record && len(c.Key) > maxName {
			return fmt.Errorf("clause %d (%c): a name of more than %d bytes", i, c.Op, maxName)
		}
		if c := &t.Clauses[i]; len(c.From) > maxState || len(c.To) > maxState {
			return fmt.Errorf("clause %d (%c %s): a state of more than %d bytes", i, c.Op, c.Key, maxState)
		}
	}
	return nil
}

// place is the number of the lease that an Expire clause is about, 0 for the task.
func (e *encoder) place(c *txn.Clause) int64 {
	if c.Scope != txn.Record {
		return 0
	}
	at := int64(len(e.names[0]) + 1)
	if c.Key == e.t.Intent {
		return at
	}
	for s := range e.slots {
		if f := &e.slots[s]; f.hash == 1 {
			if at++; f.kind == 'l' && f.key == c.Key {
				return at
			}
		}
	}
	return 0
}

// link writes a chain link; one that follows the one before it joins it.
func (e *encoder) link(c *txn.Clause) {
	links, odd := e.keys.links, e.keys.odd
	if c.Scope == txn.Agent {
		links, odd = e.keys.agentLinks, e.keys.agentOdd
	}
	scope := string(rune(c.Scope))
	if len(c.Val) != linkSize {
		e.add("L", scope)
		e.int(e.key(links))
		e.int(e.key(odd))
		e.int(c.N)
		e.add(c.Val)
		return
	}
	if n := len(e.text); n >= 5 && e.text[n-5] == "M" && e.text[n-4] == scope && e.row == n {
		if first, err := strconv.ParseInt(e.text[n-2], 10, 64); err == nil && first+int64(len(e.text[n-1])/linkSize) == c.N {
			if len(e.links) == 0 {
				e.links = append(make([]byte, 0, 16*linkSize), e.text[n-1]...)
			}
			e.links = append(e.links, c.Val...)
			e.text[n-1] = unsafe.String(unsafe.SliceData(e.links), len(e.links))
			return
		}
	}
	e.add("M", scope)
	e.int(e.key(links))
	e.int(c.N)
	e.add(c.Val)
	e.row, e.links = len(e.text), nil
}

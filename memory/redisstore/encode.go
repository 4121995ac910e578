package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// The script's arguments:
//
//	phase fence owner ttl step flags  nT nR nA  keep  names…  clauses…  member
//
// with flags for: raises the task's revision, raises the agent's, reads, writes to the task, expires; nT field names of the
// task's hash, nR of its records' and nA of the agent's, then a few arguments for each clause, which speak of fields and
// keys by number, and the name of the lease in its queue. Its keys are those of task, records, agent, leases, ends and the
// task's ledger, then the ledgers and queues that the clauses name.
type encoder struct {
	keys   keys
	t      *txn.Txn
	names  [3][]string    // task, records, agent
	number map[field]int  // of a field within its hash, from 1
	where  map[string]int // number of a key, from 1
	k      []string
	a      []any
	events []string // of the task, in order
}

// field is a name space and a name within a hash: what a clause speaks of.
type field struct {
	hash int
	kind byte
	key  string
}

// Fields that hashes start with: the head, and the agent's pending outcomes.
var (
	headTask  = []string{"m"}
	headAgent = []string{"m", "p"}
)

// viewTrust is the view that also shows how many outcomes are not folded yet.
const viewTrust = "trust"

// reserved are names of keys of an agent that no view may have.
var reserved = []string{"agent", "notes", "queue", "ends", "task", "records", "ledger", "links", "oddlinks"}

// linkSize is the length of a chain link that is stored in place.
const linkSize = 64

func encode(ks keys, t *txn.Txn, keep int64) *encoder {
	e := &encoder{keys: ks, t: t, number: map[field]int{}, where: map[string]int{}}
	e.names[2] = append(e.names[2], headAgent...)
	if t.Task != "" {
		e.names[0] = append(e.names[0], headTask...)
		e.names[1] = append(e.names[1], "l"+t.Intent)
	}
	reads, expires, writes := false, false, t.Phase != txn.Plain
	for i := range t.Clauses {
		c := &t.Clauses[i]
		e.nameFields(c)
		reads, expires = reads || c.Op == txn.Read, expires || c.Op == txn.Expire
		switch c.Op {
		case txn.Put, txn.Count, txn.Set, txn.Take, txn.Event, txn.Expire:
			writes = writes || c.Scope != txn.Agent
		}
	}
	inTask, inAgent := t.Raises()
	e.k = []string{ks.task(t.Task), ks.records(t.Task), ks.agent(), ks.queue(txn.Leases), ks.ends(), ks.ledger(t.Task)}
	if t.Task != "" {
		e.where[e.k[5]] = 6
	}
	e.a = make([]any, 0, 12+len(e.number)+5*len(t.Clauses))
	e.a = append(e.a, string(rune(t.Phase)), t.Fence, t.Owner, t.TTL, t.Step, flags(inTask, inAgent, reads, writes, expires),
		len(e.names[0]), len(e.names[1]), len(e.names[2]), keep)
	for _, names := range e.names {
		for _, n := range names {
			e.a = append(e.a, n)
		}
	}
	for i := range t.Clauses {
		e.clause(&t.Clauses[i])
	}
	e.a = append(e.a, t.Task+"\n"+t.Intent)
	return e
}

func (e *encoder) nameFields(c *txn.Clause) {
	cells, counters, tokens := c.Names()
	if cells {
		e.name(c, 'v')
	}
	if counters {
		e.name(c, 'c')
	}
	if tokens {
		e.name(c, 'k')
	}
	if c.Op == txn.Expire && c.Scope == txn.Record {
		e.name(c, 'l')
	}
}

func (e *encoder) name(c *txn.Clause, kind byte) {
	f := field{hashOf(c.Scope), kind, c.Key}
	if kind == 'l' && c.Key == e.t.Intent {
		e.number[f] = 1 // it heads the records
	}
	if e.number[f] == 0 {
		e.names[f.hash] = append(e.names[f.hash], string(kind)+c.Key)
		e.number[f] = len(e.names[f.hash])
	}
}

func hashOf(s txn.Scope) int {
	switch s {
	case txn.Task:
		return 0
	case txn.Record:
		return 1
	}
	return 2
}

// of returns the number of a field among all.
func (e *encoder) of(c *txn.Clause, kind byte) int {
	return e.at(field{hashOf(c.Scope), kind, c.Key})
}

func (e *encoder) at(f field) int {
	n := e.number[f]
	for i := range f.hash {
		n += len(e.names[i])
	}
	return n
}

// key returns the number of a key, which joins those the script is given.
func (e *encoder) key(name string) int {
	if e.where[name] == 0 {
		e.k = append(e.k, name)
		e.where[name] = len(e.k)
	}
	return e.where[name]
}

func (e *encoder) clause(c *txn.Clause) {
	op := string(rune(c.Op))
	switch c.Op {
	case txn.Expect:
		e.a = append(e.a, op, e.of(c, 'v'), version(c.N))
	case txn.Put:
		if at := slices.Index(e.events, c.Val); at >= 0 && c.Scope == txn.Record { // an intent's cell holds the event that began it
			e.a = append(e.a, "p", e.of(c, 'v'), at+1)
			return
		}
		e.a = append(e.a, op, e.of(c, 'v'), c.Val)
	case txn.Count:
		switch {
		case !c.Soft:
			e.a = append(e.a, op, e.of(c, 'c'), c.N, c.Min, c.Max)
		case c.N != 0:
			e.a = append(e.a, "c", e.of(c, 'c'), c.N)
		default:
			e.a = append(e.a, "?")
		}
	case txn.Have:
		e.a = append(e.a, op, e.of(c, 'k'), state(c.From), max(c.N, -1))
	case txn.Take:
		e.a = append(e.a, soft("K", "k", c), e.of(c, 'k'), state(c.From), state(c.To), max(c.N, -1))
	case txn.Set:
		e.a = append(e.a, op, e.of(c, 'k'), longState(c.To)+c.Val, c.N)
	case txn.Time:
		e.a = append(e.a, op, c.Min, c.Max)
	case txn.Event:
		e.a = append(e.a, op, string(rune(c.Scope)), e.key(e.keys.ledger(e.book(c))), c.Val)
		if c.Scope == txn.Task {
			e.events = append(e.events, c.Val)
		}
	case txn.Link:
		odd := 0
		if len(c.Val) != linkSize {
			odd = e.key(e.keys.odd(e.book(c)))
		}
		e.a = append(e.a, op, string(rune(c.Scope)), e.key(e.keys.links(e.book(c))), odd, c.N, c.Val)
	case txn.Pend:
		e.a = append(e.a, op, c.Val)
	case txn.Trim:
		e.a = append(e.a, op, c.N)
	case txn.Queue:
		e.a = append(e.a, op, e.key(e.keys.queue(c.Key)), c.Val, c.N)
	case txn.Unqueue:
		e.a = append(e.a, op, e.key(e.keys.queue(c.Key)), c.Val)
	case txn.Expire:
		of := 0
		if c.Scope == txn.Record {
			of = e.of(c, 'l')
		}
		e.a = append(e.a, op, of, min(max(c.N, -1), 0))
	case txn.Show:
		fields := strings.Split(c.Val, "\n")
		e.a = append(e.a, op, e.key(e.keys.view(c.Key)), c.Key == viewTrust, len(fields))
		for _, f := range fields {
			e.a = append(e.a, f)
		}
	default:
		e.a = append(e.a, op)
	}
}

func (e *encoder) book(c *txn.Clause) string {
	if c.Scope == txn.Agent {
		return ""
	}
	return e.t.Task
}

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
func version(n int64) string {
	if n < 0 {
		return "none"
	}
	return fmt.Sprintf("%016d", n)
}

// state is a token's state with its length before it; "" stays "".
func state(s string) string {
	if s == "" {
		return ""
	}
	return longState(s)
}

func longState(s string) string {
	n := strconv.Itoa(len(s))
	return "0000"[:max(0, 4-len(n))] + n + s
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

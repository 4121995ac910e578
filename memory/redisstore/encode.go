package redisstore

import (
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// The script's arguments:
//
//	phase flags fence owner  nT nR nA  keep step ttl lease  task's record  agent's record, its key  outcomes known  names…  entries…
//
// with flags for: raises the task's revision, raises the agent's, reads, writes to the task, expires, appends to the task's
// ledger; nT field names of the task's hash, nR of its records' and nA of the agent's; the name of the lease in its queue; the
// records by which the caller knows task and agent, and the number of the key of the latter's ledger; up to which of the agent's
// outcomes it knows what is pending, -1 for not at all. Entries are of one letter and what it needs: first conditions on the
// time, then one for each field that a clause speaks of, in the order of the fields, with all that the clauses want of it; then
// what is appended, in the order of the clauses. Its keys are those of task, records, agent, leases, ends, the task's ledger and
// the agent's pending outcomes, then the ledgers and queues that the clauses name.
type encoder struct {
	keys  *taskKeys
	t     *txn.Txn
	slots []slot
	next  []int32 // of each clause the one that speaks of the same field after it, -1 for none
	many  map[field]int
	names [3][]string // task, records, agent
	from  []int       // the clause of each entry that has a condition
	k     []string
	text  []string  // the arguments
	arena []byte    // what they are made of
	row   int       // where the arguments ended with links in a row
	links []byte    // the links of that row, where they are several
	told  int       // which argument says up to where the pending outcomes are known
	known *pendings // those
	heard *pendings // what the answer says of them, where that was read already
	lease bool      // the records are headed by the intent's lease
	all   []string  // the names of all hashes
	args  []any     // what is sent
}

// field is a name space and a name within a hash: what a clause speaks of.
type field struct {
	hash byte // 0, 1, 2: task, records, agent
	kind byte
	key  string
}

// slot is a field and the first and last clause that speaks of it, -1 for none that does more than read.
type slot struct {
	field
	first, last int32
}

// head is the field that the hashes of a task and of an agent start with.
var head = []string{"m"}

// viewTrust is the view that also shows how many outcomes are not folded yet.
const viewTrust = "trust"

// reserved are names of keys of an agent that no view may have.
var reserved = []string{"agent", "notes", "queue", "ends", "pending", "pruned", "task", "records", "ledger", "links", "oddlinks"}

// linkSize is the length of a chain link that is stored in place.
const linkSize = 64

func encode(ks *taskKeys, t *txn.Txn, keep int64, known seen, by string) *encoder {
	e := encoders.Get().(*encoder)
	e.keys, e.t = ks, t
	e.next = append(e.next[:0], make([]int32, len(t.Clauses))...)
	reads, expires, writes, appends := false, false, t.Phase != txn.Plain, false
	e.lease = t.Task != "" && t.Intent != ""
	for i := range t.Clauses {
		c := &t.Clauses[i]
		e.next[i] = -1
		e.slot(c, int32(i))
		reads, expires = reads || c.Op == txn.Read, expires || c.Op == txn.Expire
		switch c.Op {
		case txn.Put, txn.Count, txn.Set, txn.Take, txn.Event, txn.Expire:
			writes = writes || c.Scope != txn.Agent
		}
		e.lease = e.lease || c.Scope == txn.Record
		appends = appends || c.Op == txn.Event && c.Scope == txn.Task
	}
	inTask, inAgent := t.Raises()
	e.k = append(e.k, ks.task, ks.records, ks.agent, ks.leases, ks.ends, ks.ledger, ks.pending)
	e.fieldNames()
	e.add(string(rune(t.Phase)), flags(inTask, inAgent, reads, writes, expires, appends))
	e.int(t.Fence)
	e.add(t.Owner)
	for _, names := range e.names {
		e.int(int64(len(names)))
	}
	e.int(keep)
	e.int(t.Step)
	e.int(t.TTL)
	e.join(t.Task, "\n", t.Intent)
	e.knownBy(known, by)
	e.told = len(e.text)
	e.add("")
	e.knows(known.agent.pending)
	for _, names := range e.names {
		e.add(names...)
	}
	e.entries()
	for i := range t.Clauses {
		e.appends(&t.Clauses[i])
	}
	return e
}

// slot notes which fields a clause speaks of.
func (e *encoder) slot(c *txn.Clause, i int32) {
	cells, counters, tokens := c.Names()
	reads := c.Op == txn.Read
	if cells {
		e.speaks(field{hashOf(c.Scope), 'v', c.Key}, i, reads)
	}
	if counters {
		e.speaks(field{hashOf(c.Scope), 'c', c.Key}, i, reads)
	}
	if tokens {
		e.speaks(field{hashOf(c.Scope), 'k', c.Key}, i, reads)
	}
	if c.Op == txn.Expire && c.Scope == txn.Record && c.Key != e.t.Intent {
		e.speaks(field{hashOf(c.Scope), 'l', c.Key}, i, true)
	}
}

func (e *encoder) speaks(f field, i int32, reads bool) {
	s := e.find(f)
	if s < 0 {
		s = len(e.slots)
		e.slots = append(e.slots, slot{f, -1, -1})
		if e.many != nil {
			e.many[f] = s
		}
	}
	switch at := &e.slots[s]; {
	case reads:
	case at.first < 0:
		at.first, at.last = i, i
	default:
		e.next[at.last] = i
		at.last = i
	}
}

// fewSlots is how many fields are looked through one by one.
const fewSlots = 24

func (e *encoder) find(f field) int {
	if e.many != nil {
		if s, ok := e.many[f]; ok {
			return s
		}
		return -1
	}
	for s := range e.slots {
		if e.slots[s].field == f {
			return s
		}
	}
	if len(e.slots) == fewSlots {
		e.many = make(map[field]int, len(e.next))
		for s := range e.slots {
			e.many[e.slots[s].field] = s
		}
	}
	return -1
}

func hashOf(s txn.Scope) byte {
	switch s {
	case txn.Task:
		return 0
	case txn.Record:
		return 1
	}
	return 2
}

// fieldNames lists the fields hash by hash.
func (e *encoder) fieldNames() {
	slices.SortStableFunc(e.slots, func(a, b slot) int { return int(a.hash) - int(b.hash) })
	e.all = slices.Grow(e.all, len(e.slots)+4) // else names would be of several
	all, at := e.all, 0
	for h := range e.names {
		from := len(all)
		switch {
		case h == 0 && e.t.Task != "":
			all = append(all, head...)
		case h == 1 && e.lease:
			all = append(all, e.named('l', e.t.Intent))
		case h == 2:
			all = append(all, head...)
		}
		for ; at < len(e.slots) && int(e.slots[at].hash) == h; at++ {
			s := &e.slots[at]
			all = append(all, e.named(s.kind, s.key))
		}
		e.names[h] = all[from:len(all):len(all)]
	}
	e.many, e.all = nil, all
}

func (e *encoder) named(kind byte, key string) string {
	from := len(e.arena)
	e.arena = append(append(e.arena, kind), key...)
	return e.since(from)
}

// made returns a text put together in the arena.
func (e *encoder) made(parts ...string) string {
	from := len(e.arena)
	for _, p := range parts {
		e.arena = append(e.arena, p...)
	}
	return e.since(from)
}

// since returns what was appended to the arena; it stays as it is when the arena moves on.
func (e *encoder) since(from int) string {
	return unsafe.String(unsafe.SliceData(e.arena[from:]), len(e.arena)-from)
}

func (e *encoder) add(args ...string)   { e.text = append(e.text, args...) }
func (e *encoder) join(parts ...string) { e.text = append(e.text, e.made(parts...)) }
func (e *encoder) key(name string) int64 {
	if i := slices.Index(e.k, name); i >= 0 {
		return int64(i + 1)
	}
	e.k = append(e.k, name)
	return int64(len(e.k))
}

func (e *encoder) int(n int64) {
	if 0 <= n && n < 100 {
		e.add(strconv.Itoa(int(n))) // of these no copy is made
		return
	}
	from := len(e.arena)
	e.arena = strconv.AppendInt(e.arena, n, 10)
	e.text = append(e.text, e.since(from))
}

// entries writes the conditions and what is written to fields.
func (e *encoder) entries() {
	for i := range e.t.Clauses {
		if c := &e.t.Clauses[i]; c.Op == txn.Time {
			e.from = append(e.from, i)
			e.add("W")
			e.int(c.Min)
			e.int(c.Max)
		}
	}
	hash := byte(0)
	for s := range e.slots {
		at := &e.slots[s]
		if at.hash != hash {
			hash = at.hash
			e.add([]string{"", "r", "a"}[hash])
		}
		switch {
		case at.first < 0:
			e.entry("?", -1)
		case at.kind == 'c':
			e.counter(at)
		default:
			for i := at.first; i >= 0; i = e.next[i] {
				if i != at.first {
					e.add("<")
				}
				e.single(&e.t.Clauses[i], int(i))
			}
		}
	}
}

func (e *encoder) entry(op string, clause int) {
	e.from = append(e.from, clause)
	e.add(op)
}

// counter writes all that the clauses want of a counter: what it must be within, and what is added.
func (e *encoder) counter(at *slot) {
	lo, hi, by, hard := txn.NoMin, txn.NoMax, int64(0), int32(-1)
	for i := at.first; i >= 0; i = e.next[i] {
		c := &e.t.Clauses[i]
		by += c.N
		if c.Soft {
			continue
		}
		if hard < 0 {
			hard = i
		}
		lo, hi = max(lo, c.Min, txn.NoMin-c.N), min(hi, c.Max-c.N)
	}
	if hard < 0 {
		e.entry("c", int(at.first))
		e.int(by)
		return
	}
	e.entry("C", int(hard))
	e.int(by)
	if lo == txn.NoMin {
		e.add("")
	} else {
		e.int(lo)
	}
	e.int(hi)
}

func (e *encoder) single(c *txn.Clause, i int) {
	switch c.Op {
	case txn.Expect:
		e.entry("V", i)
		e.version(c.N)
	case txn.Put:
		if c.Soft && c.Scope == txn.Record {
			e.entry("s", i)
			e.add(c.Val)
			return
		}
		if n := e.eventOf(c); n > 0 { // an intent's cell holds the event that began it
			e.entry("p", i)
			e.int(n)
			return
		}
		e.entry("P", i)
		if c.Scope == txn.Record {
			e.add(c.Val)
			return
		}
		e.add(squeeze(c.Val))
	case txn.Have:
		e.entry("H", i)
		e.state(c.From)
		e.int(max(c.N, -1))
	case txn.Take:
		e.entry(soft("K", "k", c), i)
		e.state(c.From)
		e.int(max(c.N, -1))
		e.state(c.To)
	case txn.Set:
		e.entry("S", i)
		e.longState(c.To, c.Val)
		e.int(c.N)
	}
}

// eventOf returns the number of the event of the task that a cell of the records repeats, 0 for none.
func (e *encoder) eventOf(c *txn.Clause) (n int64) {
	if c.Scope != txn.Record {
		return 0
	}
	for i := range e.t.Clauses {
		if x := &e.t.Clauses[i]; x.Op == txn.Event && x.Scope == txn.Task {
			if n++; x.Val == c.Val {
				return n
			}
		}
	}
	return 0
}

// appends writes what has no condition and no field.
func (e *encoder) appends(c *txn.Clause) {
	switch c.Op {
	case txn.Event:
		if c.Scope == txn.Task {
			e.add("E", c.Val)
			return
		}
		e.add("e")
		e.int(e.key(e.keys.agentLedger))
		e.add(c.Val)
	case txn.Link:
		e.link(c)
	case txn.Pend:
		e.add("O", c.Val)
	case txn.Trim:
		e.add("D")
		e.int(c.N)
	case txn.Queue:
		e.add("Q")
		e.int(e.key(e.keys.queue(c.Key)))
		e.add(c.Val)
		e.int(c.N)
	case txn.Unqueue:
		e.add("U")
		e.int(e.key(e.keys.queue(c.Key)))
		e.add(c.Val)
	case txn.Expire:
		e.add("X")
		e.int(e.place(c))
		e.int(min(max(c.N, -1), 0))
	case txn.Show:
		fields := strings.Split(c.Val, "\n")
		e.add("R")
		e.int(e.key(e.keys.view(c.Key)))
		e.add(flags(c.Key == viewTrust))
		e.int(int64(len(fields)))
		e.add(fields...)
	}
}

package redisstore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// How values stand in the hashes; numbers in front have 16 digits, so that they compare as text.
//
//	v + name  cell      version, value; of a task or an agent also version, byte 2, value compressed; of the records also version,
//	                    byte 1, number of the record that has the value's text
//	c + name  counter   the number
//	k + name  token     set at, expires at (0 never), length of the state in 4 digits, state, value
//	l + name  lease     phase, the phase that left it so, k where it is kept, until (ended: from when on it may go), sequence,
//	                    fence|step|owner, NUL, cells put: length of the name in 4 digits, name, version
//	m         head      revision, length of the ledger; of a task: when the first of its ends is due (0 none), when its newest
//	                    record was written, whether it is over, intents kept; of an agent: outcomes ever pended, those folded
//
// A ledger is a list of store time and event. What is pending of an agent is a list of outcomes: the first is the one after
// those that are folded.
const digits = 16

// reader turns replies into values and keeps the first fault.
type reader struct{ err error }

func (r *reader) fail(what, text string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s as another program would write it: %.40q", what, text)
	}
}

func (r *reader) number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			r.fail("a number", v)
		}
		return n
	}
	return 0
}

func (r *reader) cell(s string, squeezes bool) txn.Cell {
	if len(s) < digits {
		r.fail("a cell", s)
		return txn.Cell{}
	}
	c := txn.Cell{Ver: r.number(s[:digits]), Val: s[digits:]}
	if squeezes {
		var err error
		if c.Val, err = unsqueeze(c.Val); err != nil && r.err == nil {
			r.err = err
		}
	}
	return c
}

func (r *reader) token(s string) txn.Token {
	const head = 2*digits + 4
	if len(s) < head {
		r.fail("a token", s)
		return txn.Token{}
	}
	n := int(r.number(s[2*digits : head]))
	if n < 0 || n > len(s)-head {
		r.fail("a token", s)
		return txn.Token{}
	}
	return txn.Token{At: r.number(s[:digits]), Exp: r.number(s[digits : 2*digits]), State: s[head : head+n], Val: s[head+n:]}
}

func (r *reader) lease(s string) txn.Lease {
	const head = 3 + 2*digits
	if len(s) < head {
		r.fail("a lease", s)
		return txn.Lease{}
	}
	text, _, _ := strings.Cut(s[head:], "\x00")
	p := strings.SplitN(text, "|", 3)
	if len(p) != 3 {
		r.fail("a lease", s)
		return txn.Lease{}
	}
	until := int64(0)
	if s[0] == byte(txn.Begin) {
		until = r.number(s[3 : 3+digits])
	}
	return txn.Lease{
		Phase: txn.Phase(s[0]), Until: until, Seq: r.number(s[3+digits : head]),
		Fence: r.number(p[0]), Step: r.number(p[1]), Owner: p[2],
	}
}

// into puts a field into a space, whose cells may stand compressed.
func (r *reader) into(sp *txn.Space, name, val string, squeezes bool) {
	switch name[0] {
	case 'v':
		sp.Cells[name[1:]] = r.cell(val, squeezes)
	case 'c':
		sp.Counters[name[1:]] = r.number(val)
	case 'k':
		sp.Tokens[name[1:]] = r.token(val)
	case 'm':
		if len(val) < 2*digits {
			r.fail("a head", val)
			return
		}
		sp.Rev = r.number(val[:digits])
	}
}

// record reads the newest of a ledger, as it is written in [record.asked].
func (r *reader) record(task string, v any) record {
	s, _ := v.(string)
	if len(s) <= digits+1 {
		return record{}
	}
	return record{task, r.number(s[digits+1:]), r.number(s[:digits])}
}

// otherHistory is the status of a transaction that was refused because a record by which the caller knows the task or the
// agent is not there.
const otherHistory = 3

// space reads a whole hash, names and values in turn.
func (r *reader) space(v any) txn.Space {
	sp := txn.NewSpace()
	list, _ := v.([]any)
	for i := 0; i+1 < len(list); i += 2 {
		name, _ := list[i].(string)
		val, _ := list[i+1].(string)
		if name != "" {
			r.into(&sp, name, val, true)
		}
	}
	return sp
}

// A reply has so many values before those of fields, the last of which say what is pending.
const (
	fixed     = 12
	pendingAt = 7
)

// reply reads what the script answered to a transaction.
func (r *reader) reply(e *encoder, v []any) (out txn.Reply, p *pendings) {
	if len(v) < fixed {
		r.fail("a reply", fmt.Sprint(v))
		return out, nil
	}
	if p = e.heard; p == nil {
		p = r.pendings(e.known, e.t, v[pendingAt:fixed])
	}
	status := r.number(v[0])
	out = txn.Reply{
		OK: status == 1 || status == 2, Replay: status == 2, Now: r.number(v[2]), Seq: r.number(v[3]), Until: r.number(v[4]),
		TaskRev: r.number(v[5]), AgentRev: r.number(v[6]), Pending: p.list,
	}
	if !out.OK {
		if out.Failed = int(r.number(v[1])); out.Failed >= 0 && out.Failed < len(e.from) {
			out.Failed = e.from[out.Failed]
		}
	}
	if len(v) > fixed {
		out.Fresh = r.fresh(e, out, v[fixed:])
	}
	return out, p
}

func (r *reader) fresh(e *encoder, reply txn.Reply, vals []any) *txn.Snapshot {
	f := txn.NewSnapshot()
	f.Now, f.Pending = reply.Now, append([]txn.Pending(nil), reply.Pending...)
	i := 0
	for h, names := range e.names {
		sp := []*txn.Space{&f.Task, &f.Record, &f.Agent}[h]
		for _, name := range names {
			if i >= len(vals) {
				break
			}
			s, ok := vals[i].(string)
			i++
			switch {
			case !ok:
			case name == "l"+e.t.Intent:
				if e.t.Intent != "" {
					f.Leases[e.t.Intent] = r.lease(s)
				}
			default:
				r.into(sp, strings.Clone(name), s, sp != &f.Record) // its memory is used again
			}
		}
	}
	f.Task.Rev, f.Agent.Rev = reply.TaskRev, reply.AgentRev
	return f
}

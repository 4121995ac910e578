package memorytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Random drives n random transactions into the store and into the reference, and demands equal replies, equal state, and
// that a snapshot which is only advanced stays equal to a fresh reading. The reference is told the time of each reply, so
// the store's clock may be any. The same seed makes the same transactions where the clock does the same.
func Random(tb testing.TB, in Instance, n int, seed uint64) {
	tb.Helper()
	d := &drive{tb: tb, in: in, rnd: rand.New(rand.NewPCG(seed, 1)), snaps: map[[2]string]*txn.Snapshot{}}
	d.ref = newReference(func() int64 { return d.now }, "")
	accepted := 0
	for i := range n {
		d.i = i
		if d.one() {
			accepted++
		}
		if i%25 == 24 || i == n-1 {
			d.compare()
		}
		if d.chance(6) {
			in.Advance(time.Duration(1+d.rnd.IntN(3)) * time.Millisecond)
		}
	}
	require.Greater(tb, accepted, n/4, "seed %d: too few accepted to mean something", seed)
}

// drive is a run of Random.
type drive struct {
	tb    testing.TB
	in    Instance
	ref   *reference
	rnd   *rand.Rand
	now   int64 // time of the last reply, µs
	i     int
	snaps map[[2]string]*txn.Snapshot
	past  []*txn.Txn
}

const millisecond = int64(1000)

var randomLook = look{record: []string{"k0", "k1", "k2"}, queues: []string{"k0", "k1", txn.Leases}}

func (d *drive) chance(of int) bool { return d.rnd.IntN(of) == 0 }

func (d *drive) pick(p string, n int) string { return fmt.Sprint(p, d.rnd.IntN(n)) }

// one applies one transaction to both and compares the replies.
func (d *drive) one() bool {
	var t *txn.Txn
	if len(d.past) > 0 && d.chance(6) {
		t = d.past[len(d.past)-1-d.rnd.IntN(min(8, len(d.past)))] // a repeat
	} else {
		t = d.txn()
		d.past = append(d.past, t)
	}
	ctx := context.Background()
	got, err := d.in.Store.Apply(ctx, t)
	require.NoError(d.tb, err, "transaction %d: %+v", d.i, t)
	require.GreaterOrEqual(d.tb, got.Now, d.now, "store time went back")
	d.now = got.Now
	want, err := d.ref.Apply(ctx, t)
	require.NoError(d.tb, err)
	if g, w := plainReply(got), plainReply(want); !reflect.DeepEqual(g, w) {
		require.Equal(d.tb, w, g, "transaction %d: %+v", d.i, t)
	}
	d.advance(t, got)
	return got.OK
}

// advance keeps a snapshot of each task by the replies alone.
func (d *drive) advance(t *txn.Txn, r txn.Reply) {
	at := [2]string{t.Agent, t.Task}
	s := d.snaps[at]
	if s == nil {
		s = txn.NewSnapshot()
		s.Gap = d.i > 0 // others may have written to the agent before
		d.snaps[at] = s
	}
	if r.OK {
		s.Advance(t, r)
	} else {
		s.Merge(r.Fresh, t.Clauses)
	}
	if s.Gap || d.chance(10) {
		n, err := d.in.Store.Load(context.Background(), t.Agent, t.Task, s)
		require.NoError(d.tb, err)
		d.snaps[at] = n
	}
}

// compare compares all that can be seen.
func (d *drive) compare() {
	d.tb.Helper()
	for _, agent := range []string{"a0", "a1"} {
		for _, task := range []string{"t0", "t1"} {
			got, want := see(d.tb, d.in.Store, agent, task, randomLook), see(d.tb, d.ref, agent, task, randomLook)
			if !reflect.DeepEqual(got, want) {
				require.Equal(d.tb, want, got, "%s/%s after transaction %d", agent, task, d.i)
			}
			s := d.snaps[[2]string{agent, task}]
			if s == nil || s.Gap || s.Task.Rev != want.Task.Rev || s.Agent.Rev != want.Agent.Rev {
				continue
			}
			require.Equal(d.tb, want.Task, full(s.Task), "snapshot of %s/%s after transaction %d", agent, task, d.i)
			require.Equal(d.tb, want.Agent, full(s.Agent), "snapshot of %s/%s after transaction %d", agent, task, d.i)
			require.Equal(d.tb, want.Pending, none(s.Pending), "snapshot of %s/%s after transaction %d", agent, task, d.i)
		}
	}
}

// txn makes a transaction; the reference's state is looked at, so that a good part of them is accepted.
func (d *drive) txn() *txn.Txn {
	t := &txn.Txn{Agent: d.pick("a", 2), Task: d.pick("t", 2), Phase: txn.Plain}
	if !d.chance(3) {
		d.phase(t)
	}
	for range d.rnd.IntN(6) {
		c := d.clause(t)
		t.Add(c)
		if t.Check() != nil { // two writes to one key
			t.Clauses = t.Clauses[:len(t.Clauses)-1]
		}
	}
	return t
}

func (d *drive) phase(t *txn.Txn) {
	t.Phase = []txn.Phase{txn.Park, txn.Park, txn.Begin, txn.Begin, txn.Begin, txn.Renew, txn.Renew, txn.Settle, txn.Refuse, txn.Takeover}[d.rnd.IntN(10)]
	t.Intent, t.Owner, t.Fence = fmt.Sprint("i", d.i/40+d.rnd.IntN(4)), d.pick("o", 2), 1
	l := d.ref.leases[name{t.Agent, t.Task, 0, t.Intent}]
	switch {
	case l != nil && !d.chance(5):
		t.Fence, t.Owner = l.fence, l.owner
	case d.chance(8):
		t.Fence = 2
	}
	if l != nil && (t.Phase == txn.Takeover || t.Phase == txn.Begin && !d.chance(3)) {
		t.Fence++
		t.Owner = d.pick("o", 2)
	}
	if t.Phase == txn.Park && d.chance(2) {
		t.Owner = d.pick("o", 2)
	}
	switch t.Phase {
	case txn.Begin:
		t.TTL = int64(1+d.rnd.IntN(8)) * millisecond
	case txn.Renew:
		t.TTL, t.Step = int64(1+d.rnd.IntN(8))*millisecond, int64(d.rnd.IntN(3))
		if l != nil && !d.chance(4) {
			t.Step = l.step + int64(d.rnd.IntN(2))
		}
	}
}

func (d *drive) clause(t *txn.Txn) txn.Clause {
	states := []string{"", "x", "y"}
	ops := []txn.Op{txn.Expect, txn.Count, txn.Count, txn.Have, txn.Take, txn.Take, txn.Time, txn.Put, txn.Put, txn.Set, txn.Set, txn.Queue, txn.Unqueue,
		txn.Event, txn.Event, txn.Pend, txn.Trim, txn.Link, txn.Read, txn.Show}
	c := txn.Clause{Op: ops[d.rnd.IntN(len(ops))], Scope: []txn.Scope{txn.Task, txn.Record, txn.Agent}[d.rnd.IntN(3)], Key: d.pick("k", 3)}
	if c.Scope == txn.Record && (c.Op == txn.Event || c.Op == txn.Link) {
		c.Scope = txn.Task
	}
	switch n := nameOf(t, &c); c.Op {
	case txn.Expect:
		c.N = d.ref.cells[n].Ver
		if d.chance(8) {
			c.N += int64(d.rnd.IntN(3) - 1)
		}
	case txn.Count:
		d.count(&c, d.ref.counts[n])
		c.Soft = d.chance(4)
	case txn.Have, txn.Take:
		c.From, c.To = d.ref.tokens[n].State, states[d.rnd.IntN(3)]
		if d.chance(4) {
			c.From = states[d.rnd.IntN(3)]
		}
		c.N = []int64{0, 0, 0, -1, millisecond, 3 * millisecond}[d.rnd.IntN(6)]
		c.Soft = c.Op == txn.Take && d.chance(3)
	case txn.Time:
		c.Min, c.Max = d.now-int64(d.rnd.IntN(9))*millisecond, d.now+int64(5+d.rnd.IntN(60_000))*millisecond
		switch d.rnd.IntN(20) {
		case 0:
			c.Min = c.Max
		case 1:
			c.Max = d.now - millisecond
		}
	case txn.Put, txn.Event, txn.Pend:
		c.Val = d.pick("v|\n", 99)
		c.Soft = c.Op == txn.Put && strings.HasSuffix(c.Val, "7")
	case txn.Set:
		c.To, c.Val, c.N = states[1+d.rnd.IntN(2)], d.pick("a|b", 5), int64(d.rnd.IntN(4))*millisecond
	case txn.Queue, txn.Unqueue:
		c.Key, c.Val, c.N = d.pick("k", 2), d.pick("m", 6), int64(d.rnd.IntN(9)-4)*millisecond
	case txn.Trim:
		c.N = max(0, d.ref.pended[t.Agent]-int64(d.rnd.IntN(5)))
	case txn.Show:
		c.Val = "field\n" + d.pick("v", 9)
	case txn.Link:
		book := d.ref.ledgers[name{n.agent, n.task, n.scope, ""}]
		c.N, c.Val = int64(max(1, len(book)-d.rnd.IntN(4))), d.pick("link", 99)
	}
	return c
}

// count aims at the bounds: some small, some at the edge of what can be counted.
func (d *drive) count(c *txn.Clause, v int64) {
	c.N, c.Min, c.Max = int64(d.rnd.IntN(11)-5), txn.NoMin, txn.NoMax
	if d.chance(3) {
		c.N *= 1_500_000_000_000_000
	}
	if d.chance(2) {
		c.Max = min(txn.NoMax, max(txn.NoMin, v+c.N+int64(d.rnd.IntN(6)-1)))
	}
	if d.chance(3) {
		c.Min = min(txn.NoMax, max(txn.NoMin, v+int64(d.rnd.IntN(6)-4)))
	}
}

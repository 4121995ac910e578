package memorytest

import (
	"context"
	"slices"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// reference is the contract written down a second time, as plainly as possible and without the shared meaning of package
// txn: flat maps, one lock, everything searched from the start. Speed is not its business. Any one of its rules can be
// broken by name, to see that the suite notices.
type reference struct {
	mu      sync.Mutex
	clock   func() int64
	broken  string
	closed  bool
	cells   map[name]txn.Cell
	counts  map[name]int64
	tokens  map[name]txn.Token
	revs    map[name]int64 // by space: key is ""
	ledgers map[name][]txn.Stored
	pending map[string][]txn.Pending
	pended  map[string]int64
	queues  map[name]map[string]int64
	leases  map[name]*intent
	owners  map[name]string // of cells in scope Record: the intent that put it last
	over    map[name]int64  // tasks that are over: time of their last transaction
	gone    map[name]bool   // tasks that expired
	keep    int64           // µs; 0 for ever
	notes   map[string][]memory.Note
}

// name is the full name of whatever the reference holds.
type name struct {
	agent, task string // task is "" in scope Agent
	scope       txn.Scope
	key         string
}

// intent is an intent with the last transaction that counts as one that can be repeated.
type intent struct {
	state string // "parked", "begun" or "ended"
	fence int64
	owner string
	until int64
	step  int64
	last  txn.Phase
	seq   int64
	kept  bool  // by an Expire
	at    int64 // time of the last transaction that counts for how long it is kept
}

var _ memory.Store = (*reference)(nil)

func newReference(clock func() int64, broken string) *reference {
	return &reference{clock: clock, broken: broken, cells: map[name]txn.Cell{}, counts: map[name]int64{}, tokens: map[name]txn.Token{},
		revs: map[name]int64{}, ledgers: map[name][]txn.Stored{}, pending: map[string][]txn.Pending{}, pended: map[string]int64{},
		queues: map[name]map[string]int64{}, leases: map[name]*intent{},
		owners: map[name]string{}, over: map[name]int64{}, gone: map[name]bool{}, notes: map[string][]memory.Note{}}
}

// breaks reports whether the rule is broken.
func (s *reference) breaks(rule string) bool { return s.broken == rule }

func (s *reference) enter(ctx context.Context) error {
	if s.closed && !s.breaks("life: closed") {
		return memory.ErrClosed
	}
	if ctx.Err() != nil && !s.breaks("life: cancelled") {
		return ctx.Err()
	}
	return nil
}

func nameOf(t *txn.Txn, c *txn.Clause) name {
	if c.Scope == txn.Agent {
		return name{t.Agent, "", txn.Agent, c.Key}
	}
	return name{t.Agent, t.Task, c.Scope, c.Key}
}

func (s *reference) Apply(ctx context.Context, t *txn.Txn) (txn.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := t.Check(); err != nil && !s.breaks("malformed: accepted") {
		return txn.Reply{}, err
	}
	if err := s.enter(ctx); err != nil {
		return txn.Reply{}, err
	}
	now := s.clock()
	s.expire(now)
	r := s.decide(t, now)
	r.Now = now
	r.TaskRev, r.AgentRev = s.revs[name{t.Agent, t.Task, txn.Task, ""}], s.revs[name{t.Agent, "", txn.Agent, ""}]
	r.Pending = slices.Clone(s.pending[t.Agent])
	if s.breaks("reply: no pending") {
		r.Pending = nil
	}
	if s.breaks("reply: pending shared") {
		r.Pending = s.pending[t.Agent]
	}
	hasRead := slices.ContainsFunc(t.Clauses, func(c txn.Clause) bool { return c.Op == txn.Read })
	if !r.OK && !s.breaks("refusal: brings nothing") || hasRead && !s.breaks("read: brings nothing") {
		r.Fresh = s.fresh(t, now)
	}
	return r, nil
}

func (s *reference) decide(t *txn.Txn, now int64) txn.Reply {
	at := name{t.Agent, t.Task, 0, t.Intent}
	l := s.leases[at]
	if t.Phase != txn.Plain {
		switch s.lease(t, l, now) {
		case "replay":
			return txn.Reply{OK: true, Replay: true, Seq: l.seq, Until: l.until}
		case "no":
			return txn.Reply{Failed: -1}
		}
	}
	if s.gone[name{t.Agent, t.Task, 0, ""}] && writesTask(t) && !s.breaks("keep: ids used again") {
		return txn.Reply{Failed: -1}
	}
	for i := range t.Clauses {
		if !s.holds(t, &t.Clauses[i], now) {
			if s.breaks("whole: refused event kept") {
				s.appends(t, now)
			}
			return txn.Reply{Failed: i}
		}
		if s.breaks("whole: partial") {
			s.write(t, &t.Clauses[i], now)
		}
	}
	if !s.breaks("whole: partial") {
		for i := range t.Clauses {
			s.write(t, &t.Clauses[i], now)
		}
	}
	s.revise(t)
	r := txn.Reply{OK: true, Seq: s.appends(t, now)}
	if t.Phase != txn.Plain {
		r.Until = s.relet(t, at, l, now, r.Seq)
	}
	s.retain(t, now)
	return r
}

// lease says what the lease makes of the transaction: "yes", "replay" or "no".
func (s *reference) lease(t *txn.Txn, l *intent, now int64) string {
	if l == nil {
		first := t.Fence == 1 || s.breaks("lease: any first fence")
		unborn := s.breaks("lease: settle unborn") && t.Phase == txn.Settle
		if unborn || first && (t.Phase == txn.Park || t.Phase == txn.Begin || t.Phase == txn.Refuse) {
			return "yes"
		}
		return "no"
	}
	sameOwner := l.owner == t.Owner || s.breaks("lease: owner ignored")
	same := l.fence == t.Fence && sameOwner
	expired := l.until <= now
	if s.breaks("lease: expiry ignored") {
		expired = true
	}
	if s.breaks("lease: expiry one late") {
		expired = l.until < now
	}
	samePhase := l.last == t.Phase || s.breaks("lease: repeat of any phase") && l.state == "ended"
	if same && samePhase && !s.breaks("lease: repeats doubled") {
		switch {
		case t.Phase == txn.Renew:
			if t.Step > 0 && t.Step == l.step && !s.breaks("lease: step doubled") {
				return "replay"
			}
		case t.Phase == txn.Begin:
			if !expired || s.breaks("lease: expired begin replayed") {
				return "replay"
			}
		case t.Phase == txn.Settle && s.breaks("lease: settle doubled"):
			return "yes"
		default:
			return "replay"
		}
	}
	begun := l.state == "begun" || s.breaks("lease: ended comes back") && l.state == "ended"
	mine := begun && (same || s.breaks("lease: fence ignored") && sameOwner)
	if s.breaks("lease: settle needs a live lease") {
		mine = mine && !expired
	}
	next := t.Fence == l.fence+1 || s.breaks("lease: any next fence")
	over := begun && expired && next
	parked := l.state == "parked" && t.Fence == 1 || s.breaks("lease: refuse what runs") && t.Phase == txn.Refuse && l.state == "begun"
	allowed := false
	switch t.Phase {
	case txn.Park:
		allowed = s.breaks("lease: parks again") && l.state == "parked"
	case txn.Begin:
		allowed = parked && !s.breaks("lease: parked stays") || over
	case txn.Refuse:
		allowed = parked && !s.breaks("lease: parked stays")
	case txn.Renew:
		allowed = mine && (t.Step == 0 || t.Step == l.step+1 || s.breaks("lease: steps skipped") || s.breaks("lease: step doubled"))
	case txn.Settle:
		allowed = mine
	case txn.Takeover:
		allowed = over
	}
	if allowed {
		return "yes"
	}
	return "no"
}

// relet leaves the lease as the transaction wants it and returns its end.
func (s *reference) relet(t *txn.Txn, at name, l *intent, now, seq int64) int64 {
	n := intent{state: "ended", fence: t.Fence, owner: t.Owner, last: t.Phase, seq: seq}
	if l != nil {
		n.step, n.kept = l.step, l.kept
	}
	member, own := t.Task+"\n"+t.Intent, name{t.Agent, "", 'Q', txn.Leases}
	if s.queues[own] == nil {
		s.queues[own] = map[string]int64{}
	}
	switch t.Phase {
	case txn.Park:
		n.state = "parked"
	case txn.Begin:
		n.state, n.until, n.step = "begun", now+t.TTL, 0
		if s.breaks("lease: steps go on") && l != nil {
			n.step = l.step
		}
	case txn.Renew:
		n.state, n.until = "begun", now+t.TTL
		if s.breaks("lease: renew does not prolong") {
			n.until = l.until
		}
		if t.Step > 0 {
			n.step = t.Step
		} else if !s.breaks("lease: heartbeat forgets") {
			n.last, n.seq = l.last, l.seq
		}
	}
	switch {
	case n.state == "begun" && t.Phase == txn.Renew && s.breaks("leases: renew not queued"):
	case n.state == "begun":
		s.queues[own][member] = n.until
	case !s.breaks("leases: ended stays queued"):
		delete(s.queues[own], member)
	}
	s.leases[at] = &n
	return n.until
}

func (s *reference) holds(t *txn.Txn, c *txn.Clause, now int64) bool {
	n := nameOf(t, c)
	switch c.Op {
	case txn.Expect:
		return s.cells[n].Ver == c.N || s.breaks("expect: ignored")
	case txn.Count:
		v := s.counts[n]
		low := v >= c.Min || s.breaks("count: min ignored")
		high := v+c.N <= c.Max || s.breaks("count: max ignored") || s.breaks("count: max one late") && v+c.N <= c.Max+1
		floor := v+c.N > -(1<<53) || s.breaks("count: floor ignored")
		if s.breaks("count: min after") {
			low = v+c.N >= c.Min
		}
		return low && high && floor || c.Soft && !s.breaks("count: soft is hard")
	case txn.Have:
		return s.matches(n, c, now) || s.breaks("have: ignored")
	case txn.Take:
		return s.matches(n, c, now) || c.Soft && !s.breaks("take: soft is hard") || s.breaks("take: ignored")
	case txn.Time:
		return (now >= c.Min || s.breaks("time: min ignored")) && (now <= c.Max || s.breaks("time: max ignored"))
	}
	return true
}

func (s *reference) matches(n name, c *txn.Clause, now int64) bool {
	t, there := s.tokens[n]
	expired := there && t.Exp != 0 && t.Exp <= now && !s.breaks("token: expiry ignored")
	if s.breaks("token: expiry one late") {
		expired = there && t.Exp != 0 && t.Exp < now
	}
	old := c.N > 0 && now > t.At+c.N && !s.breaks("token: within ignored")
	if c.N < 0 && !s.breaks("token: or not ignored") {
		if c.From != "" {
			return there && t.State == c.From
		}
	}
	if c.From == "" {
		return !there || expired
	}
	return there && (t.State == c.From || s.breaks("token: state ignored")) && !expired && !old
}

func (s *reference) write(t *txn.Txn, c *txn.Clause, now int64) {
	n := nameOf(t, c)
	switch c.Op {
	case txn.Put:
		v := s.cells[n].Ver + 1
		if s.breaks("put: version stays") {
			v = 1
		}
		s.cells[n] = txn.Cell{Ver: v, Val: c.Val}
	case txn.Count:
		if c.N != 0 && !s.breaks("count: not written") {
			s.counts[n] += c.N
			if s.breaks("count: soft runs over") {
				break
			}
			for s.counts[n] > 1<<53-1 {
				s.counts[n] = 1<<53 - 1
			}
			for s.counts[n] < 1-1<<53 {
				s.counts[n] = 1 - 1<<53
			}
		}
	case txn.Set:
		k := txn.Token{State: c.To, At: now, Val: c.Val}
		if c.N > 0 && !s.breaks("set: never expires") {
			k.Exp = now + c.N
		}
		s.tokens[n] = k
	case txn.Take:
		if !s.matches(n, c, now) && !s.breaks("take: soft always takes") {
			return
		}
		k := s.tokens[n]
		if c.From == "" {
			k = txn.Token{At: now}
		}
		k.State = c.To
		if s.breaks("take: stamps anew") {
			k.At = now
		}
		if s.breaks("take: forgets") {
			k.Exp, k.Val = 0, ""
		}
		s.tokens[n] = k
		if c.To == "" && !s.breaks("take: leaves it") {
			delete(s.tokens, n)
		}
	}
}

// revise counts the transaction in the revisions of the spaces it writes to.
func (s *reference) revise(t *txn.Txn) {
	if s.breaks("revision: stands still") {
		return
	}
	raised := map[name]bool{}
	for _, c := range t.Clauses {
		writes := c.Op == txn.Put || c.Op == txn.Set || c.Op == txn.Take || c.Op == txn.Count && c.N != 0
		switch {
		case c.Op == txn.Pend, c.Op == txn.Trim, writes && c.Scope == txn.Agent:
			raised[name{t.Agent, "", txn.Agent, ""}] = true
		case writes && c.Scope == txn.Record && s.breaks("revision: record not counted"):
		case writes:
			raised[name{t.Agent, t.Task, txn.Task, ""}] = true
		}
	}
	for n := range raised {
		s.revs[n]++
	}
}

func (s *reference) appends(t *txn.Txn, now int64) (first int64) {
	for _, c := range t.Clauses {
		book := name{t.Agent, t.Task, txn.Task, ""}
		if c.Scope == txn.Agent && !s.breaks("ledger: agent's in the task's") {
			book = name{t.Agent, "", txn.Agent, ""}
		}
		queue := name{t.Agent, "", 'Q', c.Key}
		switch c.Op {
		case txn.Event:
			seq := int64(len(s.ledgers[book])) + 1
			s.ledgers[book] = append(s.ledgers[book], txn.Stored{Seq: seq, At: now, Val: c.Val})
			if first == 0 || s.breaks("ledger: last sequence") {
				first = seq
			}
		case txn.Link:
			for i := range s.ledgers[book] {
				r := &s.ledgers[book][i]
				if r.Seq == c.N && (r.Link == "" || s.breaks("link: overwritten")) {
					r.Link = c.Val
				}
			}
		case txn.Pend:
			s.pended[t.Agent]++
			if s.breaks("pend: sequence reused") {
				s.pended[t.Agent] = int64(len(s.pending[t.Agent])) + 1
			}
			s.pending[t.Agent] = append(s.pending[t.Agent], txn.Pending{Seq: s.pended[t.Agent], Val: c.Val})
		case txn.Trim:
			s.trim(t.Agent, c.N)
		case txn.Queue:
			if s.queues[queue] == nil {
				s.queues[queue] = map[string]int64{}
			}
			if _, there := s.queues[queue][c.Val]; !there || !s.breaks("queue: not replaced") {
				s.queues[queue][c.Val] = now + c.N
			}
		case txn.Unqueue:
			if !s.breaks("unqueue: ignored") {
				delete(s.queues[queue], c.Val)
			}
		}
	}
	return first
}

func (s *reference) trim(agent string, n int64) {
	var kept []txn.Pending
	for i, p := range s.pending[agent] {
		drop := p.Seq <= n
		if s.breaks("trim: by place") {
			drop = int64(i) < n
		}
		if s.breaks("trim: one short") {
			drop = p.Seq < n
		}
		if !drop {
			kept = append(kept, p)
		}
	}
	s.pending[agent] = kept
}

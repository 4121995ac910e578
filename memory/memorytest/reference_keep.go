package memorytest

import "github.com/seed-ab2cfece/delta-agents/txn"

// expire drops what has been kept long enough.
func (s *reference) expire(now int64) {
	if s.keep == 0 || s.breaks("keep: for ever") {
		return
	}
	for at, l := range s.leases {
		ended := l.state == "ended" || s.breaks("keep: what runs goes") && l.state == "begun" || s.breaks("keep: what waits goes") && l.state == "parked"
		if kept := l.kept && !s.breaks("keep: not said otherwise"); ended && !kept && l.at+s.keep <= now {
			s.drop(at)
		}
	}
	for at, last := range s.over {
		if last+s.keep <= now && (!s.busy(at) || s.breaks("keep: a task at work goes")) {
			s.dropTask(at)
		}
	}
}

// drop forgets an intent.
func (s *reference) drop(at name) {
	if !s.breaks("keep: the lease stays") {
		delete(s.leases, at)
	}
	for n, owner := range s.owners {
		mine := owner == at.key || s.breaks("keep: cells of all")
		if n.agent == at.agent && n.task == at.task && mine && !s.breaks("keep: the cells stay") {
			delete(s.cells, n)
			delete(s.owners, n)
		}
	}
}

// busy reports whether an intent of the task runs or is kept.
func (s *reference) busy(task name) bool {
	for at, l := range s.leases {
		if at.agent == task.agent && at.task == task.task && (l.state == "begun" || l.kept) {
			return true
		}
	}
	return false
}

func (s *reference) dropTask(task name) {
	of := func(n name) bool { return n.agent == task.agent && n.task == task.task && n.task != "" }
	for n := range s.cells {
		if of(n) {
			delete(s.cells, n)
		}
	}
	for n := range s.counts {
		if of(n) {
			delete(s.counts, n)
		}
	}
	for n := range s.tokens {
		if of(n) {
			delete(s.tokens, n)
		}
	}
	for n := range s.leases {
		if of(n) {
			delete(s.leases, n)
		}
	}
	if s.breaks("keep: the ledger goes") {
		delete(s.ledgers, name{task.agent, task.task, txn.Task, ""})
	}
	if !s.breaks("keep: an old snapshot passes") {
		s.revs[name{task.agent, task.task, txn.Task, ""}]++
	}
	delete(s.over, task)
	s.gone[task] = true
}

// writesTask reports whether the transaction writes to its task.
func writesTask(t *txn.Txn) bool {
	wants := t.Phase != txn.Plain
	for _, c := range t.Clauses {
		switch c.Op {
		case txn.Put, txn.Count, txn.Set, txn.Take, txn.Event, txn.Expire:
			wants = wants || c.Scope != txn.Agent
		}
	}
	return wants
}

// retain notes what an accepted transaction says of how long things are kept.
func (s *reference) retain(t *txn.Txn, now int64) {
	own := s.leases[name{t.Agent, t.Task, 0, t.Intent}]
	counts := t.Phase != txn.Plain
	task := name{t.Agent, t.Task, 0, ""}
	for _, c := range t.Clauses {
		switch {
		case c.Op == txn.Put && c.Scope == txn.Record:
			delete(s.owners, nameOf(t, &c))
			if soft := c.Soft && !s.breaks("keep: what is of the task goes"); own != nil && !soft && !(t.Phase == txn.Plain && s.breaks("keep: put later is nobody's")) {
				s.owners[nameOf(t, &c)], counts = t.Intent, true
			}
		case c.Op == txn.Expire && c.Scope == txn.Task:
			s.over[task] = now
		case c.Op == txn.Expire:
			if l := s.leases[name{t.Agent, t.Task, 0, c.Key}]; l != nil {
				l.kept, l.at = c.N < 0, now
				if s.breaks("keep: said otherwise at once") {
					l.at = now - s.keep
				}
			}
		}
	}
	if own != nil && counts && !(s.breaks("keep: counted from the end") && t.Phase == txn.Plain) {
		own.at = now
	}
	if _, is := s.over[task]; is && t.Task != "" {
		s.over[task] = now
	}
	if s.breaks("keep: every task goes") {
		s.over[task] = now
	}
	if s.breaks("keep: half as long") && own != nil && own.at == now {
		own.at = now - s.keep/2
	}
}

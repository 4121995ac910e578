package memorytest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

func (s *reference) fresh(t *txn.Txn, now int64) *txn.Snapshot {
	f := txn.NewSnapshot()
	f.Now = now
	if !s.breaks("fresh: no pending") {
		f.Pending = slices.Clone(s.pending[t.Agent])
	}
	f.Task.Rev, f.Agent.Rev = s.revs[name{t.Agent, t.Task, txn.Task, ""}], s.revs[name{t.Agent, "", txn.Agent, ""}]
	for i := range t.Clauses {
		c := &t.Clauses[i]
		n, sp := nameOf(t, c), f.Space(c.Scope)
		isCell, isCount := c.Op == txn.Expect || c.Op == txn.Put, c.Op == txn.Count
		isToken := c.Op == txn.Have || c.Op == txn.Take || c.Op == txn.Set
		if c.Op == txn.Read || s.breaks("fresh: all kinds") {
			isCell, isCount, isToken = true, true, true
		}
		if v, ok := s.cells[n]; ok && isCell {
			sp.Cells[c.Key] = v
		}
		if v, ok := s.counts[n]; ok && isCount && !s.breaks("fresh: no counters") {
			sp.Counters[c.Key] = v
		}
		if v, ok := s.tokens[n]; ok && isToken {
			sp.Tokens[c.Key] = v
		}
	}
	if l := s.leases[name{t.Agent, t.Task, 0, t.Intent}]; l != nil && !s.breaks("fresh: no lease") {
		f.Leases[t.Intent] = l.show()
	}
	return f
}

func (l *intent) show() txn.Lease {
	phase := map[string]txn.Phase{"parked": txn.Park, "begun": txn.Begin, "ended": txn.Settle}[l.state]
	return txn.Lease{Phase: phase, Fence: l.fence, Owner: l.owner, Until: l.until, Seq: l.seq, Step: l.step}
}

func (s *reference) Load(ctx context.Context, agent, task string, have *txn.Snapshot) (*txn.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	out := txn.NewSnapshot()
	out.Now, out.Pending = s.clock(), slices.Clone(s.pending[agent])
	for n, v := range s.cells {
		if sp := shown(out, n, agent, task); sp != nil {
			sp.Cells[n.key] = v
		}
	}
	for n, v := range s.counts {
		if sp := shown(out, n, agent, task); sp != nil {
			sp.Counters[n.key] = v
		}
	}
	for n, v := range s.tokens {
		if sp := shown(out, n, agent, task); sp != nil {
			sp.Tokens[n.key] = v
		}
	}
	out.Task.Rev, out.Agent.Rev = s.revs[name{agent, task, txn.Task, ""}], s.revs[name{agent, "", txn.Agent, ""}]
	stale := s.breaks("load: stale") || s.breaks("load: gap trusted") && have != nil && have.Task.Rev == out.Task.Rev
	if have != nil && stale {
		out.State = have.State
	}
	if s.breaks("load: record too") {
		for n, v := range s.cells {
			if n.agent == agent && n.task == task && n.scope == txn.Record {
				out.Record.Cells[n.key] = v
			}
		}
	}
	return out, nil
}

// shown returns the space of the snapshot that the named thing belongs in, nil where it does not.
func shown(to *txn.Snapshot, n name, agent, task string) *txn.Space {
	switch {
	case n.agent != agent:
		return nil
	case n.scope == txn.Agent:
		return &to.Agent
	case n.scope == txn.Task && n.task == task:
		return &to.Task
	}
	return nil
}

func (s *reference) Records(ctx context.Context, agent, task string, from int64, limit int) ([]txn.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	book := name{agent, task, txn.Task, ""}
	if task == "" {
		book = name{agent, "", txn.Agent, ""}
	}
	if s.breaks("records: from one late") {
		from++
	}
	if s.breaks("records: no limit") {
		limit = 1 << 30
	}
	var out []txn.Stored
	for _, r := range s.ledgers[book] {
		if r.Seq >= from && len(out) < limit {
			out = append(out, r)
		}
	}
	return out, nil
}

func (s *reference) Queued(ctx context.Context, agent, queue string, after txn.Queued, dueOnly bool, limit int) ([]txn.Queued, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	var all []txn.Queued
	for m, due := range s.queues[name{agent, "", 'Q', queue}] {
		all = append(all, txn.Queued{Member: m, Due: due})
	}
	slices.SortFunc(all, func(x, y txn.Queued) int {
		if s.breaks("queued: by member") {
			return strings.Compare(x.Member, y.Member)
		}
		return cmp.Or(cmp.Compare(x.Due, y.Due), strings.Compare(x.Member, y.Member))
	})
	var out []txn.Queued
	for _, m := range all {
		later := after == txn.Queued{} || m.Due > after.Due || m.Due == after.Due && m.Member > after.Member
		if s.breaks("queued: after by due only") {
			later = after == txn.Queued{} || m.Due > after.Due
		}
		if s.breaks("queued: after inclusive") {
			later = later || m == after
		}
		due := m.Due <= s.clock() || !dueOnly || s.breaks("queued: due ignored")
		if later && due && len(out) < limit {
			out = append(out, m)
		}
	}
	return out, nil
}

func (s *reference) Remember(ctx context.Context, agent string, n memory.Note) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.enter(ctx); err != nil {
		return err
	}
	if agent == "" {
		return fmt.Errorf("note without an agent")
	}
	if !s.breaks("notes: not stamped") {
		n.At = time.UnixMicro(s.clock()).UTC()
	}
	s.notes[agent] = append(s.notes[agent], n)
	return nil
}

// Recall ranks by the plain sum, over the query's words, of one over the number of notes with the word.
func (s *reference) Recall(ctx context.Context, agent, tenant, query string, limit int) ([]memory.Note, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	ns := slices.Clone(s.notes[agent])
	if s.breaks("notes: everybody's") {
		ns = slices.Concat(s.notes["a"], s.notes["b"])
	}
	if !s.breaks("notes: every tenant's") {
		ns = slices.DeleteFunc(ns, func(n memory.Note) bool { return n.Tenant != tenant })
	}
	if !s.breaks("notes: oldest first") {
		slices.Reverse(ns)
	}
	if query != "" && !s.breaks("notes: not ranked") {
		score := func(n memory.Note) (sum float64) {
			for w := range strings.FieldsSeq(strings.ToLower(strings.Trim(query, "?"))) {
				with := 0
				for _, m := range ns {
					if strings.Contains(strings.ToLower(m.Content), w) {
						with++
					}
				}
				if strings.Contains(strings.ToLower(n.Content), w) {
					sum += 1 / float64(with)
				}
			}
			return sum
		}
		ns = slices.DeleteFunc(ns, func(n memory.Note) bool { return score(n) == 0 })
		slices.SortStableFunc(ns, func(x, y memory.Note) int { return cmp.Compare(score(y), score(x)) })
	}
	if s.breaks("notes: no limit") {
		return ns, nil
	}
	return ns[:min(max(limit, 0), len(ns))], nil
}

func (s *reference) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.enter(context.Background())
	s.closed = true
	return err
}

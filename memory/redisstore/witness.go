package redisstore

import (
	"slices"
	"strconv"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// witness remembers how far this process saw each space come, and the newest record of a ledger that it saw there. A server
// that answers with less, or that has another record in that place, has lost acknowledged writes: it was restored from an
// older copy, emptied, or a replica took over that had not received them. Revisions alone would not tell: others may have
// written meanwhile to what is left.
type witness struct {
	mu sync.Mutex
	of map[space]sight
}

// gone is the revision of a task that was over and has expired.
const gone = int64(1) << 52

// space is a task, or the agent itself where task is "".
type space struct{ agent, task string }

// witnessed bounds how many spaces are remembered; beyond it all are forgotten, and a loss before the next reply of a
// space goes unnoticed.
const witnessed = 1 << 16

// sight is what was seen of a space: its revision, and a record. That of an agent may be of any ledger of the agent; of an
// agent also what was pending. What was told before a loss was noticed says nothing of what is pending after it.
type sight struct {
	rev     int64
	record  record
	pending *pendings
	losses  int // that were noticed
}

// record is one of a ledger: its place there, and the time at which the store wrote it, which no other record of that place
// has, µs. Its zero value is none.
type record struct {
	task    string // "" for the agent's own ledger
	seq, at int64
}

// seen is what was known of a task and its agent when a question was asked.
type seen struct{ task, agent sight }

func (w *witness) ask(agent, task string) seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := seen{agent: w.of[space{agent, ""}]}
	if task != "" {
		s.task = w.of[space{agent, task}]
	}
	return s
}

// pending returns what is known of an agent's pending outcomes by now.
func (w *witness) pending(agent string, before seen) *pendings {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.of[space{agent, ""}]; now.losses == before.agent.losses {
		return before.agent.pending.newer(now.pending)
	}
	return before.agent.pending
}

// hear takes up what is pending as a transaction found it, so that calls which go before its caller has looked at the answer
// need not be told again.
func (w *witness) hear(agent string, before seen, p *pendings) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := space{agent, ""}
	if now := w.of[s]; p != nil && now.pending != nil && now.losses == before.agent.losses {
		now.pending = now.pending.newer(p)
		w.of[s] = now
	}
}

// answer is what the server says of the two spaces: their revisions, whether a record that was known is not there, and what
// is to be remembered.
type answer struct {
	task, agent           sight
	otherTask, otherAgent bool
}

// other reads what the scripts say of records that are not those that were known.
func (a *answer) other(flag int64) { a.otherTask, a.otherAgent = flag&1 != 0, flag&2 != 0 }

// lost compares an answer with what was known. What is lost of an agent may concern all of its tasks.
func (a *answer) lost(agent, task string, before seen) error {
	switch {
	case a.otherAgent || a.agent.rev < before.agent.rev:
		return &memory.LostError{Agent: agent, Had: before.agent.rev, Has: a.agent.rev}
	case task != "" && (a.otherTask || a.task.rev < before.task.rev):
		return &memory.LostError{Agent: agent, Task: task, Had: before.task.rev, Has: a.task.rev}
	}
	return nil
}

// told compares an answer with what was known when it was asked for. What was lost is to be accepted, once it is clear what
// became of it.
func (w *witness) told(agent, task string, before seen, now answer) error {
	if lost := now.lost(agent, task, before); lost != nil {
		return lost
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.of) > witnessed {
		w.of = nil
	}
	if w.of == nil {
		w.of = map[space]sight{}
	}
	if w.of[space{agent, ""}].losses != before.agent.losses {
		now.agent.pending = nil
	}
	w.raise(space{agent, ""}, now.agent)
	if task != "" {
		w.raise(space{agent, task}, now.task)
	}
	return nil
}

// accept has what is left count from now on, in place of what was known: a loss is reported once.
func (w *witness) accept(agent, task string, before seen, now answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lower := func(s space, had sight, has int64) {
		if known, ok := w.of[s]; ok && (known.rev > has || known.record == had.record) {
			w.of[s] = sight{rev: has, losses: known.losses + 1}
		}
	}
	lower(space{agent, ""}, before.agent, now.agent.rev)
	if task != "" {
		lower(space{agent, task}, before.task, now.task.rev)
	}
}

// drop forgets the record by which an agent is known, where it is still this one: its task was pruned.
func (w *witness) drop(agent string, r record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := space{agent, ""}
	if known := w.of[s]; known.record == r {
		known.record = record{}
		w.of[s] = known
	}
}

func (w *witness) raise(s space, to sight) {
	known := w.of[s]
	if known.rev = max(known.rev, to.rev); to.rev == gone { // what is left of it is its ledger
		known.rev = 0
	}
	if to.record.at > known.record.at {
		known.record = to.record
	}
	known.pending = known.pending.newer(to.pending)
	w.of[s] = known
}

// written is the first record that a transaction appended; none where it appended none, or where it was sent before.
func written(t *txn.Txn, r txn.Reply) record {
	i := slices.IndexFunc(t.Clauses, func(c txn.Clause) bool { return c.Op == txn.Event })
	switch {
	case i < 0, !r.OK, r.Replay:
		return record{}
	case t.Clauses[i].Scope == txn.Task:
		return record{t.Task, r.Seq, r.Now}
	}
	return record{"", r.Seq, r.Now}
}

// kind says of which ledger a record is: A of the agent's own, T of a task's.
func (r record) kind() byte {
	if r.task == "" {
		return 'A'
	}
	return 'T'
}

// asked writes a record as the scripts read it: when it was written in 16 digits, A where it is of the agent's own ledger
// and T where it is of a task's, its place. "" where nothing is known.
func (r record) asked() string {
	if r.seq == 0 {
		return ""
	}
	b := make([]byte, 0, 2*digits+1)
	b = append(b, noVersion[:digits-min(digits, width(r.at))]...)
	b = strconv.AppendInt(b, r.at, 10)
	return string(strconv.AppendInt(append(b, r.kind()), r.seq, 10))
}

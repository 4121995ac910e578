package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

//go:embed apply.lua
var applyText string

//go:embed load.lua
var loadText string

//go:embed queued.lua
var queuedText string

//go:embed remember.lua
var rememberText string

//go:embed records.lua
var recordsText string

//go:embed cut.lua
var cutText string

//go:embed forget.lua
var forgetText string

// scripts are called by their hash, and sent again where the server has forgotten them.
type scripts struct{ apply, load, queued, remember, records, cut, forget script }

// script is one with its hash.
type script struct{ text, hash string }

func newScript(text string) script { return script{text, redis.NewScript(text).Hash()} }

func newScripts(edit func(text string) string) scripts {
	return scripts{
		newScript(edit(applyText)), newScript(edit(loadText)), newScript(edit(queuedText)), newScript(edit(rememberText)),
		newScript(edit(recordsText)), newScript(edit(cutText)), newScript(edit(forgetText)),
	}
}

var shipped = newScripts(func(text string) string { return text })

// Store is a [memory.Store] on a Redis server or cluster. It is safe for concurrent use.
type Store struct {
	client redis.UniversalClient
	run    scripts
	prefix string
	notes  int
	owned  bool // the client is closed with the store
	closed atomic.Bool

	batch    *batcher
	breaker  *gobreaker.CircuitBreaker[any]
	witness  witness
	index    index
	book     book
	keep     int64         // µs that ended intents and tasks are kept, less than 0 for ever
	replicas int           // that must confirm a transaction
	waitTime time.Duration // how long they may take
}

var _ memory.Store = (*Store)(nil)

// Shows implements [memory.Shower]: redis-cli is such a tool.
func (s *Store) Shows() bool { return true }

// begin reports why a call cannot be served.
func (s *Store) begin(ctx context.Context) error {
	if s.closed.Load() {
		return memory.ErrClosed
	}
	return ctx.Err()
}

// done makes an error of the client one of the store.
func (s *Store) done(ctx context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case s.closed.Load():
		return memory.ErrClosed
	case ctx.Err() != nil:
		return fmt.Errorf("redis: %s: %w", what, ctx.Err())
	}
	return fmt.Errorf("redis: %s: %w", what, err)
}

// Apply implements [memory.Store].
func (s *Store) Apply(ctx context.Context, t *txn.Txn) (txn.Reply, error) {
	if err := t.Check(); err != nil {
		return txn.Reply{}, fmt.Errorf("apply: %w", err)
	}
	if err := checkForm(t); err != nil {
		return txn.Reply{}, fmt.Errorf("apply: %w", err)
	}
	if err := s.begin(ctx); err != nil {
		return txn.Reply{}, err
	}
	for {
		before := s.witness.ask(t.Agent, t.Task)
		reply, now, err := s.apply(ctx, t, before)
		if err != nil {
			return txn.Reply{}, s.done(ctx, "apply", err)
		}
		switch again, err := s.attest(ctx, t.Agent, t.Task, before, now); {
		case err != nil:
			return txn.Reply{}, err
		case again:
			continue // nothing was written
		}
		if reply.OK && reply.TaskRev+reply.AgentRev > 0 {
			s.list(ctx, t.Agent)
		}
		return reply, nil
	}
}

// apply sends a transaction that is refused where the server does not have what is known.
func (s *Store) apply(ctx context.Context, t *txn.Txn, known seen) (reply txn.Reply, now answer, err error) {
	e := encode(s.taskKeys(t.Agent, t.Task), t, s.keep, known, s.knownBy(t.Agent, known))
	v, err := s.exchange(ctx, e, turns{
		going: func() { e.knows(s.witness.pending(t.Agent, known)) },
		come:  func(v []any) { s.witness.hear(t.Agent, known, e.hear(v)) },
	})
	if err != nil {
		return reply, now, err // it may be on its way still
	}
	defer e.done()
	var r reader
	reply, now.agent.pending = r.reply(e, v)
	now.task.rev, now.agent.rev = reply.TaskRev, reply.AgentRev
	if len(v) > 1 && r.number(v[0]) == otherHistory {
		now.other(r.number(v[1]))
	} else if w := written(t, reply); w.seq > 0 {
		now.agent.record = w
		if w.task == t.Task {
			now.task.record = w
		}
	}
	if now.lost(t.Agent, t.Task, known) != nil { // what was known does not go with it
		now.agent.pending = nil
		return reply, now, nil
	}
	return reply, now, r.err
}

// attest says what an answer means to what was known: nothing, a loss, or that it is to be asked for again, because the
// record by which the agent was known was of a task that has been pruned.
func (s *Store) attest(ctx context.Context, agent, task string, before seen, now answer) (again bool, err error) {
	loss := s.witness.told(agent, task, before, now)
	if loss == nil {
		return false, nil
	}
	if by := before.agent.record; now.otherAgent && by.task != "" {
		switch pruned, err := s.wasPruned(ctx, agent, by.task); {
		case err != nil:
			return false, fmt.Errorf("%w; whether it was pruned cannot be read: %w", loss, err)
		case pruned && by.task != task:
			s.witness.drop(agent, by)
			return true, nil
		case pruned: // which is said of the task
			now.otherAgent = false
			s.witness.drop(agent, by)
			if loss = s.witness.told(agent, task, before, now); loss == nil {
				return true, nil
			}
		}
	}
	loss = s.orPruned(ctx, loss)
	s.witness.accept(agent, task, before, now)
	return false, loss
}

// exchange sends a transaction.
func (s *Store) exchange(ctx context.Context, e *encoder, on turns) ([]any, error) {
	if s.replicas > 0 {
		return s.replicated(ctx, e)
	}
	return s.through(func() ([]any, error) { return s.batch.run(ctx, s.run.apply, e.command(s.run.apply.hash), on) })
}

// Load implements [memory.Store].
func (s *Store) Load(ctx context.Context, agent, task string, have *txn.Snapshot) (*txn.Snapshot, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	if have != nil && have.Gap {
		have = nil
	}
	for {
		before := s.witness.ask(agent, task)
		n, now, err := s.look(ctx, agent, task, have, before)
		if err != nil {
			return nil, s.done(ctx, "load", err)
		}
		if again, err := s.attest(ctx, agent, task, before, now); err != nil {
			return nil, err
		} else if !again {
			return n, nil
		}
	}
}

// look reads a snapshot, and what there is of what is known.
func (s *Store) look(ctx context.Context, agent, task string, have *txn.Snapshot, known seen) (*txn.Snapshot, answer, error) {
	k, revs := s.taskKeys(agent, task), [2]string{"-1", "-1"}
	if have != nil {
		revs = [2]string{strconv.FormatInt(have.Task.Rev, 10), strconv.FormatInt(have.Agent.Rev, 10)}
	}
	names := []string{k.agent, k.agentLedger, k.pending}
	if task != "" {
		names = append(names, k.task, k.ledger)
	}
	by := slices.Index(names, s.knownBy(agent, known)) + 1
	if by == 0 {
		names = append(names, s.knownBy(agent, known))
		by = len(names)
	}
	var now answer
	v, err := s.script(ctx, s.run.load, names, []string{
		revs[0], revs[1], known.task.record.asked(), known.agent.record.asked(), strconv.Itoa(by), flags(task != ""),
	}, turns{})
	if err != nil {
		return nil, now, err
	}
	if len(v) != 10 {
		return nil, now, fmt.Errorf("%d values, want 10", len(v))
	}
	var r reader
	n := txn.NewSnapshot()
	list, _ := v[5].([]any)
	p := &pendings{done: r.number(v[6])}
	p.list = r.outcomes(nil, p.done, list)
	p.last = p.done + int64(len(list))
	n.Now, n.Pending = r.number(v[0]), p.list
	if n.Task = r.space(v[2]); v[2] == nil && have != nil && task != "" {
		n.Task = have.Task
	}
	n.Task.Rev = r.number(v[1])
	if n.Agent = r.space(v[4]); v[4] == nil && have != nil {
		n.Agent = have.Agent
	}
	now.other(r.number(v[7]))
	now.task, now.agent = sight{rev: n.Task.Rev, record: r.record(task, v[8])}, sight{rev: n.Agent.Rev, record: r.record("", v[9]), pending: p}
	if w := now.task.record; w.at > now.agent.record.at {
		now.agent.record = w
	}
	return n, now, r.err
}

// knownBy is the key of the ledger by whose record the agent is known.
func (s *Store) knownBy(agent string, known seen) string {
	k := s.taskKeys(agent, known.agent.record.task)
	return k.ledger
}

// Records implements [memory.Store].
func (s *Store) Records(ctx context.Context, agent, task string, from int64, limit int) ([]txn.Stored, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	k := s.keys(agent)
	from, entries, links, err := s.entries(ctx, k, task, max(from, 1), limit)
	if err != nil || len(entries) == 0 {
		return nil, s.done(ctx, "read ledger", err)
	}
	out := make([]txn.Stored, len(entries))
	for i, x := range entries {
		seq := from + int64(i)
		if len(x) < digits {
			return nil, fmt.Errorf("redis: read ledger: record %d of task %q of agent %q is not one of this program: %.40q", seq, task, agent, x)
		}
		var r reader
		out[i] = txn.Stored{Seq: seq, At: r.number(x[:digits]), Val: x[digits:]}
		if out[i].Link, err = s.link(ctx, k.odd(task), links, i, seq); err != nil || r.err != nil {
			return nil, s.done(ctx, "read ledger", errors.Join(err, r.err))
		}
	}
	return out, nil
}

// entries reads a page of a ledger: the number of its first record, the records, and their links.
func (s *Store) entries(ctx context.Context, k keys, task string, from int64, limit int) (first int64, entries []string, links string, err error) {
	if task == "" {
		return s.own(ctx, k, from, limit)
	}
	entries, err = s.client.LRange(ctx, k.ledger(task), from-1, from-2+int64(limit)).Result()
	if err != nil || len(entries) == 0 {
		return from, nil, "", err
	}
	// Links are only ever added: read after the records, they are at least as new.
	links, err = s.client.GetRange(ctx, k.links(task), (from-1)*linkSize, (from-1+int64(len(entries)))*linkSize-1).Result()
	return from, entries, links, err
}

// own is entries of an agent's own ledger, whose beginning may be dropped in between: it is read in one step.
func (s *Store) own(ctx context.Context, k keys, from int64, limit int) (first int64, entries []string, links string, err error) {
	v, err := s.script(ctx, s.run.records, []string{k.agent(), k.ledger(""), k.links("")}, []string{strconv.FormatInt(from, 10), strconv.Itoa(limit)}, turns{})
	if err != nil {
		return 0, nil, "", err
	}
	if len(v) != 3 {
		return 0, nil, "", fmt.Errorf("%d values, want 3", len(v))
	}
	var r reader
	first = r.number(v[0])
	links, _ = v[1].(string)
	list, _ := v[2].([]any)
	for _, x := range list {
		text, _ := x.(string)
		entries = append(entries, text)
	}
	return first, entries, links, r.err
}

func (s *Store) link(ctx context.Context, odd, links string, i int, seq int64) (string, error) {
	if len(links) < (i+1)*linkSize {
		return "", nil
	}
	switch l := links[i*linkSize : (i+1)*linkSize]; l[0] {
	case 0:
		return "", nil
	case '~':
		return s.client.HGet(ctx, odd, strconv.FormatInt(seq, 10)).Result()
	default:
		return l, nil
	}
}

// Queued implements [memory.Store].
func (s *Store) Queued(ctx context.Context, agent, queue string, after txn.Queued, dueOnly bool, limit int) ([]txn.Queued, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	member, due := "", ""
	if after != (txn.Queued{}) {
		member, due = after.Member, strconv.FormatInt(after.Due, 10)
	}
	v, err := s.script(ctx, s.run.queued, []string{s.keys(agent).queue(queue)}, []string{member, due, flags(dueOnly), strconv.Itoa(limit)}, turns{})
	if err != nil {
		return nil, s.done(ctx, "read queue", err)
	}
	var r reader
	out := make([]txn.Queued, 0, len(v)/2)
	for i := 0; i+1 < len(v); i += 2 {
		m, _ := v[i].(string)
		out = append(out, txn.Queued{Member: m, Due: r.number(v[i+1])})
	}
	return out, s.done(ctx, "read queue", r.err)
}

// Close implements [memory.Store].
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return memory.ErrClosed
	}
	if !s.owned {
		return nil
	}
	return s.client.Close()
}

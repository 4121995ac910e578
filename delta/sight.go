package delta

import (
	"context"
	"errors"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/statespace"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// rounds is how often a decision is made anew after it lost a race, before it is given up as STALE.
const rounds = 3

// sight is what one call reads for itself: cold records and leases, which the warm snapshot does not keep.
type sight struct {
	record txn.Space
	leases map[string]txn.Lease
}

func newSight() *sight { return new(sight) }

// ended notes that an intent of the call's own has ended.
func (own *sight) ended(intent string) {
	if own.leases == nil {
		own.leases = map[string]txn.Lease{}
	}
	own.leases[intent] = txn.Lease{Phase: txn.Settle}
}

// snapshot puts together what is known; the caller holds the agent's lock. Maps are shared, not copied.
func (t *Task) snapshot(own *sight) *txn.Snapshot {
	s := new(txn.Snapshot)
	t.snapshotInto(s, own)
	return s
}

// snapshotInto is snapshot into memory of the caller's.
func (t *Task) snapshotInto(s *txn.Snapshot, own *sight) {
	a := t.state
	*s = txn.Snapshot{State: txn.State{Task: t.space, Agent: a.space}, Now: t.now(), Pending: a.pending}
	if own != nil {
		s.Record, s.Leases = own.record, own.leases
	}
}

// keep takes over what a snapshot learned; the caller holds the agent's lock.
func (t *Task) keep(s *txn.Snapshot) {
	a := t.state
	a.edition++
	t.space, a.space, a.pending = s.Task, s.Agent, s.Pending
	if s.Now >= a.now {
		a.now, a.at = s.Now, t.engine.cfg.Now()
	}
}

// now estimates the store's time: what it last said, and what has passed here since. The caller holds the agent's lock.
func (t *Task) now() int64 {
	a := t.state
	if a.at.IsZero() {
		return a.now
	}
	return a.now + t.engine.cfg.Now().Sub(a.at).Microseconds()
}

// refresh loads task and agent where the snapshot is known to lag.
func (t *Task) refresh(ctx context.Context, always bool) error {
	if err := t.callable(); err != nil {
		return err
	}
	t.state.mu.Lock()
	behind := t.lags() || t.state.lags() || t.view == nil && t.space.Rev == 0
	t.state.mu.Unlock()
	if !behind && (!always || t.unchanged(ctx)) {
		return nil
	}
	for range rounds {
		if kept, err := t.reload(ctx); err != nil || kept {
			return err
		}
	}
	return nil // replies overtook every reading; the gap stays marked, and pins keep decisions right
}

// tailKept is how many outcomes may wait to be folded before a decision folds them first: the tail is read with every
// decision.
const tailKept = engine.TailKept

// catchUp brings the snapshot to where a decision may rest on it.
func (t *Task) catchUp(ctx context.Context) error {
	if err := t.refresh(ctx, false); err != nil {
		return err
	}
	t.state.mu.Lock()
	n := len(t.state.pending)
	t.state.mu.Unlock()
	if n <= tailKept {
		return nil
	}
	if err := t.engine.keeper.fold(t.agent.name, tailKept); err != nil {
		t.engine.cfg.Log.Warn("beliefs not folded; the decision folds them for itself", "agent", t.agent.name, "pending", n, "error", err)
	}
	return t.refresh(ctx, false)
}

// look decodes the snapshot; the caller holds the agent's lock.
func (t *Task) look(s *txn.Snapshot) (*engine.View, error) { return t.decode(s, engine.Look) }

// glance is look for a decision, which may leave out successes that wait to be folded.
func (t *Task) glance(s *txn.Snapshot) (*engine.View, error) { return t.decode(s, engine.Glance) }

// glanceInto is glance into memory of the caller's.
func (t *Task) glanceInto(v *engine.View, s *txn.Snapshot) error {
	t.view.Remember(t.state.folded)
	more, err := v.GlanceInto(&t.engine.rules, t.agent.compiled, s, t.view)
	if err == nil && more {
		t.view = v.On(t.snapshot(nil))
	}
	return err
}

func (t *Task) decode(s *txn.Snapshot, how func(*engine.Rules, *engine.Agent, *txn.Snapshot, *engine.View) (*engine.View, error)) (*engine.View, error) {
	t.view.Remember(t.state.folded)
	v, err := how(&t.engine.rules, t.agent.compiled, s, t.view)
	if err == nil {
		t.view = v
	}
	return v, err
}

// decide evaluates the gates on what is known now.
func (t *Task) decide(ctx context.Context, o *observed, own *sight) (d engine.Decision, view *engine.View, err error) {
	if t.engine.cfg.Policy == nil {
		return t.decideHere(o, own)
	}
	c := &o.call
	err = t.judged(ctx, own, func(rules *engine.Rules, v *engine.View) error {
		c.Now, view = v.Snap.Now, v
		d = engine.Decide(rules, t.agent.compiled, v, c)
		return nil
	})
	return d, view, err
}

// decideHere is decide where grants alone are asked, under the agent's lock.
func (t *Task) decideHere(o *observed, own *sight) (d engine.Decision, view *engine.View, err error) {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	c, s := &o.call, &o.snap
	t.snapshotInto(s, own)
	if t.counts(c.Intent.Action) {
		view, err = t.look(s)
	} else {
		view = &o.view
		err = t.glanceInto(view, s)
	}
	if err != nil {
		return d, nil, err
	}
	c.Now = s.Now
	return engine.Decide(&t.engine.rules, t.agent.compiled, view, c), view, nil
}

// counts reports whether each success counts for what is decided of an action.
func (t *Task) counts(name string) bool {
	a := t.agent.compiled.Actions[name]
	return a != nil && a.UntilTrust > 0
}

// send is apply for a transaction whose reply goes to advance or merge.
func (t *Task) send(ctx context.Context, x *txn.Txn) (txn.Reply, error) {
	t.state.sends(x)
	r, err := t.engine.apply(ctx, x)
	if err != nil || !r.OK {
		t.state.landed(x)
	}
	if err != nil {
		t.engine.keeper.agent(t.agent.name, false) // what waits for its revision waits no more
	}
	return r, err
}

// advance moves the snapshot on by an accepted transaction.
func (t *Task) advance(x *txn.Txn, r txn.Reply, own *sight) {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	t.state.lands(x)
	if !t.inOrder(x, &r) {
		t.outOfOrder(x, &r, own)
		t.moved()
		return
	}
	s := &t.state.next
	t.snapshotInto(s, own)
	if own == nil { // cold cells are kept by nobody
		s.Record = t.state.cold
	}
	before := engine.CountFacts(&t.space, x.Clauses)
	if r.AgentRev != t.state.space.Rev && !benign(x) {
		t.state.worse = r.AgentRev
	}
	s.Advance(x, r)
	t.keep(s)
	if t.facted >= 0 {
		t.facted += engine.CountFacts(&t.space, x.Clauses) - before
	}
	if own == nil {
		clear(s.Record.Cells)
		t.state.cold = s.Record
	} else {
		own.record, own.leases = s.Record, s.Leases
	}
	if t.set != nil {
		engine.NoteFacts(t.set, s, x.Clauses)
	}
	*s = txn.Snapshot{}
	t.flow.since, t.state.flow.since = t.state.sent, t.state.sent
	t.moved()
}

// merge takes over what a refused transaction brought. A space that was written to since what is known of it is read anew.
func (t *Task) merge(x *txn.Txn, r txn.Reply, own *sight) {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	a := t.state
	a.lands(x)
	a.edition++
	t.facted = -1
	if r.Fresh == nil {
		return
	}
	s := t.snapshot(own)
	task, agent := r.Fresh.Task.Rev-s.Task.Rev, r.Fresh.Agent.Rev-s.Agent.Rev
	if task != 0 {
		s.Task = txn.Space{Rev: r.Fresh.Task.Rev}
	}
	if agent != 0 {
		s.Agent = txn.Space{Rev: r.Fresh.Agent.Rev}
	}
	s.Merge(r.Fresh, x.Clauses)
	if own != nil {
		own.record, own.leases = s.Record, s.Leases
	}
	if s.Now >= a.now {
		a.now, a.at = s.Now, t.engine.cfg.Now()
	}
	if agent == 0 {
		a.space, a.pending = s.Agent, s.Pending
	}
	t.gap, a.gap = t.gap || task > 0, a.gap || agent > 0
	if task != 0 {
		return
	}
	t.space = s.Task
	if t.set != nil {
		engine.NoteFacts(t.set, s, x.Clauses)
	}
}

// readRecord reads cold cells and the lease of an intent into the call's own sight.
func (t *Task) readRecord(ctx context.Context, intent string, own *sight) error {
	if err := t.opened(); err != nil {
		return err
	}
	x := engine.ReadIntent(t.agent.name, t.local, intent)
	r, err := t.engine.apply(ctx, x)
	if err != nil {
		return err
	}
	t.merge(x, r, own)
	if _, known := own.leases[intent]; !known {
		if own.leases == nil {
			own.leases = map[string]txn.Lease{}
		}
		own.leases[intent] = txn.Lease{} // no lease: it never was
	}
	return nil
}

// Offer returns what exists for the planner now. The list is the caller's; the bytes of the schemas are shared with other
// readings of the task's offer: whoever wants to change them copies it with [action.Offer.Clone].
func (t *Task) Offer(ctx context.Context) (action.Offer, error) {
	if err := t.refresh(ctx, true); err != nil {
		return action.Offer{}, failedStore(err)
	}
	o, err := t.offer(ctx)
	t.tellConcern(ctx)
	if err != nil {
		return action.Offer{}, err
	}
	return t.handed.hand(o), nil
}

// offer is the engine's own copy, never changed.
func (t *Task) offer(ctx context.Context) (o action.Offer, err error) {
	var view *engine.View
	err = t.offered(ctx, func(rules *engine.Rules, v *engine.View) (err error) {
		view = v
		o.Epoch = uint64(v.Snap.Task.Rev + v.Snap.Agent.Rev)
		if rules.Policy != nil { // the lock is not held
			o.Actions, err = engine.Offer(rules, t.agent.compiled, v, t.facts(v), v.Snap.Now)
			return err
		}
		o.Actions, err = t.shelf.Offer(rules, t.agent.compiled, v, t.facts(v), v.Snap.Now)
		return err
	})
	if err != nil {
		return action.Offer{}, err
	}
	o.Actions = t.available(ctx, o.Actions)
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	o.Guidance = append(engine.Guidance(view, t.repeats), t.shelf.RiskGuidance(&t.engine.rules, t.agent.compiled, view, o.Actions)...)
	t.noteFriction(view)
	if n := len(t.offers); n == 0 || t.offers[n-1].Epoch != o.Epoch {
		t.offers = append(t.offers[max(0, n-offersKept+1):], o)
	}
	return o, nil
}

// facts is the prerequisite-legal set of a view: the one kept up to date, where the caller of judged holds the lock.
func (t *Task) facts(v *engine.View) *statespace.Set {
	if t.engine.cfg.Policy != nil {
		return engine.FactsOf(t.agent.compiled, v.Snap)
	}
	if t.set == nil {
		t.set = engine.FactsOf(t.agent.compiled, v.Snap)
	}
	return t.set
}

// offersKept is how many offers are remembered to say what changed since a call's epoch.
const offersKept = 8

// changedSince names what a call chosen from an older offer could not know; "" where nothing changed. The caller must not
// hold the lock.
func (t *Task) changedSince(ctx context.Context, epoch uint64) string {
	t.state.mu.Lock()
	known, old := uint64(t.space.Rev+t.state.space.Rev), t.offers
	t.state.mu.Unlock()
	if epoch == 0 || epoch >= known {
		return ""
	}
	now, err := t.offer(ctx)
	if err != nil {
		return ""
	}
	for _, o := range old {
		if o.Epoch == epoch {
			return engine.Differences(o, now)
		}
	}
	return "the offer the call was chosen from is no longer known"
}

// Explain says how an action stands for the agent now, with every reason, for operators.
func (t *Task) Explain(ctx context.Context, name string) (st engine.Standing, err error) {
	if err := t.refresh(ctx, true); err != nil {
		return st, failedStore(err)
	}
	err = t.judged(ctx, nil, func(rules *engine.Rules, v *engine.View) error {
		st = engine.Stand(rules, t.agent.compiled, v, t.facts(v), name, v.Snap.Now)
		return nil
	})
	if f := t.toolBars(ctx, name); f != nil && err == nil {
		st.Status, st.Reasons = action.Blocked, append(st.Reasons, f.Explain())
	}
	return st, err
}

// Path returns the cheapest sequence of actions that would make an action legal.
func (t *Task) Path(ctx context.Context, name string) (Path, error) {
	if err := t.refresh(ctx, true); err != nil {
		return Path{}, failedStore(err)
	}
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	s := t.snapshot(nil)
	return t.agent.compiled.Graph.Path(name, engine.FactsOf(t.agent.compiled, s), s.Now, nil)
}

// apply sends a transaction, once more where it is not known whether it took effect: repeating is safe. It outlives the
// caller's context by the store timeout, so that what was begun is written down.
func (e *Engine) apply(ctx context.Context, x *txn.Txn) (r txn.Reply, err error) {
	if ctx == nil {
		return txn.Reply{}, errNoContext
	}
	if e.watch != nil {
		answered := e.watch.send(x)
		defer func() { answered(r, err) }()
	}
	if e.instant != nil { // it waits for nothing
		r, err = e.instant.ApplyShared(context.Background(), x)
	} else {
		r, err = e.applyBounded(ctx, x)
	}
	if err != nil || r.OK { // with an error it may have been written all the same
		e.noteBooks(x, &r)
	}
	return r, err
}

func (e *Engine) applyBounded(ctx context.Context, x *txn.Txn) (txn.Reply, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.StoreTimeout)
	defer cancel()
	r, err := e.store.Apply(ctx, x)
	var lost *memory.LostError
	switch {
	case err == nil || ctx.Err() != nil:
	case x.Phase == txn.Begin && errors.As(err, &lost): // told plainly, and once: what is there by now is not what was decided on
	default:
		r, err = e.applyAgain(ctx, x)
	}
	return r, err
}

// noteBooks has the keeper seal what a transaction wrote: whoever writes a record need not think of it. Where the reply
// says under which sequence, the record need not be read for it.
func (e *Engine) noteBooks(x *txn.Txn, r *txn.Reply) {
	first, next := txn.Scope(0), r.Seq
	for i := range x.Clauses {
		c := &x.Clauses[i]
		if c.Op != txn.Event {
			continue
		}
		of := x.Task
		if c.Scope == txn.Agent {
			of = ""
		}
		if first == 0 {
			first = c.Scope
		}
		if c.Scope != first || !r.OK || r.Replay || r.Seq == 0 {
			e.keeper.task(x.Agent, of)
			continue
		}
		e.keeper.task(x.Agent, of, txn.Stored{Seq: next, At: r.Now, Val: c.Val})
		next++
	}
}

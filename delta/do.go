package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Call is one proposed call.
type Call struct {
	// ID is the caller's id of the call: the same id and input returns the recorded outcome, another input is refused.
	// "" is a call of its own each time, also after the same call was approved and has run.
	ID     string
	Action string
	Input  json.RawMessage
	// Epoch is that of the offer the call was chosen from; a refusal then says what changed since. 0 is unknown.
	Epoch      uint64
	Provenance action.Provenance

	want *declaration // of a typed call: this very action, no other of its name
	dry  bool         // nothing may be written for it
	flow bool         // the task's workflow commands it
	own  bool         // the engine's own, which alone may bear the id of an undo, or a recorded one
}

// Why a call under way was told to stop.
var (
	errCancelled   = errors.New("the task was cancelled")
	errStopped     = errors.New("it was cancelled")
	errDeadline    = errors.New("the deadline of the task passed")
	errTimeout     = errors.New("the action's timeout passed")
	errSuperseded  = errors.New("the lease of the call was lost to another worker")
	errInterrupted = errors.New("the engine is closing")
)

// Do passes one call through the gates and runs it. The result is Ok for everything that was decided: Outcome.OK tells
// success, and every other outcome carries a Failure. It is Err only where nothing could be decided: a context that has
// ended, a closed engine.
//
// Do never waits for a person: it returns APPROVAL_REQUIRED with the id of the approval. The parked call runs once when
// it is approved: by [Engine.Work], by [Task.DoWait], or when the same call is made again.
func (t *Task) Do(ctx context.Context, c Call) mo.Result[action.Outcome] {
	if err := errors.Join(t.callable(), alive(ctx)); err != nil {
		return mo.Err[action.Outcome](err)
	}
	if err := t.engine.enter(); err != nil {
		return mo.Err[action.Outcome](err)
	}
	defer t.engine.inside.Done()
	o := t.observe(ctx, c)
	if o.err != nil {
		return mo.Err[action.Outcome](o.err)
	}
	out := t.do(ctx, o)
	o.done()
	t.passOnAfter(ctx, out.Code)
	t.tellConcern(ctx)
	return decided(ctx, out)
}

// decided tells a store that cannot be reached from a caller who stopped waiting for it: then nothing was decided.
func decided(ctx context.Context, o action.Outcome) mo.Result[action.Outcome] {
	if o.Code == action.StoreUnavailable && ctx.Err() != nil {
		return mo.Err[action.Outcome](context.Cause(ctx))
	}
	return mo.Ok(o)
}

// DoWait is Do that waits for a person where one is asked, until the request expires or ctx ends, also while a halt stands. When
// ctx ends first the outcome is APPROVAL_REQUIRED: the call stays parked.
func (t *Task) DoWait(ctx context.Context, c Call) mo.Result[action.Outcome] {
	if err := errors.Join(t.callable(), alive(ctx)); err != nil {
		return mo.Err[action.Outcome](err)
	}
	if err := t.engine.enter(); err != nil {
		return mo.Err[action.Outcome](err)
	}
	defer t.engine.inside.Done()
	first := t.observe(ctx, c)
	if first.err != nil {
		return mo.Err[action.Outcome](first.err)
	}
	out := t.do(ctx, first)
	t.passOnAfter(ctx, out.Code)
	if first.held && t.awaitLift(ctx, c.Action) {
		if next, ok := t.resume(ctx, c, ""); ok {
			out = next
		}
	}
	for parked := waits(out); out.Code == action.ApprovalRequired || out.Code == action.TaskPaused; {
		if !t.await(ctx, out, c, &parked) {
			return mo.Ok(out)
		}
		next, ok := t.resume(ctx, c, parked)
		if !ok {
			return mo.Ok(out)
		}
		if out = next; parked == "" {
			parked = waits(out)
		}
	}
	t.tellConcern(ctx)
	return decided(ctx, out)
}

// waits returns the intent that is parked, "" where none is.
func waits(o action.Outcome) string {
	if o.Code == action.ApprovalRequired {
		return o.Intent
	}
	return ""
}

// await waits for what keeps a call from running: a person's answer, or that the task is no longer paused. It clears parked
// where the call finds its intent by itself.
func (t *Task) await(ctx context.Context, o action.Outcome, c Call, parked *string) bool {
	if o.Code == action.TaskPaused {
		return t.awaitGoing(ctx)
	}
	a, ok := t.awaitApproval(ctx, o.Failure.Approval())
	if a.Intent != *parked || c.ID != "" {
		*parked = ""
	}
	return ok
}

// resume makes a call again whose approval was decided, or whose task goes on. A parked intent runs once, whoever resumes it: where another was
// quicker, its recorded outcome is the answer. False where ctx ended or the engine closes first.
func (t *Task) resume(ctx context.Context, c Call, parked string) (action.Outcome, bool) {
	for {
		o := t.observe(ctx, c)
		if o.err != nil {
			return action.Outcome{}, false
		}
		if parked != "" {
			own := newSight()
			if err := t.readRecord(ctx, parked, own); err != nil {
				return t.refused(o, failedStore(err)), true
			}
			ended := own.leases[parked].Phase == txn.Settle
			if out, ok := engine.Ended(&own.record, parked); ok && ended {
				out.Recorded = true
				return o.marked(t.unveil(ctx, out)), true
			}
			if !ended {
				o.call.Intent.ID, o.call.Resume = parked, true
			}
		}
		out := t.do(ctx, o)
		if o.held {
			if !t.awaitLift(ctx, c.Action) {
				return out, false
			}
			continue
		}
		if out.Code != action.InFlight && (out.Code != action.Stale || !o.call.Resume) {
			return out, true
		}
		if !t.engine.pause(ctx, nil) {
			return out, false
		}
	}
}

// CallOption says more about a typed call.
type CallOption func(*Call)

// CallID gives a typed call an id, see [Call]: made again with the same input it returns the recorded result and runs
// nothing. Without one each call is a call of its own, also after an approved one has run.
func CallID(id string) CallOption { return func(c *Call) { c.ID = id } }

// Because relates a typed call to the reasoning behind it.
func Because(p action.Provenance) CallOption { return func(c *Call) { c.Provenance = p } }

// Do makes a typed call in a task. Err is an *action.Failure for everything that was decided.
func (a *Action[In, Out]) Do(ctx context.Context, t *Task, in In, opts ...CallOption) mo.Result[Out] {
	return a.call(ctx, t, in, t.Do, opts)
}

// DoWait is Do that waits for a person, see [Task.DoWait].
func (a *Action[In, Out]) DoWait(ctx context.Context, t *Task, in In, opts ...CallOption) mo.Result[Out] {
	return a.call(ctx, t, in, t.DoWait, opts)
}

func (a *Action[In, Out]) call(ctx context.Context, t *Task, in In, do func(context.Context, Call) mo.Result[action.Outcome], opts []CallOption) mo.Result[Out] {
	if err := t.callable(); err != nil {
		return mo.Err[Out](err)
	}
	if a.definition() == nil {
		return mo.Err[Out](errNotBuilt)
	}
	raw, err := safely(func() ([]byte, error) { return json.Marshal(in) })
	if err != nil {
		return mo.Err[Out](action.Fail(action.InputMalformed, "the input of %q cannot be written as JSON", a.d.name).Because(err))
	}
	c := Call{Action: a.d.name, Input: raw, want: a.d}
	for _, opt := range opts {
		if opt != nil {
			opt(&c)
		}
	}
	o, err := do(ctx, c).Get()
	if err != nil {
		return mo.Err[Out](err)
	}
	if o.Code == action.ActionUnknown {
		return mo.Err[Out](t.notHeld(a.d.name))
	}
	if !o.OK() {
		return mo.Err[Out](o.Err())
	}
	if o.Sealed != "" {
		return mo.Err[Out](action.Fail(action.KeyUnavailable, "action %q succeeded before, and its recorded output cannot be opened", a.d.name))
	}
	out, err := safely(func() (out Out, err error) {
		err = decodeOutput(o.Output, &out)
		return out, err
	})
	if err != nil {
		return mo.Err[Out](fmt.Errorf("action %q succeeded, but its recorded output does not fit its type: %w", a.d.name, err))
	}
	return mo.Ok(out)
}

// notHeld says of a typed call what a planner must not be told: that the action exists and the agent does not have it, or
// has another one of that name, which the call must not reach.
func (t *Task) notHeld(name string) *action.Failure {
	if t.agent.defs[name] != nil {
		return action.Fail(action.ActionUnknown, "agent %q holds another action named %q; call the one that was granted", t.agent.name, name)
	}
	return action.Fail(action.ActionUnknown, "agent %q does not hold action %q; add it with Grant", t.agent.name, name)
}

// decodeOutput decodes a recorded output. Outputs of raw actions are the JSON itself.
func decodeOutput[Out any](raw json.RawMessage, out *Out) error {
	if p, ok := any(out).(*action.Output); ok {
		*p = action.Output(raw)
		return nil
	}
	return json.Unmarshal(raw, out)
}

func (t *Task) askID() string { return t.ID() + idSeparator + t.engine.cfg.ID() }

// newOwner names one try at a call: two tries of one engine must not take each other's lease for their own.
func (e *Engine) newOwner() string { return e.owners.next() }

// do decides, and runs what was permitted.
func (t *Task) do(ctx context.Context, o *observed) action.Outcome {
	if t.engine.instant != nil {
		o.room.Lend()
		defer o.room.Return()
	}
	out := t.pass(ctx, o)
	if out.Overrun {
		t.overran(ctx)
	}
	return o.marked(out)
}

// marked says of what came back from a tool that it did.
func (o *observed) marked(out action.Outcome) action.Outcome {
	out.Untrusted = o.def != nil && o.def.tool != "" && out.Code.Info().Executed != action.No
	return out
}

func (t *Task) pass(ctx context.Context, o *observed) action.Outcome {
	t.engine.inheritHalts(ctx)
	if err := t.engine.noteConfig(ctx, t.state); err != nil {
		return t.refused(o, failedStore(err))
	}
	t.keyed(ctx, o)
	own := &o.own
	for round, lookups, found := 0, 0, 0; round < rounds; {
		if err := t.catchUp(ctx); err != nil {
			return t.refused(o, failedStore(err))
		}
		d, view, err := t.decide(ctx, o, own)
		switch {
		case err != nil:
			return t.refused(o, failedStore(err))
		case d.Lookup != "" && lookups < rounds:
			lookups++
			if err := t.readRecord(ctx, d.Lookup, own); err != nil {
				return t.refused(o, failedStore(err))
			}
			continue
		case d.Lookup != "":
			return t.refused(o, action.Fail(action.StoreUnavailable, "the recorded outcome of intent %s cannot be read", d.Lookup))
		case d.Lease != nil:
			if err := t.lease(ctx, d.Lease, &o.call); err != nil {
				return t.refused(o, failedStore(err))
			}
			round++ // another call may be quicker to use it
			continue
		case d.Recorded != nil:
			return t.unveil(ctx, *d.Recorded)
		case d.Txn == nil:
			o.held = d.Held
			return t.refused(o, d.Refusal)
		}
		if err := t.opened(); err != nil { // the versions that it pins may be those of another task of its id
			return t.refused(o, failedStore(err))
		}
		sent := time.Now()
		reply, err := t.send(ctx, d.Txn)
		if err != nil {
			var known bool
			if reply, known = t.unanswered(ctx, d.Txn); !known {
				return t.refused(o, failedStore(err))
			}
		}
		if !reply.OK {
			if found < rounds && discovered(&d, reply) {
				found++ // a cold record was read, no race lost
			} else {
				round++
			}
			t.merge(d.Txn, reply, own)
			if f := t.inTheWay(&d, reply, own); f != nil {
				return t.refused(o, f)
			}
			continue
		}
		if o.call.Intent.CallID == "" { // no record will be looked for
			t.advance(d.Txn, reply, nil)
		} else {
			t.advance(d.Txn, reply, own)
		}
		if o.held = d.Held; d.Refusal != nil {
			return t.answer(ctx, o, &d)
		}
		out, again := t.fly(ctx, o, &d, view, reply, sent)
		if !again {
			return out
		}
		own.ended(d.Begun.Intent) // it was given back, which ended it
		o.call.Intent.ID, o.call.Owner = t.engine.cfg.ID(), t.engine.newOwner()
		o.call.Again, o.call.Resume = true, false
		round++
	}
	if err := t.opened(); err != nil { // all of it changed
		return t.refused(o, failedStore(err))
	}
	return t.refused(o, action.Fail(action.Stale, "the state changed %d times while this was decided; try again", rounds))
}

// discovered reports a refusal that only brought what a call could not know: the cold record of its id.
func discovered(d *engine.Decision, r txn.Reply) bool {
	return r.Failed >= 0 && d.Txn.Clauses[r.Failed].Scope == txn.Record
}

// unanswered looks up what became of a begin that got no answer, not even when it was repeated: whoever holds its lease
// runs it, and must not tell anybody that nothing was run.
func (t *Task) unanswered(ctx context.Context, x *txn.Txn) (txn.Reply, bool) {
	if x.Phase != txn.Begin {
		return txn.Reply{}, false
	}
	own := newSight()
	if t.readRecord(ctx, x.Intent, own) != nil {
		return txn.Reply{}, false
	}
	l := own.leases[x.Intent]
	if l.Phase != txn.Begin || l.Fence != x.Fence || l.Owner != x.Owner {
		return txn.Reply{}, false
	}
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	t.gap, t.state.gap = true, true // the reply was lost, and with it the revisions
	return txn.Reply{OK: true, Replay: true, Now: t.now(), Seq: l.Seq, Until: l.Until, AgentRev: -1}, true
}

// inTheWay reports a lease that another worker holds on the intent of a refused begin: the parked call runs there.
func (t *Task) inTheWay(d *engine.Decision, r txn.Reply, own *sight) *action.Failure {
	if r.Failed >= 0 {
		return nil
	}
	l := own.leases[d.Txn.Intent]
	if l.Phase == txn.Begin {
		return action.Fail(action.InFlight, "the approved call is running already").With(action.DetailIntent, d.Txn.Intent)
	}
	return nil
}

// answer is a refusal that was recorded.
func (t *Task) answer(ctx context.Context, o *observed, d *engine.Decision) action.Outcome {
	f := d.Refusal
	if d.Muted {
		t.mute(ctx, f.Code, o.call.Intent.Within)
	}
	if d.Ask != nil {
		t.engine.nudge()
	}
	if o.call.Intent.Epoch != 0 {
		f = f.With(action.DetailChanged, t.changedSince(ctx, o.call.Intent.Epoch))
	}
	return t.refused(o, f)
}

func (t *Task) refused(o *observed, f *action.Failure) action.Outcome {
	t.noteLoop(&o.call, f.Code)
	return action.Outcome{Intent: o.call.Intent.ID, Action: o.call.Intent.Action, Code: f.Code, Failure: f}
}

// noteLoop counts how often the same call was made without anything new coming of it.
func (t *Task) noteLoop(c *engine.Call, code action.Code) {
	if c.Intent.Within != "" {
		return // it is not the planner that repeats itself
	}
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	if t.view == nil {
		return
	}
	key := c.Intent.Digest
	if key == "" {
		key = c.Intent.Action
	}
	if t.facted < 0 {
		t.facted = (&engine.View{Snap: t.snapshot(nil)}).Facts()
	}
	t.repeats = t.loop.Note(key, t.facted)
	if c.Intent.Digest != "" && !c.Resume && proposed(code) { // of what is no input nobody can say that it is the same
		t.noteRepeats()
	}
}

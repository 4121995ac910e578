package delta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Identity is somebody whom the engine's Authenticator vouches for. Only [Engine.Authenticate] makes one; the zero value
// is nobody.
type Identity struct {
	name  string
	roles []string
	by    *Engine
}

// String returns the name.
func (i Identity) String() string { return i.name }

// Roles returns the roles that the Authenticator vouches for, sorted.
func (i Identity) Roles() []string { return slices.Clone(i.roles) }

// ErrNobody is returned where an identity was not made by the engine that is asked.
var ErrNobody = errors.New("identity was not authenticated by this engine")

// Authenticate asks the Authenticator who is behind a credential, and in which roles. A name that a reader could take for
// another's, see [action.CheckIdentity], or for a role, is refused.
func (e *Engine) Authenticate(ctx context.Context, credential any) (Identity, error) {
	if e.cfg.Authenticator == nil {
		return Identity{}, errors.New("authenticate: the engine has no Authenticator; set Config.Authenticator")
	}
	if err := alive(ctx); err != nil {
		return Identity{}, fmt.Errorf("authenticate: %w", err)
	}
	ctx, done := e.within(ctx)
	defer done()
	v, err := contain(ctx, &e.identities, e.cfg.Timeout, e.cfg.Grace, func(ctx context.Context) (Vouched, error) {
		if a, ok := e.cfg.Authenticator.(Voucher); ok {
			return a.Vouch(ctx, credential)
		}
		name, err := e.cfg.Authenticator.Authenticate(ctx, credential)
		return Vouched{Name: name}, err
	})
	if err != nil {
		return Identity{}, fmt.Errorf("authenticate: %w", err)
	}
	v, err = v.checked()
	if err != nil {
		return Identity{}, fmt.Errorf("authenticate: the Authenticator returned %w", err)
	}
	return Identity{v.Name, v.Roles, e}, nil
}

func (e *Engine) mine(i Identity) error {
	if i.by != e || i.name == "" {
		return ErrNobody
	}
	return nil
}

// errReplaced says that the call was asked about anew after the request was over.
var errReplaced = errors.New("another request has taken its place")

// approval also says how the task stands: in one that ended nobody needs to decide.
func (e *Engine) approval(ctx context.Context, id string) (Approval, engine.Status, error) {
	t, v, digest, err := e.ask(ctx, id)
	if err != nil {
		return Approval{}, "", err
	}
	state, q, err := engine.ReadAsk(v, digest, v.Snap.Now)
	if err != nil {
		return Approval{}, "", fmt.Errorf("approval %s: %w: %w", id, errUnreadable, err)
	}
	if q.ID != id {
		return Approval{}, "", fmt.Errorf("approval %s: %w: %s", id, errReplaced, q.ID)
	}
	a := Approval{Request: q, State: state, Task: t.ID()}
	if votes, err := engine.ReadVotes(v, digest, id); err == nil {
		a.Votes = votes.Yes
	}
	return a, v.Task.Status, nil
}

// ask finds the task and the digest that an approval is about.
func (e *Engine) ask(ctx context.Context, id string) (*Task, *engine.View, string, error) {
	parts := strings.Split(id, idSeparator)
	if len(parts) != 3 {
		return nil, nil, "", fmt.Errorf("approval %q: %w (agent%stask%sid)", id, errNoRequestID, idSeparator, idSeparator)
	}
	t, err := e.Open(ctx, parts[0]+idSeparator+parts[1])
	if err != nil {
		return nil, nil, "", fmt.Errorf("approval %s: %w", id, err)
	}
	reply, err := e.apply(ctx, engine.ReadRequest(t.agent.name, t.local, id))
	if err != nil {
		return nil, nil, "", failedStore(err)
	}
	digest, ok := "", false
	if reply.Fresh != nil {
		digest, ok = engine.RequestDigest(&reply.Fresh.Record, id)
	}
	if !ok {
		return nil, nil, "", fmt.Errorf("approval %s: %w", id, ErrNoRequest)
	}
	v, err := t.peek(ctx)
	return t, v, digest, err
}

// Approve consents to exactly the call that the request shows, once, until it expires. Where the action asks for several
// consents (see [Builder.Quorum]) it is one of them, and the request stays pending until the last. The call runs when it is
// made again, when somebody waits for it, or in Work. It is an error where the task has ended: the call would never run;
// and, [ErrNotShown], where the request is not among those shown yet.
func (e *Engine) Approve(ctx context.Context, id string, by Identity, reason string) error {
	if err := e.mine(by); err != nil {
		return fmt.Errorf("%s %s: %w", approval.Approve, id, err)
	}
	if err := e.shown(ctx, id); err != nil {
		return fmt.Errorf("%s %s: %w", approval.Approve, id, err)
	}
	return e.resolve(ctx, id, approval.Approve, by, reason)
}

// Withdraw takes back one's own consent while others are still awaited. A consent that was the last one is taken back with
// Revoke: it ends the request.
func (e *Engine) Withdraw(ctx context.Context, id string, by Identity, reason string) error {
	return e.resolve(ctx, id, withdraw, by, reason)
}

// withdraw is no event of the request: it stays pending.
const withdraw approval.Event = "withdraw"

// Reject refuses the request. The reason reaches the planner, and the same call is not asked about again in that task.
func (e *Engine) Reject(ctx context.Context, id string, by Identity, reason string) error {
	return e.resolve(ctx, id, approval.Reject, by, reason)
}

// Revoke takes back an approval that was not used yet.
func (e *Engine) Revoke(ctx context.Context, id string, by Identity, reason string) error {
	return e.resolve(ctx, id, approval.Revoke, by, reason)
}

func (e *Engine) resolve(ctx context.Context, id string, verb approval.Event, by Identity, reason string) error {
	if err := e.mine(by); err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.inside.Done()
	for range rounds + approval.MaxQuorum { // a race may be lost to every other voter
		t, v, digest, err := e.ask(ctx, id)
		if err != nil {
			return err
		}
		_, q, err := engine.ReadAsk(v, digest, v.Snap.Now)
		if err == nil && q.ID != id {
			return fmt.Errorf("approval %s: another request, %s, has taken its place", id, q.ID)
		}
		parked, err := t.parked(ctx, q.Intent)
		if err != nil {
			return failedStore(err)
		}
		var x *txn.Txn
		if verb == withdraw {
			x, err = engine.WithdrawVote(v, digest, e.whoIs(by, reason))
		} else {
			x, err = engine.DecideAsk(v, digest, verb, parked, e.whoIs(by, reason))
		}
		if err != nil {
			return err
		}
		reply, err := e.apply(ctx, x)
		if err != nil {
			return failedStore(err)
		}
		if reply.OK {
			t.advance(x, reply, nil)
			e.decided(id)
			return nil
		}
	}
	return action.Fail(action.Stale, "approval %s changed %d times while this was decided; try again", id, rounds+approval.MaxQuorum)
}

// parked returns the event under which an intent waits for a person, nil where it does not wait.
func (t *Task) parked(ctx context.Context, intent string) (*ledger.Event, error) {
	own := newSight()
	if err := t.readRecord(ctx, intent, own); err != nil {
		return nil, err
	}
	if own.leases[intent].Phase != txn.Park {
		return nil, nil
	}
	e, err := engine.Held(&own.record, intent)
	return &e, err
}

// decided wakes who waits for the approval, and Work.
func (e *Engine) decided(id string) {
	e.mu.Lock()
	if w := e.waits[id]; w != nil {
		close(w.decided)
		delete(e.waits, id)
	}
	e.mu.Unlock()
	e.nudge()
}

// nudge makes Work look at its queues.
func (e *Engine) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// wait is shared by those who wait for one approval in this engine.
type wait struct {
	decided chan struct{} // closed when it is decided here
	waiting int
}

// await joins those who wait for an approval; leave with the function returned.
func (e *Engine) await(id string) (decided <-chan struct{}, leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.waits[id]
	if w == nil {
		w = &wait{decided: make(chan struct{})}
		e.waits[id] = w
	}
	w.waiting++
	return w.decided, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if w.waiting--; w.waiting == 0 && e.waits[id] == w {
			delete(e.waits, id)
		}
	}
}

// awaitApproval waits until the request is no longer pending, or its task no longer runs, and returns it as it was asked;
// what became of it, the next try at the call says. False where ctx ended or the engine closes first.
func (t *Task) awaitApproval(ctx context.Context, id string) (Approval, bool) {
	e := t.engine
	for {
		decided, leave := e.await(id)
		a, _, err := e.approval(ctx, id)
		if e.winding(ctx) {
			leave()
			return a, false
		}
		if err != nil || a.State != approval.Pending || t.released(ctx, a.Action) {
			leave()
			return a, true
		}
		ok := e.pause(ctx, decided)
		leave()
		if !ok {
			return a, false
		}
	}
}

// released reports whether nobody needs to be waited for any more: the task is known to have ended, or an override lets the
// action through.
func (t *Task) released(ctx context.Context, name string) bool {
	v, err := t.peek(ctx)
	return err == nil && (v.Task.Status.Ended() || v.Task.Status == engine.Running && engine.Overridden(v, name, v.Snap.Now))
}

// pause waits for a moment, or for something to happen; false where ctx ended or the engine closes.
func (e *Engine) pause(ctx context.Context, something <-chan struct{}) bool {
	poll := time.NewTimer(e.cfg.Poll)
	defer poll.Stop()
	select {
	case <-something:
	case <-poll.C:
	case <-ctx.Done():
	case <-e.draining:
	}
	return !e.winding(ctx)
}

// Resolve is an operator's word on an intent of unknown outcome: that it succeeded, with this output, or that it did not,
// and what it cost: one call where it is not said how many, and a duration of zero is one that nobody knows, which is not learned. Until then its reservation stands and the same call is refused. It is for the task's approvers and the
// engine's operators, never for whoever requested the task.
func (t *Task) Resolve(ctx context.Context, intent string, by Identity, ok bool, output []byte, cost action.Cost, reason string) error {
	e := t.engine
	if err := e.mine(by); err != nil {
		return fmt.Errorf("resolve %s: %w", intent, err)
	}
	own := newSight()
	if err := t.readRecord(ctx, intent, own); err != nil {
		return failedStore(err)
	}
	begun, err := engine.Held(&own.record, intent)
	if err != nil {
		return fmt.Errorf("resolve: %w", err)
	}
	doc, err := t.resolved(begun, ok, output)
	if err != nil {
		return fmt.Errorf("resolve %s: %w", intent, err)
	}
	if ok {
		if err := t.fitsStep(ctx, &begun, doc); err != nil {
			return fmt.Errorf("resolve %s: %w", intent, err)
		}
	}
	found, run, err := t.resolution(ctx, &begun, doc)
	if err != nil {
		return fmt.Errorf("resolve %s: %w", intent, err)
	}
	err = t.change(ctx, func(v *engine.View) (*txn.Txn, error) {
		if err := engine.MayOperate(v, e.cfg.Operators, e.whoIs(by, reason)); err != nil {
			return nil, err
		}
		if err := v.Accepts(cost); err != nil {
			return nil, err
		}
		return engine.Resolve(t.agent.compiled, v, begun, ok, cost, found, run, e.whoIs(by, reason))
	})
	if err != nil {
		return fmt.Errorf("resolve %s: %w", intent, err)
	}
	e.keeper.agent(t.agent.name, true)
	return nil
}

// resolved checks the output that an operator vouches for.
func (t *Task) resolved(begun ledger.Event, ok bool, output []byte) (action.Document, error) {
	if !ok {
		return action.Document{}, nil
	}
	if len(output) == 0 {
		output = []byte("null")
	}
	d := t.agent.defs[begun.Action]
	doc, f := schema.Canonical(output, 0)
	if d != nil && d.out != nil {
		doc, f = d.out.CheckOutput(output)
	}
	if f != nil {
		return doc, f
	}
	return doc, nil
}

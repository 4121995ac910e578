package delta

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"unsafe"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Verdict is what would become of a call.
type Verdict struct {
	Code    action.Code     // OK: it would begin
	Failure *action.Failure // why it would not, nil where it would
	// Event is the event that would be recorded, encoded: the begin, the request for an approval, or the refusal. It names
	// no intent, owner or approval, because there is none, and counts nothing. It shows of secrets what the ledger would.
	Event []byte
}

// OK reports whether the call would begin.
func (v Verdict) OK() bool { return v.Code == action.OK }

// Preview says what would become of a call made now: it passes gates 1 to 8 as [Task.Do] does, and nothing is written, run
// or asked. What changes until the call is made may change the answer; the call's id plays no part. The event is appended
// to dst, which may be nil. The error is Do's: nothing could be decided.
//
// Where the action is made by [DefineRaw] without rules, the call would begin, needs no fact of its input, and dst has room,
// a preview allocates nothing, and while nothing changes costs about a quarter of reading the input with encoding/json: it is
// cheap enough to be asked about every call a planner considers. The second preview of an action after a change keeps what
// those after it need, and allocates that.
func (t *Task) Preview(ctx context.Context, c Call, dst []byte) (Verdict, error) {
	if err := t.callable(); err != nil {
		return Verdict{}, err
	}
	if err := alive(ctx); err != nil {
		return Verdict{}, err
	}
	if err := t.engine.enter(); err != nil {
		return Verdict{}, err
	}
	defer t.engine.inside.Done()
	if v, ok := t.previewLasting(&c, dst); ok {
		return v, nil
	}
	if err := t.refresh(ctx, false); err != nil {
		return Verdict{}, failedStore(err)
	}
	if v, ok := t.previewPlain(c, dst); ok {
		return v, nil
	}
	c.dry = true
	o := t.observe(ctx, c)
	if o.err != nil {
		return Verdict{}, o.err
	}
	o.call.Intent.ID, o.call.Intent.CallID, o.call.Owner, o.call.Asks = "", "", "", nil
	var v Verdict
	err := t.judged(ctx, nil, func(rules *engine.Rules, view *engine.View) error {
		o.call.Now = view.Snap.Now
		v = verdict(engine.Preview(rules, t.agent.compiled, view, &o.call, dst))
		return nil
	})
	if err != nil && errors.Is(err, context.Cause(ctx)) {
		return Verdict{}, err
	}
	if err != nil {
		return Verdict{}, failedStore(err)
	}
	return v, nil
}

func verdict(event []byte, f *action.Failure) Verdict {
	v := Verdict{Code: action.OK, Failure: f, Event: event}
	if f != nil {
		v.Code = f.Code
	}
	if f != nil && f.Code == action.ApprovalRequired && f.Approval() == "" { // nobody has been asked
		asked := *f
		asked.Message = "a person would be asked to approve this call"
		v.Failure = &asked
	}
	return v
}

// draft is what one preview works with.
type draft struct {
	call          engine.Call
	input, digest []byte
	hasher        approval.Hasher
	snap          txn.Snapshot
	view          engine.View
}

// forget drops what must not outlive the preview.
func (w *draft) forget() { w.call, w.snap, w.view = engine.Call{}, txn.Snapshot{}, engine.View{} }

var drafts = sync.Pool{New: func() any { return new(draft) }}

// previewPlain is Preview where no code of users looks at the input, and no gate either: its text then need not outlive
// the preview. False where it has to be done the long way.
func (t *Task) previewPlain(c Call, dst []byte) (v Verdict, ok bool) {
	d := t.agent.defs[c.Action]
	if d == nil || !d.plain || len(d.rules) > 0 || d.price != nil || t.agent.veils[d.name] || t.private.Load() != aboutNobody || d.vet != nil || d.tool != "" || c.want != nil || t.engine.cfg.Policy != nil {
		return v, false
	}
	if reads, _, _ := t.agent.compiled.Graph.Reads(d.name); reads || t.counts(d.name) {
		return v, false
	}
	w := drafts.Get().(*draft)
	defer drafts.Put(w)
	raw := c.Input
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if w.input, ok = d.in.Pass(w.input[:0], raw); !ok {
		return v, false
	}
	text := unsafe.String(unsafe.SliceData(w.input), len(w.input))
	w.digest = t.digester(d).Append(w.digest[:0], w.input)
	w.call = engine.Call{At: t.engine.clock(), TTL: t.engine.cfg.Lease.Microseconds(), Intent: action.Intent{
		Agent: t.agent.name, Task: t.local, Action: d.name, Version: d.version, Input: action.NewDocument(text, nil),
		Digest: unsafe.String(unsafe.SliceData(w.digest), len(w.digest)), Epoch: c.Epoch, Provenance: c.Provenance.Cut(),
	}}
	defer w.forget()
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	w.snap = txn.Snapshot{State: txn.State{Task: t.space, Agent: t.state.space}, Now: t.now(), Pending: t.state.pending}
	t.view.Remember(t.state.folded)
	more, err := w.view.GlanceInto(&t.engine.rules, t.agent.compiled, &w.snap, t.view)
	if err != nil {
		return v, false
	}
	if more {
		t.view = w.view.On(t.snapshot(nil))
	}
	w.call.Now = w.snap.Now
	v = verdict(engine.Preview(&t.engine.rules, t.agent.compiled, &w.view, &w.call, dst))
	if v.OK() {
		t.last(d, w)
	}
	return v, true
}

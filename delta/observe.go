package delta

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// observed is a call with what was found out about it once, before any decision.
type observed struct {
	*slate
	def *declaration
	err error // why nothing can be decided: whoever asked, or the engine, stopped meanwhile

	// Memory for what comes of the call: one allocation for all, kept alive by a function that keeps its context.
	lazy   action.Lazy
	veil   *veiled // nil: nothing in it is secret
	flight flight
	flown  bool
	held   bool // it is parked, and waits until a halt is lifted

	key    string // its idempotency key, where the action declares one and keyed was asked
	keyErr error  // why it has none
}

// slate is what is noted about a call until it has ended, and read by nobody thereafter.
type slate struct {
	call engine.Call
	own  sight
	snap txn.Snapshot
	view engine.View
	room engine.Room
}

var slates = sync.Pool{New: func() any { return new(slate) }}

// done gives back what nobody reads any more: the call has ended, its heart does not beat, and no function of it was left
// behind whose end is still to be written.
func (o *observed) done() {
	if o.flight.left {
		return
	}
	s, f := o.slate, &o.flight
	o.slate, f.call, f.view, f.run = nil, nil, nil, engine.Run{}
	*s = slate{}
	slates.Put(s)
}

// observe evaluates what depends on the input alone: the strict edge, the schema, per-argument risk, the digest.
func (t *Task) observe(ctx context.Context, c Call) *observed {
	o := &observed{slate: slates.Get().(*slate), def: t.agent.defs[c.Action]}
	o.call = engine.Call{
		Intent: action.Intent{
			ID: t.engine.cfg.ID(), CallID: c.ID, Agent: t.agent.name, Task: t.local, Action: action.CutTo(c.Action, action.MaxName), Epoch: c.Epoch, Provenance: c.Provenance.Cut(),
		},
		At: t.engine.clock(), Owner: t.engine.newOwner(), TTL: t.engine.cfg.Lease.Microseconds(), Asks: t.asks, Room: &o.room, Flow: c.flow,
	}
	in := &o.call.Intent
	if o.call.Edge = checkCallID(c.ID); o.call.Edge == nil && !c.own {
		o.call.Edge = cmp.Or(notReserved(c.ID), notFlows(c.ID))
	}
	if o.call.Edge != nil {
		in.CallID = ""
	}
	if o.def == nil {
		return o
	}
	if c.want != nil && c.want != o.def {
		o.call.Edge = t.notHeld(c.Action)
		return o
	}
	in.Version = o.def.version
	if o.def.tool != "" {
		o.call.Barred = t.engine.usable(ctx, o.def)
	}
	if o.call.Edge != nil {
		return o
	}
	raw := c.Input
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	doc, digest, f := t.read(o, raw)
	if f == nil {
		f = t.toolInput(o.def, doc)
	}
	if f == nil {
		f = t.judge(ctx, o, action.Input{Document: doc})
	}
	if f != nil {
		o.call.Edge = f
		if t.agent.veils != nil || t.private.Load() != aboutNobody {
			t.veil(ctx, o, raw, c.dry)
		}
		return o
	}
	if o.def.vet != nil {
		o.call.Barred = o.def.vet(t, action.Input{Document: doc}, &o.call)
	}
	in.Input, in.Digest = doc, digest
	if t.agent.veils != nil || t.private.Load() != aboutNobody {
		t.veil(ctx, o, raw, c.dry)
	}
	return o
}

// inputs are buffers in which inputs are put into canonical form, their digests behind them.
var inputs = sync.Pool{New: func() any { return new([]byte) }}

// inputKept is the largest buffer that is kept for the next input.
const inputKept = 64 << 10

// read passes the input through the strict edge and the schema, and names the call. What is kept of both is one text.
func (t *Task) read(o *observed, raw []byte) (doc action.Document, digest string, f *action.Failure) {
	d := o.def
	if buf := inputs.Get().(*[]byte); cap(*buf) <= inputKept {
		defer inputs.Put(buf)
		if out, ok := d.in.Pass((*buf)[:0], raw); ok {
			n := len(out)
			*buf = t.digester(d).Append(out, out)
			text := string(*buf)
			return o.lazy.Document(text[:n]), text[n:], nil
		}
	}
	if doc, f = d.in.Check(raw); f == nil {
		digest = approval.Digest(t.agent.name, t.local, d.name, d.version, d.in.Hash(), doc.Text())
	}
	return doc, digest, f
}

// judge runs the user code that looks at an input before anything is decided: the decoding of its type, risk rules, and what it
// costs.
func (t *Task) judge(ctx context.Context, o *observed, in action.Input) (f *action.Failure) {
	if !o.def.custom && len(o.def.rules) == 0 && o.def.price == nil {
		got := o.def.decode(in)
		o.call.Intent.Value = got.value
		return got.f
	}
	ctx, done := t.engine.within(ctx)
	defer done()
	got := t.engine.fits(ctx, o.def, in)
	o.call.Intent.Value = got.value
	if f = got.f; f == nil {
		o.call.Rule, o.call.Named = t.engine.demands(ctx, o.def, in)
		o.call.Price, o.call.Costly = t.engine.priceOf(ctx, o.def, in)
	}
	o.err = context.Cause(ctx)
	return f
}

// maxCallID bounds a call id: it is a key in the store.
const maxCallID = 256

func checkCallID(id string) *action.Failure {
	if len(id) > maxCallID {
		return action.Fail(action.InputMalformed, "the call id is %d bytes long, at most %d are allowed", len(id), maxCallID)
	}
	for _, r := range id {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return action.Fail(action.InputMalformed, "the call id contains a control character or invalid UTF-8")
		}
	}
	return nil
}

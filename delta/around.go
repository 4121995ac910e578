package delta

import (
	"context"
	"unsafe"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/internal/course"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
)

// before runs the hooks before the call. Where one ends the goroutine, which may be the caller's, the call is settled on the
// way out.
func (f *flight) before() error {
	if !hasHook(f.chain, before) {
		return nil
	}
	back := false
	defer func() {
		if !back {
			f.settle(f.checkFailed(hooks.ErrExited))
		}
	}()
	err := f.chain.Before(f.ctx, f.t.engine.hooks, f.sight(nil))
	back = true
	return err
}

func (f *flight) checkFailed(err error) engine.End {
	fail := action.Fail(action.HookFailed, "a check before the call failed").With(action.DetailSaid, err.Error()).Because(err)
	return engine.End{Code: action.HookFailed, At: f.now(), Failure: fail}
}

// chain returns the hooks around an action, nil where there are none.
func (e *Engine) chain(d *declaration) hooks.Chain {
	own := e.cfg.Hooks
	if own.Before == nil && own.After == nil && own.OnError == nil {
		return d.hooks
	}
	return hooks.Join(append([]hooks.Hooks{own}, d.hooks...)...)
}

func hasHook(c hooks.Chain, pick func(*hooks.Hooks) hooks.Func) bool {
	for i := range c {
		if pick(&c[i]) != nil {
			return true
		}
	}
	return false
}

func before(h *hooks.Hooks) hooks.Func  { return h.Before }
func after(h *hooks.Hooks) hooks.Func   { return h.After }
func onError(h *hooks.Hooks) hooks.Func { return h.OnError }

// bytesOf is a text as bytes for who only reads or copies them.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// sight is what hooks get copies of.
func (f *flight) sight(out *action.Outcome) action.View {
	b := f.run.Begun
	return action.View{
		Agent: b.Agent, Task: f.t.ID(), Intent: b.Intent, CallID: b.Call, Action: b.Action, Version: b.Version, Attempt: b.Attempt,
		Input: bytesOf(f.in.Text()), Provenance: b.Provenance, Outcome: out,
	}
}

// after runs the hooks of the end. They observe: their errors are recorded and change nothing.
func (f *flight) after(out action.Outcome) {
	if ok := out.OK(); ok && !hasHook(f.chain, after) || !ok && (out.Code.Info().Executed == action.No || !hasHook(f.chain, onError)) {
		return
	}
	f.seen = out
	f.watched(&f.seen)
}

// watched runs the hooks of an end. One that ends the goroutine, which may be the caller's, has failed, too.
func (f *flight) watched(out *action.Outcome) {
	c, parent := &f.beyond, f.course.Parent()
	if parent.Done() != nil {
		parent = context.WithoutCancel(parent)
	}
	c.Start(course.Options{Parent: parent, Stop: f.t.engine.stop, Clock: &f.t.engine.clocks, Lane: f.t.state.lane})
	defer c.Cancel(errLanded)
	name, err := "after", error(hooks.ErrExited)
	defer func() { f.noteHook(c, name, err) }()
	if out.OK() {
		err = f.chain.After(c, f.t.engine.hooks, f.sight(out))
	} else {
		name = "onError"
		err = f.chain.OnError(c, f.t.engine.hooks, f.sight(out))
	}
}

// noteHook records the error of a hook of the end.
func (f *flight) noteHook(ctx context.Context, name string, err error) {
	if err == nil {
		return
	}
	err = f.veil.err(err)
	x := f.run.HookFailed(name, err, f.now())
	if reply, werr := f.t.engine.apply(ctx, x); werr == nil && reply.OK {
		f.t.advance(x, reply, nil)
	}
	f.t.engine.cfg.Log.Warn("hook failed", "hook", name, "action", f.def.name, "task", f.t.ID(), "intent", f.run.Begun.Intent, "error", err)
}

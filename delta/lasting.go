package delta

import (
	"encoding/json"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// lasting is what previews of one action's calls found, for those that follow while nothing has changed.
type lasting struct {
	def      *declaration
	digester *approval.Digester
	rests    edition
	verdict  *engine.Lasting // nil where it was not asked for twice, or is none
}

// edition tells apart what is known of a task and its agent at two moments.
type edition struct {
	task, agent, changes int64
	mark                 engine.Mark
}

// edition is that of this moment, false where what is known lags behind the store; the caller holds the agent's lock.
func (t *Task) edition() (e edition, ok bool) {
	a := t.state
	if t.behind() || a.behind() || t.view == nil {
		return e, false
	}
	return edition{t.space.Rev, a.space.Rev, a.edition, t.view.Mark()}, true
}

// last keeps the verdict on the call of a draft for the calls that follow, once it is asked for again: whoever makes calls
// between previews gains nothing by it. The caller holds the agent's lock.
func (t *Task) last(d *declaration, w *draft) {
	rests, ok := t.edition()
	if !ok {
		return
	}
	k := t.lasting[d.name]
	if k == nil {
		k = &lasting{def: d}
		if t.lasting == nil {
			t.lasting = map[string]*lasting{}
		}
		t.lasting[d.name] = k
	}
	if k.rests != rests {
		k.rests, k.verdict = rests, nil
		return
	}
	k.digester = t.digesterOf(d)
	k.verdict = engine.Last(&t.engine.rules, t.agent.compiled, &w.view, &w.call)
}

// digester names calls of the action in the task.
func (t *Task) digester(d *declaration) *approval.Digester {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	return t.digesterOf(d)
}

// digesterOf is digester for a caller who holds the agent's lock.
func (t *Task) digesterOf(d *declaration) *approval.Digester {
	found := t.digesters[d.name]
	if found != nil {
		return found
	}
	if t.digesters == nil {
		t.digesters = map[string]*approval.Digester{}
	}
	made := approval.NewDigester(t.agent.name, t.local, d.name, d.version, d.in.Hash())
	t.digesters[d.name] = made
	return made
}

// lastingVerdict returns what stands of the action now, nil where nothing does, and the worker's time.
func (t *Task) lastingVerdict(name string) (k lasting, at int64) {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	found := t.lasting[name]
	if found == nil || found.verdict == nil {
		return k, 0
	}
	if now, ok := t.edition(); !ok || now != found.rests {
		return k, 0
	}
	if until := found.verdict.Until(); until != 0 && t.now() >= until {
		return k, 0
	}
	return *found, t.engine.clock()
}

// previewLasting is a preview where all but the call's input has been looked at before and has not changed since.
func (t *Task) previewLasting(c *Call, dst []byte) (v Verdict, ok bool) {
	k, at := t.lastingVerdict(c.Action)
	if k.verdict == nil || c.want != nil {
		return v, false
	}
	w := drafts.Get().(*draft)
	defer drafts.Put(w)
	raw := c.Input
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if w.input, ok = k.def.in.Pass(w.input[:0], raw); !ok {
		return v, false
	}
	e := ledger.Entry{At: at, Sum: k.digester.Sum(&w.hasher, w.input), Input: w.input}
	if !c.Provenance.IsZero() {
		p := c.Provenance.Cut()
		e.Provenance = &p
	}
	return Verdict{Code: action.OK, Event: k.verdict.Append(dst, &e)}, true
}

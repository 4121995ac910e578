package delta

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/keys"
	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// A workflow machine carries digests in place of secrets: it moves values about and looks into none. What a digest stands for
// lies sealed beside the state. It is opened for whoever judges, for conditions, and for calls, there only in fields that are
// secret themselves. Planners and people are shown digests, and may hand them on: a digest is as good as the secret where a
// secret is wanted, and nowhere else.

// flowVeil hides and opens the secrets of one instance. It may be used by many goroutines.
type flowVeil struct {
	t  *Task
	at *flowPlaces

	mu     sync.Mutex
	all    bool              // the task is about somebody: every value is hidden
	v      *vault            // nil until it is needed
	sealed map[string]string // digest → what it stands for, as far as it was met
	words  *veiled           // those of the secrets that were opened here
	short  bool              // one of them is too short to be looked for in texts
}

// personal begins what is sealed and no secret, but somebody's data: planners see it.
const personal = "~"

func aboutFlow(digest string) string { return "flow\n" + digest }

// veilOf prepares to hide what an instance carries. It asks for no key yet.
func (e *Engine) veilOf(ctx context.Context, t *Task, d *workflow.Definition) (*flowVeil, error) {
	f := &flowVeil{t: t, at: e.placesIn(d, t.agent)}
	about, err := t.about(ctx)
	f.all = about == aboutSomebody
	return f, err
}

// meet notes what digests stand for.
func (f *flowVeil) meet(sealed map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note(sealed)
}

func (f *flowVeil) note(sealed map[string]string) {
	for digest, what := range sealed {
		if f.sealed == nil {
			f.sealed = map[string]string{}
		}
		if old := f.sealed[digest]; old == "" || strings.HasPrefix(old, personal) {
			f.sealed[digest] = what
		}
	}
}

// met returns all that was met, for another instance of the family, which has the same key.
func (f *flowVeil) met() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.sealed)
}

// idle reports whether there is nothing to hide and nothing to open.
func (f *flowVeil) idle() bool { return !f.all && len(f.sealed) == 0 }

// nothing reports whether no secret is met or to be expected: most workflows have none.
func (f *flowVeil) nothing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.idle() && !f.at.any()
}

// usable reports why an instance that carries secrets cannot be gone on with here.
func (f *flowVeil) usable(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.idle() && !f.at.any() {
		return nil
	}
	_, err := f.key(ctx)
	return err
}

func (f *flowVeil) key(ctx context.Context) (*keys.Data, error) {
	if f.v == nil {
		v, err := f.t.vault(ctx, false)
		if err != nil {
			return nil, keyUnavailable(err)
		}
		f.v = v
		f.words = &veiled{vault: v}
	}
	return f.v.data, nil
}

// hide returns a document with digests in place of its secrets, and what they stand for, and other digests that are in it.
// What is no JSON is left to the machine, which refuses it.
func (f *flowVeil) hide(ctx context.Context, doc json.RawMessage, secret places) (json.RawMessage, map[string]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(doc) == 0 || f.idle() && len(secret) == 0 {
		return doc, nil, nil
	}
	clean, bad := schema.Canonical(doc, len(doc)+1)
	if bad != nil {
		return doc, nil, nil
	}
	data, err := f.key(ctx)
	if err != nil {
		return nil, nil, err
	}
	h := hiding{f: f, data: data, found: map[string]string{}}
	tree := h.walk(clean.Tree(), nil, secret)
	f.note(h.found)
	if !h.changed {
		return doc, h.found, nil
	}
	return json.RawMessage(canonical(tree)), h.found, nil
}

// canonical writes a value of parsed JSON.
func canonical(tree any) string {
	text, _ := json.Marshal(tree) // parsed JSON: cannot fail
	doc, _ := schema.Canonical(text, len(text)+1)
	return doc.Text()
}

type hiding struct {
	f       *flowVeil
	data    *keys.Data
	found   map[string]string
	changed bool
}

func (h *hiding) walk(v any, at []string, secret places) any {
	if digest, is := v.(string); is {
		if what := h.f.sealed[digest]; what != "" { // it is hidden already
			h.found[digest] = what
			return v
		}
	}
	if secret.covers(at) {
		return h.digest(v, "")
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			out[name] = h.walk(e, append(at, name), secret)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = h.walk(e, append(at, strconv.Itoa(i)), secret)
		}
		return out
	case nil:
		return v
	}
	if h.f.all {
		return h.digest(v, personal)
	}
	return v
}

func (h *hiding) digest(v any, kind string) string {
	text := canonical(v)
	digest := h.data.Digest(text)
	if old := h.f.sealed[digest]; kind == "" || old == "" {
		h.found[digest] = kind + h.data.SealAlike(text, aboutFlow(digest))
	} else {
		h.found[digest] = old
	}
	h.changed = true
	return digest
}

// errSpilt says that a secret would have been handed to a field that is none.
var errSpilt = errors.New("a secret goes to a field that is none")

// open returns a document with what its digests stand for, as far as the place, and what is there, let it.
func (f *flowVeil) open(ctx context.Context, doc json.RawMessage, let func(at []string, what string) bool) (json.RawMessage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(doc) == 0 || f.idle() {
		return doc, nil
	}
	clean, bad := schema.Canonical(doc, len(doc)+1)
	if bad != nil {
		return doc, nil
	}
	o := opening{f: f, ctx: ctx, let: let}
	tree := o.walk(clean.Tree(), nil)
	switch {
	case o.err != nil:
		return nil, o.err
	case !o.changed:
		return doc, nil
	}
	return json.RawMessage(canonical(tree)), nil
}

// openAll opens a document for whoever judges it.
func (f *flowVeil) openAll(ctx context.Context, doc json.RawMessage) (json.RawMessage, error) {
	return f.open(ctx, doc, func([]string, string) bool { return true })
}

// openPersonal opens a document for a planner: no secrets.
func (f *flowVeil) openPersonal(ctx context.Context, doc json.RawMessage) (json.RawMessage, error) {
	return f.open(ctx, doc, func(_ []string, what string) bool { return strings.HasPrefix(what, personal) })
}

// openAt opens a document where places are secret, and all of one about somebody: of its facts nothing can be read.
func (f *flowVeil) openAt(ctx context.Context, doc json.RawMessage, secret places) (json.RawMessage, error) {
	return f.open(ctx, doc, func(at []string, _ string) bool { return f.all || secret.covers(at) })
}

// openInput opens the input of a call. A digest that would stay in it is errSpilt: the function would take it for a value.
func (f *flowVeil) openInput(ctx context.Context, doc json.RawMessage, name string) (json.RawMessage, error) {
	takes, _ := f.t.agent.secretsOf(name)
	secret, spilt := secretPlaces(takes), false
	doc, err := f.open(ctx, doc, func(at []string, what string) bool {
		ok := f.all || secret.covers(at) // of a task about somebody nothing of a call can be read
		spilt = spilt || !ok
		return ok
	})
	if err == nil && spilt {
		err = errSpilt
	}
	return doc, err
}

type opening struct {
	f       *flowVeil
	ctx     context.Context
	let     func(at []string, what string) bool
	changed bool
	err     error
}

func (o *opening) walk(v any, at []string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			out[name] = o.walk(e, append(at, name))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = o.walk(e, append(at, strconv.Itoa(i)))
		}
		return out
	case string:
		if what := o.f.sealed[v]; what != "" && o.let(at, what) {
			return o.value(v, what)
		}
	}
	return v
}

func (o *opening) value(digest, what string) any {
	data, err := o.f.key(o.ctx)
	var text string
	if err == nil {
		what = strings.TrimPrefix(what, personal)
		if text, err = data.Open(what, aboutFlow(digest)); err != nil {
			if !strings.HasPrefix(what, data.ID()+".") {
				err = ErrErased // another key has taken the place of the one that it was sealed under
			}
			err = keyUnavailable(err)
		}
	}
	doc, bad := schema.Canonical(json.RawMessage(text), len(text)+1)
	if err == nil && bad != nil {
		err = keyUnavailable(keys.ErrSealed)
	}
	if err != nil {
		o.err = err
		return nil
	}
	o.f.words.leaves(doc.Tree(), true)
	o.f.short = o.f.short || brief(doc.Tree())
	o.changed = true
	return doc.Tree()
}

// said is what somebody who saw secrets says, without them. What names there are stands in the contract.
func (f *flowVeil) said(text string, contract json.RawMessage) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case text == "" || f.words == nil:
		return text
	case f.short:
		return withheld
	}
	return f.words.said(text, func() string { return string(contract) })
}

// failed is a failure without the secrets that were opened here.
func (f *flowVeil) failed(failure *action.Failure) *action.Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	if failure == nil || f.words == nil {
		return failure
	}
	if f.short {
		return action.Fail(failure.Code, withheld)
	}
	return f.words.failureOf(failure, func() string { return "" })
}

// secretIn says which places of the document of an event are secret.
func (f *flowVeil) secretIn(s *workflow.State, ev *workflow.Event) places {
	step := stepOf(s, ev.Of)
	p := f.at.steps[step]
	if p == nil {
		p = &stepPlaces{}
	}
	switch ev.Kind {
	case workflow.Planned:
		if t := f.typeOf(step); t == workflow.Execution || t == workflow.SubSOP {
			return p.in
		}
		return p.out
	case workflow.Amended:
		if u := s.Unwind; u != nil && u.Wait != nil && u.Wait.ID == ev.Of {
			return p.undo
		}
		return p.in
	case workflow.Intake, workflow.Advised:
		return p.intake
	case workflow.Called:
		_, gives := f.t.agent.secretsOf(ev.Outcome.Action)
		return append(secretPlaces(gives), p.out...)
	}
	return p.out
}

func (f *flowVeil) typeOf(step string) workflow.Type { return f.at.types[step] }

// stepOf is the step that waits for what an event brings.
func stepOf(s *workflow.State, id string) string {
	for i := range s.Outstanding {
		if c := &s.Outstanding[i]; c.ID == id || c.Ask == id && (c.Kind == workflow.Interrupt || c.Kind == workflow.CancelChild) {
			return c.Step
		}
	}
	for _, w := range s.Waits() {
		if w.ID == id {
			return w.Step
		}
	}
	return ""
}

// event is an event as it may be written down, and what the digests in it stand for.
func (f *flowVeil) event(ctx context.Context, s *workflow.State, ev workflow.Event) (workflow.Event, map[string]string, error) {
	if f.nothing() {
		return ev, nil, nil
	}
	doc := &ev.Output
	if ev.Outcome != nil {
		out := *ev.Outcome
		ev.Outcome, doc = &out, &out.Output
	}
	shown, sealed, err := f.hide(ctx, *doc, f.secretIn(s, &ev))
	if err != nil {
		return ev, nil, err
	}
	*doc = shown
	return ev, sealed, nil
}

// given opens what planners are told of what people said.
func (f *flowVeil) given(ctx context.Context, all []workflow.Given) (out []workflow.Given, err error) {
	out = slices.Clone(all)
	for i := range out {
		if out[i].Data, err = f.openPersonal(ctx, out[i].Data); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sealFlow hides the secrets in what an instance begins with, before there is a task. Made says that the data key is a new one, which is to
// be kept with the task.
func (e *Engine) sealFlow(ctx context.Context, s *engine.TaskState, g *Goal) (made *engine.KeyCell, err error) {
	if s.Flow == nil {
		return nil, nil
	}
	at := g.elsewhere
	if at == nil {
		def := e.flows.definition(s.Flow)
		if def == nil {
			return nil, ErrNoWorkflow
		}
		at = e.placesIn(def, g.Agent)
	}
	f := &flowVeil{t: &Task{engine: e, agent: g.Agent, local: s.ID}, at: at, all: s.Subject != ""}
	f.note(s.Flow.Sealed)
	if f.idle() && len(f.at.input) == 0 {
		return nil, nil
	}
	agent, space := vaultOf(s)
	var data *keys.Data
	if s.Subject == "" && s.Vault == "" {
		var cell engine.KeyCell
		if data, cell, err = e.wrapNew(ctx, agent, space); err == nil {
			made = &cell
		}
	} else {
		data, err = e.dataKey(ctx, agent, space, true, false)
	}
	if err != nil {
		return nil, keyUnavailable(err)
	}
	f.v = &vault{data, f.all, 0}
	f.words = &veiled{vault: f.v}
	flow := *s.Flow
	if flow.Input, flow.Sealed, err = f.hide(ctx, flow.Input, f.at.input); err != nil {
		return nil, err
	}
	s.Flow = &flow
	return made, nil
}

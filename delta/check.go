package delta

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// check collects every fault of the declaration itself; what it refers to is checked by the agent.
func (d *declaration) check() {
	if d.run == nil {
		d.fault("the builder is empty; start with Define or DefineRaw")
	}
	d.checkName()
	if strings.TrimSpace(d.description) == "" {
		d.fault("description is missing: say what the action does, a planner reads it")
	}
	if d.version == "" {
		d.fault("version is empty")
	}
	if d.risk < 1 || d.risk > 5 {
		d.fault("risk is %d, want 1 to 5", d.risk)
	}
	for _, r := range d.rules {
		if r.level < 1 || r.level > 5 {
			d.fault("risk rule %q: level is %d, want 1 to 5", r.name, r.level)
		}
	}
	d.checkCost()
	if !d.effect.Valid() {
		d.fault("effect %d: want None, Idempotent, Compensatable or Irreversible", d.effect)
	}
	if d.retries < 0 {
		d.fault("retry is %d, want 0 or more", d.retries)
	}
	if d.retries > 0 && !d.effect.Repeatable() && d.key == nil {
		d.fault("retry: an %s effect may be attempted again only with an idempotency key", d.effect)
	}
	for _, t := range slices.Concat(d.tags, d.context) {
		if err := action.CheckName(t); err != nil {
			d.fault("tag or context: %w", err)
		}
	}
	if d.undoneBy != "" {
		if err := action.CheckName(d.undoneBy); err != nil {
			d.fault("undone by: %w", err)
		}
		if d.effect != action.Compensatable {
			d.fault("undone by %q: the effect is %s; only a compensatable one is undone", d.undoneBy, d.effect)
		}
	}
	d.checkSkills()
	d.checkNeeds()
	for _, h := range d.hooks {
		if err := h.Check(); err != nil {
			d.fault("%w", err)
		}
	}
}

func (d *declaration) checkName() {
	if err := action.CheckName(d.name); err != nil {
		d.fault("%w", err)
	}
	if strings.HasPrefix(d.name, builtIn) && d.vet == nil {
		d.fault("names that begin with %q are reserved", builtIn)
	}
}

func (d *declaration) checkCost() {
	if err := d.estimate.Check(); err != nil {
		d.fault("estimated %w", err)
	}
	if err := d.maximum.Check(); err != nil {
		d.fault("maximum: %w", err)
	}
	if c, m := d.estimate.Currency, d.maximum.Currency; c != "" && m != "" && c != m {
		d.fault("%w: estimate in %s, maximum in %s", action.ErrCurrency, c, m)
	}
	for a := range action.AxisCount {
		if n, ok := d.maximum.On(a).Get(); ok && d.estimate.Amount(a) > n {
			d.fault("estimated cost %s is %d, above its maximum %d", a, d.estimate.Amount(a), n)
		}
	}
}

// checkNeeds checks the action's own side of its bindings.
func (d *declaration) checkNeeds() {
	for _, p := range d.needs {
		for _, f := range p.faults {
			d.fault("needs %s: %w", p.name, f)
		}
		if d.in == nil {
			continue
		}
		for _, b := range p.binds {
			if _, err := d.in.Kind(b.Mine); err != nil {
				d.fault("needs %s: bound field: %w", p.name, err)
			}
		}
	}
}

// fitted is what became of an input in the Go type of its action: the name of the value (see valueOf), or why it does not
// fit.
type fitted struct {
	value string
	f     *action.Failure
}

// decode reports an input that the schema accepts and the Go type does not: one whose UnmarshalText or UnmarshalJSON
// refuses it. User code is contained.
func (d *declaration) decode(in action.Input) (got fitted) {
	defer func() {
		if p := recover(); p != nil {
			got.f = action.Fail(action.InputInvalid, "the input of %q cannot be decoded: its type panicked", d.name)
		}
	}()
	value, err := d.decodes(in)
	if err != nil {
		got.f = action.Fail(action.InputInvalid, "the input of %q does not fit its type: %s", d.name, action.TextOf(err)).Because(err)
	}
	got.value = value
	return got
}

// eval is 0 where the rule does not apply; user code that panics counts as the highest risk.
func (r rule) eval(in action.Input) (level int) {
	defer func() {
		if recover() != nil {
			level = 5
		}
	}()
	if r.holds(in) {
		return r.level
	}
	return 0
}

// idempotencyKey evaluates the declared key for an input.
func (e *Engine) idempotencyKey(ctx context.Context, d *declaration, in action.Input) (string, error) {
	if d.key == nil {
		return "", nil
	}
	key, err := contain(ctx, &e.inputs, e.patience(d), 0, func(context.Context) (string, error) { return d.key(in) })
	switch {
	case err != nil:
		return "", fmt.Errorf("idempotency key of %q: %w", d.name, err)
	case key == "":
		return "", fmt.Errorf("idempotency key of %q is empty", d.name)
	}
	return key, nil
}

// keyed evaluates the idempotency key of a call that may begin. What begins records a digest of it: a call that was
// interrupted is repeated under the same key or not at all.
func (t *Task) keyed(ctx context.Context, o *observed) {
	if o.def == nil || o.def.key == nil || o.call.Edge != nil || o.key != "" || o.keyErr != nil {
		return
	}
	in := action.Input{Document: o.call.Intent.Input}
	ctx, done := t.engine.within(ctx)
	defer done()
	if o.key, o.keyErr = t.engine.idempotencyKey(ctx, o.def, in); o.keyErr != nil {
		return
	}
	if o.veil != nil {
		o.call.Key = o.veil.data.Digest(o.key)
		return
	}
	sum := sha256.Sum256([]byte(t.agent.name + "\n" + t.local + "\n" + o.key))
	o.call.Key = hex.EncodeToString(sum[:16])
}

// patience is how long user code of an action may take beside its function.
func (e *Engine) patience(d *declaration) time.Duration {
	if d.timeout > 0 {
		return min(d.timeout, asideLimit)
	}
	return min(e.cfg.Timeout, asideLimit)
}

// fits reports an input that the schema accepts and the Go type does not. Only types with decoding of their own run user
// code there.
func (e *Engine) fits(ctx context.Context, d *declaration, in action.Input) fitted {
	if !d.custom {
		return d.decode(in)
	}
	got, err := contain(ctx, &e.inputs, e.patience(d), 0, func(context.Context) (fitted, error) { return d.decode(in), nil })
	if err != nil {
		got.f = because(action.Fail(action.InputInvalid, "the input of %q cannot be decoded: %v", d.name, err), err)
	}
	return got
}

// demands returns what the per-argument rules make of an input. Rules that do not answer count as the highest risk.
func (e *Engine) demands(ctx context.Context, d *declaration, in action.Input) (level int, name string) {
	if len(d.rules) == 0 {
		return 0, ""
	}
	var at atomic.Int64 // the rule that is being evaluated
	got, err := contain(ctx, &e.inputs, e.patience(d), 0, func(context.Context) (verdict rule, _ error) {
		for i, r := range d.rules {
			at.Store(int64(i))
			if l := r.eval(in); l > verdict.level {
				verdict = rule{name: r.name, level: l}
			}
		}
		return verdict, nil
	})
	if err != nil {
		return 5, d.rules[at.Load()].name
	}
	return got.level, got.name
}

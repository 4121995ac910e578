package delta

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// check collects every fault of the declaration itself; what it refers to is checked by the agent.
func (d *declaration) check() {
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
	if strings.HasPrefix(d.name, "delta.") {
		d.fault("names that begin with \"delta.\" are reserved")
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

// decode reports an input that the schema accepts and the Go type does not: one whose UnmarshalText or UnmarshalJSON
// refuses it. User code is contained.
func (d *declaration) decode(in action.Input) (f *action.Failure) {
	defer func() {
		if p := recover(); p != nil {
			f = action.Fail(action.InputInvalid, "the input of %q cannot be decoded: its type panicked", d.name)
		}
	}()
	if err := d.decodes(in); err != nil {
		return action.Fail(action.InputInvalid, "the input of %q does not fit its type: %s", d.name, short(err.Error())).Because(err)
	}
	return nil
}

// risks returns the level that the per-argument rules demand of an input, and the first rule that demands it.
func (d *declaration) risks(in action.Input) (level int, name string) {
	for _, r := range d.rules {
		if l := r.eval(in); l > level {
			level, name = l, r.name
		}
	}
	return level, name
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

// idempotencyKey evaluates the declared key for an input; a panic in user code is an error.
func (d *declaration) idempotencyKey(in action.Input) (key string, err error) {
	if d.key == nil {
		return "", nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("idempotency key of %q: panic: %v", d.name, p)
		}
	}()
	if key, err = d.key(in); err == nil && key == "" {
		err = fmt.Errorf("idempotency key of %q is empty", d.name)
	}
	return key, err
}

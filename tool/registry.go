package tool

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/schema"
)

// Registry finds tools by their ids. It is safe for concurrent use, and may change while engines use it: a tool that is
// removed is UNAVAILABLE from the next call on. Its zero value is empty and ready to use.
type Registry struct {
	mu    sync.RWMutex
	tools map[string]*Registered
	looks map[string]string // skeleton → id
}

// Registered is a tool as the registry holds it: checked, with its defaults filled in. It must not be changed.
type Registered struct {
	Tool
	Hash string // of its contract
	in   *schema.Schema
	out  *schema.Schema
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return new(Registry) }

// Register adds tools, all of them or none. The error names every fault: of a contract, a missing function, limits out of
// range, an id that is taken or could be taken for another.
func (r *Registry) Register(tools ...Tool) error {
	var faults []error
	var fresh []*Registered
	for _, t := range tools {
		x, err := check(t)
		if err != nil {
			faults = append(faults, fmt.Errorf("tool %q: %w", action.CutTo(t.ID, action.MaxName), err))
			continue
		}
		fresh = append(fresh, x)
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all, looks := maps.Clone(r.tools), maps.Clone(r.looks)
	if all == nil {
		all, looks = map[string]*Registered{}, map[string]string{}
	}
	for _, x := range fresh {
		look := action.Skeleton(x.ID)
		switch other, taken := looks[look]; {
		case taken && other == x.ID:
			faults = append(faults, fmt.Errorf("tool %q is registered already: remove it first, or give this one another id", x.ID))
		case taken:
			faults = append(faults, fmt.Errorf("tools %q and %q could be taken for each other: rename one", other, x.ID))
		}
		all[x.ID], looks[look] = x, x.ID
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	r.tools, r.looks = all, looks
	return nil
}

func check(t Tool) (*Registered, error) {
	t = t.withDefaults()
	t.Input, t.Output, t.Context = bytes.Clone(t.Input), bytes.Clone(t.Output), slices.Clone(t.Context)
	in, out, err := t.Schemas()
	faults := []error{err}
	if t.Invoke == nil {
		faults = append(faults, errors.New("there is nothing to invoke: Invoke is nil"))
	}
	if t.HealthEvery < time.Millisecond {
		faults = append(faults, fmt.Errorf("HealthEvery is %v, want at least 1ms", t.HealthEvery))
	}
	if t.Breaker.Failures < 1 || t.Breaker.Cooldown < time.Millisecond {
		faults = append(faults, fmt.Errorf("the breaker opens after %d failures for %v, want at least 1 and 1ms", t.Breaker.Failures, t.Breaker.Cooldown))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return &Registered{Tool: t, Hash: hashOf(t.Contract, in, out), in: in, out: out}, nil
}

// Remove takes a tool out; it reports whether there was one. Invocations under way go on.
func (r *Registry) Remove(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tools[id] == nil {
		return false
	}
	r.tools, r.looks = maps.Clone(r.tools), maps.Clone(r.looks)
	delete(r.tools, id)
	delete(r.looks, action.Skeleton(id))
	return true
}

// Find returns the tool of that id, nil where none is registered. A nil registry has none.
func (r *Registry) Find(id string) *Registered {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.tools[id]
}

// List returns the contracts of all tools, by id.
func (r *Registry) List() []Contract {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]Contract, 0, len(r.tools))
	for _, id := range slices.Sorted(maps.Keys(r.tools)) {
		c := r.tools[id].Contract
		c.Input, c.Output, c.Context = bytes.Clone(c.Input), bytes.Clone(c.Output), slices.Clone(c.Context)
		out = append(out, c)
	}
	return out
}

// CheckInput reports why an input does not satisfy the contract, nil where it does.
func (x *Registered) CheckInput(raw []byte) *action.Failure {
	_, f := x.in.Check(raw)
	return f
}

// CheckOutput reports why what the tool returned does not satisfy the contract, nil where it does: OUTPUT_INVALID.
func (x *Registered) CheckOutput(raw []byte) *action.Failure {
	if x.out == nil {
		if _, f := schema.Canonical(raw, 0); f != nil {
			return action.Fail(action.OutputInvalid, "the output is not acceptable JSON: %s", f.Message)
		}
		return nil
	}
	_, f := x.out.CheckOutput(raw)
	return f
}

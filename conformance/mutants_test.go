package conformance_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/conformance"
	"github.com/seed-ab2cfece/delta-agents/conformance/subject"
)

// mutant is the engine of this module with one protection taken away.
type mutant struct {
	*subject.Subject
	action   func(*conformance.Action)
	goal     func(*conformance.Goal)
	call     func(*conformance.Call)
	decision func(*conformance.Decision)
	told     string // added to what planners are told
	yes      bool   // decisions never fail
	deaf     bool   // cancelling does nothing
	still    bool   // the clock does not move
	solid    bool   // the store cannot fail
	trusting bool   // an error of the policy permits
}

func (m mutant) Declare(a conformance.Agent) error {
	a.Actions = slices.Clone(a.Actions)
	for i := range a.Actions {
		if m.action != nil {
			m.action(&a.Actions[i])
		}
	}
	return m.Subject.Declare(a)
}

func (m mutant) Start(ctx context.Context, g conformance.Goal) (string, error) {
	if m.goal != nil {
		m.goal(&g)
	}
	return m.Subject.Start(ctx, g)
}

func (m mutant) Propose(ctx context.Context, task string, c conformance.Call) conformance.Outcome {
	if m.call != nil {
		m.call(&c)
	}
	return m.Subject.Propose(ctx, task, c)
}

func (m mutant) Turn(ctx context.Context, task string, calls []conformance.Call) ([]conformance.Outcome, error) {
	calls = slices.Clone(calls)
	for i := range calls {
		if m.call != nil {
			m.call(&calls[i])
		}
	}
	out, err := m.Subject.Turn(ctx, task, calls)
	for i := range out {
		out[i].Told += m.told
	}
	return out, err
}

func (m mutant) Decide(ctx context.Context, d conformance.Decision) error {
	if m.decision != nil {
		m.decision(&d)
	}
	if err := m.Subject.Decide(ctx, d); !m.yes {
		return err
	}
	return nil
}

func (m mutant) Cancel(ctx context.Context, task, reason string) error {
	if m.deaf {
		return nil
	}
	return m.Subject.Cancel(ctx, task, reason)
}

func (m mutant) Advance(d time.Duration) {
	if !m.still {
		m.Subject.Advance(d)
	}
}

func (m mutant) FailStore(f conformance.Fault) {
	if !m.solid {
		m.Subject.FailStore(f)
	}
}

func (m mutant) SetPolicy(f func(agent, action string, input json.RawMessage) (bool, error)) {
	if f == nil || !m.trusting {
		m.Subject.SetPolicy(f)
		return
	}
	m.Subject.SetPolicy(func(agent, action string, input json.RawMessage) (permit bool, err error) {
		defer func() { permit, err = permit || err != nil || recover() != nil, nil }()
		return f(agent, action, input)
	})
}

// spendAnything makes bodies believe that every cost was taken.
func spendAnything(a *conformance.Action) {
	do := a.Do
	a.Do = func(ctx context.Context, x conformance.Execution) (json.RawMessage, error) {
		spend := x.Spend
		x.Spend = func(c conformance.Cost) error { _ = spend(c); return nil }
		return do(ctx, x)
	}
}

// float passes an input through what many engines decode with.
func float(c *conformance.Call) {
	var v any
	if json.Unmarshal([]byte(c.Input), &v) == nil {
		text, _ := json.Marshal(v)
		c.Input = string(text)
	}
}

// TestTeethOneByOne takes one protection away at a time; the case that guards it must notice.
func TestTeethOneByOne(t *testing.T) {
	for _, c := range []struct {
		without string
		mutant  mutant
		notices []string
	}{
		{"the gate", mutant{action: func(a *conformance.Action) { a.Gated = false }}, []string{"C01", "C02", "C03", "C04", "C06", "C16", "C17", "C18", "C26"}},
		{"who decides", mutant{decision: func(d *conformance.Decision) { d.By = "boss" }}, []string{"C26"}},
		{"one decision per request", mutant{yes: true}, []string{"C02", "C16", "C26"}},
		{"a quorum", mutant{action: func(a *conformance.Action) { a.Quorum = 0 }}, []string{"C02", "C26"}},
		{"call ids", mutant{call: func(c *conformance.Call) { c.ID = "" }}, []string{"C03", "C07", "C23"}},
		{"limits", mutant{goal: func(g *conformance.Goal) { g.Limit = conformance.Limit{} }}, []string{"C08", "C11", "C19", "C22", "C27"}},
		{"estimates", mutant{action: func(a *conformance.Action) { a.Cost = conformance.Cost{} }}, []string{"C08"}},
		{"checked costs", mutant{action: spendAnything}, []string{"C10", "C11"}},
		{"the strict edge", mutant{call: float}, []string{"C13", "C30"}},
		{"prerequisites", mutant{action: func(a *conformance.Action) { a.Needs = nil }}, []string{"C19", "C20", "C23", "C30"}},
		{"hidden names", mutant{told: " (see also: wipe-all-disks, secret-audit)"}, []string{"C20"}},
		{"policy errors", mutant{trusting: true}, []string{"C21"}},
		{"empty lists", mutant{goal: func(g *conformance.Goal) {
			if len(g.Approvers) == 0 {
				g.Approvers = []string{"*"}
			}
		}}, []string{"C22"}},
		{"fresh ids", mutant{goal: func(g *conformance.Goal) { g.ID = "" }}, []string{"C27"}},
		{"effects that may not be repeated", mutant{action: func(a *conformance.Action) {
			a.Effect, a.Retries = conformance.Idempotent, 2
		}}, []string{"C23"}},
		{"cancelling", mutant{deaf: true}, []string{"C15", "C27", "C28"}},
		{"the clock", mutant{still: true}, []string{"C16", "C18", "C19"}},
		{"the store", mutant{solid: true}, []string{"C09", "C25"}},
	} {
		t.Run(c.without, func(t *testing.T) {
			t.Parallel()
			for _, id := range c.notices {
				assert.True(t, noticed(t, c.mutant.open, id), "%s does not notice", id)
			}
		})
	}
}

// twice makes every body run a second time.
func twice(a *conformance.Action) {
	do := a.Do
	a.Do = func(ctx context.Context, x conformance.Execution) (json.RawMessage, error) {
		if _, err := do(ctx, x); err != nil {
			return nil, err
		}
		return do(ctx, x)
	}
}

// upside has the undoing of 2 undo 3, and the other way round.
func upside(a *conformance.Action) {
	do := a.Do
	a.Do = func(ctx context.Context, x conformance.Execution) (json.RawMessage, error) {
		if a.Name == "cancel" {
			x.Input = json.RawMessage(strings.NewReplacer("2", "3", "3", "2").Replace(string(x.Input)))
		}
		return do(ctx, x)
	}
}

// TestTeethOfProcedures: the variants with workflows notice by themselves, at every depth.
func TestTeethOfProcedures(t *testing.T) {
	for _, c := range []struct {
		without string
		mutant  mutant
		notices []string
	}{
		{"the gate", mutant{action: func(a *conformance.Action) { a.Gated = false }}, []string{"C04", "C05", "C06", "C07", "C16"}},
		{"once", mutant{action: twice}, []string{"C04", "C05", "C07"}},
		{"the clock", mutant{still: true}, []string{"C16"}},
		{"cancelling", mutant{deaf: true}, []string{"C28"}},
		{"order", mutant{action: upside}, []string{"C29"}},
	} {
		t.Run(c.without, func(t *testing.T) {
			t.Parallel()
			for _, id := range c.notices {
				for _, at := range []string{" of a workflow", " of a workflow in a workflow", " of a workflow, two levels down"} {
					assert.True(t, noticedBy(t, c.mutant.open, id, at), "%s does not notice%s", id, at)
				}
			}
		})
	}
}

func (m mutant) open() (conformance.Subject, error) {
	s, err := subject.Open(subject.InProcess)()
	if err != nil {
		return nil, err
	}
	m.Subject = s.(*subject.Subject)
	return m, nil
}

// noticed runs the variants of a case until one fails.
func noticed(t *testing.T, open conformance.Open, id string) bool { return noticedBy(t, open, id, "") }

// noticedBy looks only at variants whose names end so.
func noticedBy(t *testing.T, open conformance.Open, id, names string) bool {
	all := conformance.Cases()
	i := slices.IndexFunc(all, func(c conformance.Case) bool { return c.ID == id })
	require.GreaterOrEqual(t, i, 0)
	return slices.ContainsFunc(all[i].Variants, func(v conformance.Variant) bool {
		if !strings.HasSuffix(v.Name, names) {
			return false
		}
		one := conformance.Case{ID: id, Variants: []conformance.Variant{v}}
		return len(conformance.Failed(conformance.Check(open, []conformance.Case{one}))) > 0
	})
}

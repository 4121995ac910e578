package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Builder writes a workflow. It is a value: each method returns another one, and what was made of one does not change what
// is made of it later.
type Builder struct {
	s      Spec
	faults []error
}

// New begins a workflow.
func New(name, version string) Builder { return Builder{s: Spec{Name: name, Version: version}} }

// Describe says what the workflow is for.
func (b Builder) Describe(text string) Builder { b.s.Description = text; return b }

// Input declares the JSON Schema of what an instance is started with.
func (b Builder) Input(schema string) Builder { b.s.Input = raw(schema); return b }

// Output maps artifacts to what the instance gives: see [Spec].
func (b Builder) Output(path, from string) Builder {
	b.s.Output = b.s.Output.with(path, Source{From: from})
	return b
}

// Within bounds how long an instance may take.
func (b Builder) Within(t time.Duration) Builder { b.s.Limits.Time = t; return b }

// Spend bounds what an instance may spend.
func (b Builder) Spend(l action.Limit) Builder { b.s.Limits.Cost = l; return b }

// Owners are asked where a step has nobody of its own to ask.
func (b Builder) Owners(who ...string) Builder { b.s.Owners = slices.Clone(who); return b }

// Phase adds a phase. A workflow without one has a single phase, of its own name.
func (b Builder) Phase(p PhaseBuilder) Builder {
	b.s.Phases = append(slices.Clip(b.s.Phases), p.p)
	b.faults = append(slices.Clip(b.faults), p.faults...)
	return b
}

// Step adds a step to the phase that was added last.
func (b Builder) Step(s StepBuilder) Builder {
	b.s.Phases = slices.Clone(b.s.Phases)
	if len(b.s.Phases) == 0 {
		b.s.Phases = []Phase{{Name: b.s.Name}}
	}
	p := &b.s.Phases[len(b.s.Phases)-1]
	p.Steps = append(slices.Clip(p.Steps), s.s)
	b.faults = append(slices.Clip(b.faults), s.faults...)
	return b
}

// Build checks the workflow; the error names the faults, see [Compile].
func (b Builder) Build() (*Definition, error) { return compile(b.s, b.faults) }

// MustBuild is Build for workflows that are written in a program: it panics on faults.
func (b Builder) MustBuild() *Definition {
	d, err := b.Build()
	if err != nil {
		panic(fmt.Errorf("workflow %s: %w", b.s.Name, err))
	}
	return d
}

// PhaseBuilder writes a phase; a value like [Builder].
type PhaseBuilder struct {
	p      Phase
	faults []error
}

// InPhase begins a phase.
func InPhase(name string) PhaseBuilder { return PhaseBuilder{p: Phase{Name: name}} }

// Storyline tells what the phase is about.
func (b PhaseBuilder) Storyline(text string) PhaseBuilder { b.p.Storyline = text; return b }

// Ordered makes each step need the end of the one before it.
func (b PhaseBuilder) Ordered() PhaseBuilder { b.p.Ordered = true; return b }

// When lets the phase run only where a predicate of that name, registered with the driver, holds.
func (b PhaseBuilder) When(predicate string) PhaseBuilder {
	b.p.Guard = &Guard{Name: predicate}
	return b
}

// WhenSchema lets the phase run only where the view of the state satisfies a JSON Schema.
func (b PhaseBuilder) WhenSchema(schema string) PhaseBuilder {
	b.p.Guard = &Guard{Schema: raw(schema)}
	return b
}

// OnFailure says what is done about a step that failed; max is how often the first two strategies are done.
func (b PhaseBuilder) OnFailure(s Strategy, max int, then Strategy) PhaseBuilder {
	b.p.Supervision.Strategy, b.p.Supervision.Max, b.p.Supervision.Then = s, max, then
	return b
}

// Backoff is the pause of the phase's supervision.
func (b PhaseBuilder) Backoff(p Backoff) PhaseBuilder { b.p.Supervision.Backoff = p; return b }

// Hints are passed on to whoever plans, asks or executes in the phase.
func (b PhaseBuilder) Hints(h Hints) PhaseBuilder { b.p.Hints = h.clone(); return b }

// Step adds a step.
func (b PhaseBuilder) Step(s StepBuilder) PhaseBuilder {
	b.p.Steps = append(slices.Clip(b.p.Steps), s.s)
	b.faults = append(slices.Clip(b.faults), s.faults...)
	return b
}

// StepBuilder writes a step; a value like [Builder]. A method that does not go with the step's type is a fault at Build.
type StepBuilder struct {
	s      Step
	faults []error
}

// AskPerson begins a HUMAN step.
func AskPerson(name string) StepBuilder { return StepBuilder{s: Step{Name: name, Type: Human}} }

// Reason begins a REASONING step.
func Reason(name, planner string) StepBuilder {
	return StepBuilder{s: Step{Name: name, Type: Reasoning, Planner: planner}}
}

// Execute begins an EXECUTION step.
func Execute(name, action string) StepBuilder {
	return StepBuilder{s: Step{Name: name, Type: Execution, Action: action}}
}

// Run begins a SUB_SOP step.
func Run(name, workflow string) StepBuilder {
	return StepBuilder{s: Step{Name: name, Type: SubSOP, Workflow: workflow}}
}

// Describe says what the step is to do; planners and people read it.
func (b StepBuilder) Describe(text string) StepBuilder { b.s.Description = text; return b }

// Needs adds steps that must have been committed before.
func (b StepBuilder) Needs(steps ...string) StepBuilder { return b.needs(OnOk, steps) }

// NeedsErr adds steps that must have failed before: this one handles their failure.
func (b StepBuilder) NeedsErr(steps ...string) StepBuilder { return b.needs(OnErr, steps) }

// NeedsEnd adds steps that must have ended before, anyhow.
func (b StepBuilder) NeedsEnd(steps ...string) StepBuilder { return b.needs(OnEnd, steps) }

func (b StepBuilder) needs(w When, steps []string) StepBuilder {
	b.s.Needs = slices.Clone(b.s.Needs)
	for _, s := range steps {
		b.s.Needs = append(b.s.Needs, Need{s, w})
	}
	return b
}

// Guard lets the step run only where a predicate of that name, registered with the driver, holds.
func (b StepBuilder) Guard(predicate string) StepBuilder {
	b.s.Guard = &Guard{Name: predicate}
	return b
}

// GuardSchema lets the step run only where the view of the state satisfies a JSON Schema.
func (b StepBuilder) GuardSchema(schema string) StepBuilder {
	b.s.Guard = &Guard{Schema: raw(schema)}
	return b
}

// Map hydrates one place of the input from a path, see [Mapping].
func (b StepBuilder) Map(path, from string) StepBuilder { return b.source(path, Source{From: from}) }

// MapOr is Map with a JSON value for where the path leads nowhere.
func (b StepBuilder) MapOr(path, from, value string) StepBuilder {
	return b.source(path, Source{From: from, Default: raw(value)})
}

// Const puts a JSON value at one place of the input.
func (b StepBuilder) Const(path, value string) StepBuilder {
	return b.source(path, Source{Const: raw(value)})
}

func (b StepBuilder) source(path string, s Source) StepBuilder {
	if _, twice := b.s.Map[path]; twice {
		b.faults = append(slices.Clip(b.faults), fmt.Errorf("step %q maps %q twice", b.s.Name, path))
	}
	b.s.Map = b.s.Map.with(path, s)
	return b
}

// Input declares the JSON Schema of what an EXECUTION or SUB_SOP is executed with.
func (b StepBuilder) Input(schema string) StepBuilder { b.s.Input = raw(schema); return b }

// Output declares the JSON Schema of the artifact.
func (b StepBuilder) Output(schema string) StepBuilder { b.s.Output = raw(schema); return b }

// Limits bounds the step.
func (b StepBuilder) Limits(l Limits) StepBuilder { b.s.Limits = l; return b }

// Hitl declares who is asked what.
func (b StepBuilder) Hitl(h Hitl) StepBuilder { h = h.clone(); b.s.Hitl = &h; return b }

// Ladder replaces [DefaultLadder].
func (b StepBuilder) Ladder(rungs ...Rung) StepBuilder { b.s.Ladder = slices.Clone(rungs); return b }

// Backoff is the pause between tries.
func (b StepBuilder) Backoff(p Backoff) StepBuilder { b.s.Backoff = p; return b }

// Planner names who proposes the input of an EXECUTION or SUB_SOP.
func (b StepBuilder) Planner(name string) StepBuilder { b.s.Planner = name; return b }

// Verifier names who judges a proposal beside the contract.
func (b StepBuilder) Verifier(name string) StepBuilder { b.s.Verifier = name; return b }

// Effect is the side-effect class of an EXECUTION.
func (b StepBuilder) Effect(e action.Effect) StepBuilder { b.s.Effect = e; return b }

// Undo says which action compensates an EXECUTION, and how its input is made.
func (b StepBuilder) Undo(action string, m Mapping) StepBuilder {
	b.s.Undo = &Undo{Action: action, Map: maps.Clone(m)}
	return b
}

// Breaker stops a SUB_SOP's definition from being regenerated for a while.
func (b StepBuilder) Breaker(k Breaker) StepBuilder { b.s.Breaker = &k; return b }

// Hints are passed on to whoever plans, asks or executes.
func (b StepBuilder) Hints(h Hints) StepBuilder { b.s.Hints = h.clone(); return b }

func raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

func (m Mapping) with(path string, s Source) Mapping {
	m = maps.Clone(m)
	if m == nil {
		m = Mapping{}
	}
	m[path] = s
	return m
}

func (h Hitl) clone() Hitl {
	h.Who = slices.Clone(h.Who)
	return h
}

func (h Hints) clone() Hints {
	return Hints{slices.Clone(h.Tools), slices.Clone(h.Skills), slices.Clone(h.Hooks)}
}

package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// Workflows are the workflows that an engine runs, and what their steps name. An engine takes in hand the instances whose
// definition, in the instance's version, it has; others are left to others.
type Workflows struct {
	// Definitions may hold several versions of one workflow: an instance keeps its own. A SUB_SOP starts the version that
	// stands last.
	Definitions []*workflow.Definition
	// Proposers are the planners that steps name.
	Proposers map[string]Proposer
	// Verifiers judge what the contract of a step cannot say.
	Verifiers map[string]Verifier
	// Guards are the conditions that steps and phases name.
	Guards map[string]Guard
	// Agents work on the nested instances of a workflow, by its name; none: the agent of the instance that runs it.
	Agents map[string]*Agent
	// Parallel bounds what is done at a time for one instance. Default 8.
	Parallel int
	// PlanTime bounds one proposal. Default 2 minutes.
	PlanTime time.Duration
}

// Proposer plans one step of a workflow: the artifact of a REASONING step, or the input of what is to be executed. It is
// given no means to act, and what it says counts once it is verified.
type Proposer interface {
	// Propose returns a JSON document. It must return when ctx ends.
	Propose(ctx context.Context, r StepRequest) (Draft, error)
}

// ProposerFunc makes a Proposer of a function.
type ProposerFunc func(ctx context.Context, r StepRequest) (Draft, error)

// Propose calls f.
func (f ProposerFunc) Propose(ctx context.Context, r StepRequest) (Draft, error) { return f(ctx, r) }

// StepRequest is what a Proposer is told.
type StepRequest struct {
	Goal        string // of the task
	Step        string
	Description string
	Iteration   int             // of planning this step, 1 is the first
	Input       json.RawMessage // hydrated from what came before
	Contract    json.RawMessage // the JSON Schema that the document has to satisfy, nil for none
	Critique    string          // of the document before, "" for none
	Intakes     []workflow.Given
	Storylines  []string // of the phases up to this one
	Hints       workflow.Hints
	Limit       action.Limit // what is left of what the step may spend
}

// Draft is a proposed document.
type Draft struct {
	Document json.RawMessage
	// Used is what planning cost; it is spent whatever becomes of the draft. Estimated says that nobody knows exactly.
	Used      action.Cost
	Estimated bool
}

// Verifier judges a document beside its contract. A critique is what the next proposal is told; "" passes. An error says
// that it could not judge, which fails the try.
type Verifier func(ctx context.Context, subject workflow.Subject, document json.RawMessage) (critique string, err error)

// Guard decides on what is known of the instance: an object of input and steps, as mappings see it.
type Guard func(ctx context.Context, view json.RawMessage) (bool, error)

// ErrNoWorkflow is returned where an engine does not have a workflow.
var ErrNoWorkflow = errors.New("this engine does not have the workflow; add it to Config.Workflows")

// flows is what an engine knows of workflows.
type flows struct {
	Workflows
	contracts sync.Map // text → *schema.Schema or error
	missing   sync.Map // name and version of workflows that were met and are not held; agent and task where a key is not
	places    sync.Map // definition and agent → *flowPlaces
	rules     sync.Map // agent → version of the policy that was tried last
}

func newFlows(w Workflows) (*flows, error) {
	set(&w.Parallel, 8)
	set(&w.PlanTime, 2*time.Minute)
	var faults []error
	seen := map[[2]string]bool{}
	for _, d := range w.Definitions {
		if d == nil {
			faults = append(faults, errors.New("config Workflows: a definition is nil"))
			continue
		}
		k := [2]string{d.Name(), d.Version()}
		if seen[k] {
			faults = append(faults, fmt.Errorf("config Workflows: workflow %q is there twice in version %q", k[0], k[1]))
		}
		seen[k] = true
	}
	w.Definitions = slices.Clone(w.Definitions)
	f := &flows{Workflows: w}
	for _, d := range w.Definitions {
		if d != nil {
			faults = append(faults, f.lacks(d)...)
		}
	}
	return f, errors.Join(faults...)
}

// lacks reports what a definition names and the engine does not have.
func (f *flows) lacks(d *workflow.Definition) (faults []error) {
	lack := func(what, step, name string) {
		faults = append(faults, fmt.Errorf("config Workflows: workflow %q: %s names %s %q, which is not configured", d.Name(), step, what, name))
	}
	guard := func(where string, g *workflow.Guard) {
		if g != nil && g.Name != "" && f.Guards[g.Name] == nil {
			lack("the guard", where, g.Name)
		}
	}
	spec := d.Spec()
	for _, p := range spec.Phases {
		guard("phase "+p.Name, p.Guard)
		for i := range p.Steps {
			s := &p.Steps[i]
			where := "step " + s.Name
			guard(where, s.Guard)
			if s.Verifier != "" && f.Verifiers[s.Verifier] == nil {
				lack("the verifier", where, s.Verifier)
			}
			planners := []string{s.Planner}
			for _, r := range s.Ladder {
				planners = append(planners, r.Planner)
			}
			for _, name := range planners {
				if name != "" && f.Proposers[name] == nil {
					lack("the planner", where, name)
				}
			}
			if s.Workflow != "" && f.latest(s.Workflow) == nil {
				lack("the workflow", where, s.Workflow)
			}
		}
	}
	return faults
}

func (f *flows) definition(name, version string) *workflow.Definition {
	for _, d := range f.Definitions {
		if d.Name() == name && d.Version() == version {
			return d
		}
	}
	return nil
}

func (f *flows) latest(name string) *workflow.Definition {
	for _, d := range slices.Backward(f.Definitions) {
		if d != nil && d.Name() == name {
			return d
		}
	}
	return nil
}

// contract compiles a JSON Schema of a definition, once.
func (f *flows) contract(text json.RawMessage) (*schema.Schema, error) {
	if got, ok := f.contracts.Load(string(text)); ok {
		s, _ := got.(*schema.Schema)
		err, _ := got.(error)
		return s, err
	}
	s, err := schema.Foreign(text)
	if err != nil {
		f.contracts.Store(string(text), err)
		return nil, err
	}
	f.contracts.Store(string(text), s)
	return s, nil
}

// Instance is a workflow that runs, or ran: one task, whose calls the workflow makes. It is safe for concurrent use.
type Instance struct {
	t   *Task
	def *workflow.Definition // nil where this engine does not have it
	of  engine.FlowOf
}

// StartWorkflow starts an instance: a task of the goal's agent whose calls, and nobody else's, the workflow makes. The input
// passes the strict edge and the workflow's schema; nil is an empty object. Nothing runs by itself: see [Engine.Work] and
// [Instance.Run].
func (e *Engine) StartWorkflow(ctx context.Context, d *workflow.Definition, g Goal, input json.RawMessage) (*Instance, error) {
	if err := e.runs(d, &g, input); err != nil {
		return nil, err
	}
	t, err := e.Start(ctx, g)
	if err != nil {
		return nil, fmt.Errorf("workflow %q: %w", d.Name(), err)
	}
	e.nudge()
	return &Instance{t, d, engine.FlowOf{Workflow: d.Name(), Version: d.Version()}}, nil
}

// runs makes a goal one that a workflow reaches.
func (e *Engine) runs(d *workflow.Definition, g *Goal, input json.RawMessage) error {
	if d == nil || e.flows.definition(d.Name(), d.Version()) != d {
		return fmt.Errorf("start workflow: %w", ErrNoWorkflow)
	}
	doc, err := e.flows.input(d, input)
	if err != nil {
		return fmt.Errorf("start workflow %q: %w", d.Name(), err)
	}
	if faults := unheld(d, g.Agent); len(faults) > 0 {
		return fmt.Errorf("start workflow %q: %w", d.Name(), errors.Join(faults...))
	}
	if a := g.Agent; a != nil && a.compiled != nil {
		if faults := e.placesIn(d, a).spilt; len(faults) > 0 {
			return fmt.Errorf("start workflow %q: %w", d.Name(), errors.Join(faults...))
		}
	}
	g.flow = &engine.FlowOf{Workflow: d.Name(), Version: d.Version(), Input: doc}
	return nil
}

func (f *flows) input(d *workflow.Definition, input json.RawMessage) (json.RawMessage, error) {
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	contract := d.Input()
	if contract == nil {
		doc, no := schema.Canonical(input, 0)
		return json.RawMessage(doc.Text()), failureOr(no)
	}
	s, err := f.contract(contract)
	if err != nil {
		return nil, fmt.Errorf("its input schema: %w", err)
	}
	doc, no := s.Check(input)
	return json.RawMessage(doc.Text()), failureOr(no)
}

// unheld reports actions that the workflow calls and the agent does not hold: a dead end that would be met halfway.
func unheld(d *workflow.Definition, a *Agent) (faults []error) {
	if a == nil {
		return nil // Start says so
	}
	for step, name := range d.Calls() {
		if a.defs[name] == nil {
			faults = append(faults, fmt.Errorf("step %q calls %q, which agent %q does not hold: grant it", step, name, a.name))
		}
	}
	return faults
}

// OpenWorkflow re-opens an instance by the id of its task, see [Engine.Open].
func (e *Engine) OpenWorkflow(ctx context.Context, id string) (*Instance, error) {
	t, err := e.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	v, err := t.peek(ctx)
	if err != nil {
		return nil, err
	}
	if v.Task.Flow == nil {
		return nil, fmt.Errorf("open workflow: %s runs none", t)
	}
	return &Instance{t, e.flows.definition(v.Task.Flow.Workflow, v.Task.Flow.Version), *v.Task.Flow}, nil
}

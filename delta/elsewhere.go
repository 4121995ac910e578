package delta

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// NoWorkerError says that nobody works on the store who could go on with an instance.
type NoWorkerError struct {
	Agent                     string
	Workflow, Version, Digest string
	Live                      int              // how many work for the agent
	Others                    []WorkerWorkflow // what these hold of that name in another version or form
	Actions                   []string         // that the workflow calls and none of them can execute
	Children                  []string         // workflows that it runs and none of them holds

	begun bool // it is about an instance that is there: what else a worker would lack was not looked at
}

// Error says what is missing.
func (n *NoWorkerError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no live worker of agent %q holds workflow %q %s", n.Agent, n.Workflow, cmp.Or(n.Version, "in any version"))
	if n.Digest != "" {
		fmt.Fprintf(&b, " (%.12s)", n.Digest)
	}
	if n.Live == 0 {
		b.WriteString(": nobody works for the agent now; start the program that has its actions, with Engine.Work")
	}
	for _, o := range n.Others {
		if o.Version == n.Version {
			fmt.Fprintf(&b, "; one holds another definition of that version (%.12s)", o.Digest)
		} else {
			fmt.Fprintf(&b, "; one holds version %s (%.12s)", o.Version, o.Digest)
		}
	}
	switch {
	case n.Live > 0 && n.begun:
		b.WriteString("; keep a version in Config.Workflows until its instances have ended, or migrate them")
	case n.Live > 0 && n.Digest == "" && len(n.Others) == 0:
		b.WriteString("; add its definition to their Config.Workflows")
	case n.Live > 0 && len(n.Others) == 0 && len(n.Actions)+len(n.Children) == 0:
		b.WriteString("; all its actions are there: add the definition to their Config.Workflows")
	}
	if len(n.Actions) > 0 {
		fmt.Fprintf(&b, "; nobody has the actions: %s", strings.Join(n.Actions, ", "))
	}
	if len(n.Children) > 0 {
		fmt.Fprintf(&b, "; nobody has the workflows that it runs: %s", strings.Join(n.Children, ", "))
	}
	return b.String()
}

// UnheldBy says that none of these workers, see [Engine.Workers], goes on with the instance: it waits for one, whatever else it
// waits for. It is nil where one of them does.
func (i *Instance) UnheldBy(live []Worker) *NoWorkerError {
	no := &NoWorkerError{Agent: i.t.agent.name, Workflow: i.of.Workflow, Version: i.of.Version, Digest: i.of.Digest, Live: len(live), begun: true}
	for _, w := range live {
		for _, f := range w.Workflows {
			switch {
			case f.Name != no.Workflow:
			case f.Version == no.Version && (no.Digest == "" || f.Digest == no.Digest):
				return nil
			case !slices.Contains(no.Others, f):
				no.Others = append(no.Others, f)
			}
		}
	}
	return no
}

// StartWorkflowFor starts an instance for the workers of an agent that need not be known here, see [Engine.Workers]: one of them
// takes it in hand. The definition has to be exactly one that a worker holds, else the error is a [NoWorkerError]. What the worker
// says of its input is sealed here before it is written. The goal has no agent of its own; who starts it stands in its Requester.
func (e *Engine) StartWorkflowFor(ctx context.Context, agent string, d *workflow.Definition, g Goal, input json.RawMessage) (*Instance, error) {
	if d == nil {
		return nil, fmt.Errorf("start workflow: %w", ErrNoWorkflow)
	}
	of, err := e.heldElsewhere(ctx, agent, d)
	if err != nil {
		return nil, fmt.Errorf("start workflow %q: %w", d.Name(), err)
	}
	if err := e.Adopt(ctx, agent); err != nil {
		return nil, fmt.Errorf("start workflow %q: %w", d.Name(), err)
	}
	e.mu.Lock()
	g.Agent = e.agents[agent].agent
	e.mu.Unlock()
	doc, err := e.flows.input(d, input)
	if err != nil {
		return nil, fmt.Errorf("start workflow %q: %w", d.Name(), err)
	}
	flow := flowOf(d)
	flow.Input = doc
	g.flow, g.elsewhere = &flow, &flowPlaces{input: of.Secret}
	if g.ID == "" {
		g.ID = e.cfg.ID()
	}
	if len(g.ID) > workflow.MaxInstance {
		return nil, fmt.Errorf("start workflow %q: the id of the goal is %d bytes long, at most %d are allowed", d.Name(), len(g.ID), workflow.MaxInstance)
	}
	t, err := e.Start(ctx, g)
	if err != nil {
		return nil, fmt.Errorf("workflow %q: %w", d.Name(), err)
	}
	e.nudge()
	known := flowOf(d)
	return &Instance{t, e.flows.definition(&known), known}, nil
}

// heldElsewhere is what a worker says of a definition that it holds.
func (e *Engine) heldElsewhere(ctx context.Context, agent string, d *workflow.Definition) (engine.WorkerFlow, error) {
	live, err := e.workers(ctx, agent)
	if err != nil {
		return engine.WorkerFlow{}, err
	}
	no := &NoWorkerError{Agent: agent, Workflow: d.Name(), Version: d.Version(), Digest: d.Digest(), Live: len(live)}
	has := map[string]bool{}
	for _, w := range live {
		for _, a := range w.Actions {
			has["action "+a] = true
		}
		for _, f := range w.Workflows {
			if f.Digest == d.Digest() {
				return f, nil
			}
			has["workflow "+f.Workflow] = has["workflow "+f.Workflow] || f.Latest
			if o := (WorkerWorkflow{f.Workflow, f.Version, f.Digest}); f.Workflow == d.Name() && !slices.Contains(no.Others, o) {
				no.Others = append(no.Others, o)
			}
		}
	}
	for _, a := range d.Calls() {
		if !has["action "+a] && !slices.Contains(no.Actions, a) {
			no.Actions = append(no.Actions, a)
		}
	}
	slices.Sort(no.Actions)
	for _, c := range d.Children() {
		if !has["workflow "+c] {
			no.Children = append(no.Children, c)
		}
	}
	return engine.WorkerFlow{}, no
}

// DefinitionOf finds the definition of a workflow that a live worker of the agent holds, by its name: the latest of them. It is as an
// instance that the store still has, running or ended, began with it: of a workflow that never ran there is none, [ErrNoWorkflow].
func (e *Engine) DefinitionOf(ctx context.Context, agent, name string) (*workflow.Definition, error) {
	return e.definitionHeld(ctx, agent, name, "")
}

// DefinitionAt is [Engine.DefinitionOf] for a version.
func (e *Engine) DefinitionAt(ctx context.Context, agent, name, version string) (*workflow.Definition, error) {
	return e.definitionHeld(ctx, agent, name, version)
}

func (e *Engine) definitionHeld(ctx context.Context, agent, name, version string) (*workflow.Definition, error) {
	live, err := e.workers(ctx, agent)
	if err != nil {
		return nil, fmt.Errorf("definition of workflow %q: %w", name, err)
	}
	digests := map[string]bool{}
	for _, w := range live {
		for _, f := range w.Workflows {
			if f.Workflow == name && (version == "" && f.Latest || f.Version == version) {
				digests[f.Digest] = true
			}
		}
	}
	if len(digests) == 0 {
		return nil, &NoWorkerError{Agent: agent, Workflow: name, Version: version, Live: len(live)}
	}
	if err := e.Adopt(ctx, agent); err != nil {
		return nil, fmt.Errorf("definition of workflow %q: %w", name, err)
	}
	for _, ended := range []bool{false, true} {
		d, err := e.definitionAmong(ctx, TaskQuery{Agent: agent, Ended: ended, Limit: MaxTasks}, name, digests)
		if d != nil || err != nil {
			return d, err
		}
	}
	return nil, neverRan{agent, name, version}
}

// neverRan is [ErrNoWorkflow] for who can do something about it.
type neverRan struct{ agent, workflow, version string }

func (n neverRan) Error() string {
	if n.version != "" {
		return fmt.Sprintf("no instance of workflow %q %s ran for agent %q yet: give its file", n.workflow, n.version, n.agent)
	}
	return fmt.Sprintf("no instance of workflow %q ran for agent %q yet: start the first one from its file", n.workflow, n.agent)
}

func (neverRan) Unwrap() error { return ErrNoWorkflow }

// definitionAmong looks for a definition among instances.
func (e *Engine) definitionAmong(ctx context.Context, q TaskQuery, name string, digests map[string]bool) (*workflow.Definition, error) {
	for {
		page, err := e.Tasks(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tasks {
			if t.Workflow != name {
				continue
			}
			run, err := e.OpenWorkflow(ctx, t.ID)
			if err != nil {
				return nil, err
			}
			if !digests[run.of.Digest] {
				continue
			}
			d, err := run.Definition(ctx)
			if errors.Is(err, ErrNoWorkflow) {
				continue // it has not begun
			}
			return d, err
		}
		if q.After = page.Next; q.After == "" {
			return nil, nil
		}
	}
}

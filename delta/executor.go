package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/samber/mo"
	"github.com/sony/gobreaker/v2"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/tool"
)

// DefineTool declares an action that a tool executes: its input schema and its description are those of the contract. What
// passes between them is checked against the contract on both sides. The tool is found in [Config.Tools] when a call is
// made: one that is not registered there, or with another contract, is not healthy, or failed too often in a row, is
// UNAVAILABLE, and what it executes is not offered meanwhile.
//
// Declaring the action grants nothing, and neither does registering the tool: an agent must hold the action, and each call
// passes all gates.
func DefineTool(name string, c tool.Contract) Builder[action.Input, action.Output] {
	b := DefineRaw(name, c.Input, refuseRaw)
	in, out, err := c.Schemas()
	b.d.faults = nil // said again, with what else is wrong with the contract
	if err != nil {
		b.d.fault("contract of tool %q: %w", action.CutTo(c.ID, action.MaxName), err)
	} else {
		b.d.in, b.d.out = in, out
	}
	b.d.tool, b.d.toolHash = c.ID, c.Hash()
	b.d.run = executeByTool
	return b.Describe(c.Description).Context(c.Context...)
}

// DefineToolOf is [DefineTool] for whoever knows the types and not the contract: the action's schemas come from In and Out,
// and inputs and outputs are held to those of the tool besides.
func DefineToolOf[In, Out any](name, id string) Builder[In, Out] {
	b := Define(name, func(*Context, In) mo.Result[Out] { return mo.Err[Out](errNoExecutor) })
	if err := action.CheckName(id); err != nil {
		b.d.fault("tool: %w", err)
	}
	b.d.tool = id
	b.d.run = executeByTool
	if reflect.TypeFor[Out]() == reflect.TypeFor[action.Output]() {
		b.d.out = nil
	}
	return b
}

// errNoExecutor answers a function that nobody calls: a tool takes its place.
var errNoExecutor = errors.New("a tool executes this action")

func refuseRaw(*Context, action.Input) mo.Result[action.Output] {
	return mo.Err[action.Output](errNoExecutor)
}

// executeByTool is the function of an action that a tool executes.
func executeByTool(c *Context, in action.Input) returned {
	x := c.flight.tool
	if x == nil { // admit found it
		return returned{done: true, err: errNoExecutor}
	}
	b := &c.begun
	raw, err := x.Invoke(c, tool.Call{
		Tool: x.ID, Agent: b.Agent, Task: c.TaskID(), Action: b.Action, Intent: b.Intent, CallID: b.Call, Within: b.Within, Attempt: c.attempt,
		Key: c.flight.key, Repeatable: c.flight.def.compiled.Repeatable(), Provenance: b.Provenance, Input: json.RawMessage(in.Text()), Spend: c.Spend,
	})
	if err != nil {
		return returned{done: true, err: err}
	}
	if len(raw) == 0 {
		raw = json.RawMessage("null")
	}
	return returned{done: true, output: raw, breach: x.CheckOutput(raw)}
}

// gauge is what this engine knows of a tool's condition.
type gauge struct {
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}] // nil: none

	asking chan struct{} // taken while somebody asks for its health: the others wait for the answer
	at     time.Time     // when it was asked
	sick   error
}

// gauges finds the gauge of a tool. One that was registered anew starts anew.
type gauges struct {
	mu sync.Mutex
	of map[*tool.Registered]*gauge
	id map[string]*tool.Registered
}

func (g *gauges) find(x *tool.Registered) *gauge {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.of[x]; m != nil {
		return m
	}
	if g.of == nil {
		g.of, g.id = map[*tool.Registered]*gauge{}, map[string]*tool.Registered{}
	}
	delete(g.of, g.id[x.ID])
	m := &gauge{asking: make(chan struct{}, 1)}
	if !x.Breaker.Off {
		m.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
			Name: x.ID, Timeout: x.Breaker.Cooldown,
			ReadyToTrip: func(n gobreaker.Counts) bool { return int(n.ConsecutiveFailures) >= x.Breaker.Failures },
			IsExcluded:  func(err error) bool { return errors.Is(err, errSaysNothing) },
		})
	}
	g.of[x], g.id[x.ID] = m, x
	return m
}

// errSaysNothing is an end that says nothing about the tool.
var errSaysNothing = errors.New("the call was stopped")

// verdictOn is what an end says about the tool that was invoked.
func verdictOn(code action.Code, f *action.Failure) error {
	switch code {
	case action.OK:
		return nil
	case action.Failed, action.Panicked, action.Timeout, action.OutputInvalid:
		return f
	case action.StartedUnknown:
		if f != nil && f.Unwrap() != nil && cancelled(f.Unwrap()) && !action.IsUnknown(f.Unwrap()) {
			return errSaysNothing // it was told to stop
		}
		return f
	}
	return errSaysNothing
}

// toolFor returns the tool that executes an action, or why there is none to use now.
func (e *Engine) toolFor(d *declaration) (*tool.Registered, *action.Failure) {
	x := e.cfg.Tools.Find(d.tool)
	why := ""
	switch {
	case x == nil:
		why = "it is not registered with this engine"
	case d.toolHash != "" && d.toolHash != x.Hash:
		why = "it is registered with another contract"
	default:
		return x, nil
	}
	return nil, unavailable(d, why)
}

func unavailable(d *declaration, why string) *action.Failure {
	f := action.Fail(action.Unavailable, "what %q needs is not available now", d.name)
	return f.With(action.DetailRule, fmt.Sprintf("tool %q: %s", d.tool, why))
}

// usable says why the tool of an action cannot be used now. It may ask the tool for its health.
func (e *Engine) usable(ctx context.Context, d *declaration) *action.Failure {
	x, f := e.toolFor(d)
	if f != nil {
		return f
	}
	m := e.gauges.find(x)
	if m.breaker != nil && m.breaker.State() == gobreaker.StateOpen {
		return unavailable(d, fmt.Sprintf("it failed %d times in a row and is left alone for %v", x.Breaker.Failures, x.Breaker.Cooldown))
	}
	if err := e.health(ctx, m, x); err != nil {
		return unavailable(d, "it is not healthy: "+action.TextOf(err))
	}
	return nil
}

// health asks a tool for its health where the last answer is too old. An answer that came of the asker's own end is no
// answer.
func (e *Engine) health(ctx context.Context, m *gauge, x *tool.Registered) error {
	if x.Health == nil {
		return nil
	}
	select {
	case m.asking <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-m.asking }()
	if !m.at.IsZero() && time.Since(m.at) < x.HealthEvery {
		return m.sick
	}
	_, err := contain(ctx, &e.inputs, asideLimit, 0, func(ctx context.Context) (struct{}, error) { return struct{}{}, x.Health(ctx) })
	if alive(ctx) == nil {
		m.at, m.sick = time.Now(), err
	}
	return err
}

// admit asks, right before an attempt, whether its tool may be used; done must be told how it ended.
func (f *flight) admit() (done func(engine.End), err error) {
	done = func(engine.End) {}
	if f.def.tool == "" {
		return done, nil
	}
	x, no := f.t.engine.toolFor(f.def)
	if no != nil {
		return done, errors.New(no.Message)
	}
	f.tool = x
	m := f.t.engine.gauges.find(x)
	if m.breaker == nil {
		return done, nil
	}
	tell, err := m.breaker.Allow()
	if err != nil {
		return done, errors.New("its tool failed too often and is left alone for a while")
	}
	return func(end engine.End) { tell(verdictOn(end.Code, end.Failure)) }, nil
}

// admitted makes an attempt where its tool may be used, and tells the tool's breaker how it ended.
func (f *flight) admitted(n int) (end engine.End, err error) {
	done, err := f.admit()
	if err != nil {
		return end, err
	}
	defer func() { done(end) }() // whatever the function does to its goroutine
	end = f.attempt(n)
	return end, nil
}

// leftAlone reports whether the tool failed so often that no further attempt may be made now.
func (f *flight) leftAlone() bool {
	if f.tool == nil {
		return false
	}
	m := f.t.engine.gauges.find(f.tool)
	return m.breaker != nil && m.breaker.State() == gobreaker.StateOpen
}

// available leaves out of an offer what a tool executes that cannot be used now.
func (t *Task) available(ctx context.Context, all []action.Offered) []action.Offered {
	for i := range all {
		if t.toolBars(ctx, all[i].Name) == nil {
			continue
		}
		kept := append([]action.Offered(nil), all[:i]...) // the list is shared
		for _, o := range all[i+1:] {
			if t.toolBars(ctx, o.Name) == nil {
				kept = append(kept, o)
			}
		}
		return kept
	}
	return all
}

// toolBars says why the tool of an action cannot be used now; nil where it can, or none is needed.
func (t *Task) toolBars(ctx context.Context, name string) *action.Failure {
	d := t.agent.defs[name]
	if d == nil || d.tool == "" {
		return nil
	}
	return t.engine.usable(ctx, d)
}

// toolInput holds an input to the contract of the tool, where the action's schema is its own.
func (t *Task) toolInput(d *declaration, in action.Document) *action.Failure {
	if d.tool == "" || d.toolHash != "" {
		return nil
	}
	x, f := t.engine.toolFor(d)
	if f != nil {
		return nil // said at gate 2
	}
	return x.CheckInput([]byte(in.Text()))
}

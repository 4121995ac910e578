package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/skills"
)

// Bounds of calls within calls.
const (
	maxDepth = 4  // how deep they may be made: the planner's is the first
	maxUnder = 16 // how many of one call may be under way at once, in all depths: whoever keeps an outer context gets no deeper
)

// Tools names other actions of the agent that the function may call, see [Context.Tool]. They are a hint, not a grant: each
// call passes all gates for itself. The agent must hold them.
func (b Builder[In, Out]) Tools(names ...string) Builder[In, Out] {
	b.d.tools = append(slices.Clip(b.d.tools), names...)
	return b
}

// Tool is another action as a function may call it.
type Tool struct {
	c    *Context
	name string
	id   string
}

// Tool returns the action of that name, to be called within this call. It must be among the action's Tools; another one is
// refused with TOOL_UNKNOWN when it is called.
func (c *Context) Tool(name string) Tool { return Tool{c: c, name: name} }

// ID gives the call an id within the call that makes it: made again with the same input, by a later attempt say, it returns
// the recorded outcome and runs nothing.
func (t Tool) ID(id string) Tool {
	t.id = id
	return t
}

// Call runs the action with an input, which is written as JSON unless it is json.RawMessage already. It is a call of the
// same task, on the same budget and through all gates, recorded with the call that made it; whether the planner was offered
// the action does not matter. Refusals come with the usual codes and are not held against the planner. Where an approval is
// needed it does not wait: the outcome is APPROVAL_REQUIRED, and the call runs by itself once it is approved. Calls within
// calls are at most four deep, and at most sixteen of one call are under way at once, those within them included; more are
// refused with TOOL_UNKNOWN.
//
// The result is Err only where nothing could be decided: the input cannot be written as JSON, or this call has ended.
func (t Tool) Call(input any) mo.Result[action.Outcome] {
	if t.c == nil {
		return mo.Err[action.Outcome](errNoTool)
	}
	raw, ready := input.(json.RawMessage)
	if !ready {
		var err error
		if raw, err = safely(func() (json.RawMessage, error) { return json.Marshal(input) }); err != nil {
			return mo.Err[action.Outcome](fmt.Errorf("tool %q: its input cannot be written as JSON: %w", t.name, err))
		}
	}
	c := Call{Action: t.name, Input: raw}
	if t.id != "" {
		c.ID = t.c.begun.Intent + "/" + t.id
	}
	return t.c.within(c, t.c.hinted(t.name))
}

// CallWithin makes a typed call from the function of another action, see [Tool.Call].
func (a *Action[In, Out]) CallWithin(ctx *Context, in In) mo.Result[Out] {
	if ctx == nil || ctx.flight == nil {
		return mo.Err[Out](errNoTool)
	}
	do := func(_ context.Context, c Call) mo.Result[action.Outcome] { return ctx.within(c, ctx.hinted(c.Action)) }
	return a.call(ctx, ctx.flight.t, in, do, nil)
}

// errNoTool answers a call within no call.
var errNoTool = errors.New("there is no call under way to call within; use the Context that the function was given")

// hinted refuses what is not among the tools of the action that runs.
func (c *Context) hinted(name string) *action.Failure {
	if slices.Contains(c.flight.def.tools, name) {
		return nil
	}
	f := action.Fail(action.ToolUnknown, "the function of this call may not call that action")
	return f.With(action.DetailRule, fmt.Sprintf("%q is not among the Tools of %q", action.CutTo(name, action.MaxName), c.begun.Action))
}

// nestKey finds in a context the nest of the call that it belongs to, none for the outermost.
type nestKey struct{}

// nest is where a call within a call stands.
type nest struct {
	depth int
	under *atomic.Int32 // of the outermost
}

// within makes a call in the name of the call under way; barred is why it must be refused, nil where it need not be.
func (c *Context) within(call Call, barred *action.Failure) mo.Result[action.Outcome] {
	if err := c.mayAct(); err != nil {
		return mo.Err[action.Outcome](fmt.Errorf("call %q: %w", call.Action, err))
	}
	at, ok := c.Value(nestKey{}).(nest)
	if !ok {
		at.under = &c.flight.under
	}
	n := at.under.Add(1)
	defer at.under.Add(-1)
	switch at.depth++; {
	case barred != nil:
	case at.depth >= maxDepth:
		barred = action.Fail(action.ToolUnknown, "calls within calls are at most %d deep", maxDepth)
	case n > maxUnder:
		barred = action.Fail(action.ToolUnknown, "at most %d calls within one call are under way at once; wait for one to end", maxUnder)
	}
	call.Provenance = c.begun.Provenance
	ctx := context.WithValue(c.Context, nestKey{}, at)
	t := c.flight.t // it is under way, so the engine is entered already
	o := t.observe(ctx, call)
	if o.err != nil {
		return mo.Err[action.Outcome](o.err)
	}
	o.call.Intent.Within = c.begun.Intent
	if barred != nil {
		o.call.Barred = barred
	}
	return decided(ctx, t.do(ctx, o))
}

// checkNames checks what the actions of an agent name: tools that it holds, skills that can exist.
func (a *Agent) checkNames(order []string) (faults []error) {
	for _, name := range a.skills {
		if err := skills.CheckName(name); err != nil {
			faults = append(faults, fmt.Errorf("skills: %w", err))
		}
	}
	for _, name := range order {
		for _, tool := range a.defs[name].tools {
			if a.defs[tool] == nil {
				faults = append(faults, fmt.Errorf("action %q has the tool %q, which the agent does not hold: grant it, or take it off Tools", name, tool))
			}
		}
	}
	return faults
}

// asJSON writes plain fields, which cannot fail.
func asJSON(v any) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}

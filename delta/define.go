package delta

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/schema"
)

// Func is an action function. It returns an explicit Ok or Err: a panic, a timeout, a cancellation or an output that
// breaks its contract is never an Ok. Where it cannot tell whether its effect happened it returns an error made by
// [action.Unknown]. The input has passed the strict edge and the schema.
type Func[In, Out any] func(ctx *Context, in In) mo.Result[Out]

// Lift makes a Func of the usual Go form: a nil error is Ok.
func Lift[In, Out any](f func(ctx *Context, in In) (Out, error)) Func[In, Out] {
	return func(ctx *Context, in In) mo.Result[Out] {
		out, err := f(ctx, in)
		if err != nil {
			return mo.Err[Out](err)
		}
		return mo.Ok(out)
	}
}

// Builder declares an action. It is a value: every method returns a changed copy, so that a forked builder shares nothing
// with its origin. Faults are collected and returned by Build, all at once.
type Builder[In, Out any] struct{ d declaration }

// declaration is an action as declared, with its user code.
type declaration struct {
	name, version, description string
	risk                       int
	rules                      []rule
	tags                       []string
	estimate                   action.Cost
	maximum                    action.Limit
	price                      func(action.Input) (action.Cost, error) // what a call costs, by its input
	priced                     [action.AxisCount]bool                  // on these axes
	effect                     action.Effect
	needs                      []Pre
	approve                    bool
	quorum                     *approval.Quorum
	undoneBy                   string
	undo                       func(action.Input, json.RawMessage) (json.RawMessage, error) // makes the input of the call that does
	untilTrust                 float64
	timeout                    time.Duration
	retries                    int
	throttle                   engine.Throttle
	pause, pauseMost           time.Duration // between attempts; 0 is the default
	deadline                   time.Duration // of all attempts together; 0 is none
	key                        func(action.Input) (string, error)
	hooks                      []hooks.Hooks
	fetches                    bool
	tells                      bool // planners are shown the secrets in its output
	context                    []string
	skills, tools              []string
	vet                        func(*Task, action.Input, *engine.Call) *action.Failure // of built-in actions: what else would keep a call from running

	tool, toolHash string // the tool that executes it, "" for its function; the contract it was declared with

	in, out  *schema.Schema
	run      func(*Context, action.Input) returned
	decodes  func(action.Input) (value string, err error)
	custom   bool // decoding runs user code
	plain    bool // there is no type to decode into
	faults   []error
	compiled *engine.Action
}

// rule is a per-argument risk: it may raise, never lower.
type rule struct {
	name  string
	level int
	holds func(action.Input) bool
}

// returned is what an action function gave back. The zero value means that it never returned.
type returned struct {
	done   bool
	output any
	raw    action.Output // instead, of an action whose outputs are JSON already; nil is none
	err    error
	breach *action.Failure // the output breaks the contract of the tool it comes from
}

// Define declares an action whose input schema comes from the struct In and its tags, and whose outputs are checked
// against Out. It has risk 3, version "1" and is assumed irreversible until it says otherwise.
func Define[In, Out any](name string, f Func[In, Out]) Builder[In, Out] {
	b := Builder[In, Out]{newDeclaration(name)}
	if f == nil {
		b.d.fault("function is nil")
	}
	b.d.run = func(ctx *Context, raw action.Input) returned {
		var in In
		if err := decodeInput(raw, &in); err != nil {
			return returned{done: true, err: err}
		}
		return answer(f(ctx, in))
	}
	b.d.decodes = func(raw action.Input) (string, error) {
		var in In
		if err := decodeInput(raw, &in); err != nil {
			return "", err
		}
		return valueOf(in), nil
	}
	b.d.custom = decodesItself(reflect.TypeFor[In](), map[reflect.Type]bool{})
	var err error
	if b.d.in, err = schema.Reflect(reflect.TypeFor[In]()); err != nil {
		b.d.fault("input: %w", err)
	} else if b.d.in.IsObject() != nil {
		b.d.fault("input: %s does not describe an object; use a struct", reflect.TypeFor[In]())
	}
	if b.d.out, err = schema.ReflectOutput(reflect.TypeFor[Out]()); err != nil {
		b.d.fault("output: %w", err)
	}
	return b
}

// DefineRaw declares an action by a JSON schema: for imported tools, and for inputs that no Go type describes. A keyword
// that validation would ignore is a fault.
func DefineRaw(name string, inputSchema []byte, f func(*Context, action.Input) mo.Result[action.Output]) Builder[action.Input, action.Output] {
	b := Builder[action.Input, action.Output]{newDeclaration(name)}
	if f == nil {
		b.d.fault("function is nil")
	}
	b.d.run = func(ctx *Context, in action.Input) returned { return answer(f(ctx, detached(in))) }
	b.d.plain = true
	b.d.decodes = func(action.Input) (string, error) { return "", nil }
	var err error
	if b.d.in, err = schema.Declared(inputSchema); err != nil {
		b.d.fault("input: %w", err)
	} else if err := b.d.in.IsObject(); err != nil {
		b.d.fault("input: %w", err)
	}
	return b
}

func newDeclaration(name string) declaration {
	return declaration{name: name, version: "1", risk: 3, effect: action.Irreversible}
}

// answer unpacks a result. Err(nil) is an Err: mo hands out a nil error for it, which must not pass for Ok.
func answer[Out any](r mo.Result[Out]) returned {
	if r.IsOk() {
		v := r.MustGet()
		if raw, ok := any(&v).(*action.Output); ok && *raw != nil {
			return returned{done: true, raw: *raw}
		}
		return returned{done: true, output: v}
	}
	err := r.Error()
	if err == nil {
		err = errors.New("the function returned Err without an error")
	}
	return returned{done: true, err: err}
}

// decodeInput decodes a checked input into the Go type of an action.
func decodeInput[In any](raw action.Input, in *In) error {
	if p, ok := any(in).(*action.Input); ok {
		*p = detached(raw)
		return nil
	}
	return raw.Decode(in)
}

// detached keeps the tree that gates and facts are read from out of the reach of user code.
func detached(in action.Input) action.Input { return action.Input{Document: in.Detached()} }

func (d *declaration) fault(format string, args ...any) {
	d.faults = append(slices.Clip(d.faults), fmt.Errorf(format, args...))
}

// Describe says what the action does: the planner reads it.
func (b Builder[In, Out]) Describe(text string) Builder[In, Out] {
	b.d.description = text
	return b
}

// Version names the release of the action. Approvals and parked calls are bound to it.
func (b Builder[In, Out]) Version(v string) Builder[In, Out] {
	b.d.version = v
	return b
}

// Risk declares how likely the action is to fail or do harm, from 1 (about 2 %) to 5 (about half). It is a floor on the
// gate and a prior for the estimate. An Err teaches that the action fails: what is no failure, such as a search that found
// nothing, is better returned as an Ok that says so. Where little is known, one Err can lift an action to the threshold;
// give tasks approvers.
func (b Builder[In, Out]) Risk(level int) Builder[In, Out] {
	b.d.risk = level
	return b
}

// RiskWhen raises the risk of calls for which holds is true. It never lowers it. A panic counts as 5.
func (b Builder[In, Out]) RiskWhen(name string, holds func(In) bool, level int) Builder[In, Out] {
	if holds == nil {
		b.d.fault("risk rule %q: condition is nil", name)
		return b
	}
	r := rule{name: name, level: level, holds: func(raw action.Input) bool {
		var in In
		if decodeInput(raw, &in) != nil {
			return true
		}
		return holds(in)
	}}
	b.d.rules = append(slices.Clip(b.d.rules), r)
	return b
}

// Tags names groups of actions that tend to fail together.
func (b Builder[In, Out]) Tags(tags ...string) Builder[In, Out] {
	b.d.tags = append(slices.Clip(b.d.tags), tags...)
	return b
}

// Cost declares what a call is expected to use. It is reserved before the call until five calls have shown what it is. What
// is charged is what the function says it used ([Context.Spend]), and the time it took; a function that never says so spends
// no money and no tokens, whatever is declared. On
// an axis without it nothing is reserved until then: what a call uses beyond its reservation is charged all the same, is
// marked as an overrun, and keeps the next calls from starting.
func (b Builder[In, Out]) Cost(c action.Cost) Builder[In, Out] {
	b.d.estimate = c
	return b
}

// MaxCost bounds what is reserved for a call, where what others of the action used lets the forecast ask for more: in its first
// tens of calls that is about three times what one of steady cost uses. It is no bound on what may be charged. A call of which
// the input says that it costs more ([Builder.CostOf]) is refused.
func (b Builder[In, Out]) MaxCost(l action.Limit) Builder[In, Out] {
	b.d.maximum = l
	return b
}

// Effect declares the side-effect class.
func (b Builder[In, Out]) Effect(e action.Effect) Builder[In, Out] {
	b.d.effect = e
	return b
}

// Needs declares prerequisites: actions that must have succeeded in the task before, bound to fields of the input where a
// Pre says so.
func (b Builder[In, Out]) Needs(ps ...Prereq) Builder[In, Out] {
	for _, p := range ps {
		if isNil(p) {
			b.d.fault("needs: prerequisite is nil")
			continue
		}
		b.d.needs = append(slices.Clip(b.d.needs), p.prerequisite())
	}
	return b
}

func isNil(p any) bool {
	v := reflect.ValueOf(p)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// ApprovalOption changes when RequireApproval asks.
type ApprovalOption func(*declaration)

// UntilTrust waives the action's own demand for an approval once the agent's trust has reached t (0 to 1) and the action
// has succeeded five times. It waives nothing that the task's threshold demands.
func UntilTrust(t float64) ApprovalOption {
	return func(d *declaration) {
		if !(t > 0 && t <= 1) {
			d.fault("approval until trust %v: want more than 0, at most 1", t)
			return
		}
		d.untilTrust = t
	}
}

// RequireApproval asks a person before every call, whatever its risk.
func (b Builder[In, Out]) RequireApproval(opts ...ApprovalOption) Builder[In, Out] {
	b.d.approve = true
	for _, o := range opts {
		if o == nil {
			b.d.fault("approval: option is nil")
			continue
		}
		o(&b.d)
	}
	return b
}

// UndoneBy names the action that undoes this one, for a person who is asked whether it may run. It needs the effect
// Compensatable. Nothing is undone by itself.
func (b Builder[In, Out]) UndoneBy(action string) Builder[In, Out] {
	b.d.undoneBy = action
	return b
}

// Timeout bounds one attempt. A function that ignores its context is abandoned then. See also [NoTimeout].
func (b Builder[In, Out]) Timeout(t time.Duration) Builder[In, Out] {
	b.d.timeout = t
	if t <= 0 && t != NoTimeout {
		b.d.fault("timeout is %v, want more than 0", t)
	}
	return b
}

// IdempotencyKey declares that the effect happens once per key however often it is attempted. The function finds the key
// in its context and passes it on.
func (b Builder[In, Out]) IdempotencyKey(key func(In) string) Builder[In, Out] {
	if key == nil {
		b.d.fault("idempotency key: function is nil")
		return b
	}
	b.d.key = func(raw action.Input) (string, error) {
		var in In
		if err := decodeInput(raw, &in); err != nil {
			return "", err
		}
		return key(in), nil
	}
	return b
}

// Hooks adds hooks: before, after an Ok, and on any other executed end. They observe.
func (b Builder[In, Out]) Hooks(h hooks.Hooks) Builder[In, Out] {
	b.d.hooks = append(slices.Clip(b.d.hooks), h)
	return b
}

// Fetches declares that the action finds out what is not known yet: a path does not guess what lies beyond it.
func (b Builder[In, Out]) Fetches() Builder[In, Out] {
	b.d.fetches = true
	return b
}

// TellsSecrets declares that planners are shown the secrets in what the action returns. Without it they are shown the digests
// that the ledger holds, and cannot hand the secrets on.
func (b Builder[In, Out]) TellsSecrets() Builder[In, Out] {
	b.d.tells = true
	return b
}

// Context names what the task must bring along, see [Goal]; without it the call is refused.
func (b Builder[In, Out]) Context(names ...string) Builder[In, Out] {
	b.d.context = append(slices.Clip(b.d.context), names...)
	return b
}

// Build validates the whole declaration and returns the action, or every fault.
func (b Builder[In, Out]) Build() (*Action[In, Out], error) {
	d := b.d
	d.check()
	if len(d.faults) > 0 {
		return nil, fmt.Errorf("action %q: %w", d.name, errors.Join(d.faults...))
	}
	d.compiled = d.compile()
	return &Action[In, Out]{&d}, nil
}

// MustBuild is Build for declarations in package variables: it panics on a fault.
func (b Builder[In, Out]) MustBuild() *Action[In, Out] {
	a, err := b.Build()
	if err != nil {
		panic(err)
	}
	return a
}

func (d *declaration) compile() *engine.Action {
	a := &engine.Action{
		Name: d.name, Version: d.version, Description: d.description, Input: d.in, Risk: d.risk, Tags: d.tags,
		Estimate: d.estimate, Maximum: d.maximum, Priced: d.priced, Effect: d.effect, Keyed: d.key != nil, Approve: d.approve,
		UntilTrust: d.untilTrust, Quorum: d.quorum, UndoneBy: d.undoneBy, Tool: d.tool, Context: d.context, Rules: d.ruleNames(), Throttle: d.throttle,
	}
	return a.Ready()
}

func (d *declaration) ruleNames() (out []engine.Rule) {
	for _, r := range d.rules {
		out = append(out, engine.Rule{Name: r.name, Level: r.level})
	}
	return out
}

// Action is a declared action. It is immutable and may belong to many agents.
type Action[In, Out any] struct{ d *declaration }

// Name returns the action's name.
func (a *Action[In, Out]) Name() string {
	if a.definition() == nil {
		return ""
	}
	return a.d.name
}

// Schema returns the input schema.
func (a *Action[In, Out]) Schema() json.RawMessage {
	if a.definition() == nil {
		return nil
	}
	return a.d.in.JSON()
}

// String describes the action in a line.
func (a *Action[In, Out]) String() string {
	if a.definition() == nil {
		return "no action: it was not built"
	}
	return fmt.Sprintf("%s v%s (risk %d, effect %s): %s", a.d.name, a.d.version, a.d.risk, a.d.effect, a.d.description)
}

// Definition is any *Action; an agent is made of them.
type Definition interface {
	Name() string
	definition() *declaration
}

func (a *Action[In, Out]) definition() *declaration {
	if a == nil {
		return nil
	}
	return a.d
}

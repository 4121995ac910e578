package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/skills"
	"github.com/seed-ab2cfece/delta-agents/statespace"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Path is the cheapest sequence of actions that would make an action legal.
type Path = statespace.Path

// Standing says how an action stands for an agent at one moment, with every reason; for operators.
type Standing = engine.Standing

// Planner proposes. It sees the offer and what became of its proposals, and may be anything: a script, a rule, a model.
// Nothing it says is trusted.
type Planner interface {
	// Plan returns the next proposal. It must return when ctx ends. It is called from one goroutine of a run at a time.
	Plan(ctx context.Context, r Request) (Proposal, error)
}

// PlannerFunc makes a Planner of a function.
type PlannerFunc func(ctx context.Context, r Request) (Proposal, error)

// Plan calls f.
func (f PlannerFunc) Plan(ctx context.Context, r Request) (Proposal, error) { return f(ctx, r) }

// Request is what a planner is told.
type Request struct {
	Goal    string
	Role    string
	Offer   action.Offer // what exists now, and guidance
	Budget  budget.Snapshot
	Last    []Result // what became of the last proposal's calls, in their order
	History []Result // all of the run so far, Last included, at most the latest HistoryKept
	Step    int      // 1 for the first
	More    bool     // the last proposal said that there is more: it is to be gone on with

	// Children are those of the task, in the order in which they were delegated.
	Children []ChildStanding

	// What the task brings along. Contents are read with the methods of the request, by name or id.
	Phase       string
	Storylines  []string
	Attachments []action.AttachmentInfo
	Skills      []skills.Info // of the agent, the task and the actions in the offer
	Channels    []string      // where messages may go, see [Communicate]

	given *given
}

// HistoryKept is how many results a request repeats.
const HistoryKept = 200

// Result is what became of one proposed call, as a planner may know it: a failure names nothing hidden from it.
type Result struct {
	Call    Call
	Outcome action.Outcome
}

// Proposal is what a planner proposes.
type Proposal struct {
	Calls []Call // made in parallel; at most MaxParallel are
	Done  bool   // nothing more is to be done; Calls are still made
	Why   string // said with Done: why
	// More says that nothing is proposed yet, because the planner looks something up or could not finish within what was
	// reserved: it is asked again, with a reservation of its own. That is neither a step nor idle, as often in a row as a
	// run may have steps. Calls that it comes with make it an ordinary proposal.
	More bool
	// Verdict, said with Done, is the planner's word on the goal: it ends the task, see [Task.Conclude]. Without one the
	// run ends and the task goes on.
	Verdict action.Verdict
	// Used is what planning cost; it is spent whatever becomes of the proposal.
	Used action.Cost
	// Estimated says that Used is the planner's estimate, because nobody told it what was used; the ledger marks it.
	Estimated bool
}

// Estimator may be implemented by a planner to say what a proposal is expected to cost; that is reserved before it plans.
type Estimator interface{ EstimatePlan() action.Cost }

// Bounds of a run. The zero value is the defaults.
type Bounds struct {
	Steps    int           // proposals; default 50
	Invalid  int           // refused proposals in a row, every call of which broke a rule; default 5
	Parallel int           // calls of one proposal; default 16
	PlanTime time.Duration // for one proposal; default 2 minutes
	// Wait makes the run wait for people: calls are made with DoWait, and a paused task, or a halted agent, is waited for.
	Wait bool
}

// WithDefaults returns the bounds with every default filled in.
func (b Bounds) WithDefaults() Bounds {
	set(&b.Steps, 50)
	set(&b.Invalid, 5)
	set(&b.Parallel, 16)
	set(&b.PlanTime, 2*time.Minute)
	return b
}

// Ended says why a run ended.
type Ended string

// Why a run ended.
const (
	RunDone    Ended = "done"        // the planner said so
	RunSteps   Ended = "steps"       // its step limit
	RunInvalid Ended = "invalid"     // the planner kept proposing what breaks rules
	RunIdle    Ended = "idle"        // the planner kept proposing nothing
	RunLoop    Ended = "loop"        // the planner kept making the same calls to no effect after being told
	RunBudget  Ended = "budget"      // planning is no longer affordable
	RunClosed  Ended = "closed"      // the task ended or was cancelled
	RunStopped Ended = "stopped"     // the context ended
	RunFailed  Ended = "planner"     // the planner failed
	RunPaused  Ended = "paused"      // the task waits for a person; run it again when it goes on
	RunHalted  Ended = "halted"      // the agent, or everything, was halted; run it again when that is lifted
	RunStore   Ended = "unavailable" // calls can no longer be recorded
)

// Report is how a run went. A run that ended is not a goal that was reached: the planner's word is all that says so.
type Report struct {
	Ended   Ended
	Why     string
	Steps   int
	Results []Result       // with every detail, for operators; planners are told less
	Err     error          // why it ended, where something went wrong
	Verdict action.Verdict // the planner's word on the goal, "" for none
}

// Run lets a planner work on a task until it is done or a bound is reached. The result is Err only where the run could not
// start.
func (e *Engine) Run(ctx context.Context, t *Task, p Planner) mo.Result[Report] {
	return e.RunWithin(ctx, t, p, Bounds{})
}

// RunWithin is Run with bounds.
func (e *Engine) RunWithin(ctx context.Context, t *Task, p Planner, b Bounds) mo.Result[Report] {
	if ctx == nil {
		return mo.Err[Report](fmt.Errorf("run: %w", errNoContext))
	}
	if t == nil || t.engine != e || p == nil {
		return mo.Err[Report](errors.New("run: want a task of this engine and a planner"))
	}
	b = b.WithDefaults()
	if b.Steps < 0 || b.Invalid < 0 || b.Parallel < 0 || b.PlanTime < 0 {
		return mo.Err[Report](fmt.Errorf("run: a bound is negative: %+v", b))
	}
	if err := e.enter(); err != nil {
		return mo.Err[Report](err)
	}
	defer e.inside.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.stop, func() { cancel(context.Cause(e.stop)) })()
	r := &run{t: t, p: p, b: b}
	r.whole(ctx)
	return mo.Ok(r.report)
}

// run is one run under way.
type run struct {
	t       *Task
	p       Planner
	b       Bounds
	report  Report
	last    []Result // of the last proposal, as told
	told    []Result // all of them
	idle    int      // proposals in a row without a call
	invalid int      // proposals in a row that broke rules only
	more    int      // proposals in a row of which there is more to come
	looping int      // proposals in a row made while a loop stood

	open *Proposal // whose calls are under way
	out  []Result  // of them

	snap txn.Snapshot // of the last request
	view engine.View
}

func (r *run) end(e Ended, why string, err error) bool {
	r.report.Ended, r.report.Why, r.report.Err = e, why, err
	return true
}

// step makes one proposal and its calls; it reports whether the run has ended. Where the calls of a proposal ended the
// goroutine, it goes on behind them.
func (r *run) step(ctx context.Context) bool {
	if r.open != nil {
		return r.taken(ctx)
	}
	if ctx.Err() != nil {
		return r.end(RunStopped, "", context.Cause(ctx))
	}
	if r.t.engine.winding(ctx) {
		return r.end(RunStopped, "the engine is closing", ErrClosed)
	}
	if r.report.Steps >= r.b.Steps {
		return r.end(RunSteps, fmt.Sprintf("%d proposals were made", r.b.Steps), nil)
	}
	req, err := r.request(ctx)
	if err != nil {
		return r.end(RunStore, "", err)
	}
	prop, f := r.plan(ctx, req)
	if f != nil {
		return r.cannotPlan(ctx, f)
	}
	if r.goesOn(&prop) {
		return false
	}
	r.report.Steps++
	r.open = &prop
	if len(prop.Calls) > r.b.Parallel {
		f := action.Fail(action.InputInvalid, "%d calls were proposed at once, at most %d are made", len(prop.Calls), r.b.Parallel)
		r.out = refuseAll(prop.Calls, f)
	} else {
		r.calls(ctx, prop.Calls)
	}
	return r.taken(ctx)
}

// taken takes what became of the calls of a proposal; it reports whether the run has ended.
func (r *run) taken(ctx context.Context) bool {
	prop, out := r.open, r.out
	r.open, r.out = nil, nil
	for i := range out {
		if out[i].Outcome.Code == "" {
			out[i] = refuseAll(prop.Calls[i:i+1], action.Fail(action.Panicked, "the function ended the goroutine of its call"))[0]
		}
	}
	r.take(out)
	switch {
	case prop.Done:
		return r.concluded(ctx, prop)
	case r.invalid >= r.b.Invalid:
		return r.end(RunInvalid, fmt.Sprintf("%d proposals in a row broke rules", r.invalid), nil)
	case r.idle >= r.b.Invalid:
		return r.end(RunIdle, fmt.Sprintf("%d proposals in a row made no call and did not say they were done", r.idle), nil)
	case r.looping > r.b.Invalid:
		return r.end(RunLoop, "the same calls were made again and again", nil)
	}
	return false
}

func (r *run) request(ctx context.Context) (Request, error) {
	offer, err := r.t.Offer(ctx)
	if err != nil {
		return Request{}, err
	}
	history := r.told
	r.t.state.mu.Lock()
	v := &r.view
	r.t.snapshotInto(&r.snap, nil)
	if err := r.t.glanceInto(v, &r.snap); err != nil { // the offer has read it just now
		r.t.state.mu.Unlock()
		return Request{}, err
	}
	task, b := v.Task, v.Account().Snapshot()
	children, err := v.Children()
	r.t.state.mu.Unlock()
	if err != nil {
		return Request{}, err
	}
	req := Request{
		Role: r.t.agent.role, Offer: offer, Budget: b, Last: slices.Clone(r.last),
		History: slices.Clone(history[max(0, len(history)-HistoryKept):]), Step: r.report.Steps + 1,
		Children: standings(children), More: r.more > 0,
	}
	req.bring(r.t, task.Brought)
	words := r.t.told(ctx, &task)
	req.Goal, req.Storylines = words.Goal, words.Storylines
	return req, nil
}

// cannotPlan ends a run that gets no proposal.
func (r *run) cannotPlan(ctx context.Context, f *action.Failure) bool {
	switch f.Code {
	case action.BudgetExhausted:
		return r.end(RunBudget, f.Message, f)
	case action.Cancelled, action.TaskClosed:
		if f.Code == action.Cancelled && r.halted(ctx) {
			return r.sitOut(ctx, f)
		}
		return r.end(RunClosed, f.Message, f)
	case action.TaskPaused:
		if !r.b.Wait {
			return r.end(RunPaused, f.Explain(), f)
		}
		if r.t.awaitGoing(ctx) {
			return false
		}
		return r.end(RunStopped, "the task was paused", context.Cause(ctx))
	case action.StoreUnavailable, action.Stale:
		return r.end(RunStore, f.Message, f)
	}
	if ctx.Err() != nil {
		return r.end(RunStopped, "", context.Cause(ctx))
	}
	return r.end(RunFailed, f.Message, f)
}

// halted reports whether it is a halt that keeps the planner from being asked: the task itself has not ended.
func (r *run) halted(ctx context.Context) bool {
	v, err := r.t.peek(context.WithoutCancel(ctx))
	return err == nil && v.Exists() && !v.Task.Status.Ended()
}

// sitOut waits until a halt is lifted, where the run waits for people, or ends it.
func (r *run) sitOut(ctx context.Context, f *action.Failure) bool {
	switch {
	case !r.b.Wait:
		return r.end(RunHalted, f.Explain(), f)
	case r.t.awaitLift(ctx, engine.PlanAction):
		return false
	}
	return r.end(RunStopped, "the agent was halted", context.Cause(ctx))
}

// take keeps the results, for the report as they are and for the planner as it may know them, and counts what bounds the
// run.
func (r *run) take(results []Result) {
	broke := len(results) > 0
	r.last = make([]Result, len(results))
	for i, res := range results {
		broke = broke && res.Outcome.Code.Info().Violation
		r.last[i] = r.t.tellResult(res.forPlanner())
	}
	r.invalid, r.idle = count(broke, r.invalid), count(len(results) == 0, r.idle)
	r.t.state.mu.Lock()
	looping := r.t.repeats >= budget.LoopAt
	r.t.state.mu.Unlock()
	r.looping = count(looping && len(results) > 0, r.looping)
	r.told = append(r.told, r.last...)
	r.report.Results = append(r.report.Results, results...)
}

// tellResult hides from a planner the secrets in what an action returned, unless it is declared to tell them.
func (t *Task) tellResult(res Result) Result {
	o := &res.Outcome
	def := t.agent.defs[o.Action]
	if len(o.Output) == 0 || def == nil || def.tells || def.out == nil || !def.out.HoldsSecrets() {
		return res
	}
	doc, bad := schema.Canonical(o.Output, len(o.Output)+1)
	v := t.kept.Load() // the call was under this key
	if bad != nil || v == nil {
		o.Output = nil
		return res
	}
	shown := schema.Redact(doc, def.out.Secrets(), func(_, text string) string { return v.data.Digest(text) })
	o.Output = json.RawMessage(shown.Text())
	return res
}

// forPlanner returns a copy that shares nothing and names nothing hidden.
func (res Result) forPlanner() Result {
	o := &res.Outcome
	if o.Failure != nil {
		o.Failure = o.Failure.ForPlanner()
	}
	o.Output, o.Waived = slices.Clone(o.Output), nil
	res.Call.Input = slices.Clone(res.Call.Input)
	return res
}

func count(again bool, n int) int {
	if again {
		return n + 1
	}
	return 0
}

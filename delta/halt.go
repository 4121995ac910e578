package delta

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Halting says what becomes of calls under way.
type Halting bool

// What becomes of calls under way.
const (
	HaltNow   Halting = false // they are told to stop
	HaltAfter Halting = true  // they finish, and nothing comes after them
)

// Halt keeps an agent from beginning anything.
type Halt struct {
	By     string // the operator
	Reason string
	Since  time.Time // by the store's clock
	After  Halting
	All    bool // it is the halt of everything
}

// HaltAgent keeps an agent from beginning anything, in all its tasks, those that start later included, until an operator
// lifts it. It is for the engine's operators, and is recorded in the agent's own ledger. Once it has returned nothing
// begins any more on any worker; calls under way on other workers hear of it with their next heartbeat, a third of
// Config.Lease at most. What is refused is CANCELLED.
func (e *Engine) HaltAgent(ctx context.Context, agent string, by Identity, how Halting, reason string) error {
	return e.setHalt(ctx, "halt agent "+agent, agent, by, &engine.Halt{After: bool(how)}, reason)
}

// LiftAgent takes back a halt of the agent. The halt of everything stands on.
func (e *Engine) LiftAgent(ctx context.Context, agent string, by Identity, reason string) error {
	return e.setHalt(ctx, "lift the halt of agent "+agent, agent, by, nil, reason)
}

// HaltAll is the kill switch: it keeps every agent from beginning anything, those that come later included, until an
// operator lifts it. It is for the engine's operators, and is recorded. Once it has returned nothing begins any more of the
// agents that this engine knows. Other engines on the store look for it every Config.Poll while they have something to do,
// and before the first task of an agent that is new to them; calls under way there hear of it with the heartbeat after.
func (e *Engine) HaltAll(ctx context.Context, by Identity, how Halting, reason string) error {
	return e.setHalt(ctx, "halt everything", engine.HaltShard, by, &engine.Halt{After: bool(how)}, reason)
}

// LiftAll takes back the halt of everything. Agents that were halted by themselves stay so.
func (e *Engine) LiftAll(ctx context.Context, by Identity, reason string) error {
	return e.setHalt(ctx, "lift the halt of everything", engine.HaltShard, by, nil, reason)
}

// Halted returns the halt that holds for an agent, and whether there is one.
func (e *Engine) Halted(ctx context.Context, agent string) (Halt, bool, error) {
	snap, err := e.store.Load(ctx, agent, "", nil)
	if err != nil {
		return Halt{}, false, fmt.Errorf("halt of agent %q: %w", agent, failedStore(err))
	}
	all := engine.HaltsOf(&snap.Agent)
	h := all.Standing()
	if h == nil {
		return Halt{}, false, nil
	}
	return Halt{h.By, h.Reason, time.UnixMicro(h.Since), Halting(h.After), h == all.All}, true, nil
}

func (e *Engine) setHalt(ctx context.Context, what, agent string, by Identity, h *engine.Halt, reason string) error {
	if err := e.mine(by); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.inside.Done()
	who := e.whoIs(by, reason)
	if err := engine.MayHalt(agent, e.cfg.Operators, who); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if agent != engine.HaltShard {
		if err := action.CheckName(agent); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if h != nil {
		h.By, h.Reason = who.Identity, who.Reason
	}
	if err := e.mark(ctx, agent, h, agent == engine.HaltShard, who); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if agent != engine.HaltShard {
		return nil
	}
	e.halts.stale()
	if err := e.spread(ctx); err != nil {
		return fmt.Errorf("%s: it stands, and other workers will see to it; here: %w", what, err)
	}
	return nil
}

// mark writes how an agent stands, and tells what is under way here.
func (e *Engine) mark(ctx context.Context, agent string, h *engine.Halt, all bool, who engine.Who) error {
	for range 4 * rounds {
		snap, err := e.store.Load(ctx, agent, "", nil)
		if err != nil {
			return failedStore(err)
		}
		if h != nil && h.Since == 0 {
			fresh := *h
			fresh.Since, h = snap.Now, &fresh
		}
		x := engine.SetHalt(snap, agent, h, all, who)
		if x == nil {
			break
		}
		reply, err := e.apply(ctx, x)
		if err != nil {
			return failedStore(err)
		}
		if reply.OK {
			e.noteHalt(agent, x, reply)
			break
		}
	}
	if h != nil && !h.After {
		e.interruptAgent(agent, stoppedBy("everything that the agent does was stopped"))
	}
	return nil
}

// noteHalt has this engine's own snapshot of the agent know.
func (e *Engine) noteHalt(agent string, x *txn.Txn, reply txn.Reply) {
	e.mu.Lock()
	s := e.agents[agent]
	e.mu.Unlock()
	if s != nil {
		s.advance(x, reply)
	}
}

// stoppedBy is why a call is told to stop.
func stoppedBy(why string) error { return fmt.Errorf("%w: %s", errStopped, why) }

// interruptAgent tells what is under way of an agent here to stop.
func (e *Engine) interruptAgent(agent string, why error) {
	e.mu.Lock()
	var all []*aloft
	for id, a := range e.aloft {
		if name, _, _ := strings.Cut(id, idSeparator); name == agent {
			if a := a.Value(); a != nil {
				all = append(all, a)
			}
		}
	}
	e.mu.Unlock()
	for _, a := range all {
		a.interrupt(why)
	}
}

// halts is when this engine last looked whether everything is halted.
type halts struct {
	mu sync.Mutex
	at time.Time
}

func (h *halts) stale() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = time.Time{}
}

// due reports whether it is time to look, and notes that somebody does.
func (h *halts) due(every time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.at.IsZero() && time.Since(h.at) < every {
		return false
	}
	h.at = time.Now()
	return true
}

// inheritHalts looks, every Config.Poll, whether everything is halted. Nobody else can say so where the store is the
// engine's own. What cannot be read now is read the next time.
func (e *Engine) inheritHalts(ctx context.Context) {
	if e.ownsStore || !e.halts.due(e.cfg.Poll) {
		return
	}
	if err := e.spread(context.WithoutCancel(ctx)); err != nil {
		e.halts.stale()
		e.cfg.Log.Warn("it cannot be read whether everything is halted", "error", err)
	}
}

// inherit looks before the first task of an agent that is new here.
func (e *Engine) inherit(ctx context.Context, s *agentState) error {
	if s.heir.Load() {
		return nil
	}
	snap, err := e.store.Load(ctx, engine.HaltShard, "", nil)
	if err != nil {
		return failedStore(err)
	}
	if h := engine.HaltsOf(&snap.Agent).All; h != nil {
		if err := e.mark(ctx, s.agent.name, h, true, e.who(h.By, h.Reason)); err != nil {
			return err
		}
	}
	s.heir.Store(true)
	return nil
}

// spread brings the halt of everything, or that it was lifted, to every agent known here.
func (e *Engine) spread(ctx context.Context) error {
	snap, err := e.store.Load(ctx, engine.HaltShard, "", nil)
	if err != nil {
		return failedStore(err)
	}
	h := engine.HaltsOf(&snap.Agent).All
	who := e.who("", "")
	if h != nil {
		who = e.who(h.By, h.Reason)
	}
	for _, s := range append(e.known(), e.onTheWay()...) {
		if s.agrees(h) {
			continue
		}
		if err := e.mark(ctx, s.agent.name, h, true, who); err != nil {
			return err
		}
	}
	return nil
}

// agrees reports whether the agent is known to stand as the halt of everything says.
func (a *agentState) agrees(h *engine.Halt) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lags() {
		return false
	}
	have := engine.HaltsOf(&a.space).All
	return have == nil && h == nil || have != nil && h != nil && *have == *h
}

// CancelCall cancels one call of the task by its intent, which [Context.ExecutionID] and outcomes name: where it runs it is
// told to stop, here at once and on another worker with its next heartbeat; where it waits for a person it will not start.
// The rest of the task goes on. A call that has ended stays as it ended.
func (t *Task) CancelCall(ctx context.Context, intent, reason string) error {
	if err := t.opened(); err != nil {
		return err
	}
	if len(intent) > maxCallID || checkCallID(intent) != nil || intent == "" {
		return fmt.Errorf("cancel a call of %s: %q is no intent", t, action.CutTo(intent, action.MaxName))
	}
	err := t.change(ctx, func(v *engine.View) (*txn.Txn, error) {
		if v.Task.Status.Ended() {
			return nil, nil
		}
		return engine.CancelCall(v, intent, t.engine.who("", reason)), nil
	})
	if err != nil {
		return fmt.Errorf("cancel call %s of %s: %w", intent, t, err)
	}
	t.aloft.interruptCall(intent, stoppedBy("the call was cancelled: "+action.Cut(reason)))
	return nil
}

// interruptCall stops one call under way.
func (a *aloft) interruptCall(intent string, why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for f := range a.flights {
		if f.intent == intent {
			f.stop(why)
		}
	}
}

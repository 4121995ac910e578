package delta

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Halting says what becomes of calls under way.
type Halting bool

// What becomes of calls under way.
const (
	HaltNow   Halting = false // they are told to stop
	HaltAfter Halting = true  // they finish, and nothing comes after them
)

// Halt keeps an agent, or one of its actions, from beginning anything.
type Halt struct {
	By     string // the operator
	Reason string
	Since  time.Time // by the store's clock
	After  Halting
	All    bool   // it is the halt of everything
	Action string // that is halted, "" for all that the agent does
}

// HaltAgent keeps an agent from beginning anything, in all its tasks, those that start later included, until an operator
// lifts it. It is for the engine's operators, and is recorded in the agent's own ledger. Once it has returned nothing
// begins any more on any worker; calls under way on other workers hear of it with their next heartbeat, a third of
// Config.Lease at most. What is refused is CANCELLED.
//
// What works for the agent's tasks is held with them, whoever's tasks those are, and goes on with them: at once as far as
// the store answers, otherwise when Work next looks at the agent, a poll interval later. What is refused there is
// TASK_PAUSED.
func (e *Engine) HaltAgent(ctx context.Context, agent string, by Identity, how Halting, reason string) error {
	return e.setHalt(ctx, "halt agent "+agent, agent, engine.HaltOf{}, by, &engine.Halt{After: bool(how)}, reason)
}

// LiftAgent takes back a halt of the agent. The halt of everything stands on, and those of its actions.
func (e *Engine) LiftAgent(ctx context.Context, agent string, by Identity, reason string) error {
	return e.setHalt(ctx, "lift the halt of agent "+agent, agent, engine.HaltOf{}, by, nil, reason)
}

// HaltAction is HaltAgent for one action of an agent, by name, in all its versions: it is not offered and not begun until an
// operator lifts that. Tasks that work for the agent's tasks may not call an action of that name either.
func (e *Engine) HaltAction(ctx context.Context, agent, name string, by Identity, how Halting, reason string) error {
	return e.setHalt(ctx, "halt action "+name+" of agent "+agent, agent, engine.HaltOf{Action: name}, by, &engine.Halt{After: bool(how)}, reason)
}

// LiftAction takes back a halt of the action. That of its agent, or of everything, stands on.
func (e *Engine) LiftAction(ctx context.Context, agent, name string, by Identity, reason string) error {
	return e.setHalt(ctx, "lift the halt of action "+name+" of agent "+agent, agent, engine.HaltOf{Action: name}, by, nil, reason)
}

// HaltAll is the kill switch: it keeps every agent from beginning anything, those that come later included, until an
// operator lifts it. It is for the engine's operators, and is recorded. Once it has returned nothing begins any more of the
// agents that this engine knows, or that the store lists (see [Engine.Agents]). Other engines on the store look for it every Config.Poll
// while they have something to do, and before the first task of an agent that is new to them; calls under way there hear of
// it with the heartbeat after.
func (e *Engine) HaltAll(ctx context.Context, by Identity, how Halting, reason string) error {
	return e.setHalt(ctx, "halt everything", engine.HaltShard, engine.HaltOf{All: true}, by, &engine.Halt{After: bool(how)}, reason)
}

// LiftAll takes back the halt of everything. Agents and actions that were halted by themselves stay so.
func (e *Engine) LiftAll(ctx context.Context, by Identity, reason string) error {
	return e.setHalt(ctx, "lift the halt of everything", engine.HaltShard, engine.HaltOf{All: true}, by, nil, reason)
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
	return haltOf(*h, h == all.All, ""), true, nil
}

// Halts returns all halts that stand for an agent: that of everything, its own, and those of its actions by name. With ""
// it is the halt of everything alone.
func (e *Engine) Halts(ctx context.Context, agent string) ([]Halt, error) {
	shard := agent
	if agent == "" {
		shard = engine.HaltShard
	} else if err := action.CheckName(agent); err != nil {
		return nil, fmt.Errorf("halts of an agent: %w", err)
	}
	snap, err := e.store.Load(ctx, shard, "", nil)
	if err != nil {
		return nil, fmt.Errorf("halts of agent %q: %w", agent, failedStore(err))
	}
	var out []Halt
	all := engine.HaltsOf(&snap.Agent)
	if all.All != nil {
		out = append(out, haltOf(*all.All, true, ""))
	}
	if all.Own != nil {
		out = append(out, haltOf(*all.Own, false, ""))
	}
	for _, name := range slices.Sorted(maps.Keys(all.Actions)) {
		out = append(out, haltOf(all.Actions[name], false, name))
	}
	return out, nil
}

func haltOf(h engine.Halt, all bool, name string) Halt {
	return Halt{h.By, h.Reason, time.UnixMicro(h.Since).UTC(), Halting(h.After), all, name}
}

func (e *Engine) setHalt(ctx context.Context, doing, agent string, what engine.HaltOf, by Identity, h *engine.Halt, reason string) error {
	if err := e.mine(by); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.inside.Done()
	who := e.whoIs(by, reason)
	if err := engine.MayHalt(agent, e.cfg.Operators, who); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	var faults []error
	if !what.All {
		faults = append(faults, action.CheckName(agent))
	}
	if what.Action != "" {
		faults = append(faults, action.CheckName(what.Action))
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if h != nil {
		h.By, h.Reason = who.Identity, who.Reason
	}
	if err := e.mark(ctx, agent, what, h, who); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if !what.All {
		return nil
	}
	e.halts.stale()
	if err := errors.Join(e.spread(ctx), e.spreadListed(ctx)); err != nil {
		return fmt.Errorf("%s: it stands, and other workers will see to it; here: %w", doing, err)
	}
	return nil
}

// mark writes how an agent stands, and tells what is under way here and what works for it.
func (e *Engine) mark(ctx context.Context, agent string, what engine.HaltOf, h *engine.Halt, who engine.Who) error {
	news := false
	for range 4 * rounds {
		snap, err := e.store.Load(ctx, agent, "", nil)
		if err != nil {
			return failedStore(err)
		}
		if h != nil && h.Since == 0 {
			fresh := *h
			fresh.Since, h = snap.Now, &fresh
		}
		x, err := engine.SetHalt(snap, agent, what, h, who)
		if err != nil {
			return err
		}
		if x == nil {
			break
		}
		reply, err := e.apply(ctx, x)
		if err != nil {
			return failedStore(err)
		}
		if reply.OK {
			e.noteHalt(agent, x, reply)
			news = agent != engine.HaltShard && (!what.All || h == nil)
			break
		}
	}
	if h != nil && !h.After {
		e.interruptAgent(agent, what.Action)
	}
	if news { // else whoever wrote it tells them, and the queue has it
		e.later(e.tellFamilies(ctx, agent), "tell those who work for the agent", idOf{agent, engine.EveryTask})
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

// interruptAgent tells what is under way of an agent here to stop, or of one of its actions.
func (e *Engine) interruptAgent(agent, name string) {
	why := stoppedBy("everything that the agent does was stopped")
	if name != "" {
		why = stoppedBy("the action was stopped for the agent")
	}
	e.mu.Lock()
	var all []*aloft
	for id, a := range e.aloft {
		if of, _, _ := strings.Cut(id, idSeparator); of == agent {
			if a := a.Value(); a != nil {
				all = append(all, a)
			}
		}
	}
	e.mu.Unlock()
	for _, a := range all {
		if name == "" {
			a.interrupt(why)
		} else {
			a.interruptIf(func(f *flight) bool { return f.def.name == name }, why)
		}
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
		if err := e.mark(ctx, s.agent.name, engine.HaltOf{All: true}, h, e.who(h.By, h.Reason)); err != nil {
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
		if err := e.mark(ctx, s.agent.name, engine.HaltOf{All: true}, h, who); err != nil {
			return err
		}
	}
	return nil
}

// spreadListed is spread for the agents that the store lists and nobody registered here; some stores list none.
func (e *Engine) spreadListed(ctx context.Context) error {
	l, ok := e.raw().(memory.Lister)
	if !ok {
		return nil
	}
	snap, err := e.store.Load(ctx, engine.HaltShard, "", nil)
	if err != nil {
		return failedStore(err)
	}
	h := engine.HaltsOf(&snap.Agent).All
	who := e.who("", "")
	if h != nil {
		who = e.who(h.By, h.Reason)
	}
	var faults []error
	for after := ""; ctx.Err() == nil; {
		names, err := l.Agents(ctx, after, recordPage)
		if err != nil {
			return errors.Join(append(faults, failedStore(err))...)
		}
		for _, name := range names {
			after = name
			if action.CheckName(name) != nil { // the account of a pool, or the shard of halts: nobody
				continue
			}
			if err := e.mark(ctx, name, engine.HaltOf{All: true}, h, who); err != nil && len(faults) < recordPage {
				faults = append(faults, fmt.Errorf("agent %q: %w", name, err))
			}
		}
		if len(names) < recordPage {
			return errors.Join(faults...)
		}
	}
	return errors.Join(append(faults, context.Cause(ctx))...)
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

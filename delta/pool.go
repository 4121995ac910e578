package delta

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Pool is a budget beyond those of tasks, see [Config].
type Pool = budget.Pool

// Day and Month are the periods after which a pool starts anew, by the store's clock, in UTC.
const (
	Day   = budget.Day
	Month = budget.Month
)

// PoolStanding is how a pool stands in its present period.
type PoolStanding struct {
	Name   string
	ID     string // names the period too
	Limit  action.Limit
	Shared bool
	// Agents are those named by the pool or, where it names none, those registered with the engine.
	Agents []PoolShare
	// Lent is what agents were lent of a shared pool: never more than the limit, and at least what they have granted to
	// calls.
	Lent action.Cost
}

// PoolShare is what one agent did with a pool.
type PoolShare struct {
	Agent           string
	Spent, Reserved action.Cost
	Limit           action.Limit // of a shared pool: what it was lent
}

// Spent is the sum of what the agents have spent.
func (s PoolStanding) Spent() (sum action.Cost) {
	for _, a := range s.Agents {
		sum = added(sum, a.Spent)
	}
	return sum
}

func checkPools(pools []Pool) (faults []error) {
	seen := map[string]bool{}
	for _, p := range pools {
		if err := p.Check(); err != nil {
			faults = append(faults, fmt.Errorf("config Pools: %w", err))
		}
		if seen[p.Name] {
			faults = append(faults, fmt.Errorf("config Pools: two are named %q", p.Name))
		}
		seen[p.Name] = true
	}
	return faults
}

func clonedPools(pools []Pool) []Pool {
	out := slices.Clone(pools)
	for i := range out {
		out[i].Agents = slices.Clone(out[i].Agents)
	}
	return out
}

// Pool returns how a pool stands. It reads each agent's part for itself: while calls run, the parts are of slightly
// different moments.
func (e *Engine) Pool(ctx context.Context, name string) (PoolStanding, error) {
	i := slices.IndexFunc(e.rules.Pools, func(p Pool) bool { return p.Name == name })
	if i < 0 {
		return PoolStanding{}, fmt.Errorf("there is no pool %q; name it in Config.Pools", name)
	}
	p := &e.rules.Pools[i]
	own, err := e.store.Load(ctx, engine.PoolShard(p.Name), "", nil)
	if err != nil {
		return PoolStanding{}, fmt.Errorf("pool %q: %w", name, failedStore(err))
	}
	s := PoolStanding{Name: name, Limit: p.Limit, Shared: p.Shared}
	s.ID, _, _ = p.At(own.Now)
	for _, agent := range e.agentsOf(p) {
		snap, err := e.store.Load(ctx, agent, "", nil)
		if err != nil {
			return PoolStanding{}, fmt.Errorf("pool %q: agent %q: %w", name, agent, failedStore(err))
		}
		acc := budget.PoolAccount(s.ID, p.Limit, snap.Agent.Counters)
		if p.Shared {
			both := engine.SlicesOf(p, s.ID, agent, own, snap)
			acc, s.Lent = both.Account(), added(s.Lent, both.Leased())
		}
		s.Agents = append(s.Agents, PoolShare{agent, acc.Spent, acc.Reserved(), acc.Limit})
	}
	return s, nil
}

func (e *Engine) agentsOf(p *Pool) (names []string) {
	if len(p.Agents) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(p.Agents)))
	}
	for _, s := range e.known() {
		names = append(names, s.agent.name)
	}
	slices.Sort(names)
	return names
}

// lease has the task's agent lent what a call needs of a shared pool. Where there is nothing to lend the call is refused on
// what the agent has.
func (t *Task) lease(ctx context.Context, need *engine.PoolNeed, call *engine.Call) error {
	lent, err := t.engine.lend(ctx, need.Pool, need.ID, t.agent.name, need.Need)
	if err != nil {
		return err
	}
	call.Leased = !lent
	return t.refresh(ctx, true)
}

// lend moves a slice of a pool to an agent. Where the pool has lent too much of it elsewhere, others give back first what
// they have not granted to calls. False where there is nothing to lend.
func (e *Engine) lend(ctx context.Context, p *Pool, id, agent string, need action.Cost) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.StoreTimeout)
	defer cancel()
	lent, err := e.transfer(ctx, p, id, agent, func(s engine.Slices) *txn.Txn { return s.Lease(need, e.clock()) })
	if err != nil || lent {
		return lent, err
	}
	for _, other := range e.agentsOf(p) {
		if other == agent {
			continue
		}
		if _, err := e.transfer(ctx, p, id, other, func(s engine.Slices) *txn.Txn { return s.Settle(e.clock()) }); err != nil {
			return false, err
		}
	}
	return e.transfer(ctx, p, id, agent, func(s engine.Slices) *txn.Txn { return s.Lease(need, e.clock()) })
}

// tellPools tells shared pools what an agent used beyond what they had lent it. Of what fails [Engine.Work] does the rest.
func (e *Engine) tellPools(ctx context.Context, agent string) error {
	due, err := e.store.Queued(ctx, agent, engine.QueueBeyond, txn.Queued{}, false, workPage)
	if err != nil {
		return err
	}
	for _, q := range due {
		if err := e.tellPool(ctx, agent, q.Member); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) tellPool(ctx context.Context, agent, id string) error {
	i := slices.IndexFunc(e.rules.Pools, func(p Pool) bool { return p.Name == budget.PoolName(id) })
	if i >= 0 && e.rules.Pools[i].Shared {
		p := &e.rules.Pools[i]
		if _, err := e.transfer(ctx, p, id, agent, func(s engine.Slices) *txn.Txn { return s.Overrun(e.clock()) }); err != nil {
			return err
		}
	}
	_, err := e.apply(ctx, &txn.Txn{Agent: agent, Phase: txn.Plain, Clauses: []txn.Clause{
		{Op: txn.Unqueue, Scope: txn.Agent, Key: engine.QueueBeyond, Val: id}}})
	return err
}

// overran does so at once after a call that overran, as far as it gets in the time of one access to the store.
func (t *Task) overran(ctx context.Context) {
	e := t.engine
	if !slices.ContainsFunc(e.rules.Pools, func(p Pool) bool { return p.Shared && p.Counts(t.agent.name) }) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.StoreTimeout)
	defer cancel()
	e.later(e.tellPools(ctx, t.agent.name), "tell the pools", t)
}

// transfer sends a slice one way or the other and delivers it; before that, what an earlier transfer left undelivered.
// False where there was nothing to send.
func (e *Engine) transfer(ctx context.Context, p *Pool, id, agent string, send func(engine.Slices) *txn.Txn) (sent bool, err error) {
	for range 8 * rounds { // others lend and give back at the same time
		pool, err := e.store.Load(ctx, engine.PoolShard(p.Name), "", nil)
		if err != nil {
			return sent, err
		}
		own, err := e.store.Load(ctx, agent, "", nil)
		if err != nil {
			return sent, err
		}
		s := engine.SlicesOf(p, id, agent, pool, own)
		x := s.Deliver(e.clock())
		if x == nil && sent {
			return true, nil
		}
		delivery := x != nil
		if !delivery {
			x = send(s)
		}
		if x == nil {
			return false, nil
		}
		reply, err := e.apply(ctx, x)
		if err != nil {
			return sent, err
		}
		sent = sent || reply.OK && !delivery
	}
	return sent, errors.New("the pool is lent and given back all the time")
}

// foreignPools reports the pools that would have to count money of another currency than the goal's.
func (e *Engine) foreignPools(g Goal) (faults []error) {
	for i := range e.rules.Pools {
		if p := &e.rules.Pools[i]; p.Counts(g.Agent.name) && p.Foreign(g.Limit.Currency) {
			faults = append(faults, fmt.Errorf("goal: %w: the task counts in %s, the budget pool %q in %s", action.ErrCurrency, g.Limit.Currency, p.Name, p.Limit.Currency))
		}
	}
	return faults
}

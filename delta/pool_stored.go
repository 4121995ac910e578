package delta

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// NoCurrency stands where money was counted in a pool and no configuration says any more in which currency (ISO 4217).
const NoCurrency = "XXX"

// StoredPool is a pool as a store tells of it to whoever has no configuration of it.
type StoredPool struct {
	PoolStanding
	Period budget.Period
	Until  time.Time // when the present period ends, by the store's clock; zero is never
	// Undeclared says that no agent's latest configuration has the pool any more. What was counted in the present period is
	// still there; the limit, and who else would count in it, nothing tells.
	Undeclared bool
	// Differs says that agents were last configured by engines that declare the pool differently: the share of each says by
	// which limit its calls are held, the standing by which those of the first are.
	Differs bool
}

// Pools returns how the budget pools stand, in their present period and in the order of their names, that the latest
// configuration recorded for the agents declares: those named, or every one that this engine knows. It needs no
// configuration here, see [Engine.Adopt]. An engine records its own with the first task of an agent; of an agent that none
// has worked for yet nothing is known. Each agent is read for itself, as by [Engine.Pool]. PoolShare.Limit is what holds the
// agent: its own limit or, of a shared pool, what it was lent.
func (e *Engine) Pools(ctx context.Context, agents ...string) ([]StoredPool, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	if len(agents) == 0 {
		for _, s := range e.inOrder() {
			agents = append(agents, s.agent.name)
		}
	}
	w := poolWalk{e: e, at: map[poolKey]*seenPool{}}
	for _, name := range agents {
		if err := w.agent(ctx, name); err != nil {
			return nil, err
		}
	}
	out := make([]StoredPool, 0, len(w.at))
	for key, p := range w.at {
		if key.shared {
			if key.undeclared && w.at[poolKey{id: key.id, shared: true}] != nil {
				continue // what it lent is told there
			}
			if err := w.shared(ctx, p); err != nil {
				return nil, err
			}
		}
		slices.SortFunc(p.Agents, func(a, b PoolShare) int { return strings.Compare(a.Agent, b.Agent) })
		out = append(out, p.StoredPool)
	}
	slices.SortFunc(out, func(a, b StoredPool) int {
		rank := func(p StoredPool) string { return fmt.Sprint(p.ID, " ", p.Shared, p.Undeclared) }
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(rank(a), rank(b)))
	})
	return out, nil
}

// poolWalk gathers pools while it goes from agent to agent.
type poolWalk struct {
	e  *Engine
	at map[poolKey]*seenPool
}

// poolKey tells pools apart: of one name there may be several where engines are configured differently.
type poolKey struct {
	id                 string
	shared, undeclared bool
}

type seenPool struct {
	StoredPool
	pool     Pool   // as the first configuration has it
	declared string // the same
}

// agent adds the pools that one agent's calls count in; of shared ones what all agents did is added later.
func (w *poolWalk) agent(ctx context.Context, name string) error {
	snap, err := w.e.store.Load(ctx, name, "", nil)
	if err != nil {
		return fmt.Errorf("pools of agent %q: %w", name, failedStore(err))
	}
	c, err := engine.ReadConfiguration(snap)
	if err != nil {
		return fmt.Errorf("pools of agent %q: %w", name, err)
	}
	known := map[string]bool{}
	for _, p := range c.Pools {
		known[p.Name] = true
		if !p.Counts(name) {
			continue
		}
		if seen := w.seen(p, snap.Now, false); !p.Shared {
			seen.share(name, p.Limit, budget.PoolAccount(seen.ID, p.Limit, snap.Agent.Counters))
		}
	}
	for _, p := range engine.CountedPools(snap) {
		if known[p.Name] {
			continue
		}
		seen := w.seen(p, snap.Now, true)
		if !p.Shared {
			seen.share(name, action.Limit{}, undeclaredAccount(seen.ID, snap))
		} else {
			seen.pool.Agents = append(seen.pool.Agents, name)
		}
	}
	return nil
}

// undeclaredAccount is what an agent did with a pool of which the limit and the currency are not known.
func undeclaredAccount(id string, snap *txn.Snapshot) budget.Account {
	acc := budget.PoolAccount(id, action.Limit{Currency: NoCurrency}, snap.Agent.Counters)
	acc.Limit = action.Limit{}
	return acc
}

func (w *poolWalk) seen(p Pool, now int64, undeclared bool) *seenPool {
	id, _, until := p.At(now)
	key := poolKey{id, p.Shared, undeclared}
	text, _ := json.Marshal(p) // plain fields: cannot fail
	s := w.at[key]
	if s == nil {
		s = &seenPool{pool: p, declared: string(text)}
		s.Name, s.ID, s.Limit, s.Shared, s.Period, s.Undeclared = p.Name, id, p.Limit, p.Shared, p.Period, undeclared
		if until > 0 {
			s.Until = time.UnixMicro(until).UTC()
		}
		w.at[key] = s
	}
	s.Differs = s.Differs || s.declared != string(text)
	return s
}

func (s *seenPool) share(agent string, limit action.Limit, acc budget.Account) {
	s.Agents = append(s.Agents, PoolShare{agent, acc.Spent, acc.Reserved(), limit})
}

// shared adds what agents were lent of a shared pool and did with it, those too that this engine does not know.
func (w *poolWalk) shared(ctx context.Context, s *seenPool) error {
	own, err := w.e.store.Load(ctx, engine.PoolShard(s.Name), "", nil)
	if err != nil {
		return fmt.Errorf("pool %q: %w", s.Name, failedStore(err))
	}
	names := slices.Concat(s.pool.Agents, engine.LentTo(s.ID, own))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		snap, err := w.e.store.Load(ctx, name, "", nil)
		if err != nil {
			return fmt.Errorf("pool %q: agent %q: %w", s.Name, name, failedStore(err))
		}
		both := engine.SlicesOf(&s.pool, s.ID, name, own, snap)
		s.Lent = added(s.Lent, both.Leased())
		if s.Undeclared {
			s.share(name, action.Limit{}, undeclaredAccount(s.ID, snap))
		} else {
			acc := both.Account()
			s.share(name, acc.Limit, acc)
		}
	}
	return nil
}

package engine

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// purse is a pool as a call meets it: in one period, with what its agent may spend there.
type purse struct {
	pool        *budget.Pool
	id          string
	from, until int64
	acc         budget.Account
	slice       txn.Cell // of a shared pool: what bounds the agent
}

func (r *Rules) poolsOf(agent string) (out []*budget.Pool) {
	for i := range r.Pools {
		if r.Pools[i].Counts(agent) {
			out = append(out, &r.Pools[i])
		}
	}
	return out
}

// purse opens a pool at store time now.
func (v *View) purse(p *budget.Pool, now int64) purse {
	w := purse{pool: p}
	w.id, w.from, w.until = p.At(now)
	limit := p.Limit
	if p.Shared {
		w.slice = v.Snap.Agent.Cells[cellSlice+w.id]
		limit = budget.Bounded(readBooks(w.slice.Val).Leased, p.Limit)
	}
	w.acc = budget.PoolAccount(w.id, limit, v.Snap.Agent.Counters)
	return w
}

// PoolNeed is what a call lacks of a shared pool.
type PoolNeed struct {
	Pool *budget.Pool
	ID   string
	Need action.Cost // beyond what the agent has been leased
}

// fromPools checks and pins that a reservation fits into every pool that the agent's calls count in. Money of a currency that
// is not the pool's never counts there.
func (r *round) fromPools(want action.Cost) *action.Failure {
	r.pools = make([]string, 0, len(r.view.pools))
	var foreign *budget.Pool
	for _, p := range r.view.pools {
		if r.view.foreign(p) {
			foreign = p
			continue
		}
		id, _, _ := p.At(r.call.Now)
		r.pools = append(r.pools, id)
	}
	if foreign != nil {
		return r.foreignPool(foreign)
	}
	for _, p := range r.view.pools {
		if _, f := r.draw(p, want, strconv.Quote(r.act.Name)); f != nil {
			return f
		}
	}
	return nil
}

// draw checks and pins that a pool has room for an amount, and names the period in which it counts.
func (r *round) draw(p *budget.Pool, want action.Cost, what string) (id string, f *action.Failure) {
	w := r.view.purse(p, r.call.Now)
	if w.until > 0 {
		r.pin(txn.Clause{Op: txn.Time, Min: w.from, Max: w.until - 1})
	}
	if p.Shared {
		r.pin(txn.Clause{Op: txn.Expect, Scope: txn.Agent, Key: cellSlice + w.id, N: w.slice.Ver})
	}
	if no := w.acc.Fits(want); no != nil {
		return w.id, r.poolRefuses(&w, want, no, what)
	}
	r.pin(w.pins(want)...)
	return w.id, nil
}

// foreign reports a pool that counts money of another currency than the task.
func (v *View) foreign(p *budget.Pool) bool { return p.Foreign(v.Task.Limit.Currency) }

func (r *round) foreignPool(p *budget.Pool) *action.Failure {
	f := action.Fail(action.BudgetExhausted, "a budget that tasks share counts money in another currency than this task").Because(action.ErrCurrency)
	why := fmt.Sprintf("budget pool %s counts %s, the task %s", p.Name, p.Limit.Currency, r.view.Task.Limit.Currency)
	return f.With(action.DetailAxis, action.Money.String()).With(action.DetailRule, why)
}

// pins are that the account keeps its limits when this is granted too.
func (w *purse) pins(want action.Cost) (out []txn.Clause) {
	for a := range action.AxisCount {
		if n, limited := w.acc.Limit.On(a).Get(); limited {
			out = append(out, inAgent(count(budget.PoolKey(w.id, budget.GrantedKey(a)), 0, txn.NoMin, n-want.Amount(a))))
		}
	}
	return out
}

func inAgent(c txn.Clause) txn.Clause {
	c.Scope = txn.Agent
	return c
}

func (r *round) poolRefuses(w *purse, want action.Cost, no *budget.Refusal, what string) *action.Failure {
	if n, ok := w.acc.Limit.On(no.Axis).Get(); ok && no.Left < no.Least {
		r.pin(inAgent(count(budget.PoolKey(w.id, budget.GrantedKey(no.Axis)), 0, n-no.Least+1, txn.NoMax)))
	}
	if w.pool.Shared && !r.call.Leased && !r.rules.Observe {
		r.lease = &PoolNeed{Pool: w.pool, ID: w.id, Need: Beyond(plus(w.acc.Granted, want), costOf(w.acc.Limit))}
	}
	f := action.Fail(action.BudgetExhausted, "a budget that tasks share does not allow %s: %s", what, no.Message)
	return f.With(action.DetailAxis, no.Axis.String()).With(action.DetailRule, "budget pool "+w.id)
}

// costOf is a limit as an amount; an axis without a bound is nothing.
func costOf(l action.Limit) action.Cost {
	c := action.Cost{Currency: l.Currency}
	for a := range action.AxisCount {
		n, _ := l.On(a).Get()
		c = c.With(a, n)
	}
	return c
}

// poolFor says which pool has no room for a reservation, of those that are not shared: what can still be leased of the
// others only their own shard knows.
func (v *View) poolFor(want action.Cost, now int64) (id string, no *budget.Refusal) {
	for _, p := range v.pools {
		if p.Shared {
			continue
		}
		w := v.purse(p, now)
		if no := w.acc.Fits(want); no != nil {
			return w.id, no
		}
	}
	return "", nil
}

// again pins that the pools of an intent, in the period in which it began, have room for its next attempt.
func (v *View) again(t *txn.Txn, ids []string, more action.Cost) *budget.Refusal {
	for _, id := range ids {
		i := slices.IndexFunc(v.pools, func(p *budget.Pool) bool { return p.Name == budget.PoolName(id) })
		if i < 0 {
			continue // the pool was taken out of the configuration
		}
		p := v.pools[i]
		w := purse{pool: p, id: id}
		limit := p.Limit
		if p.Shared {
			w.slice = v.Snap.Agent.Cells[cellSlice+id]
			limit = budget.Bounded(readBooks(w.slice.Val).Leased, limit)
			t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Agent, Key: cellSlice + id, N: w.slice.Ver})
		}
		w.acc = budget.PoolAccount(id, limit, v.Snap.Agent.Counters)
		if no := w.acc.Fits(more); no != nil {
			return no
		}
		t.Add(w.pins(more)...)
	}
	return nil
}

// pool adds to what is granted and spent in pools.
func (c *changes) pool(ids []string, granted, spent action.Cost) {
	for _, id := range ids {
		for a := range action.AxisCount {
			c.inPool(budget.PoolKey(id, budget.GrantedKey(a)), granted.Amount(a))
			c.inPool(budget.PoolKey(id, budget.SpentKey(a)), spent.Amount(a))
		}
	}
}

func (c *changes) inPool(key string, n int64) {
	if n != 0 {
		k := inAgent(count(key, n, txn.NoMin, txn.NoMax))
		k.Soft = true
		c.add(k)
	}
}

// pooled reports an event of the books between a shared pool and its agents: they stand in the ledgers of agents.
func pooled(t ledger.Type) bool {
	switch t {
	case ledger.PoolLeased, ledger.PoolReceived, ledger.PoolReturned, ledger.PoolRestored:
		return true
	}
	return false
}

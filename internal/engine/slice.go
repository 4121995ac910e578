package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// A shared pool lives on a shard of its own, and lends slices of its limit to its agents, whose calls count against the
// slice where they begin. What is lent counts as granted in the pool, so no interleaving grants beyond the limit. Lending
// and giving back are two transactions each, one on either shard:
//
//	pool   lends, Out+1      →  agent  receives, In+1
//	agent  gives back, Out+1 →  pool   restores, In+1
//
// Either side keeps what it sent last and how much it has sent and received: who finds Out on one side ahead of In on the
// other delivers what is between. Nothing more is sent before that is done, so a slice is never lost and never counted
// twice.
const (
	cellSlice = "slice/" // Agent: + pool id; Books of an agent. On the pool's shard + id and agent: those of the pool
)

// Books are what one side knows of the slices of one agent in a pool.
type Books struct {
	Leased action.Cost `json:"leased,omitzero"` // what the agent may spend
	Out    int64       `json:"out,omitempty"`   // slices sent
	In     int64       `json:"in,omitempty"`    // slices received
	Sent   action.Cost `json:"sent,omitzero"`   // the last one sent
}

func readBooks(text string) (b Books) {
	if text != "" {
		_ = json.Unmarshal([]byte(text), &b) // written by this package; nothing is leased where it cannot be read
	}
	return b
}

// PoolShard names the shard of a shared pool. No agent has such a name.
func PoolShard(pool string) string { return "pool:" + pool }

func lentKey(id, agent string) string { return cellSlice + id + "/" + agent }

// Slices are both sides of the books of one agent in a shared pool, as two snapshots tell.
type Slices struct {
	Pool  *budget.Pool
	ID    string
	Agent string
	Lent  txn.Cell // of the pool
	Has   txn.Cell // of the agent
	pool  map[string]int64
	agent map[string]int64
}

// SlicesOf reads them.
func SlicesOf(p *budget.Pool, id, agent string, pool, own *txn.Snapshot) Slices {
	return Slices{
		Pool: p, ID: id, Agent: agent, Lent: pool.Agent.Cells[lentKey(id, agent)], Has: own.Agent.Cells[cellSlice+id],
		pool: pool.Agent.Counters, agent: own.Agent.Counters,
	}
}

// Deliver brings what is between the two sides to where it belongs; nil where nothing is.
func (s Slices) Deliver(at int64) *txn.Txn {
	lent, has := readBooks(s.Lent.Val), readBooks(s.Has.Val)
	switch {
	case lent.Out > has.In:
		has.In, has.Leased = lent.Out, plus(has.Leased, lent.Sent)
		return s.write(ledger.PoolReceived, s.Agent, cellSlice+s.ID, s.Has, has, lent.Sent, at)
	case has.Out > lent.In:
		lent.In, lent.Leased = has.Out, minus(lent.Leased, has.Sent)
		return s.write(ledger.PoolRestored, PoolShard(s.Pool.Name), lentKey(s.ID, s.Agent), s.Lent, lent, has.Sent, at)
	}
	return nil
}

// Lease lends the agent what it needs, and more where there is plenty: an eighth of the limit at a time. Nil where the
// pool does not have what it needs. Nothing may be undelivered.
func (s Slices) Lease(need action.Cost, at int64) *txn.Txn {
	lent := readBooks(s.Lent.Val)
	acc := budget.PoolAccount(s.ID, s.Pool.Limit, s.pool)
	give := action.Cost{Currency: s.Pool.Limit.Currency}
	for a := range action.AxisCount {
		n, limited := s.Pool.Limit.On(a).Get()
		if !limited {
			continue
		}
		left, _ := acc.Left(a)
		if need.Amount(a) > left {
			return nil
		}
		if need.Amount(a) > 0 {
			give = give.With(a, min(max(need.Amount(a), n/8), left))
		}
	}
	if give.IsZero() {
		return nil
	}
	lent.Out, lent.Sent, lent.Leased = lent.Out+1, give, plus(lent.Leased, give)
	t := s.write(ledger.PoolLeased, PoolShard(s.Pool.Name), lentKey(s.ID, s.Agent), s.Lent, lent, give, at)
	w := purse{id: s.ID, acc: acc}
	t.Add(w.pins(give)...)
	return t
}

// Settle makes the pool's books those of the agent: what it has not granted to any call goes back, and what it used beyond all
// that it was lent is lent to it, whether the pool has it or not, so that nobody else is lent it too. Nil where neither is so.
// Nothing may be undelivered.
func (s Slices) Settle(at int64) *txn.Txn {
	has := s.Account()
	more := action.Cost{Currency: s.Pool.Limit.Currency}
	for a := range action.AxisCount {
		if left, limited := has.Left(a); limited && left < 0 {
			more = more.With(a, -left)
		}
	}
	if more.IsZero() {
		return s.Return(at)
	}
	lent := readBooks(s.Lent.Val)
	lent.Out, lent.Sent, lent.Leased = lent.Out+1, more, plus(lent.Leased, more)
	return s.write(ledger.PoolLeased, PoolShard(s.Pool.Name), lentKey(s.ID, s.Agent), s.Lent, lent, more, at)
}

// Overrun is Settle of what was used beyond what was lent alone.
func (s Slices) Overrun(at int64) *txn.Txn {
	has := s.Account()
	for a := range action.AxisCount {
		if left, limited := has.Left(a); limited && left < 0 {
			return s.Settle(at)
		}
	}
	return nil
}

// Return gives back what the agent has not granted to any call; nil where that is nothing. Nothing may be undelivered.
func (s Slices) Return(at int64) *txn.Txn {
	has := readBooks(s.Has.Val)
	acc := budget.PoolAccount(s.ID, budget.Bounded(has.Leased, s.Pool.Limit), s.agent)
	back := action.Cost{Currency: s.Pool.Limit.Currency}
	for a := range action.AxisCount {
		if left, limited := acc.Left(a); limited {
			back = back.With(a, max(left, 0))
		}
	}
	if back.IsZero() {
		return nil
	}
	has.Out, has.Sent, has.Leased = has.Out+1, back, minus(has.Leased, back)
	t := s.write(ledger.PoolReturned, s.Agent, cellSlice+s.ID, s.Has, has, back, at)
	w := purse{id: s.ID, acc: acc}
	t.Add(w.pins(back)...) // nobody was granted any of it meanwhile
	return t
}

// LentTo names the agents that a shared pool ever lent something in a period, by the snapshot of its shard.
func LentTo(id string, pool *txn.Snapshot) (agents []string) {
	for key := range pool.Agent.Cells {
		if agent, ok := strings.CutPrefix(key, lentKey(id, "")); ok {
			agents = append(agents, agent)
		}
	}
	slices.Sort(agents)
	return agents
}

// CountedPools are the pools in which calls of a snapshot's agent counted in the periods that last still, as far as their
// counters tell: without their limits, and by the form of their ids.
func CountedPools(snap *txn.Snapshot) (out []budget.Pool) {
	seen := map[string]bool{}
	for key := range snap.Agent.Counters {
		id, ok := budget.PoolID(key)
		if !ok || seen[id] {
			continue
		}
		seen[id] = true
		p := budget.PoolOf(id)
		_, p.Shared = snap.Agent.Cells[cellSlice+id]
		if now, _, _ := p.At(snap.Now); now == id {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b budget.Pool) int { return strings.Compare(a.Name+string(a.Period), b.Name+string(b.Period)) })
	return out
}

// Leased is what the pool has lent the agent.
func (s Slices) Leased() action.Cost { return readBooks(s.Lent.Val).Leased }

// Account is what the agent did with it.
func (s Slices) Account() budget.Account {
	return budget.PoolAccount(s.ID, budget.Bounded(readBooks(s.Has.Val).Leased, s.Pool.Limit), s.agent)
}

func (s Slices) write(typ ledger.Type, shard, key string, was txn.Cell, b Books, amount action.Cost, at int64) *txn.Txn {
	t := &txn.Txn{Agent: shard, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Agent, Key: key, N: was.Ver})
	e := ledger.Event{V: ledger.Version, Type: typ, At: at, Agent: s.Agent, Pools: []string{s.ID}, Reserved: amount, State: jsonText(b)}
	t.Add(txn.Clause{Op: txn.Event, Scope: txn.Agent, Val: eventText(&e)})
	t.Add(Changes(&e, nil)...)
	return t
}

// books is what the events between a pool and its agents change.
func (c *changes) books(e *ledger.Event) {
	id := e.Pools[0]
	switch e.Type {
	case ledger.PoolReceived, ledger.PoolReturned:
		c.put(txn.Agent, cellSlice+id, string(e.State))
	case ledger.PoolLeased:
		c.put(txn.Agent, lentKey(id, e.Agent), string(e.State))
		c.pool(e.Pools, e.Reserved, action.Cost{})
	case ledger.PoolRestored:
		c.put(txn.Agent, lentKey(id, e.Agent), string(e.State))
		c.pool(e.Pools, minus(action.Cost{}, e.Reserved), action.Cost{})
	}
}

// FoldPools derives from the ledger of an agent, or of a pool's shard, what its slices are, and what of a pool is lent.
func FoldPools(records []txn.Stored) (txn.Space, error) {
	s := txn.NewState()
	for _, r := range records {
		e, err := ledger.Decode(r.Val)
		if err != nil {
			return s.Agent, fmt.Errorf("record %d: %w", r.Seq, err)
		}
		if pooled(e.Type) {
			s.Replay(Changes(&e, nil), r.At)
		}
	}
	return s.Agent, nil
}

package engine

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// MaxRate is the most calls that a Throttle may allow per period: each is a token in the agent's state.
const MaxRate = 100

// Throttle bounds how often calls begin and how many run at a time. It holds for all tasks of an agent and all workers on
// one store, in the transaction of the begin. The zero value bounds nothing.
type Throttle struct {
	N      int   // begins in any Per, 0 for any number
	Per    int64 // µs
	AtOnce int   // calls under way, 0 for any number
}

// Keys of rate limits, in the space of the agent.
const (
	countBusy = "busy/" // + action, "" for all of the agent's; calls under way
	tokenRate = "rate/" // + slot / action; used, until its period is over
	used      = "used"
)

// withinRates is the second half of gate 7. What a call takes of each limit comes with its begin.
func (r *round) withinRates() *action.Failure {
	f := r.throttled("", &r.agent.Throttle)
	if f == nil {
		f = r.throttled(r.act.Name, &r.act.Throttle)
	}
	if f != nil {
		r.limits = nil
	}
	return f
}

func (r *round) throttled(name string, t *Throttle) *action.Failure {
	if t.AtOnce > 0 {
		key, most := countBusy+name, int64(t.AtOnce)
		if r.view.Snap.Agent.Counters[key] >= most {
			r.pin(inAgent(count(key, 0, most, txn.NoMax)))
			return r.rateLimited(name, fmt.Sprintf("%d are under way, at most %d may be", most, most), 0)
		}
		r.pin(inAgent(count(key, 0, txn.NoMin, most-1)))
		r.limits = append(r.limits, key)
	}
	if t.N > 0 {
		return r.slot(name, t)
	}
	return nil
}

// slot takes one of the N tokens of which each is good for one begin per period: so no period of that length, wherever it
// starts, sees more than N. Calls look for a free one from different ends, so that they seldom want the same.
func (r *round) slot(name string, t *Throttle) *action.Failure {
	h := fnv.New32a()
	_, _ = h.Write([]byte(r.intent()))
	first, tokens := int(h.Sum32()%uint32(t.N)), r.view.Snap.Agent.Tokens
	next, soonest := "", int64(0)
	for i := range t.N {
		key := tokenRate + strconv.Itoa((first+i)%t.N) + "/" + name
		token, has := tokens[key]
		if !has || !token.Live(r.call.Now) {
			r.pin(txn.Clause{Op: txn.Have, Scope: txn.Agent, Key: key})
			r.limits = append(r.limits, strconv.FormatInt(t.Per, 10)+" "+key)
			return nil
		}
		if next == "" || token.Exp < soonest {
			next, soonest = key, token.Exp
		}
	}
	// The one that is free first still being taken, all others are.
	r.pin(txn.Clause{Op: txn.Have, Scope: txn.Agent, Key: next, From: used})
	per := time.Duration(t.Per) * time.Microsecond
	return r.rateLimited(name, fmt.Sprintf("%d began in the last %v, at most %d may", t.N, per, t.N), soonest-r.call.Now)
}

func (r *round) rateLimited(name, why string, wait int64) *action.Failure {
	what := "calls of this agent"
	if name != "" {
		what = "calls of " + strconv.Quote(name)
	}
	f := action.Fail(action.RateLimited, "too many %s: %s", what, why)
	if wait <= 0 {
		return f
	}
	d := time.Duration(wait) * time.Microsecond
	return f.With(action.DetailAfter, max(d.Round(time.Millisecond), time.Millisecond).String())
}

// took writes what a begin takes of its limits.
func (c *changes) took(limits []string) {
	for _, l := range limits {
		per, key, rate := strings.Cut(l, " ")
		if !rate {
			c.underWay(l, 1)
			continue
		}
		n, _ := strconv.ParseInt(per, 10, 64) // written by slot
		c.add(txn.Clause{Op: txn.Set, Scope: txn.Agent, Key: key, To: used, N: n})
	}
}

// left gives back the places of a call that ended. What it took of a rate comes back by itself.
func (c *changes) left(limits []string) {
	for _, l := range limits {
		if !strings.Contains(l, " ") {
			c.underWay(l, -1)
		}
	}
}

func (c *changes) underWay(key string, n int64) {
	k := inAgent(count(key, n, txn.NoMin, txn.NoMax))
	k.Soft = true
	c.add(k)
}

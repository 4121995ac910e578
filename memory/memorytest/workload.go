package memorytest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Load is how much Workload does; zero values mean the defaults.
type Load struct {
	Workers int     // 8
	Intents int     // 200
	Seed    uint64  // of what the workers do and of what gets lost
	Lost    float64 // probability of a lost request and, again, of a lost reply: 0.08
	Limit   int64   // what all intents together may be granted: enough for three of four
}

const (
	price = 3 // what an intent is granted
	coins = 5 // tokens that the intents pass among themselves, one held by each that runs
)

// Workload runs intents of one task by many workers over a store that loses requests and replies. Workers repeat what was
// lost, some die with their lease, leases run out under others, and a janitor takes over what expired. At last the ledger
// must tell a story in which nothing happened twice, nothing was granted beyond the limit, every effect had been begun
// under a lease of its own, and which adds up to the counters.
func Workload(tb testing.TB, in Instance, load Load) {
	tb.Helper()
	load.Workers, load.Intents = cmp.Or(load.Workers, 8), cmp.Or(load.Intents, 200)
	load.Lost = cmp.Or(load.Lost, 0.08)
	load.Limit = cmp.Or(load.Limit, int64(load.Intents)*price*3/4)
	w := &world{tb: tb, in: in, load: load, store: NewFaulty(in.Store, FailRandomly(load.Seed, load.Lost, load.Lost)), effects: map[string]int{}}
	for i := range coins {
		r, err := in.Store.Apply(context.Background(), w.txn(txn.Plain, "", 0, "", txn.Clause{Op: txn.Set, Scope: txn.Task, Key: fmt.Sprint("coin", i), To: "free"}))
		require.NoError(tb, err)
		require.True(tb, r.OK)
	}
	w.run()
	w.check()
}

// world is a workload under way.
type world struct {
	tb      testing.TB
	in      Instance
	load    Load
	store   memory.Store // loses calls
	done    atomic.Int64
	mu      sync.Mutex
	effects map[string]int // by intent, fence and owner
}

func (w *world) txn(p txn.Phase, intent string, fence int64, owner string, cs ...txn.Clause) *txn.Txn {
	return &txn.Txn{Agent: "work", Task: "t", Phase: p, Intent: intent, Fence: fence, Owner: owner, TTL: short, Clauses: cs}
}

// try applies until an answer comes.
func (w *world) try(t *txn.Txn) txn.Reply {
	for {
		r, err := w.store.Apply(context.Background(), t)
		if err == nil {
			return r
		}
		if err != ErrLost { //nolint:errorlint // it is returned as it is
			w.tb.Errorf("apply %+v: %v", t, err)
			return txn.Reply{}
		}
	}
}

func (w *world) run() {
	intents := make(chan int)
	tick := make(chan struct{}, 1)
	var workers, janitor sync.WaitGroup
	for n := range w.load.Workers {
		workers.Go(func() {
			rnd := rand.New(rand.NewPCG(w.load.Seed, uint64(n)+10))
			for i := range intents {
				w.intent(rnd, fmt.Sprint("i", i), fmt.Sprint("w", n))
				if w.done.Add(1)%10 == 0 {
					select {
					case tick <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	janitor.Go(func() {
		for range tick {
			w.in.Advance(time.Duration(short/2) * time.Microsecond)
			w.sweep()
		}
	})
	for i := range w.load.Intents {
		intents <- i
	}
	close(intents)
	workers.Wait()
	close(tick)
	janitor.Wait()
	w.in.Advance(time.Duration(2*short) * time.Microsecond) // what the dead left behind
	w.sweep()
}

func story(words ...any) txn.Clause {
	return event(txn.Task, strings.TrimSuffix(fmt.Sprintln(words...), "\n"))
}

// intent is one intent from its begin to its end, or to the death of its worker.
func (w *world) intent(rnd *rand.Rand, id, owner string) {
	coin := fmt.Sprint("coin", rnd.IntN(coins))
	for {
		r := w.try(w.txn(txn.Begin, id, 1, owner,
			txn.Clause{Op: txn.Count, Scope: txn.Task, Key: "granted", N: price, Max: w.load.Limit},
			txn.Clause{Op: txn.Take, Scope: txn.Task, Key: coin, From: "free", To: id},
			txn.Clause{Op: txn.Put, Scope: txn.Record, Key: id, Val: coin},
			story("begun", id, 1, owner, coin)))
		if r.OK {
			break
		}
		if r.Failed < 0 {
			return // begun, and lost before the reply came: the janitor's
		}
		if r.Fresh == nil || r.Fresh.Task.Counters["granted"]+price > w.load.Limit || rnd.IntN(20) == 0 {
			w.try(w.txn(txn.Refuse, id, 1, owner, story("refused", id)))
			return
		}
		coin = fmt.Sprint("coin", rnd.IntN(coins))
	}
	w.work(rnd, id, owner, coin, 1)
}

// work is what follows a begin.
func (w *world) work(rnd *rand.Rand, id, owner, coin string, fence int64) {
	if rnd.IntN(12) == 0 {
		return // died
	}
	if rnd.IntN(3) == 0 {
		t := w.txn(txn.Renew, id, fence, owner, story("attempt", id, fence, 1))
		t.Step = 1
		if !w.try(t).OK {
			return
		}
	}
	w.mu.Lock()
	w.effects[fmt.Sprint(id, " ", fence, " ", owner)]++
	w.mu.Unlock()
	if rnd.IntN(12) == 0 {
		return // died after the effect
	}
	w.try(w.txn(txn.Settle, id, fence, owner,
		txn.Clause{Op: txn.Count, Scope: txn.Task, Key: "spent", N: price, Min: txn.NoMin, Max: txn.NoMax},
		txn.Clause{Op: txn.Take, Scope: txn.Task, Key: coin, From: id, To: "free", N: -1, Soft: true},
		txn.Clause{Op: txn.Pend, Val: id}, story("settled", id, fence, owner)))
}

// sweep ends, or begins again, what expired.
func (w *world) sweep() {
	ctx := context.Background()
	rnd := rand.New(rand.NewPCG(w.load.Seed, uint64(w.done.Load())))
	expired, err := w.in.Store.Queued(ctx, "work", txn.Leases, txn.Queued{}, true, w.load.Intents)
	assert.NoError(w.tb, err)
	for _, m := range expired {
		_, id, _ := strings.Cut(m.Member, "\n")
		r := w.try(w.txn(txn.Plain, id, 0, "", txn.Clause{Op: txn.Read, Scope: txn.Record, Key: id}))
		if r.Fresh == nil {
			w.tb.Errorf("a Read clause brought nothing of %s", id)
			return
		}
		coin, fence := r.Fresh.Record.Cells[id].Val, r.Fresh.Leases[id].Fence+1
		if rnd.IntN(4) == 0 {
			if w.try(w.txn(txn.Begin, id, fence, "janitor", story("begun", id, fence, "janitor", coin))).OK {
				w.work(rnd, id, "janitor", coin, fence)
			}
			continue
		}
		w.try(w.txn(txn.Takeover, id, fence, "janitor",
			txn.Clause{Op: txn.Count, Scope: txn.Task, Key: "spent", N: price, Min: txn.NoMin, Max: txn.NoMax},
			txn.Clause{Op: txn.Take, Scope: txn.Task, Key: coin, From: id, To: "free", N: -1, Soft: true},
			txn.Clause{Op: txn.Pend, Val: id}, story("settled", id, fence, "janitor")))
	}
	if len(expired) > 0 { // what the janitor itself left lying expires in turn
		w.in.Advance(time.Duration(short) * time.Microsecond)
		w.sweep()
	}
}

// told is an intent as the ledger tells of it.
type told struct {
	fence   int
	owner   string
	coin    string
	ended   bool
	attempt int // fence of the last attempt
}

// check reads the ledger from its start and holds the story against the state.
func (w *world) check() {
	w.tb.Helper()
	got := see(w.tb, w.in.Store, "work", "t", look{queues: []string{txn.Leases}})
	intents, begun, held := map[string]*told{}, map[string]bool{}, map[string]string{}
	granted, spent, settled := int64(0), int64(0), 0
	for i, rec := range got.OfTask {
		assert.EqualValues(w.tb, i+1, rec.Seq, "a hole in the ledger")
		f := strings.Fields(rec.Val)
		id, s := f[1], intents[f[1]]
		number := func(i int) int { n, _ := strconv.Atoi(f[i]); return n }
		switch f[0] {
		case "begun":
			begun[strings.Join(f[1:4], " ")] = true
			if s == nil {
				s = &told{coin: f[4]}
				intents[id] = s
				granted += price
				assert.Empty(w.tb, held[s.coin], "record %d: %s was held", rec.Seq, s.coin)
				held[s.coin] = id
			}
			assert.False(w.tb, s.ended, "record %d: %s began after its end", rec.Seq, id)
			assert.Equal(w.tb, s.fence+1, number(2), "record %d: fences of %s", rec.Seq, id)
			s.fence, s.owner = number(2), f[3]
		case "refused":
			assert.Nil(w.tb, s, "record %d: %s was refused after something else", rec.Seq, id)
			intents[id] = &told{ended: true}
		case "attempt":
			require.NotNil(w.tb, s, "record %d", rec.Seq)
			assert.True(w.tb, s.fence == number(2) && s.attempt < s.fence && !s.ended, "record %d: attempt of %s", rec.Seq, id)
			s.attempt = s.fence
		case "settled":
			require.NotNil(w.tb, s, "record %d: %s settled without a begin", rec.Seq, id)
			assert.False(w.tb, s.ended, "record %d: %s ended twice", rec.Seq, id)
			own := s.fence == number(2) && s.owner == f[3]
			over := s.fence+1 == number(2) && f[3] == "janitor"
			assert.True(w.tb, own || over, "record %d: %s settled by one that was superseded", rec.Seq, id)
			s.ended = true
			spent += price
			settled++
			delete(held, s.coin)
		}
		assert.LessOrEqual(w.tb, granted, w.load.Limit, "record %d: granted beyond the limit", rec.Seq)
	}
	assert.Len(w.tb, intents, w.load.Intents, "every intent has an end")
	for id, s := range intents {
		assert.True(w.tb, s.ended, "%s never ended", id)
	}
	for e, n := range w.effects {
		assert.True(w.tb, begun[e], "the effect of %s had not been begun", e)
		assert.Equal(w.tb, 1, n, "the effect of %s", e)
	}
	assert.Equal(w.tb, []int64{granted, spent}, []int64{got.Task.Counters["granted"], got.Task.Counters["spent"]}, "the ledger adds up to the counters")
	assert.Len(w.tb, got.Pending, settled, "one outcome for each end")
	assert.Empty(w.tb, got.Queues[txn.Leases], "nothing runs any more")
}

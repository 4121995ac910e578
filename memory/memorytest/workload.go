package memorytest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
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

// price is what an intent is granted.
const price = 3

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
	for i := range w.coins() {
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
	tick    chan struct{} // wakes the janitors
	mu      sync.Mutex
	effects map[string]int // by intent, fence and owner
	late    []*txn.Txn     // sent, and still on their way
}

// coins is how many tokens the intents pass among themselves; each that runs holds one.
func (w *world) coins() int { return w.load.Workers + 2 }

func (w *world) txn(p txn.Phase, intent string, fence int64, owner string, cs ...txn.Clause) *txn.Txn {
	return &txn.Txn{Agent: "work", Task: "t", Phase: p, Intent: intent, Fence: fence, Owner: owner, TTL: short, Clauses: cs}
}

// stall outlives a lease, now and then.
func (w *world) stall(rnd *rand.Rand) {
	if rnd.IntN(10) == 0 {
		w.in.Advance(time.Duration(short) * time.Microsecond)
		w.wake()
		runtime.Gosched()
	}
}

// try applies until an answer comes.
func (w *world) try(rnd *rand.Rand, t *txn.Txn) txn.Reply {
	for ; ; w.stall(rnd) {
		r, err := w.store.Apply(context.Background(), t)
		if err == nil {
			return r
		}
		if !errors.Is(err, ErrLost) {
			w.tb.Errorf("apply %+v: %v", t, err)
			return txn.Reply{}
		}
	}
}

func (w *world) run() {
	intents, stop := make(chan int), make(chan struct{})
	w.tick = make(chan struct{}, 1)
	var workers, janitors sync.WaitGroup
	for n := range w.load.Workers {
		workers.Go(func() {
			rnd := w.rnd(n)
			for i := range intents {
				w.intent(rnd, fmt.Sprint("i", i), fmt.Sprint("w", n))
				if w.done.Add(1)%8 == 0 {
					w.wake()
				}
			}
		})
	}
	for n := range 2 {
		janitors.Go(func() {
			rnd := w.rnd(1000 + n)
			for {
				select {
				case <-stop:
					return
				case <-w.tick:
					w.in.Advance(time.Duration(short/2) * time.Microsecond)
					w.sweep(rnd, fmt.Sprint("j", n))
				}
			}
		})
	}
	for i := range w.load.Intents {
		intents <- i
	}
	close(intents)
	workers.Wait()
	close(stop)
	janitors.Wait()
	w.drain()
}

// drain ends what the dead left behind, janitors among them.
func (w *world) drain() {
	rnd := w.rnd(2000)
	for range 100 {
		w.in.Advance(time.Duration(short) * time.Microsecond)
		if w.sweep(rnd, "last") == 0 {
			return
		}
	}
	w.tb.Errorf("leases go on expiring")
}

func (w *world) rnd(n int) *rand.Rand { return rand.New(rand.NewPCG(w.load.Seed, uint64(n))) }

func (w *world) wake() {
	select {
	case w.tick <- struct{}{}:
	default:
	}
}

func story(words ...any) txn.Clause {
	return event(txn.Task, strings.TrimSuffix(fmt.Sprintln(words...), "\n"))
}

// intent is one intent from its begin to its end, or to the death of its worker.
func (w *world) intent(rnd *rand.Rand, id, owner string) {
	coin := fmt.Sprint("coin", rnd.IntN(w.coins()))
	for {
		r := w.try(rnd, w.txn(txn.Begin, id, 1, owner,
			txn.Clause{Op: txn.Count, Scope: txn.Task, Key: "granted", N: price, Max: w.load.Limit},
			txn.Clause{Op: txn.Take, Scope: txn.Task, Key: coin, From: "free", To: id},
			txn.Clause{Op: txn.Put, Scope: txn.Record, Key: id, Val: coin},
			story("begun", id, 1, owner, coin)))
		if r.OK {
			assert.Greater(w.tb, r.Until, r.Now, "%s was granted a lease that is over", id)
			break
		}
		if r.Failed < 0 {
			return // begun, and lost before the reply came: the janitor's
		}
		if r.Fresh == nil || r.Fresh.Task.Counters["granted"]+price > w.load.Limit || rnd.IntN(100) == 0 {
			w.try(rnd, w.txn(txn.Refuse, id, 1, owner, story("refused", id)))
			return
		}
		coin = fmt.Sprint("coin", rnd.IntN(w.coins()))
		w.wake() // the dead may hold it
	}
	w.work(rnd, id, owner, coin, 1)
}

// work is what follows a begin.
func (w *world) work(rnd *rand.Rand, id, owner, coin string, fence int64) {
	w.arrive(rnd, id) // at the worst moment
	if rnd.IntN(12) == 0 {
		return // died
	}
	if rnd.IntN(3) == 0 {
		t := w.txn(txn.Renew, id, fence, owner, story("attempt", id, fence, 1))
		t.Step = 1
		if !w.try(rnd, t).OK {
			return
		}
	}
	w.stall(rnd)
	w.mu.Lock()
	w.effects[fmt.Sprint(id, " ", fence, " ", owner)]++
	w.mu.Unlock()
	w.stall(rnd)
	settle := w.txn(txn.Settle, id, fence, owner,
		txn.Clause{Op: txn.Count, Scope: txn.Task, Key: "spent", N: price, Min: txn.NoMin, Max: txn.NoMax},
		txn.Clause{Op: txn.Take, Scope: txn.Task, Key: coin, From: id, To: "free", N: -1, Soft: true},
		txn.Clause{Op: txn.Pend, Val: id}, story("settled", id, fence, owner))
	fate := rnd.IntN(16)
	if fate < 3 { // sent, and long on its way
		w.mu.Lock()
		w.late = append(w.late, settle)
		w.mu.Unlock()
	}
	if fate >= 2 { // two in sixteen die without an answer, one sends a second copy
		w.try(rnd, settle)
	}
}

// arrive delivers what was long on its way and is of this intent, or of any where none is named: one, if there is any.
func (w *world) arrive(rnd *rand.Rand, intent string) {
	w.mu.Lock()
	i := slices.IndexFunc(w.late, func(t *txn.Txn) bool { return intent == "" || t.Intent == intent })
	var t *txn.Txn
	if i >= 0 {
		t = w.late[i]
		w.late = slices.Delete(w.late, i, i+1)
	}
	w.mu.Unlock()
	if t != nil {
		w.try(rnd, t)
	}
}

// sweep ends, or begins again, what expired, and returns how many that were.
func (w *world) sweep(rnd *rand.Rand, owner string) int {
	if rnd.IntN(4) == 0 {
		w.arrive(rnd, "")
	}
	expired, err := w.in.Store.Queued(context.Background(), "work", txn.Leases, txn.Queued{}, true, w.load.Intents)
	assert.NoError(w.tb, err)
	for _, m := range expired {
		_, id, _ := strings.Cut(m.Member, "\n")
		r := w.try(rnd, w.txn(txn.Plain, id, 0, "", txn.Clause{Op: txn.Read, Scope: txn.Record, Key: id}))
		if r.Fresh == nil {
			w.tb.Errorf("a Read clause brought nothing of %s", id)
			return 0
		}
		l, coin := r.Fresh.Leases[id], r.Fresh.Record.Cells[id].Val
		if l.Phase != txn.Begin {
			continue // another janitor was faster
		}
		fence := l.Fence + 1
		if rnd.IntN(2) == 0 {
			if w.try(rnd, w.txn(txn.Begin, id, fence, owner, story("begun", id, fence, owner, coin))).OK {
				w.work(rnd, id, owner, coin, fence)
			}
			continue
		}
		w.try(rnd, w.txn(txn.Takeover, id, fence, owner,
			txn.Clause{Op: txn.Count, Scope: txn.Task, Key: "spent", N: price, Min: txn.NoMin, Max: txn.NoMax},
			txn.Clause{Op: txn.Take, Scope: txn.Task, Key: coin, From: id, To: "free", N: -1, Soft: true},
			txn.Clause{Op: txn.Pend, Val: id}, story("taken", id, fence, owner)))
	}
	return len(expired)
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
		case "settled", "taken":
			require.NotNil(w.tb, s, "record %d: %s settled without a begin", rec.Seq, id)
			assert.False(w.tb, s.ended, "record %d: %s ended twice", rec.Seq, id)
			rightful := s.fence == number(2) && s.owner == f[3]
			if f[0] == "taken" {
				rightful = s.fence+1 == number(2)
			}
			assert.True(w.tb, rightful, "record %d: %s settled by one that was superseded", rec.Seq, id)
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
	told := map[string]int{}
	for _, rec := range got.OfTask {
		told[strings.Fields(rec.Val)[0]]++
	}
	w.tb.Logf("%v", told)
	for e, n := range w.effects {
		assert.True(w.tb, begun[e], "the effect of %s had not been begun", e)
		assert.Equal(w.tb, 1, n, "the effect of %s", e)
	}
	assert.Equal(w.tb, []int64{granted, spent}, []int64{got.Task.Counters["granted"], got.Task.Counters["spent"]}, "the ledger adds up to the counters")
	assert.Len(w.tb, got.Pending, settled, "one outcome for each end")
	assert.Empty(w.tb, got.Queues[txn.Leases], "nothing runs any more")
}

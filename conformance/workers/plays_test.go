//go:build heavy

package workers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// TestHeavyWorkers plays every play on a server of its own.
func TestHeavyWorkers(t *testing.T) {
	how := map[play]func(*bed){
		budgets: playBudgets, callIDs: playCallIDs, decisions: playDecisions, withdrawal: playWithdrawal, restarts: playRestarts,
		waiting: playWaiting, lateRun: playLateRun, changed: playChanged, facts: playFacts, pausedSafe: playPausedSafe,
		pausedOnce: playPausedOnce, reused: playReused, cancelled: playCancelled, halted: playHalted, delegated: playDelegated,
		folded: playFolded, versions: playVersions, clocks: playClocks, gone: playGone,
	}
	for _, p := range plays {
		t.Run(string(p), func(t *testing.T) {
			require.Contains(t, how, p)
			how[p](newBed(t))
		})
	}
}

// all waits for what was told.
func all(waits []func() report) (out []report) {
	for _, w := range waits {
		out = append(out, w())
	}
	return out
}

func codes(rs []report) map[action.Code]int {
	out := map[action.Code]int{}
	for _, r := range rs {
		if r.Err != "" {
			out[action.Code("error: "+r.Err)]++
			continue
		}
		out[r.Code]++
	}
	return out
}

// Thirty calls fit, sixty-four are made by four workers at once, then one after the other until there is no room.
func playBudgets(b *bed) {
	crew := b.crew(4)
	task := crew[0].start("t", 30*cost)
	var waits []func() report
	for i := range 64 {
		waits = append(waits, crew[i%4].tell(call(task, "charge", "", work{N: i})))
	}
	got := codes(all(waits))
	assert.Equal(b, 64, got[action.OK]+got[action.BudgetExhausted], "%v", got)
	assert.Len(b, b.happened("charge"), got[action.OK])
	for i := 64; crew[i%4].must(call(task, "charge", "", work{N: i})).Code == action.OK; i++ {
		require.Less(b, i, 100)
	}
	assert.Len(b, b.happened("charge"), 30, "all that fits, and no more")
	b.holds(task)
}

// Every worker makes each call at once, once with the same input and once with one of its own: one of them runs, once.
func playCallIDs(b *bed) {
	crew := b.crew(4)
	task := crew[0].start("t", 1000*cost)
	const n = 12
	var waits []func() report
	for i := range n {
		for k, w := range crew {
			waits = append(waits, w.tell(call(task, "charge", fmt.Sprint("same", i), work{N: i})))
			waits = append(waits, w.tell(call(task, "tag", fmt.Sprint("other", i), work{N: 10*i + k})))
		}
	}
	for i, r := range all(waits) {
		require.Empty(b, r.Err, i)
	}
	assert.Equal(b, times(1, n), b.happened("charge"))
	ran := map[int]int{}
	for which, k := range b.happened("tag") {
		ran[which/10] += k
	}
	assert.Equal(b, times(1, n), ran, "of each id one input ran")
	for i := range n {
		for _, w := range crew {
			r := w.must(call(task, "charge", fmt.Sprint("same", i), work{N: i}))
			assert.Equal(b, action.OK, r.Code, "the record answers")
		}
	}
	assert.Equal(b, times(1, n), b.happened("charge"))
	b.holds(task)
}

// Of two decisions at once one is taken, and what it says is what happens.
func playDecisions(b *bed) {
	crew := b.crew(3)
	task := crew[0].start("t", 1000*cost)
	const n = 12
	var ids []string
	for i := range n {
		ids = append(ids, crew[i%3].asks(task, "refund", fmt.Sprint("c", i), work{N: i}))
	}
	want := map[int]int{}
	for i, id := range ids {
		yes, no := crew[i%3].tell(order{Do: "approve", ID: id, Who: "ana"}), crew[(i+1)%3].tell(order{Do: "reject", ID: id, Who: "ben", Why: "no"})
		again := crew[(i+2)%3].tell(order{Do: "approve", ID: id, Who: "eve"})
		said := []bool{yes().Err == "", no().Err == "", again().Err == ""}
		assert.NotEqual(b, said[0] || said[2], said[1], "one of approve and reject: %v", said)
		if !said[1] {
			want[i] = 1
		}
	}
	b.eventually("what was approved runs", func() bool { return len(b.happened("refund")) >= len(want) })
	var waits []func() report
	for i := range n {
		for _, w := range crew {
			waits = append(waits, w.tell(call(task, "refund", fmt.Sprint("c", i), work{N: i})))
		}
	}
	all(waits)
	assert.Equal(b, want, b.happened("refund"))
	b.holds(task)
}

// A consent counts or it was taken back: never both, never neither.
func playWithdrawal(b *bed) {
	crew := b.crew(3)
	task := crew[0].start("t", 1000*cost)
	const n = 10
	want := map[int]int{}
	for i := range n {
		id := crew[0].asks(task, "wire", fmt.Sprint("c", i), work{N: i})
		crew[0].must(order{Do: "approve", ID: id, Who: "ana"})
		back, second := crew[1].tell(order{Do: "withdraw", ID: id, Who: "ana", Why: "wait"}), crew[2].tell(order{Do: "approve", ID: id, Who: "ben"})
		taken := back().Err == ""
		require.Empty(b, second().Err, "ben may consent either way")
		if taken {
			a, err := b.engine.Approval(b.ctx, id)
			require.NoError(b, err)
			assert.Equal(b, "pending", string(a.State), "one of two has consented")
		} else {
			want[i] = 1
		}
	}
	b.eventually("what two consented to runs", func() bool { return len(b.happened("wire")) >= len(want) })
	assert.Equal(b, want, b.happened("wire"))
	b.holds(task)
}

// The request outlives who asked; whoever works runs it, once, however many try.
func playRestarts(b *bed) {
	asker := b.hire(hire{})
	task := asker.start("t", 1000*cost)
	const n = 6
	var ids []string
	for i := range n {
		ids = append(ids, asker.asks(task, "refund", fmt.Sprint("c", i), work{N: i}))
	}
	asker.kill()
	crew := b.crew(3)
	assert.Empty(b, b.happened("refund"), "nobody has answered")
	for i, id := range ids {
		crew[i%3].must(order{Do: "approve", ID: id, Who: "ana"})
		for _, w := range crew {
			w.tell(call(task, "refund", fmt.Sprint("c", i), work{N: i}))
		}
	}
	b.eventually("all run", func() bool { return len(b.happened("refund")) == n })
	for i := range n {
		b.eventually("it has ended", func() bool {
			r := crew[i%3].must(call(task, "refund", fmt.Sprint("c", i), work{N: i}))
			return r.Code == action.OK
		})
	}
	assert.Equal(b, times(1, n), b.happened("refund"))
	b.holds(task)
}

// Waiting too long is no consent and no rejection, and nobody's answer counts any more.
func playWaiting(b *bed) {
	crew := b.crew(3)
	task := crew[0].must(order{Do: "start", ID: "t", Name: "clerk", Tokens: 1000, TTL: 300 * time.Millisecond}).Text
	id := crew[0].asks(task, "refund", "c", work{})
	b.eventually("it is written down", func() bool { return b.count(task, ledger.ApprovalExpired) == 1 })
	for _, w := range crew {
		assert.NotEmpty(b, w.do(order{Do: "approve", ID: id, Who: "ana"}).Err)
		assert.NotEmpty(b, w.do(order{Do: "reject", ID: id, Who: "ana", Why: "no"}).Err)
		assert.Equal(b, action.ApprovalExpired, w.must(call(task, "refund", "c", work{})).Code)
	}
	assert.Equal(b, 1, b.count(task, ledger.ApprovalExpired))
	assert.Zero(b, b.count(task, ledger.ApprovalRejected))
	assert.Empty(b, b.happened("refund"))
	b.holds(task)
}

// All who could run it are suspended while it is approved, and go on after it has expired.
func playLateRun(b *bed) {
	crew := b.crew(2)
	desk := b.hire(hire{})                   // it decides, and runs nothing
	for ttl := 2 * time.Second; ; ttl *= 2 { // a busy machine may need longer to approve
		task := desk.must(order{Do: "start", Name: "clerk", Tokens: 1000, TTL: ttl}).Text
		id := desk.asks(task, "refund", "c", work{})
		for _, w := range crew {
			w.pause()
		}
		began := time.Now()
		approved := desk.do(order{Do: "approve", ID: id, Who: "ana"}).Err == ""
		time.Sleep(time.Until(began.Add(ttl)))
		for _, w := range crew {
			w.resume()
		}
		if !approved && ttl < time.Minute {
			continue
		}
		require.True(b, approved)
		b.eventually("nobody can run it any more", func() bool {
			r := desk.must(call(task, "refund", "c", work{}))
			return r.Code == action.ApprovalExpired
		})
		assert.Empty(b, b.happened("refund"))
		b.holds(task)
		return
	}
}

// The fact that an approved call needs is consumed by another worker before the approval is given.
func playChanged(b *bed) {
	crew := b.crew(3)
	task := crew[0].start("t", 1000*cost)
	const n = 6
	for i := range n {
		crew[i%3].must(call(task, "confirm", "", work{N: i}))
		id := crew[(i+1)%3].asks(task, "payout", fmt.Sprint("p", i), work{N: i})
		require.Equal(b, action.OK, crew[(i+2)%3].must(call(task, "ship", "", work{N: i})).Code)
		crew[i%3].must(order{Do: "approve", ID: id, Who: "ana"})
	}
	b.eventually("each is refused", func() bool {
		for i := range n {
			if r := crew[i%3].must(call(task, "payout", fmt.Sprint("p", i), work{N: i})); r.Code != action.NotLegal {
				return false
			}
		}
		return true
	})
	assert.Empty(b, b.happened("payout"))
	assert.Equal(b, times(1, n), b.happened("ship"))
	b.holds(task)
}

// One confirmation, one shipment.
func playFacts(b *bed) {
	crew := b.crew(4)
	task := crew[0].start("t", 1000*cost)
	const n = 8
	for i := range n {
		crew[i%4].must(call(task, "confirm", "", work{N: i}))
	}
	var waits []func() report
	for i := range n {
		for _, w := range crew {
			waits = append(waits, w.tell(call(task, "ship", "", work{N: i})))
		}
	}
	assert.Equal(b, map[action.Code]int{action.OK: n, action.NotLegal: 3 * n}, codes(all(waits)))
	assert.Equal(b, times(1, n), b.happened("ship"))
	b.holds(task)
}

// standsStill has a worker stand still in the middle of a call until its lease has run out, and another look after it.
func standsStill(b *bed, name string) (task string, first, other *worker, end func() report) {
	short := 500 * time.Millisecond
	first = b.hire(hire{Lease: short})
	task = first.start("t", 1000*cost)
	end = first.tell(call(task, name, "c", work{N: 0, Hold: "door", Deaf: true}))
	b.entered("door", 1)
	first.pause()
	time.Sleep(short)
	other = b.hire(hire{Works: true})
	return task, first, other, end
}

// The other does it again; what the first still says changes nothing.
func playPausedSafe(b *bed) {
	task, first, other, end := standsStill(b, "tag")
	who := b.entered("door", 2)
	assert.NotEqual(b, who[0], who[1])
	b.open("door")
	b.eventually("it has ended", func() bool { return b.count(task, ledger.Settled) == 1 })
	first.resume()
	late := end()
	require.Empty(b, late.Err)
	assert.Contains(b, []action.Code{action.Late, action.OK}, late.Code)
	assert.Equal(b, action.OK, other.must(call(task, "tag", "c", work{N: 0, Hold: "door", Deaf: true})).Code)
	assert.Equal(b, map[int]int{0: 2}, b.happened("tag"), "as it may")
	b.holds(task)
}

// Nobody does it again: it is unknown, what it holds stays reserved, and the first cannot say otherwise.
func playPausedOnce(b *bed) {
	task, first, other, end := standsStill(b, "charge")
	b.eventually("it is given up", func() bool { return b.count(task, ledger.Settled) == 1 })
	b.open("door")
	first.resume()
	late := end()
	require.Empty(b, late.Err)
	assert.Contains(b, []action.Code{action.Late, action.StartedUnknown}, late.Code)
	assert.Equal(b, action.StartedUnknown, other.must(call(task, "charge", "c", work{N: 0, Hold: "door", Deaf: true})).Code)
	assert.Equal(b, action.NotLegal, other.must(call(task, "charge", "d", work{N: 0, Hold: "door", Deaf: true})).Code, "not again in this task")
	assert.Equal(b, map[int]int{0: 1}, b.happened("charge"))
	b.holds(task)
}

// An id names one task, for ever and everywhere.
func playReused(b *bed) {
	first := b.hire(hire{})
	task := first.start("t", 2*cost)
	for i := range 3 {
		first.must(call(task, "charge", "", work{N: i}))
	}
	first.kill()
	crew := b.crew(2)
	for _, w := range crew {
		assert.NotEmpty(b, w.do(order{Do: "start", ID: "t", Name: "clerk", Tokens: 1000 * cost}).Err)
		assert.Equal(b, action.BudgetExhausted, w.must(call(task, "charge", "", work{N: 9})).Code)
	}
	crew[0].must(order{Do: "cancel", Task: task, Why: "enough"})
	for _, w := range crew {
		assert.NotEmpty(b, w.do(order{Do: "start", ID: "t", Name: "clerk", Tokens: 1000 * cost}).Err)
		assert.Equal(b, action.Cancelled, w.must(call(task, "charge", "", work{N: 9})).Code)
	}
	assert.Equal(b, map[int]int{0: 1, 1: 1}, b.happened("charge"))
	b.holds(task)
}

// A cancelled task stays cancelled, whatever its functions return afterwards.
func playCancelled(b *bed) {
	crew := b.crew(3)
	task := crew[0].start("t", 1000*cost)
	var waits []func() report
	for i, w := range crew {
		waits = append(waits, w.tell(call(task, "charge", "", work{N: i, Hold: "door", Deaf: true})))
	}
	b.entered("door", 3)
	crew[1].must(order{Do: "cancel", Task: task, Why: "enough"})
	b.open("door")
	for _, r := range all(waits) {
		require.Empty(b, r.Err)
		assert.Contains(b, []action.Code{action.Interrupted, action.StartedUnknown}, r.Code)
	}
	for _, w := range crew {
		assert.Equal(b, action.Cancelled, w.must(call(task, "tag", "", work{})).Code)
		assert.Equal(b, "cancelled", w.must(order{Do: "status", Task: task}).Text)
	}
	assert.Empty(b, b.happened("tag"))
	for _, e := range b.events(task) {
		if e.Type == ledger.Settled {
			assert.NotEqual(b, action.OK, e.Code)
		}
	}
	b.holds(task)
}

// Once a halt has returned nothing begins on any worker; once it is lifted all go on.
func playHalted(b *bed) {
	crew := b.crew(4)
	task := crew[0].start("t", 1_000_000)
	stop := make(chan struct{})
	done := make(chan struct{}, len(crew))
	for k, w := range crew {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					w.do(call(task, "tag", "", work{N: 1_000_000*k + i}))
				}
			}
		}()
	}
	b.eventually("all are at work", func() bool { return len(b.happened("tag")) > 40 })
	crew[1].must(order{Do: "halt", Who: "op", Why: "stop it"})
	began := b.count(task, ledger.Begun)
	refused := b.count(task, ledger.Refused)
	b.eventually("they try", func() bool { return b.count(task, ledger.Refused) > refused+40 })
	assert.Equal(b, began, b.count(task, ledger.Begun), "nothing begins")
	crew[2].must(order{Do: "lift", Who: "op", Why: "go on"})
	b.eventually("they go on", func() bool { return b.count(task, ledger.Begun) > began+8 })
	close(stop)
	for range crew {
		<-done
	}
	b.holds(task)
}

// One child, whoever delegates; what it has done is not done again by who takes over.
func playDelegated(b *bed) {
	crew := b.crew(3)
	lead := crew[0].must(order{Do: "start", ID: "plan", Name: "lead", Tokens: 1000 * cost, TTL: time.Hour}).Text
	give := order{Do: "delegate", Task: lead, ID: "part", Name: "clerk", Tokens: 20 * cost}
	var waits []func() report
	for _, w := range crew {
		waits = append(waits, w.tell(give), w.tell(give))
	}
	ids := map[string]int{}
	for _, r := range all(waits) {
		require.Empty(b, r.Err)
		ids[r.Text]++
	}
	require.Len(b, ids, 1, "one child")
	child := ""
	for child = range ids {
		require.True(b, strings.HasPrefix(child, "clerk~"))
	}
	hand := b.hire(hire{Works: true})
	require.Equal(b, action.OK, hand.must(call(child, "charge", "first", work{N: 0})).Code)
	id := hand.asks(child, "refund", "second", work{N: 0})
	hand.kill()
	crew[1].must(order{Do: "approve", ID: id, Who: "ana"})
	require.Equal(b, child, crew[2].must(give).Text, "delegated again, by who was resumed")
	assert.Equal(b, action.OK, crew[2].must(call(child, "charge", "first", work{N: 0})).Code)
	b.eventually("the approved call has run", func() bool {
		return crew[0].must(call(child, "refund", "second", work{N: 0})).Code == action.OK
	})
	assert.Equal(b, times(1, 1), b.happened("charge"))
	assert.Equal(b, times(1, 1), b.happened("refund"))
	await := crew[0].tell(order{Do: "await", Task: lead, ID: "part"})
	crew[1].must(order{Do: "end", Task: child})
	assert.Equal(b, "closed", await().Text)
	t, err := b.engine.Open(b.ctx, lead)
	require.NoError(b, err)
	budget, err := t.Budget(b.ctx)
	require.NoError(b, err)
	assert.EqualValues(b, 2*cost, budget.Spent.Tokens)
	assert.Zero(b, budget.Reserved.Tokens)
	b.holds(child)
	b.holds(lead)
}

// Everybody folds what everybody observed: in one order, nothing twice, nothing forgotten, and all see the same.
func playFolded(b *bed) {
	crew := b.crew(4)
	task := crew[0].start("t", 1_000_000)
	const n = 120
	var waits []func() report
	for i := range n {
		waits = append(waits, crew[i%4].tell(call(task, []string{"tag", "charge", "confirm"}[i%3], "", work{N: i, Fail: i%10 == 0})))
	}
	ran := 0
	for _, r := range all(waits) {
		if require.Empty(b, r.Err); r.Code == action.OK || r.Code == action.Failed {
			ran++
		}
	}
	require.Positive(b, ran)
	seen := map[string]int{}
	for _, w := range crew {
		seen[w.must(order{Do: "beliefs"}).Text]++
	}
	assert.Len(b, seen, 1, "all believe the same")
	records, err := b.store.Records(b.ctx, "clerk", "", 1, 1<<20)
	require.NoError(b, err)
	learned, last := 0, int64(0)
	for _, r := range records {
		e, err := ledger.Decode(r.Val)
		require.NoError(b, err)
		if e.Type != ledger.BeliefsFolded {
			continue
		}
		assert.Equal(b, last+1, e.FromSeq, "in order, nothing twice")
		learned, last = learned+int(e.ToSeq-e.FromSeq+1), e.ToSeq
	}
	assert.Equal(b, ran, learned, "nothing is forgotten")
	b.holds(task)
}

// A call waits for a worker that holds the version it was approved for.
func playVersions(b *bed) {
	old := b.hire(hire{})
	task := old.start("t", 1000*cost)
	id := old.asks(task, "refund", "c", work{N: 0})
	old.kill()
	newer := b.hire(hire{Works: true, Version: "2"})
	newer.must(order{Do: "approve", ID: id, Who: "ana"})
	for i := range 20 { // it looks, and leaves it
		require.Equal(b, action.OK, newer.must(call(task, "tag", "", work{N: i})).Code)
		time.Sleep(20 * time.Millisecond)
	}
	assert.Empty(b, b.happened("refund"), "the version that was approved is not here")
	ready, err := b.store.Queued(b.ctx, "clerk", engine.QueueReady, txn.Queued{}, false, 9)
	require.NoError(b, err)
	require.Len(b, ready, 1, "it waits")
	same := b.hire(hire{Works: true})
	b.eventually("who holds it runs it", func() bool { return len(b.happened("refund")) == 1 })
	b.eventually("it has ended", func() bool { return same.must(call(task, "refund", "c", work{N: 0})).Code == action.OK })
	assert.Equal(b, times(1, 1), b.happened("refund"))
	b.holds(task)
}

// Leases, approvals and deadlines are the server's time: who lives an hour ahead takes nothing over.
func playClocks(b *bed) {
	late, early := b.hire(hire{Works: true, Skew: -time.Hour}), b.hire(hire{Works: true, Skew: time.Hour})
	task := late.must(order{Do: "start", ID: "t", Name: "clerk", Tokens: 1000 * cost, TTL: 10 * time.Minute}).Text
	end := late.tell(call(task, "charge", "c", work{N: 0, Hold: "door"}))
	b.entered("door", 1)
	id := late.asks(task, "refund", "r", work{N: 0})
	early.must(order{Do: "approve", ID: id, Who: "ana"})
	b.eventually("the approved call runs", func() bool { return len(b.happened("refund")) == 1 })
	id = early.asks(task, "refund", "s", work{N: 1})
	late.must(order{Do: "approve", ID: id, Who: "ana"})
	b.eventually("the other one too", func() bool { return len(b.happened("refund")) == 2 })
	b.open("door")
	r := end()
	assert.Equal(b, action.OK, r.Code, "nobody took it over: %s %v", r.Err, r.Out.Failure)
	assert.Equal(b, times(1, 1), b.happened("charge"))
	assert.Equal(b, "running", early.must(order{Do: "status", Task: task}).Text)
	b.holds(task)
}

// Without the store nothing runs anywhere; with it everything goes on.
func playGone(b *bed) {
	crew := b.crew(3)
	task := crew[0].start("t", 1000*cost)
	for i, w := range crew {
		require.Equal(b, action.OK, w.must(call(task, "charge", fmt.Sprint("c", i), work{N: i})).Code)
	}
	b.server.Kill()
	var waits []func() report
	for i, w := range crew {
		waits = append(waits, w.tell(call(task, "charge", fmt.Sprint("d", i), work{N: 10 + i})))
	}
	for _, r := range all(waits) {
		assert.True(b, r.Err != "" || r.Code == action.StoreUnavailable, "%s %s", r.Code, r.Err)
	}
	assert.Equal(b, times(1, 3), b.happened("charge"))
	require.NoError(b, b.server.Start())
	for i, w := range crew {
		b.eventually("it goes on", func() bool {
			r := w.do(call(task, "charge", fmt.Sprint("d", i), work{N: 10 + i}))
			return r.Err == "" && r.Code == action.OK
		})
	}
	assert.Len(b, b.happened("charge"), 6)
	for n, k := range b.happened("charge") {
		assert.Equal(b, 1, k, n)
	}
	b.eventually("it is looked at", func() bool { _, err := b.engine.Open(b.ctx, task); return err == nil })
	b.holds(task)
}

package memorytest

import (
	"fmt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

func faultCases() []testCase {
	return []testCase{{"fault/at every call", "a connection may break anywhere", faultEvery}}
}

// life is a whole life of an intent: what it does shows in a counter, a token, the ledger and the pending outcomes.
func life(task string) []*txn.Txn {
	t := func(p txn.Phase, step int64, cs ...txn.Clause) *txn.Txn {
		return &txn.Txn{Agent: "a", Task: task, Phase: p, Intent: "i", Fence: 1, Owner: "A", Step: step, TTL: long, Clauses: cs}
	}
	in := func(key string, c txn.Clause) txn.Clause { c.Scope, c.Key = txn.Task, key; return c }
	return []*txn.Txn{
		t(txn.Park, 0, in("approval", set("pending", "", long)), event(txn.Task, "parked")),
		t(txn.Begin, 0, in("granted", count(5, 0, 5)), in("approval", take("pending", "used", 0)), event(txn.Task, "begun")),
		t(txn.Renew, 1, in("attempts", add(1)), event(txn.Task, "attempt")),
		t(txn.Renew, 2, in("attempts", add(1)), event(txn.Task, "attempt")),
		t(txn.Settle, 0, in("spent", add(5)), in("result", put("ok")), pend("ok"), event(txn.Task, "settled")),
	}
}

// faultEvery loses each call of a life in turn, before and after it took effect, and the caller repeats it.
func faultEvery(e *env) {
	run := 0
	for _, fault := range []Fault{LostRequest, LostReply} {
		for at := range len(life("")) {
			run++
			task := fmt.Sprint("t", run)
			s := NewFaulty(e.Store, FailAt(fault, at+1))
			for i, t := range life(task) {
				r, err := s.Apply(e.ctx, t)
				if i == at {
					require.ErrorIs(e, err, ErrLost)
					r, err = s.Apply(e.ctx, t)
					assert.Equal(e, fault == LostReply, r.Replay, "call %d", i)
				}
				require.NoError(e, err)
				require.True(e, r.OK, "call %d of run %d: %+v", i, run, r)
			}
			got := see(e, e.Store, "a", task, look{})
			assert.Equal(e, map[string]int64{"granted": 5, "attempts": 2, "spent": 5}, got.Task.Counters)
			assert.Equal(e, map[string]txn.Cell{"result": {Ver: 1, Val: "ok"}}, got.Task.Cells)
			assert.Equal(e, "used", got.Task.Tokens["approval"].State)
			assert.Equal(e, []string{"parked", "begun", "attempt", "attempt", "settled"}, values(got.OfTask))
			assert.Len(e, got.Pending, run, "one outcome a life")
		}
	}
}

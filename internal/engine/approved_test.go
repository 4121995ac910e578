package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Whoever is among the sixteen for whom a call was approved latest finds their own, and nobody finds another's.
func TestApprovedLast_IsOfTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := &View{Snap: &txn.Snapshot{}}
		v.Snap.Agent.Tokens = map[string]txn.Token{}
		last, order := map[[2]string]string{}, [][2]string{}
		for i := range rapid.IntRange(0, 80).Draw(t, "approvals") {
			who := [2]string{fmt.Sprint("t", rapid.IntRange(0, 5).Draw(t, "tenant")), fmt.Sprint("s", rapid.IntRange(0, 5).Draw(t, "subject"))}
			v.Task = TaskState{Tenant: who[0], Subject: who[1]}
			e := ledger.Event{Type: ledger.ApprovalApproved, Action: "pay", Task: fmt.Sprint("task", i), Digest: "d"}
			v.remember(&e)
			var c changes
			c.approvedLast(&e)
			v.Snap.Agent.Tokens[c.list[0].Key] = txn.Token{State: c.list[0].To, Val: c.list[0].Val, At: int64(i)}
			last[who] = e.Task
			for k, o := range order {
				if o == who {
					order = append(order[:k:k], order[k+1:]...)
					break
				}
			}
			order = append(order, who)
		}
		require.LessOrEqual(t, len(v.Snap.Agent.Tokens), keptApproved)
		for k, who := range order {
			got, others := LastApproved(v, "pay", &TaskState{Tenant: who[0], Subject: who[1]})
			if k < len(order)-keptApproved {
				require.Nil(t, got)
			} else {
				require.NotNil(t, got)
				require.Equal(t, last[who], got.Task)
			}
			require.Equal(t, others, len(order) > 1 || got == nil)
		}
		got, _ := LastApproved(v, "pay", &TaskState{Tenant: "nobody"})
		require.Nil(t, got)
	})
}

// What an earlier version remembered is found, and its tenant is for the reader to look at.
func TestApprovedLast_OfBefore(t *testing.T) {
	old := ledger.Event{Type: ledger.ApprovalApproved, Action: "pay", Task: "t", Digest: "d"}
	cs := Changes(&old, nil)
	v := &View{Snap: &txn.Snapshot{}}
	v.Snap.Agent.Tokens = map[string]txn.Token{}
	for _, c := range cs {
		if c.Op == txn.Set && c.Scope == txn.Agent {
			v.Snap.Agent.Tokens[c.Key] = txn.Token{State: c.To, Val: c.Val}
		}
	}
	got, others := LastApproved(v, "pay", &TaskState{Tenant: "acme"})
	require.NotNil(t, got)
	assert.Equal(t, Approved{Task: "t", Digest: "d"}, *got, "for whom it was is not known")
	assert.False(t, others)
}

package engine

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

func failureMember(e *ledger.Event) string {
	return strings.Join([]string{e.Text, strconv.FormatInt(e.Expires, 10), e.Child}, "\n")
}

// FailuresOf returns when children of a workflow failed, of those that an agent's queue holds, store time, µs, rising.
func FailuresOf(workflow string, kept []txn.Queued) (at []int64) {
	for _, q := range kept {
		parts := strings.Split(q.Member, "\n")
		if len(parts) != 3 || parts[0] != workflow {
			continue
		}
		if lasts, err := strconv.ParseInt(parts[1], 10, 64); err == nil {
			at = append(at, q.Due-lasts)
		}
	}
	slices.Sort(at)
	return at
}

// ForgetFailures drops failures that count no more.
func ForgetFailures(agent string, kept []txn.Queued) *txn.Txn {
	t := &txn.Txn{Agent: agent, Phase: txn.Plain}
	for _, q := range kept {
		t.Add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueFailures, Val: q.Member})
	}
	return t
}

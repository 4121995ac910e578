package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// naiveLevels asks every action of the agent: which cells a fold writes, said in the dumbest way.
func naiveLevels(rules *Rules, agent *Agent, sp *txn.Space, b risk.Belief, outcomes []ledger.Observed) map[string]string {
	declared, done, out := map[string]risk.Declaration{}, map[string]bool{}, map[string]string{}
	for name, a := range agent.Actions {
		declared[name] = a.Declaration()
	}
	for _, o := range outcomes {
		if agent.Actions[o.Action] == nil && !done[o.Action] {
			declared[o.Action] = declarationOf(rules, agent, o)
		}
		done[o.Action] = true
	}
	for name, d := range declared {
		was := sp.Cells[cellLevel+name].Val
		score := learned(rules, b, d)
		if level := levelText(score); level != was && (done[name] || naivelyDrifted(rules, d, was, score)) {
			out[name] = level
		}
	}
	return out
}

func naivelyDrifted(rules *Rules, d risk.Declaration, was string, score float64) bool {
	old, err := strconv.ParseFloat(was, 64)
	if err != nil {
		old = math.Floor(learned(rules, risk.Belief{}, d)*levelSteps) / levelSteps
	}
	return score < old-1./levelSteps || score >= old+1./levelSteps
}

// A fold looks at few actions and writes what looking at all of them would write, whether it goes on from the fold before
// or from what is stored, and whether or not the one before was accepted.
func TestFoldsWriteTheLevelsThatMoved(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		agent := &Agent{Name: "agent", Actions: map[string]*Action{}}
		for i := range 24 {
			a := &Action{Name: fmt.Sprintf("act-%d", i), Version: "1", Risk: 1 + i%5}
			if i%3 == 0 {
				a.Tags = []string{[]string{"mail", "disk"}[i%2]}
			}
			agent.Actions[a.Name] = a.Ready()
		}
		rules := &Rules{Model: model}
		state := txn.NewState()
		var last *Folded
		seq := int64(0)
		for range rapid.IntRange(1, 25).Draw(r, "folds") {
			var pending []txn.Pending
			name := fmt.Sprintf("act-%d", rapid.IntRange(0, 25).Draw(r, "action")) // two of them the agent does not hold
			for range rapid.IntRange(1, 6).Draw(r, "outcomes") {
				seq++
				if rapid.IntRange(0, 3).Draw(r, "another") == 0 {
					name = fmt.Sprintf("act-%d", rapid.IntRange(0, 25).Draw(r, "action"))
				}
				o := ledger.Observed{Action: name, Declared: 2, Err: rapid.IntRange(0, 2).Draw(r, "err") == 0}
				pending = append(pending, txn.Pending{Seq: seq, Val: string(ledger.AppendObserved(nil, &o))})
			}
			snap := &txn.Snapshot{State: state, Pending: pending}
			x, now, err := FoldOn(last, rules, agent, snap, 1)
			require.NoError(r, err)
			require.Equal(r, naiveLevels(rules, agent, &state.Agent, now.belief, now.outcomes), now.wrote)
			written := map[string]string{}
			for _, c := range x.Clauses {
				if name, is := cutLevel(c); is {
					written[name] = c.Val
				}
			}
			require.Equal(r, now.wrote, written)
			if rapid.IntRange(0, 4).Draw(r, "refused") == 0 {
				continue
			}
			require.Equal(r, -1, state.Apply(x.Clauses, 1))
			if last = now; rapid.IntRange(0, 5).Draw(r, "forgotten") == 0 {
				last = nil
			}
		}
	})
}

func cutLevel(c txn.Clause) (string, bool) {
	if c.Op != txn.Put || len(c.Key) <= len(cellLevel) || c.Key[:len(cellLevel)] != cellLevel {
		return "", false
	}
	return c.Key[len(cellLevel):], true
}

// Of actions that never ran, those that were declared alike are asked once.
func TestAFoldAsksFewActions(t *testing.T) {
	agent := &Agent{Name: "agent", Actions: map[string]*Action{}}
	for i := range 1000 {
		a := &Action{Name: fmt.Sprintf("act-%d", i), Version: "1", Risk: 1 + i%3}
		agent.Actions[a.Name] = a.Ready()
	}
	rules := &Rules{Model: model}
	state := txn.NewState()
	var last *Folded
	fold := func() {
		val := string(ledger.AppendObserved(nil, &ledger.Observed{Action: "act-0", Declared: 1}))
		x, now, err := FoldOn(last, rules, agent, &txn.Snapshot{State: state, Pending: []txn.Pending{{Seq: 1, Val: val}}}, 1)
		require.NoError(t, err)
		require.Equal(t, -1, state.Apply(x.Clauses, 1))
		last = now
	}
	fold()
	fold()
	require.Len(t, last.lv.kinds, 3)
	require.Equal(t, []string{"act-0"}, slices.Collect(maps.Keys(last.lv.ran)))
	require.Less(t, testing.AllocsPerRun(50, fold), 200.)
}

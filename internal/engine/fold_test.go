package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/statespace"
)

// MaxFactsForTest is how many values are too many for tokens of their own.
const MaxFactsForTest = statespace.MaxFacts

// many lists one order among more than fit into tokens.
func many(n int, order string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"x%d"`, i)
	}
	return fmt.Sprintf(`{"open":[%q%s]}`, order, b.String())
}

// Whatever happened, replaying the ledger through Changes gives what the store holds: every cell with its version, every
// counter, every token with its stamps; and the agent's own ledger gives its beliefs bit for bit.
func TestI14_StateIsTheFoldOfTheLedger(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { foldOfTheLedger(r, 30) })
}

func foldOfTheLedger(r *rapid.T, n int) {
	s := newShift(r)
	for range n {
		s.step()
	}
	s.checkFold()
	s.checkQueues()
	s.fold()
	s.checkBeliefs()
}

func (s *shift) checkFold() {
	records := s.records(s.task)
	state, err := FoldLedger(records)
	require.NoError(s, err)
	stored := s.load()
	require.Equal(s, stored.Task.Cells, state.Task.Cells)
	require.Equal(s, nonzero(stored.Task.Counters), nonzero(state.Task.Counters))
	require.Equal(s, stored.Task.Tokens, state.Task.Tokens)
	require.Equal(s, stored.Agent.Counters, state.Agent.Counters, "this task is all that the agent ever did")
	keys := make([]string, 0, len(state.Record.Cells))
	for k := range state.Record.Cells {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	require.Equal(s, s.cold(keys...), state.Record.Cells)
}

func nonzero(m map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for k, n := range m {
		if n != 0 {
			out[k] = n
		}
	}
	return out
}

func (s *shift) checkBeliefs() {
	folded, err := FoldBeliefs(s.rules, s.agent, s.records(""))
	require.NoError(s, err)
	cells := s.load().Agent.Cells
	if _, ok := cells[cellTrust]; !ok {
		return // nothing ran
	}
	require.Equal(s, []byte(cells[cellTrust].Val), folded.Shared())
	for _, name := range folded.Names() {
		block, ok := folded.Action(name)
		require.True(s, ok)
		require.Equal(s, []byte(cells[cellBelief+name].Val), block, name)
	}
	require.Empty(s, s.snap.Pending)
}

// A ledger with a hole, or with an end that nothing began, is an error and no panic.
func TestI14_FoldReportsMissingRecords(t *testing.T) {
	d := open(t, plain())
	d.ok("confirm", `{"order":"A"}`, `{}`)
	whole := d.records(d.task)
	for i := range whole {
		e, err := ledger.Decode(whole[i].Val)
		require.NoError(t, err)
		_, err = FoldLedger(slices.Delete(slices.Clone(whole), i, i+1))
		if e.Type == ledger.Begun {
			assert.ErrorContains(t, err, e.Intent, "the settle has nothing to end")
		}
	}
}

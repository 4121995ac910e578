package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// What a store holds after any shift is the fold of the ledgers, and whatever is changed in it is named.
func TestI14_CompareNamesWhatIsNotTheFold(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := newShift(r)
		for range 10 {
			s.step()
		}
		folded, err := FoldLedger(s.records(s.task))
		require.NoError(r, err)
		stored := s.load()
		require.Empty(r, CompareTask(folded, stored))
		require.NotEmpty(r, stored.Task.Cells)
		keys := LastingRecords(folded)
		cold := s.cold(keys...)
		require.Empty(r, CompareRecords(folded, keys, cold))
		for _, key := range keys {
			was := cold[key]
			delete(cold, key)
			require.Equal(r, []Difference{{"task record " + key, "", folded.Record.Cells[key].Val}}, CompareRecords(folded, keys, cold), "it was deleted")
			cold[key] = was
		}
		stored.Task.Cells["x"] = txn.Cell{Val: "y"}
		stored.Task.Counters["n"] = 3
		stored.Task.Tokens["k"] = txn.Token{State: "s"}
		folded.Task.Tokens["gone"] = txn.Token{State: "s", Exp: 1}
		assert.Equal(r, []Difference{{"task cell x", "y", ""}, {"task counter n", "3", ""}, {"task token k", `s "" since 0 until 0`, ""}}, CompareTask(folded, stored))

		s.fold()
		d, err := CompareBeliefs(s.rules, s.agent, s.records(""), s.load())
		require.NoError(r, err)
		require.Empty(r, d)
		moved := s.load()
		moved.Agent.Cells[cellBelief+"nothing"] = txn.Cell{Val: "\x01"}
		d, err = CompareBeliefs(s.rules, s.agent, s.records(""), moved)
		require.NoError(r, err)
		require.Equal(r, []Difference{{"agent belief/nothing", "01", ""}}, d)
	})
}

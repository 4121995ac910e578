package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// What a chain cannot show by itself, an earlier report does: links taken away, an end cut off, a ledger written anew.
func TestI14_CompareFindsWhatAChainAloneCannot(t *testing.T) {
	g := ledger.Genesis("a", "t")
	earlier, err := ledger.Verify(g, chain(g, 7, 5))
	require.NoError(t, err)
	for _, c := range []struct {
		name  string
		make  func() []txn.Stored
		fault ledger.Fault
		seq   int64
	}{
		{"as it was", func() []txn.Stored { return chain(g, 7, 5) }, "", 0},
		{"longer, and sealed further", func() []txn.Stored { return chain(g, 9, 8) }, "", 0},
		{"all links taken away", func() []txn.Stored { return chain(g, 7, 0) }, ledger.Unsealed, 1},
		{"the last links taken away", func() []txn.Stored { return chain(g, 7, 3) }, ledger.Unsealed, 4},
		{"links taken away and a value changed", func() []txn.Stored {
			rs := chain(g, 7, 3)
			rs[3].Val = "x"
			return rs
		}, ledger.Changed, 4},
		{"cut off", func() []txn.Stored { return chain(g, 4, 4) }, ledger.CutOff, 5},
		{"gone", func() []txn.Stored { return nil }, ledger.CutOff, 1},
		{"written anew", func() []txn.Stored {
			rs, head := chain(g, 7, 0), g
			rs[0].Val = "x"
			for i := range rs {
				head = ledger.Link(head, rs[i])
				rs[i].Link = head
			}
			return rs
		}, ledger.Changed, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			rs := c.make()
			found, err := ledger.Verify(g, rs)
			require.NoError(t, err, "whole by itself")
			require.NoError(t, ledger.Compare(rs, found, ledger.Report{}), "nothing was sealed")
			err = ledger.Compare(rs, found, earlier)
			if c.fault == "" {
				require.NoError(t, err)
				return
			}
			var b *ledger.BrokenError
			require.ErrorAs(t, err, &b)
			assert.Equal(t, c.fault, b.Fault)
			assert.Equal(t, c.seq, b.Seq)
			assert.NotEmpty(t, b.Error())
		})
	}
}

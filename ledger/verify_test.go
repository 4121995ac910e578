package ledger_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// chain returns n records, the first sealed of them linked.
func chain(genesis string, n, sealed int) []txn.Stored {
	rs, head := make([]txn.Stored, n), genesis
	for i := range rs {
		rs[i] = txn.Stored{Seq: int64(i + 1), At: int64(1000 + 10*i), Val: fmt.Sprintf(`{"v":1,"n":%d}`, i)}
		if i < sealed {
			head = ledger.Link(head, rs[i])
			rs[i].Link = head
		}
	}
	return rs
}

// Links are the format: a change here makes every existing ledger read as tampered with. The values were computed apart,
// with Python's hashlib and struct.
func TestLinkGolden(t *testing.T) {
	g := ledger.Genesis("support", "t1")
	assert.Equal(t, "5451512763a3a504c98b3287873d0063cceefe3f0eb51a67701765a2e7f3601e", g)
	assert.Equal(t, "ad0a4352d2548e2fdec5264fd18c753e8fd5ceef77de4623257ae8ddfdbb1a21", ledger.Link(g, txn.Stored{Seq: 1, At: 2, Val: "x"}))
}

func TestLinkDependsOnEveryPart(t *testing.T) {
	base := ledger.Link("ab", txn.Stored{Seq: 1, At: 2, Val: "x"})
	seen := map[string]string{base: "base"}
	for name, l := range map[string]string{
		"prev":              ledger.Link("ac", txn.Stored{Seq: 1, At: 2, Val: "x"}),
		"seq":               ledger.Link("ab", txn.Stored{Seq: 2, At: 2, Val: "x"}),
		"at":                ledger.Link("ab", txn.Stored{Seq: 1, At: 3, Val: "x"}),
		"val":               ledger.Link("ab", txn.Stored{Seq: 1, At: 2, Val: "y"}),
		"a byte that moved": ledger.Link("a", txn.Stored{Seq: 1, At: 2, Val: "bx"}),
		"genesis":           ledger.Genesis("ab", "x"),
		"genesis, moved":    ledger.Genesis("a", "bx"),
	} {
		assert.Empty(t, seen[l], name)
		seen[l] = name
	}
	assert.Equal(t, base, ledger.Link("ab", txn.Stored{Seq: 1, At: 2, Val: "x", Link: "whatever"}))
}

func TestVerifyReportsHowFarItIsSealed(t *testing.T) {
	g := ledger.Genesis("a", "t")
	for _, c := range []struct{ n, sealed int }{{0, 0}, {1, 0}, {1, 1}, {5, 3}, {5, 5}} {
		rs := chain(g, c.n, c.sealed)
		rep, err := ledger.Verify(g, rs)
		require.NoError(t, err)
		head := g
		if c.sealed > 0 {
			head = rs[c.sealed-1].Link
		}
		assert.Equal(t, ledger.Report{Records: c.n, Sealed: int64(c.sealed), Head: head, Unsealed: c.n - c.sealed}, rep)
	}
}

func TestVerifyLocates(t *testing.T) {
	g := ledger.Genesis("a", "t")
	for _, c := range []struct {
		name  string
		spoil func([]txn.Stored) []txn.Stored
		want  ledger.BrokenError
	}{
		{"another ledger's records", func(rs []txn.Stored) []txn.Stored { return chain(ledger.Genesis("a", "u"), 6, 4) }, ledger.BrokenError{Fault: ledger.Changed, Seq: 1, Found: 1}},
		{"a value", func(rs []txn.Stored) []txn.Stored { rs[2].Val += " "; return rs }, ledger.BrokenError{Fault: ledger.Changed, Seq: 3, Found: 3}},
		{"a link", func(rs []txn.Stored) []txn.Stored { rs[1].Link = rs[0].Link; return rs }, ledger.BrokenError{Fault: ledger.Changed, Seq: 2, Found: 2}},
		{"a link erased", func(rs []txn.Stored) []txn.Stored { rs[1].Link = ""; return rs }, ledger.BrokenError{Fault: ledger.Unlinked, Seq: 2, Found: 3}},
		{"the first dropped", func(rs []txn.Stored) []txn.Stored { return rs[1:] }, ledger.BrokenError{Fault: ledger.Missing, Seq: 1, Found: 2}},
		{"a hole in the tail", func(rs []txn.Stored) []txn.Stored { return append(rs[:4], rs[5]) }, ledger.BrokenError{Fault: ledger.Missing, Seq: 5, Found: 6}},
		{"one twice", func(rs []txn.Stored) []txn.Stored { return append(rs[:2:2], rs[1:]...) }, ledger.BrokenError{Fault: ledger.Repeated, Seq: 3, Found: 2}},
		{"two swapped", func(rs []txn.Stored) []txn.Stored { rs[1], rs[2] = rs[2], rs[1]; return rs }, ledger.BrokenError{Fault: ledger.Reordered, Seq: 2, Found: 3}},
		{"a link in the tail", func(rs []txn.Stored) []txn.Stored { rs[5].Link = ledger.Link(rs[3].Link, rs[5]); return rs }, ledger.BrokenError{Fault: ledger.Unlinked, Seq: 5, Found: 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ledger.Verify(g, c.spoil(chain(g, 6, 4)))
			var b *ledger.BrokenError
			require.ErrorAs(t, err, &b)
			assert.Equal(t, c.want, *b)
			assert.Contains(t, err.Error(), fmt.Sprintf("record %d", c.want.Seq))
		})
	}
}

// Whatever one changes in the sealed stretch, the first record that differs is the one that is named.
func TestI14_AnyTamperingIsFoundAndLocated(t *testing.T) {
	g := ledger.Genesis("support", "t")
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "n")
		rs := chain(g, n, n)
		i := rapid.IntRange(0, n-1).Draw(t, "record")
		at := int64(i + 1)
		switch what := rapid.SampledFrom([]string{"val", "at", "seq", "link", "unlink", "drop", "repeat", "swap"}).Draw(t, "what"); what {
		case "val":
			rs[i].Val = flip(t, rs[i].Val)
		case "at":
			rs[i].At ^= 1 << rapid.IntRange(0, 63).Draw(t, "bit")
		case "seq":
			rs[i].Seq ^= 1 << rapid.IntRange(0, 63).Draw(t, "bit")
		case "link":
			rs[i].Link = flip(t, rs[i].Link)
		case "unlink", "drop":
			if i == n-1 {
				t.Skip("an end cut off is a shorter chain")
			}
			if what == "unlink" {
				rs[i].Link = ""
			} else {
				rs = append(rs[:i:i], rs[i+1:]...)
			}
		case "repeat":
			rs = append(rs[:i+1:i+1], rs[i:]...)
			at++
		case "swap":
			j := rapid.IntRange(0, n-1).Filter(func(j int) bool { return j != i }).Draw(t, "with")
			rs[i], rs[j] = rs[j], rs[i]
			at = int64(min(i, j) + 1)
		}
		rep, err := ledger.Verify(g, rs)
		var b *ledger.BrokenError
		require.ErrorAs(t, err, &b)
		require.Equal(t, at, b.Seq)
		require.LessOrEqual(t, rep.Sealed, at-1, "the report covers what comes before")

		v := ledger.NewVerifier(g)
		var first error
		for _, r := range rs {
			if first = v.Add(r); first != nil {
				break
			}
		}
		require.Error(t, first, "a stream finds it too")
		require.Same(t, first, v.Add(rs[0]), "and does not forget")
	})
}

func flip(t *rapid.T, s string) string {
	b := []byte(s)
	b[rapid.IntRange(0, len(b)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
	return string(b)
}

func TestResumeGoesOnWhereAReportEnds(t *testing.T) {
	g := ledger.Genesis("a", "t")
	rs := chain(g, 6, 6)
	rep, err := ledger.Verify(g, rs[:3])
	require.NoError(t, err)
	v := ledger.Resume(rep.Sealed, rep.Head)
	for _, r := range rs[3:] {
		require.NoError(t, v.Add(r))
	}
	assert.Equal(t, rs[5].Link, v.Report().Head)
	assert.Error(t, ledger.Resume(rep.Sealed, g).Add(rs[3]), "another head does not fit")
}

func ExampleVerify() {
	genesis := ledger.Genesis("support", "task-1")
	records, head := []txn.Stored{}, genesis
	for i, kind := range []ledger.Type{ledger.TaskStarted, ledger.Begun, ledger.Settled} {
		text, _ := ledger.Encode(ledger.Event{Type: kind, At: int64(i)})
		r := txn.Stored{Seq: int64(i + 1), At: int64(i), Val: text}
		head = ledger.Link(head, r)
		r.Link = head
		records = append(records, r)
	}
	report, err := ledger.Verify(genesis, records)
	fmt.Println(report.Records, report.Sealed, err)

	records[1].Val = records[2].Val
	_, err = ledger.Verify(genesis, records)
	var broken *ledger.BrokenError
	fmt.Println(errors.As(err, &broken), err)
	// Output:
	// 3 3 <nil>
	// true ledger record 2 was changed: its link does not follow from its contents
}

func BenchmarkLink(b *testing.B) {
	r := txn.Stored{Seq: 1, At: 2, Val: string(make([]byte, 512))}
	prev := hex.EncodeToString(make([]byte, 32))
	b.ReportAllocs()
	for b.Loop() {
		prev = ledger.Link(prev, r)
	}
}

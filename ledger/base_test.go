package ledger_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// pruned returns the records of an agent's own ledger, sealed, of which one is the checkpoint of those up to cut, and what is
// kept of those.
func pruned(tb require.TestingT, before, cut, after int) (whole []txn.Stored, b ledger.Base) {
	head := ledger.Genesis("desk", "")
	log := &ledger.Log{}
	add := func(e ledger.Event) {
		text, err := ledger.Encode(e)
		require.NoError(tb, err)
		r := txn.Stored{Seq: int64(len(whole) + 1), At: int64(len(whole)), Val: text}
		head = ledger.Link(head, r)
		r.Link = head
		require.NoError(tb, log.Add(head))
		whole = append(whole, r)
	}
	for i := range before {
		add(ledger.Event{Type: ledger.Note, Agent: "desk", Text: fmt.Sprint("note ", i)})
	}
	b, err := log.Base(int64(cut), whole[cut-1].Link)
	require.NoError(tb, err)
	state, err := json.Marshal(struct {
		Tree []ledger.Hash `json:"tree"`
	}{b.Tree})
	require.NoError(tb, err)
	add(ledger.Event{Type: ledger.LedgerPruned, Agent: "desk", ToSeq: b.Seq, Digest: b.Link, State: state})
	for i := range after {
		add(ledger.Event{Type: ledger.Note, Agent: "desk", Text: fmt.Sprint("later ", i)})
	}
	return whole, b
}

// What is left of a pruned ledger has the heads and the proofs that the whole one has.
func TestPrunedLedgersHaveTheSameTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.IntRange(1, 40).Draw(t, "before")
		cut := rapid.IntRange(1, before).Draw(t, "cut")
		whole, b := pruned(t, before, cut, rapid.IntRange(0, 20).Draw(t, "after"))
		left := whole[cut:]
		found, err := ledger.BaseIn(left)
		require.NoError(t, err)
		require.Equal(t, b, found)
		report, err := ledger.VerifyFrom("desk", "", left)
		require.NoError(t, err)
		require.Equal(t, ledger.Report{Records: len(left), Sealed: int64(len(whole)), Head: whole[len(whole)-1].Link, Pruned: int64(cut)}, report)
		all, err := ledger.NewLog(whole)
		require.NoError(t, err)
		log, err := ledger.NewLog(left)
		require.NoError(t, err)
		size := log.Size()
		require.Equal(t, all.Size(), size)
		older := rapid.Int64Range(int64(cut), size).Draw(t, "older")
		want, err := all.ProveGrowth(older, size)
		require.NoError(t, err)
		got, err := log.ProveGrowth(older, size)
		require.NoError(t, err)
		require.Equal(t, want, got)
		seq := rapid.Int64Range(int64(cut)+1, size).Draw(t, "seq")
		want, err = all.ProveRecord(seq, size)
		require.NoError(t, err)
		got, err = log.ProveRecord(seq, size)
		require.NoError(t, err)
		require.Equal(t, want, got)
		was, err := all.Root(int64(cut))
		require.NoError(t, err)
		root, err := b.Root()
		require.NoError(t, err)
		require.Equal(t, was, root)
	})
}

func TestWhatWasPrunedCannotBeProved(t *testing.T) {
	whole, _ := pruned(t, 11, 7, 3)
	log, err := ledger.NewLog(whole[7:])
	require.NoError(t, err)
	_, err = log.ProveRecord(3, log.Size())
	require.ErrorIs(t, err, ledger.ErrPruned)
	_, err = log.Root(5)
	require.ErrorIs(t, err, ledger.ErrPruned)
	require.ErrorIs(t, log.Extends(ledger.Head{Agent: "desk", Size: 5}), ledger.ErrPruned)
}

func TestAPrunedLedgerShowsTampering(t *testing.T) {
	for _, c := range []struct {
		name, reason string
		spoil        func(left []txn.Stored) []txn.Stored
	}{
		{"more was taken", "the checkpoint says where it begins", func(left []txn.Stored) []txn.Stored { return left[1:] }},
		{"a record changed", "its link does not follow", func(left []txn.Stored) []txn.Stored { left[1].Val += " "; return left }},
		{"the first changed", "nor from the link that was kept", func(left []txn.Stored) []txn.Stored { left[0].At++; return left }},
		{"the checkpoint is gone", "nothing says what came before", func(left []txn.Stored) []txn.Stored { return left[:3] }},
		{"another checkpoint", "the chain goes on from another link", func(left []txn.Stored) []txn.Stored {
			left[4].Val = strings.Replace(left[4].Val, `"digest":"`, `"digest":"0`, 1)
			return left
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole, _ := pruned(t, 11, 7, 3)
			_, err := ledger.VerifyFrom("desk", "", c.spoil(whole[7:]))
			assert.Error(t, err, c.reason)
		})
	}
	whole, _ := pruned(t, 11, 7, 3)
	report, err := ledger.VerifyFrom("desk", "", whole[7:])
	require.NoError(t, err)
	require.NoError(t, ledger.Compare(whole[7:], report, ledger.Report{Sealed: 9, Head: whole[8].Link}))
	require.NoError(t, ledger.Compare(whole[7:], report, ledger.Report{Sealed: 3, Head: whole[2].Link}), "nothing is left to compare")
	require.NoError(t, ledger.Compare(whole[7:], report, ledger.Report{Sealed: 7, Head: whole[6].Link}))
	require.Error(t, ledger.Compare(whole[7:], report, ledger.Report{Sealed: 7, Head: whole[5].Link}), "it goes on from something else")
	require.Error(t, ledger.Compare(whole[7:], report, ledger.Report{Sealed: 9, Head: whole[7].Link}))
	require.Error(t, ledger.Compare(whole[7:9], report, ledger.Report{Sealed: 15, Head: whole[14].Link}))
}

func TestExportOfAPrunedLedger(t *testing.T) {
	whole, b := pruned(t, 11, 7, 3)
	var file bytes.Buffer
	x := ledger.NewExporterFrom(&file, "desk", "", b)
	for _, r := range whole[7:] {
		require.NoError(t, x.Add(r))
	}
	head, err := x.End()
	require.NoError(t, err)
	all, err := ledger.NewLog(whole)
	require.NoError(t, err)
	want, err := all.Head("desk", "")
	require.NoError(t, err)
	require.Equal(t, want, head)

	got, err := ledger.NewImporter(bytes.NewReader(file.Bytes())).Next()
	require.NoError(t, err)
	require.Equal(t, whole[7:], got.Records)
	require.Equal(t, b, got.Base)
	r, prev, ok := got.Record(9)
	require.True(t, ok)
	require.Equal(t, whole[8], r)
	require.Equal(t, whole[7].Link, prev)
	_, prev, ok = got.Record(8)
	require.True(t, ok)
	require.Equal(t, b.Link, prev)
	_, _, ok = got.Record(7)
	require.False(t, ok)

	for _, forged := range []string{
		strings.Replace(file.String(), `"seq":7,`, `"seq":6,`, 1),
		strings.Replace(file.String(), `"ledger":2`, `"ledger":1`, 1),
		strings.Replace(file.String(), b.Tree[0].String(), b.Tree[1].String(), 1),
	} {
		_, err = ledger.NewImporter(strings.NewReader(forged)).Next()
		require.Error(t, err)
	}
	require.Error(t, ledger.NewExporterFrom(&file, "desk", "", ledger.Base{Seq: 3}).Add(whole[3]), "no ledger has this base")
}

func ExampleOpenCheckpoint() {
	random := bytes.NewReader(bytes.Repeat([]byte{7}, 64))
	secret, public, _ := ledger.NewKey(random, "audit.example.org")
	signer, _ := ledger.NewSigner(secret)

	log := &ledger.Log{}
	_ = log.Add(strings.Repeat("0f", 32))
	head, _ := log.Head("desk", "")
	state := []byte(`{"trust":"…"}`)
	signed, _ := ledger.SignCheckpoint(head, state, signer)
	fmt.Println(ledger.OpenCheckpoint(signed, head, state, public))
	fmt.Println(ledger.OpenCheckpoint(signed, head, []byte("another state"), public))
	// Output:
	// <nil>
	// checkpoint of desk at 1 records: the ledger is not the one that the head was taken of
}

package ledger_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// told returns n sealed records that hold events.
func told(t require.TestingT, agent, task string, n int) []txn.Stored {
	rs, head := make([]txn.Stored, n), ledger.Genesis(agent, task)
	for i := range rs {
		text, err := ledger.Encode(ledger.Event{Type: ledger.Note, At: int64(i), Agent: agent, Task: task, Text: fmt.Sprintf("note %d", i)})
		require.NoError(t, err)
		rs[i] = txn.Stored{Seq: int64(i + 1), At: int64(1000 + i), Val: text}
		head = ledger.Link(head, rs[i])
		rs[i].Link = head
	}
	return rs
}

func logOf(t require.TestingT, rs []txn.Stored) *ledger.Log {
	l, err := ledger.NewLog(rs)
	require.NoError(t, err)
	return l
}

func headOf(t require.TestingT, rs []txn.Stored) ledger.Head {
	h, err := logOf(t, rs).Head("a", "t")
	require.NoError(t, err)
	return h
}

// Whoever holds the head of yesterday is shown that today's ledger goes on from it, and every record that is in it; and a
// ledger in which anything before that was touched cannot show it, whatever proof it comes with.
func TestI14_AHeadOfYesterdayProvesThatNothingWasRewritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		old := rapid.IntRange(0, n).Draw(t, "old")
		rs := told(t, "a", "t", n)
		l, today, yesterday := logOf(t, rs), headOf(t, rs), headOf(t, rs[:old])
		proof, err := l.ProveGrowth(int64(old), int64(n))
		require.NoError(t, err)
		require.NoError(t, ledger.CheckGrowth(yesterday, today, proof))
		require.NoError(t, l.Extends(yesterday))

		seq := rapid.IntRange(1, n).Draw(t, "seq")
		path, err := l.ProveRecord(int64(seq), int64(n))
		require.NoError(t, err)
		prev := ledger.Genesis("a", "t")
		if seq > 1 {
			prev = rs[seq-2].Link
		}
		require.NoError(t, ledger.CheckRecord(today, prev, rs[seq-1], path))
		other := rs[seq-1]
		other.Val = flip(t, other.Val)
		require.ErrorIs(t, ledger.CheckRecord(today, prev, other, path), ledger.ErrRewritten)

		if old == 0 {
			return
		}
		// Written anew from some record of yesterday on, chain and tree in order by themselves.
		from := rapid.IntRange(1, old).Draw(t, "from")
		again := append([]txn.Stored(nil), rs...)
		head := prevOf(again, from)
		for i := from - 1; i < n; i++ {
			if i == from-1 {
				again[i].At++
			}
			again[i].Link = ledger.Link(head, again[i])
			head = again[i].Link
		}
		_, err = ledger.Verify(ledger.Genesis("a", "t"), again)
		require.NoError(t, err)
		forged := logOf(t, again)
		lie, err := forged.ProveGrowth(int64(old), int64(n))
		require.NoError(t, err)
		require.ErrorIs(t, ledger.CheckGrowth(yesterday, headOf(t, again), lie), ledger.ErrRewritten)
		require.ErrorIs(t, ledger.CheckGrowth(yesterday, headOf(t, again), proof), ledger.ErrRewritten)
		require.ErrorIs(t, forged.Extends(yesterday), ledger.ErrRewritten)
	})
}

func prevOf(rs []txn.Stored, seq int) string {
	if seq == 1 {
		return ledger.Genesis("a", "t")
	}
	return rs[seq-2].Link
}

func TestALogThatIsShorterThanItsHeadIsCutOff(t *testing.T) {
	rs := told(t, "a", "t", 5)
	var b *ledger.BrokenError
	require.ErrorAs(t, logOf(t, rs[:3]).Extends(headOf(t, rs)), &b)
	assert.Equal(t, ledger.BrokenError{Fault: ledger.CutOff, Seq: 4, Found: 5}, *b)
}

// The tree is RFC 6962's: this one is computed by its definition.
func TestRootIsThatOfRFC6962(t *testing.T) {
	rs := told(t, "a", "t", 3)
	leaf := func(r txn.Stored) []byte {
		var b []byte
		_, err := fmt.Sscanf(r.Link, "%x", &b)
		require.NoError(t, err)
		s := sha256.Sum256(append([]byte{0}, b...))
		return s[:]
	}
	node := func(l, r []byte) []byte {
		s := sha256.Sum256(append(append([]byte{1}, l...), r...))
		return s[:]
	}
	want := node(node(leaf(rs[0]), leaf(rs[1])), leaf(rs[2]))
	assert.Equal(t, want, func() []byte { r := headOf(t, rs).Root; return r[:] }())
}

func TestProofsThatCannotBe(t *testing.T) {
	l := logOf(t, told(t, "a", "t", 4))
	for name, f := range map[string]func() error{
		"a record before the first": func() error { _, err := l.ProveRecord(0, 4); return err },
		"a record behind the last":  func() error { _, err := l.ProveRecord(5, 4); return err },
		"a tree too large":          func() error { _, err := l.ProveRecord(1, 5); return err },
		"a tree of less than none":  func() error { _, err := l.Root(-1); return err },
		"from more to less":         func() error { _, err := l.ProveGrowth(3, 2); return err },
		"from less than none":       func() error { _, err := l.ProveGrowth(-1, 2); return err },
		"a link that is none":       func() error { return l.Add("abc") },
		"heads of two ledgers": func() error {
			return ledger.CheckGrowth(ledger.Head{Agent: "a"}, ledger.Head{Agent: "b"}, nil)
		},
	} {
		assert.Error(t, f(), name)
	}
	assert.EqualValues(t, 4, l.Size())
}

// random is a source of keys that is the same each time.
func random() io.Reader { return rand.NewChaCha8([32]byte{1}) }

func TestSignedHeads(t *testing.T) {
	secret, public, err := ledger.NewKey(random(), "audit.example.org")
	require.NoError(t, err)
	_, stranger, err := ledger.NewKey(rand.NewChaCha8([32]byte{2}), "audit.example.org")
	require.NoError(t, err)
	s, err := ledger.NewSigner(secret + "\n")
	require.NoError(t, err)
	h := headOf(t, told(t, "a", "t", 3))
	signed, err := ledger.SignHead(h, s)
	require.NoError(t, err)

	got, err := ledger.OpenHead(signed, stranger, public)
	require.NoError(t, err)
	assert.Equal(t, h, got)
	got, err = ledger.UnsignedHead(signed)
	require.NoError(t, err)
	assert.Equal(t, h, got)
	got, err = ledger.UnsignedHead(h.Text())
	require.NoError(t, err)
	assert.Equal(t, h, got)

	_, err = ledger.OpenHead(signed, stranger)
	assert.Error(t, err, "signed by nobody who is trusted")
	_, err = ledger.OpenHead(signed)
	assert.Error(t, err, "nobody is trusted")
	_, err = ledger.OpenHead(h.Text(), public)
	assert.Error(t, err, "not signed")
	for i := range signed {
		b := []byte(signed)
		b[i] ^= 1
		got, err := ledger.OpenHead(string(b), public)
		// The last digit of a signature has bits that stand for nothing.
		assert.True(t, err != nil || got == h, "byte %d", i)
	}
}

func TestKeysThatAreNone(t *testing.T) {
	for _, name := range []string{"", "a b", "a+b", "a\nb"} {
		_, _, err := ledger.NewKey(random(), name)
		assert.Error(t, err, "%q", name)
	}
	_, err := ledger.NewSigner("PRIVATE+KEY+x+123+MYKEY")
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "MYKEY")
	_, err = ledger.SignHead(ledger.Head{Agent: "a"})
	assert.ErrorContains(t, err, "no key")
	_, err = ledger.OpenHead("x", "nonsense")
	assert.ErrorContains(t, err, "not a public key")
	for _, text := range []string{"", "x", "delta-agents ledger a\n1\n", "delta-agents ledger a\n-1\nAAAA\n", "delta-agents ledger a\n01\n" + ledger.Hash{}.String() + "\n", "delta-agents ledger a\n1\nAAAA\n"} {
		_, err := ledger.ParseHead(text)
		assert.Error(t, err, "%q", text)
	}
}

func export(t require.TestingT, w io.Writer, task string, rs []txn.Stored) ledger.Head {
	x := ledger.NewExporter(w, "a", task)
	for _, r := range rs {
		require.NoError(t, x.Add(r))
	}
	h, err := x.End()
	require.NoError(t, err)
	return h
}

func read(text string) (all []*ledger.Exported, err error) {
	in := ledger.NewImporter(strings.NewReader(text))
	for {
		x, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, x)
	}
}

func TestAnExportIsReadAsItWasWritten(t *testing.T) {
	var b bytes.Buffer
	one, two := told(t, "a", "t", 7), told(t, "a", "", 2)
	one[6].Link, one[5].Link = "", "" // not sealed yet
	h := export(t, &b, "t", one)
	export(t, &b, "", two)
	export(t, &b, "empty", nil)
	all, err := read(b.String())
	require.NoError(t, err)
	require.Len(t, all, 3)
	assert.Equal(t, told(t, "a", "t", 7), all[0].Records, "what was not sealed is")
	assert.Equal(t, h, all[0].Head)
	assert.Equal(t, "a~t", all[0].Head.Name())
	assert.Equal(t, "a", all[1].Head.Name())
	assert.Empty(t, all[2].Records)
}

// Any byte of an export that is another, any line that is missing, there twice or elsewhere is found, and the error names
// the line, or the first one that is not what it should be.
func TestI14_AnExportShowsEveryChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		export(t, &b, "t", told(t, "a", "t", rapid.IntRange(1, 12).Draw(t, "n")))
		text := b.String()
		lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
		lines[len(lines)-1] += "\n"
		at := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
		want := at + 1
		switch rapid.SampledFrom([]string{"flip", "drop", "repeat", "swap", "cut"}).Draw(t, "what") {
		case "flip":
			lines[at] = flip(t, lines[at])
		case "drop":
			lines = append(lines[:at:at], lines[at+1:]...)
		case "repeat":
			lines = append(lines[:at+1:at+1], lines[at:]...)
			want++
		case "swap":
			j := rapid.IntRange(0, len(lines)-1).Filter(func(j int) bool { return j != at }).Draw(t, "with")
			lines[at], lines[j] = lines[j], lines[at]
			want = min(at, j) + 1
		case "cut":
			whole := len(text)
			cut := text[:rapid.IntRange(0, whole-1).Draw(t, "bytes")]
			lines, want = []string{cut}, strings.Count(cut, "\n")+1
		}
		_, err := read(strings.Join(lines, ""))
		var e *ledger.ExportError
		require.ErrorAs(t, err, &e)
		// A name that was changed shows in the first record, which is linked to it.
		if want == 1 && e.Line == 2 {
			return
		}
		require.Equal(t, want, e.Line, "%v", err)
	})
}

func TestAnExporterWritesNothingThatIsBroken(t *testing.T) {
	rs := told(t, "a", "t", 3)
	rs[1].At++
	x := ledger.NewExporter(io.Discard, "a", "t")
	require.NoError(t, x.Add(rs[0]))
	var b *ledger.BrokenError
	require.ErrorAs(t, x.Add(rs[1]), &b)
	require.ErrorAs(t, x.Add(rs[2]), &b, "the first error is final")
	_, err := x.End()
	require.ErrorAs(t, err, &b)

	x = ledger.NewExporter(io.Discard, "a", "t")
	require.ErrorContains(t, x.Add(txn.Stored{Seq: 1, Val: `{"v":1}`}), "record 1")

	x = ledger.NewExporter(io.Discard, "a", "t")
	_, err = x.End()
	require.NoError(t, err)
	require.ErrorContains(t, x.Add(rs[0]), "closed")
}

func FuzzImporter(f *testing.F) {
	var b bytes.Buffer
	export(f, &b, "t", told(f, "a", "t", 3))
	f.Add(b.String())
	f.Add(`{"ledger":1,"agent":"a"}` + "\n" + `{"end":0,"root":"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="}` + "\n")
	whole, base := pruned(f, 5, 3, 1)
	var left bytes.Buffer
	kept := ledger.NewExporterFrom(&left, "desk", "", base)
	for _, r := range whole[3:] {
		require.NoError(f, kept.Add(r))
	}
	_, err := kept.End()
	require.NoError(f, err)
	f.Add(left.String())
	f.Fuzz(func(t *testing.T, text string) {
		all, err := read(text)
		if err != nil {
			return
		}
		var again bytes.Buffer // what is read is exactly what would be written
		for _, l := range all {
			x := ledger.NewExporterFrom(&again, l.Agent, l.Task, l.Base)
			for _, r := range l.Records {
				require.NoError(t, x.Add(r))
			}
			h, err := x.End()
			require.NoError(t, err)
			require.Equal(t, l.Head, h)
		}
		require.Equal(t, text, again.String())
	})
}

func FuzzParseHead(f *testing.F) {
	f.Add(ledger.Head{Agent: "a", Task: "t", Size: 3}.Text())
	f.Add("delta-agents ledger a\n0\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		if h, err := ledger.ParseHead(text); err == nil {
			require.Equal(t, text, h.Text())
			again, err := ledger.UnsignedHead(text + "\n— somebody AAAA\n")
			require.NoError(t, err)
			require.Equal(t, h, again)
		}
		_, _ = ledger.UnsignedHead(text)
	})
}

func ExampleLog() {
	secret, public, _ := ledger.NewKey(rand.NewChaCha8([32]byte{}), "ledger.example.org")
	signer, _ := ledger.NewSigner(secret)
	log, link := &ledger.Log{}, ledger.Genesis("support", "task-1")
	write := func(n int) {
		for range n {
			text, _ := ledger.Encode(ledger.Event{Type: ledger.Note, Text: "something happened"})
			link = ledger.Link(link, txn.Stored{Seq: log.Size() + 1, Val: text})
			_ = log.Add(link)
		}
	}

	write(1000)
	head, _ := log.Head("support", "task-1")
	yesterday, _ := ledger.SignHead(head, signer) // the auditor keeps this

	write(500)
	today, _ := log.Head("support", "task-1")
	proof, _ := log.ProveGrowth(head.Size, today.Size)

	kept, err := ledger.OpenHead(yesterday, public)
	fmt.Println(kept.Name(), kept.Size, err)
	fmt.Println(len(proof), "hashes prove it:", ledger.CheckGrowth(kept, today, proof))
	// Output:
	// support~task-1 1000 <nil>
	// 9 hashes prove it: <nil>
}

func ExampleExporter() {
	var file strings.Builder
	x := ledger.NewExporter(&file, "support", "task-1")
	text, _ := ledger.Encode(ledger.Event{Type: ledger.Note, Text: "hello"})
	_ = x.Add(txn.Stored{Seq: 1, At: 5, Val: text})
	head, _ := x.End()
	fmt.Println(head.Name(), head.Size)

	_, err := ledger.NewImporter(strings.NewReader(strings.Replace(file.String(), "hello", "hullo", 1))).Next()
	fmt.Println(err)
	// Output:
	// support~task-1 1
	// line 2, ledger support~task-1: ledger record 1 was changed: its link does not follow from its contents
}

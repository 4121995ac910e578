package delta

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Answers come in any order, others write in between, some answers are lost: what is told is in the order of the ledger,
// nothing twice, and once all are answered everything accepted was told or is in a gap.
func TestWatch_PutsAnswersInOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := &watcher{Watch: Watch{Queue: 1 << 20}}
		w.more = sync.NewCond(&w.mu)
		h := &watch{books: map[book]*order{}, all: []*watcher{w}}
		type flying struct {
			answer func(txn.Reply, error)
			seq    int64 // 0: not applied yet
			n      int64
		}
		var out []*flying
		next, accepted, lost := int64(1), int64(0), int64(0)
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			switch rapid.IntRange(0, 4).Draw(r, "step") {
			case 0, 1: // a transaction is sent
				n := rapid.IntRange(1, 3).Draw(r, "events")
				x := &txn.Txn{Agent: "a", Task: "t"}
				for range n {
					x.Add(txn.Clause{Op: txn.Event, Scope: txn.Task, Val: "{}"})
				}
				out = append(out, &flying{answer: h.send(x), n: int64(n)})
			case 2: // the store takes one
				for _, i := range rapid.Permutation(indices(len(out))).Draw(r, "which") {
					if f := out[i]; f.seq == 0 {
						f.seq, next = next, next+f.n
						break
					}
				}
			case 3: // one is answered
				if len(out) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(out)-1).Draw(r, "whose")
				f := out[i]
				out = append(out[:i], out[i+1:]...)
				switch {
				case f.seq == 0:
					f.answer(txn.Reply{}, nil)
				case rapid.IntRange(0, 9).Draw(r, "lost") == 0:
					lost++
					f.answer(txn.Reply{}, errors.New("no answer"))
				default:
					accepted += f.n
					f.answer(txn.Reply{OK: true, Seq: f.seq, Now: f.seq}, nil)
				}
			case 4: // another process writes
				next++
			}
		}
		for _, f := range out {
			f.answer(txn.Reply{}, nil)
		}
		last := int64(0)
		for _, it := range w.queue {
			assert.Greater(r, it.seq, last)
			last = it.seq
		}
		missed, gaps := int64(0), len(w.gaps)
		for _, it := range w.queue {
			gaps += len(it.missed)
			for _, g := range it.missed {
				missed += g.Events
			}
		}
		for _, g := range w.gaps {
			missed += g.Events
		}
		assert.Equal(r, accepted, int64(len(w.queue))+missed)
		if lost > 0 {
			assert.Positive(r, gaps)
		} else {
			assert.Zero(r, gaps, "without a lost answer nothing is missed")
		}
		for _, o := range h.books {
			assert.Empty(r, o.held, "nothing is held back for ever")
		}
	})
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

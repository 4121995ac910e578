package delta

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

func TestNobodyEntersWhatIsClosed(t *testing.T) {
	i := insiders{none: make(chan struct{})}
	assert.True(t, i.enter())
	none := i.close()
	assert.False(t, i.enter(), "it is shut")
	assert.Equal(t, int64(1), i.under(), "who was turned away does not count")
	select {
	case <-none:
		t.Fatal("one is inside")
	default:
	}
	i.Done()
	<-none
	assert.False(t, i.enter())
	assert.Zero(t, i.under())
	i.close() // again: nothing more to say
}

func TestManyEnterAndLeaveWhileItCloses(t *testing.T) {
	i := insiders{none: make(chan struct{})}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i.enter() {
				i.Done()
			}
		})
	}
	<-i.close()
	all.Wait()
	assert.Zero(t, i.under())
}

func TestIntakeKeepsTheTailOfALedger(t *testing.T) {
	n := newIntake()
	of := book{"agent", "task"}
	n.book(of, stored(3), stored(4))
	n.book(of, stored(2))
	n.book(book{"agent", "other"})
	n.agent("agent")
	assert.Equal(t, int64(2), n.books.Load())
	agents, books := n.take()
	assert.False(t, n.due())
	assert.Equal(t, map[string]bool{"agent": true}, agents)

	for _, c := range []struct {
		why   string
		after int64
		known bool
		n     int
	}{
		{"all of it follows", 1, true, 3},
		{"the first is linked already", 2, true, 2},
		{"nothing is left", 4, true, 0},
		{"one is missing in front", 0, false, 0},
	} {
		got, known := books[of].after(c.after)
		assert.Equal(t, c.known, known, c.why)
		assert.Len(t, got, c.n, c.why)
	}
	_, known := books[book{"agent", "other"}].after(0)
	assert.False(t, known, "it is not known what was written")

	n.book(of, stored(1))
	n.book(of, stored(3))
	_, books = n.take()
	_, known = books[of].after(0)
	assert.False(t, known, "another engine's lies between")

	for seq := range int64(tailRecords + 1) {
		n.book(of, stored(seq+1))
	}
	_, books = n.take()
	_, known = books[of].after(0)
	assert.False(t, known, "more than is kept")
	assert.Empty(t, books[of].records)
}

func stored(seq int64) txn.Stored { return txn.Stored{Seq: seq, At: 1, Val: "{}"} }

package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/faulty"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// The third call takes effect, and nobody learns of it.
func ExampleStore() {
	store := faulty.New(memory.New(memory.Config{}), faulty.FailAt(faulty.LostReply, 3))
	for range 4 {
		err := store.Remember(context.Background(), "clerk", memory.Note{Content: "the customer called"})
		fmt.Println(errors.Is(err, faulty.ErrLost))
	}
	notes, _ := store.Recall(context.Background(), "clerk", "", "", 9)
	fmt.Println(len(notes), "notes")
	// Output:
	// false
	// false
	// true
	// false
	// 4 notes
}

// A plan says which calls are lost; what is repeated after a lost reply is recognised.
func TestLostReplyIsRepeated(t *testing.T) {
	s := faulty.New(memory.New(memory.Config{}), faulty.FailAt(faulty.LostReply, 1))
	x := &txn.Txn{Agent: "a", Task: "t", Phase: txn.Begin, Intent: "i", Fence: 1, Owner: "o", TTL: 1_000_000}
	_, err := s.Apply(t.Context(), x)
	require.ErrorIs(t, err, faulty.ErrLost)
	r, err := s.Apply(t.Context(), x)
	require.NoError(t, err)
	require.True(t, r.Replay)
	calls, lost := s.Calls()
	require.Equal(t, []int{2, 1}, []int{calls, lost})
}

package memory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/memory"
)

func TestNotesAreBoundedAloud(t *testing.T) {
	ctx, s := context.Background(), open(t).Store
	for range memory.MaxNotes {
		require.NoError(t, s.Remember(ctx, "a", memory.Note{Content: "x"}))
	}
	err := s.Remember(ctx, "a", memory.Note{Content: "one too many"})
	require.ErrorContains(t, err, "agent a has 10000 notes")
	require.NoError(t, s.Remember(ctx, "b", memory.Note{Content: "another agent's"}))
	all, err := s.Recall(ctx, "a", "", "", memory.MaxNotes+1)
	require.NoError(t, err)
	assert.Len(t, all, memory.MaxNotes, "none was dropped for it")
}

func TestRecallRanks(t *testing.T) {
	for _, c := range []struct {
		name, reason, query string
		notes, want         []string
	}{
		{"rare words", "what stands in few notes tells more", "the refund",
			[]string{"the customer", "the refund", "the order", "a refund note"}, []string{"the refund", "a refund note", "the order", "the customer"}},
		{"short notes", "of two that say it once, the shorter is about it", "refund",
			[]string{"refund and ten other words that have nothing to do with it", "refund sent"}, []string{"refund sent", "refund and ten other words that have nothing to do with it"}},
		{"repetition", "said twice counts more, in notes of one length", "refund",
			[]string{"refund order now", "refund refund now"}, []string{"refund refund now", "refund order now"}},
		{"ties", "the newer comes first", "x", []string{"x 1", "x 2"}, []string{"x 2", "x 1"}},
		{"words asked twice", "they count once", "b b b a", []string{"a", "b", "b"}, []string{"a", "b", "b"}},
		{"no word", "nothing to rank by", "?!", []string{"a"}, nil},
		{"letters of any script", "notes are not all English", "übergröße", []string{"ÜBERGRÖSSE Übergröße", "other"}, []string{"ÜBERGRÖSSE Übergröße"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, s := context.Background(), open(t).Store
			for _, n := range c.notes {
				require.NoError(t, s.Remember(ctx, "a", memory.Note{Content: n}))
			}
			got, err := s.Recall(ctx, "a", "", c.query, 9)
			require.NoError(t, err)
			var contents []string
			for _, n := range got {
				contents = append(contents, n.Content)
			}
			assert.Equal(t, c.want, contents, c.reason)
		})
	}
}

// Any notes, any query: no more than asked for, each with a word of the query, the same answer twice.
func TestRecallAlways(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "b", "c", "d", "é"})
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		s := memory.New(memory.Config{Clock: func() time.Time { return time.UnixMicro(1) }})
		for _, n := range rapid.SliceOfN(rapid.SliceOf(word), 0, 8).Draw(t, "notes") {
			require.NoError(t, s.Remember(ctx, "a", memory.Note{Content: fmt.Sprint(n)}))
		}
		query, limit := fmt.Sprint(rapid.SliceOf(word).Draw(t, "query")), rapid.IntRange(-1, 9).Draw(t, "limit")
		got, err := s.Recall(ctx, "a", "", query, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(got), max(0, limit))
		again, err := s.Recall(ctx, "a", "", query, limit)
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

func ExampleInProcess_Recall() {
	ctx, s := context.Background(), memory.New(memory.Config{})
	_ = s.Remember(ctx, "support", memory.Note{Kind: "preference", Content: "Zoë wants to be called in the morning"})
	_ = s.Remember(ctx, "support", memory.Note{Kind: "fact", Content: "refund of ORD-7 sent"})
	notes, _ := s.Recall(ctx, "support", "", "when to call Zoë in the morning?", 1)
	fmt.Println(notes[0].Kind, "-", notes[0].Content)
	// Output: preference - Zoë wants to be called in the morning
}

package delta

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shelfOf keeps attachments for good.
type shelfOf map[string][]byte

func (s shelfOf) Put(_ context.Context, sum string, content []byte) error {
	s[sum] = content
	return nil
}

func (s shelfOf) Get(_ context.Context, sum string) ([]byte, error) {
	if b, ok := s[sum]; ok {
		return b, nil
	}
	return nil, errors.New("gone")
}

// TestNotesAndAttachmentsOfASubject: what a task about somebody remembers and attaches is found in tasks about the same and
// in no other, stands nowhere as it is, and cannot be read once the subject is erased.
func TestNotesAndAttachmentsOfASubject(t *testing.T) {
	type in struct {
		Say  string `json:"say,omitempty"`
		Find string `json:"find,omitempty"`
	}
	diary := Define("diary", func(ctx *Context, i in) mo.Result[[]string] {
		if i.Say != "" {
			return mo.TupleToResult([]string{}, ctx.Remember(i.Say, "diary"))
		}
		notes, err := ctx.Recall(i.Find)
		found := []string{}
		for _, n := range notes {
			found = append(found, n.Content)
		}
		return mo.TupleToResult(found, err)
	}).Describe("Keep a diary").Risk(1).MustBuild()
	look := Define("look", func(ctx *Context, _ struct{}) mo.Result[string] {
		a, err := ctx.Attachment("letter")
		return mo.TupleToResult(string(a.Data), err)
	}).Describe("Read a letter").Risk(1).MustBuild()
	desk := NewAgent("desk").Grant(diary, look).MustBuild()
	store, kept := newSharedStore(t), shelfOf{}
	e, err := New(Config{Store: store.InProcess, Operators: []string{"olga"}, Attachments: kept,
		Authenticator: AuthenticatorFunc(func(_ context.Context, c any) (string, error) { return c.(string), nil })})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	start := func(subject string) *Task {
		task, err := e.Start(t.Context(), Goal{Agent: desk, Subject: subject, Attachments: []Attachment{{ID: "letter", Type: "text/plain", Data: []byte("dear Ada, I owe you")}}})
		require.NoError(t, err)
		return task
	}
	find := func(task *Task, what string) []string {
		out, err := diary.Do(t.Context(), task, in{Find: what}).Get()
		require.NoError(t, err)
		return out
	}
	ada, bob, nobody := start("ada"), start("bob"), start("")
	for task, say := range map[*Task]string{ada: "likes pears", bob: "likes plums", nobody: "everybody likes lunch"} {
		_, err := diary.Do(t.Context(), task, in{Say: say}).Get()
		require.NoError(t, err)
	}
	assert.ElementsMatch(t, []string{"likes pears", "everybody likes lunch"}, find(start("ada"), "likes"))
	assert.ElementsMatch(t, []string{"likes plums", "everybody likes lunch"}, find(bob, ""))
	assert.Equal(t, []string{"everybody likes lunch"}, find(nobody, "likes"))
	assert.Equal(t, []string{"everybody likes lunch"}, find(nobody, ""))
	out, err := look.Do(t.Context(), ada, struct{}{}).Get()
	require.NoError(t, err)
	assert.Equal(t, "dear Ada, I owe you", out)
	notes, err := store.Recall(t.Context(), "desk", "", "", 9)
	require.NoError(t, err)
	for _, n := range notes {
		assert.NotContains(t, n.Content, "pears")
	}
	delete(kept, ada.view.Task.Brought.Attachments[0].SHA256)
	child := Goal{ID: "c", Agent: desk, Attachments: []Attachment{{ID: "letter", Type: "text/plain", Data: []byte("to a child")}}}
	c, err := ada.Delegate(t.Context(), child)
	require.NoError(t, err)
	same, err := ada.Delegate(t.Context(), child)
	require.NoError(t, err, "the same wish")
	assert.Equal(t, c.ID(), same.ID())
	inChild, err := c.Task(t.Context())
	require.NoError(t, err)
	out, err = look.Do(t.Context(), inChild, struct{}{}).Get()
	require.NoError(t, err)
	assert.Equal(t, "to a child", out)

	plain := 0
	for _, b := range maps.All(kept) {
		if string(b) == "dear Ada, I owe you" {
			plain++
		}
		assert.NotContains(t, string(b), "to a child")
	}
	assert.Equal(t, 1, plain, "that of the task about nobody")
	olga, err := e.Authenticate(t.Context(), "olga")
	require.NoError(t, err)
	_, err = e.Erase(t.Context(), "ada", olga, "asked to")
	require.NoError(t, err)
	assert.Equal(t, []string{"everybody likes lunch"}, find(start("ada"), "likes"), "it is gone")
	assert.ElementsMatch(t, []string{"likes plums", "everybody likes lunch"}, find(bob, "likes"), "others are not")
}

package action_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
)

type typedNil struct{ text string }

func (e *typedNil) Error() string { return e.text }

type badText struct{}

func (badText) Error() string { panic(badText{}) }

type badAs struct{}

func (badAs) Error() string { return "x" }
func (badAs) As(any) bool   { panic("As") }
func (badAs) Is(error) bool { panic("Is") }

type badUnwrap struct{}

func (badUnwrap) Error() string { return "x" }
func (badUnwrap) Unwrap() error { panic("Unwrap") }

type badString struct{}

func (badString) String() string { panic(badString{}) }

// incomparable is of a comparable type whose comparison panics.
type incomparable struct{ any }

func (incomparable) Error() string { return "x" }

// Whatever an error is, a failure made of it can be printed, recorded and asked.
func TestAFailureContainsItsCause(t *testing.T) {
	for name, err := range map[string]error{
		"typed nil": (*typedNil)(nil), "text panics": badText{}, "As and Is panic": badAs{}, "Unwrap panics": badUnwrap{},
		"wrapped": fmt.Errorf("because: %w", badAs{}), "joined": errors.Join(io.EOF, badUnwrap{}), "comparison panics": incomparable{[]int{1}},
		"unknown": action.Unknown((*typedNil)(nil)), "huge": errors.New(strings.Repeat("x", 1<<20)), "a nil Failure": (*action.Failure)(nil),
	} {
		t.Run(name, func(t *testing.T) {
			f := action.Fail(action.Failed, "%s", action.TextOf(err)).Because(err)
			assert.Less(t, len(f.Explain()), 3*action.MaxText)
			assert.NotEmpty(t, f.Error())
			assert.NotErrorIs(t, f, io.ErrClosedPipe)
			assert.NotErrorIs(t, f, incomparable{[]int{2}})
			var p *typedNil
			_ = errors.As(f, &p)
			assert.Equal(t, action.IsUnknown(err), action.IsUnknown(errors.Unwrap(f)))
			assert.Same(t, f, action.FailureOf(f))
		})
	}
}

func TestAContainedErrorStillSaysWhatItWraps(t *testing.T) {
	err := action.Contain(fmt.Errorf("read: %w", io.EOF))
	assert.ErrorIs(t, err, io.EOF)
	assert.EqualError(t, err, "read: EOF")
	assert.False(t, action.IsUnknown(err))
	assert.Same(t, err, action.Contain(err))
	assert.NoError(t, action.Contain(nil))
	f := action.Fail(action.Denied, "no")
	assert.Same(t, f, action.FailureOf(action.Contain(f)))

	wrapped := fmt.Errorf("charge: %w", action.Contain(action.Unknown(io.EOF)))
	assert.True(t, action.IsUnknown(wrapped))
	assert.ErrorIs(t, wrapped, io.EOF)
}

// An error that cannot be asked may have said that the effect is unknown: then nothing may be repeated.
func TestI09_AnErrorThatCannotBeAskedIsUnknown(t *testing.T) {
	assert.True(t, action.IsUnknown(action.Contain(badAs{})))
	assert.True(t, action.IsUnknown(action.Contain(badUnwrap{})))
	assert.False(t, action.IsUnknown(action.Contain((*typedNil)(nil))))
}

func TestTextOf(t *testing.T) {
	round := map[string]any{}
	round["me"] = round
	for _, c := range []struct {
		name string
		v    any
		want string
	}{
		{"a string", "boom", "boom"}, {"a number", 7, "7"}, {"an error", io.EOF, "EOF"}, {"nothing", nil, "nil"},
		{"a Stringer that panics with itself", badString{}, "a action_test.badString that cannot say what it is: reading it panics"},
		{"a map that holds itself: printing it never ends", round, "a value of type map[string]interface {}"},
	} {
		assert.Equal(t, c.want, action.TextOf(c.v), c.name)
	}
}

func TestCut(t *testing.T) {
	short := strings.Repeat("é", action.MaxText/2)
	assert.Equal(t, short, action.Cut(short))
	long := action.Cut("x" + short + "é")
	assert.LessOrEqual(t, len(long), action.MaxText)
	assert.True(t, utf8.ValidString(long))
	assert.True(t, strings.HasSuffix(long, "é…"))
	assert.Equal(t, long, action.Cut(long))
	huge := strings.Repeat("x", 1<<20)
	p := action.Provenance{Goal: huge, Decision: huge, PlanStep: huge, Reason: huge}.Cut()
	assert.Len(t, p.Goal+p.Decision+p.PlanStep+p.Reason, 4*action.MaxText)
	f := action.Fail(action.Failed, "%s", huge).With(action.DetailReason, huge)
	assert.Less(t, len(f.Explain()), 3*action.MaxText)
}

func TestAnOfferIsCopied(t *testing.T) {
	o := action.Offer{Actions: []action.Offered{{Name: "a", Schema: []byte(`{}`)}}, Guidance: []string{"g"}}
	c := o.Clone()
	c.Actions[0].Name, c.Actions[0].Schema[0], c.Guidance[0] = "x", 'x', "x"
	require.Equal(t, action.Offer{Actions: []action.Offered{{Name: "a", Schema: []byte(`{}`)}}, Guidance: []string{"g"}}, o)
}

// TestI09_UnknownIsStrongerThanUnstarted: nothing is certain where one part of an error says that nobody knows.
func TestI09_UnknownIsStrongerThanUnstarted(t *testing.T) {
	assert.True(t, action.IsUnstarted(action.Unstarted(nil)))
	assert.True(t, action.IsUnstarted(action.Contain(fmt.Errorf("spawn: %w", action.Unstarted(io.EOF)))))
	assert.False(t, action.IsUnstarted(io.EOF))
	assert.False(t, action.IsUnstarted(errors.Join(action.Unstarted(io.EOF), action.Unknown(io.EOF))))
	assert.False(t, action.IsUnstarted(action.Unstarted(action.Unknown(io.EOF))))
	assert.ErrorIs(t, action.Unstarted(io.EOF), io.EOF)
}

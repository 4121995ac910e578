package delta_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

type booking struct {
	Seat string `json:"seat"`
}

type ticket struct {
	No string `json:"no"`
}

// booker is an agent that books and cancels seats and writes down what was done.
type booker struct {
	*testing.T
	did    []string
	broken map[string]bool // tickets that cannot be cancelled
	unsure bool
	engine *delta.Engine
	task   *delta.Task
	boss   delta.Identity
	book   *delta.Action[booking, ticket]
	look   *delta.Action[booking, ticket]
	pay    *delta.Action[booking, ticket]
}

func newBooker(t *testing.T, gated bool) *booker { return newBookerOn(t, nil, gated) }

func newBookerOn(t *testing.T, store memory.Store, gated bool) *booker {
	b := &booker{T: t, broken: map[string]bool{}}
	cancel := delta.Define("cancel", func(_ *delta.Context, in ticket) mo.Result[ticket] {
		if b.broken[in.No] {
			return mo.Err[ticket](errors.New("the desk is closed"))
		}
		b.did = append(b.did, "-"+in.No)
		return mo.Ok(in)
	}).Describe("Cancel a ticket").Risk(1).Effect(action.Idempotent)
	if gated {
		cancel = cancel.RequireApproval()
	}
	undo := cancel.MustBuild()
	b.book = delta.Define("book", func(_ *delta.Context, in booking) mo.Result[ticket] {
		if b.unsure {
			return mo.Err[ticket](action.Unknown(errors.New("no reply")))
		}
		b.did = append(b.did, "+T-"+in.Seat)
		return mo.Ok(ticket{"T-" + in.Seat})
	}).Describe("Book a seat").Risk(1).Effect(action.Compensatable).
		Undo(undo, func(in booking, out ticket) any { return out }).MustBuild()
	b.look = delta.Define("look", func(_ *delta.Context, in booking) mo.Result[ticket] { return mo.Ok(ticket{}) }).
		Describe("Look at a seat").Risk(1).Effect(action.None).MustBuild()
	b.pay = delta.Define("pay", func(_ *delta.Context, in booking) mo.Result[ticket] { return mo.Ok(ticket{}) }).
		Describe("Pay a seat").Risk(1).RequireApproval(delta.UntilTrust(0.01)).MustBuild()
	e, err := delta.New(delta.Config{Store: store, Authenticator: anybody, Operators: []string{"op"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(context.Background())) })
	agent := delta.NewAgent("booker").Grant(b.book, b.look, b.pay, undo).MustBuild()
	b.engine = e
	b.task, err = e.Start(context.Background(), delta.Goal{Agent: agent, Approvers: []string{"*"}, Threshold: 5})
	require.NoError(t, err)
	b.boss, err = e.Authenticate(context.Background(), "op")
	require.NoError(t, err)
	return b
}

func (b *booker) books(seats ...string) {
	b.Helper()
	for _, s := range seats {
		require.NoError(b, b.book.Do(context.Background(), b.task, booking{s}).Error())
		require.NoError(b, b.look.Do(context.Background(), b.task, booking{s}).Error())
	}
}

func (b *booker) compensate() delta.Compensation {
	b.Helper()
	c, err := b.task.Compensate(context.Background(), "the trip is off")
	require.NoError(b, err)
	return c
}

// TestC29_StrictReverse: the last that completed is undone first, each once, by a recorded call that names what it undoes.
func TestC29_StrictReverse(t *testing.T) {
	b := newBooker(t, false)
	b.books("1", "2", "3", "4")
	c := b.compensate()
	require.NoError(t, c.Err())
	assert.Equal(t, "+T-1 +T-2 +T-3 +T-4 -T-4 -T-3 -T-2 -T-1", strings.Join(b.did, " "))
	assert.Len(t, c.Undone, 4)
	assert.Empty(t, c.Left, "what only reads is nothing to undo")
	h, err := b.engine.History(context.Background(), delta.HistoryQuery{Action: "cancel"})
	require.NoError(t, err)
	require.NotEmpty(t, h.Outcomes)
	assert.Equal(t, "delta.undo/"+c.Undone[0].Intent, h.Outcomes[0].Call)
	again := b.compensate()
	assert.Empty(t, again.Undone, "what was undone stays so")
	assert.Len(t, b.did, 8)
}

// TestC29_NobodyPassesForAnUndo: a planner cannot have a call pass for undone.
func TestC29_NobodyPassesForAnUndo(t *testing.T) {
	b := newBooker(t, false)
	o := b.task.Do(context.Background(), delta.Call{Action: "book", Input: []byte(`{"seat":"1"}`)}).MustGet()
	require.True(t, o.OK())
	forged := b.task.Do(context.Background(), delta.Call{ID: "delta.undo/" + o.Intent, Action: "look", Input: []byte(`{"seat":"1"}`)}).MustGet()
	assert.Equal(t, action.InputMalformed, forged.Code)
	assert.Len(t, b.compensate().Undone, 1)
}

// TestC29_FailingUndoEscalatesAndStops: nothing that completed earlier is undone past one that cannot be.
func TestC29_FailingUndoEscalatesAndStops(t *testing.T) {
	b := newBooker(t, false)
	b.books("1", "2", "3", "4")
	b.broken["T-3"] = true
	c := b.compensate()
	require.ErrorContains(t, c.Err(), "FAILED")
	require.NotNil(t, c.Stopped)
	assert.Equal(t, "book", c.Stopped.Action)
	assert.Equal(t, "+T-1 +T-2 +T-3 +T-4 -T-4", strings.Join(b.did, " "))
	waiting, err := b.engine.Escalations(context.Background(), 10)
	require.NoError(t, err)
	require.Len(t, waiting, 1)
	assert.Equal(t, action.ConcernFailure, waiting[0].Concern)
	assert.NotNil(t, b.compensate().Stopped, "paused: nothing goes on")
	b.broken["T-3"] = false
	require.NoError(t, b.engine.ResumeTask(context.Background(), waiting[0].ID, b.boss, "the desk is open"))
	require.NoError(t, b.compensate().Err())
	assert.Equal(t, "+T-1 +T-2 +T-3 +T-4 -T-4 -T-3 -T-2 -T-1", strings.Join(b.did, " "), "it goes on where it stopped")
}

func TestC29_UndoPassesTheGates(t *testing.T) {
	b := newBooker(t, true)
	b.books("1", "2")
	c := b.compensate()
	require.NotNil(t, c.Stopped)
	assert.Equal(t, action.ApprovalRequired, c.Stopped.Call.Code)
	for range 2 {
		require.NoError(t, b.engine.Approve(context.Background(), c.Stopped.Call.Failure.Approval(), b.boss, "fine"))
		c = b.compensate()
	}
	require.NoError(t, c.Err())
	assert.Equal(t, "+T-1 +T-2 -T-2 -T-1", strings.Join(b.did, " "))
}

func TestC29_UnknownOutcomeStandsInTheWay(t *testing.T) {
	b := newBooker(t, false)
	b.books("1")
	b.unsure = true
	require.Error(t, b.book.Do(context.Background(), b.task, booking{"2"}).Error())
	c := b.compensate()
	require.NotNil(t, c.Stopped)
	assert.Equal(t, "+T-1", strings.Join(b.did, " "), "what came before it is not undone")
}

// What a person said succeeded is undone like what the function said did, where they gave its output; else it is listed.
func TestCompensateUndoesWhatAPersonResolved(t *testing.T) {
	for name, c := range map[string]struct {
		stored bool // resolved by an engine that does not hold the action
		output string
		undone string
	}{
		"with its output":               {false, `{"no":"T-9"}`, "-T-9"},
		"with its output, from outside": {true, `{"no":"T-9"}`, "-T-9"},
		"without, from outside":         {true, ``, ""},
		"with one that is none":         {true, `{"no":7}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			store := memory.New(memory.Config{})
			b := newBookerOn(t, store, false)
			b.unsure = true
			f := action.FailureOf(b.book.Do(context.Background(), b.task, booking{"9"}).Error())
			require.NotNil(t, f)
			require.Equal(t, action.StartedUnknown, f.Code)
			all, err := b.engine.Unresolved(context.Background(), 9)
			require.NoError(t, err)
			require.Len(t, all, 1)
			task, boss := b.task, b.boss
			if c.stored {
				other, err := delta.New(delta.Config{Store: store, Authenticator: anybody, Operators: []string{"op"}})
				require.NoError(t, err)
				defer func() { require.NoError(t, other.Close(context.Background())) }()
				require.NoError(t, other.Adopt(context.Background(), "booker"))
				task, err = other.Open(context.Background(), b.task.ID())
				require.NoError(t, err)
				boss, err = other.Authenticate(context.Background(), "op")
				require.NoError(t, err)
			}
			require.NoError(t, task.Resolve(context.Background(), all[0].Intent, boss, true, []byte(c.output), action.Cost{}, "it is in the list"))
			spent, err := b.task.Budget(context.Background())
			require.NoError(t, err)
			assert.EqualValues(t, 1, spent.Spent.Calls, "it was made")
			got := b.compensate()
			require.NoError(t, got.Err())
			assert.Equal(t, c.undone, strings.Join(b.did, " "))
			assert.Len(t, got.Left, map[bool]int{true: 0, false: 1}[c.undone != ""])
		})
	}
}

func TestCompensateSaysWhatIsLeft(t *testing.T) {
	b := newBooker(t, false)
	for i := range 5 {
		o, err := b.pay.Do(context.Background(), b.task, booking{fmt.Sprint(i)}).Get()
		if f := action.FailureOf(err); f != nil {
			require.NoError(t, b.engine.Approve(context.Background(), f.Approval(), b.boss, "yes"))
			o, err = b.pay.Do(context.Background(), b.task, booking{fmt.Sprint(i)}).Get()
		}
		require.NoError(t, err, "%v", o)
	}
	b.books("1")
	c := b.compensate()
	require.NoError(t, c.Err())
	assert.Len(t, c.Left, 5)
	assert.Len(t, c.Undone, 1)
}

func TestUndoIsChecked(t *testing.T) {
	reads := func(*delta.Context, booking) mo.Result[ticket] { return mo.Ok(ticket{}) }
	by := delta.Define("cancel", func(*delta.Context, ticket) mo.Result[ticket] { return mo.Ok(ticket{}) }).Describe("x").MustBuild()
	b := delta.Define("book", reads).Describe("x").Effect(action.Compensatable)
	_, err := b.Undo(nil, nil).Build()
	require.ErrorContains(t, err, "undo:")
	_, err = b.Effect(action.None).Undo(by, func(booking, ticket) any { return nil }).Build()
	require.ErrorContains(t, err, "compensatable")
	_, err = delta.NewAgent("a").Grant(b.Undo(by, func(booking, ticket) any { return nil }).MustBuild()).Build()
	require.ErrorContains(t, err, `undone by "cancel", which the agent does not hold`)
}

// A mapping that goes wrong stops the compensation and harms nobody.
func TestUndoMappingIsContained(t *testing.T) {
	by := delta.Define("cancel", func(*delta.Context, ticket) mo.Result[ticket] { return mo.Ok(ticket{}) }).Describe("x").Risk(1).MustBuild()
	a := delta.Define("book", func(*delta.Context, booking) mo.Result[ticket] { return mo.Ok(ticket{}) }).Describe("x").Risk(1).Effect(action.Compensatable).
		Undo(by, func(booking, ticket) any { panic("no") }).MustBuild()
	e, err := delta.New(delta.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close(context.Background())) }()
	task, err := e.Start(context.Background(), delta.Goal{Agent: delta.NewAgent("a").Grant(a, by).MustBuild()})
	require.NoError(t, err)
	require.NoError(t, a.Do(context.Background(), task, booking{"1"}).Error())
	c, err := task.Compensate(context.Background(), "off")
	require.NoError(t, err)
	require.NotNil(t, c.Stopped)
	assert.Equal(t, action.InputMalformed, c.Stopped.Call.Code)
}

func TestIrreversibleWithoutApprovalIsWarnedOf(t *testing.T) {
	act := delta.Define("wipe", func(*delta.Context, booking) mo.Result[ticket] { return mo.Ok(ticket{}) }).Describe("x")
	assert.Empty(t, act.RequireApproval().MustBuild().Warnings())
	assert.Empty(t, act.Effect(action.None).MustBuild().Warnings())
	agent := delta.NewAgent("a").Grant(act.MustBuild()).MustBuild()
	require.Len(t, agent.Warnings(), 1)
	var log bytes.Buffer
	e, err := delta.New(delta.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close(context.Background())) }()
	require.NoError(t, e.Register(agent))
	require.NoError(t, e.Register(agent))
	assert.Equal(t, 1, strings.Count(log.String(), "is irreversible and asks nobody"))
}

package delta

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/keys"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

type cardIn struct {
	Card string `json:"card" delta:"secret"`
}

type cardOut struct {
	Token string `json:"token" delta:"secret"`
}

// till is an agent whose actions take a secret, on a store that several engines share, and what its functions were given.
type till struct {
	*testing.T
	*sharedStore
	agent                *Agent
	pay, ask, back, then *Action[cardIn, cardOut]
	got                  atomic.Pointer[string]
	runs                 atomic.Int64
	started, release     chan struct{} // of pay, where they are not nil
}

func newTill(t *testing.T) *till {
	w := &till{T: t, sharedStore: newSharedStore(t)}
	f := func(_ *Context, in cardIn) mo.Result[cardOut] {
		w.runs.Add(1)
		w.got.Store(&in.Card)
		if w.started != nil {
			w.started <- struct{}{}
			<-w.release
		}
		return mo.Ok(cardOut{"token-of-" + in.Card})
	}
	w.back = Define("back", f).Describe("Give it back").Risk(1).Effect(action.Idempotent).MustBuild()
	w.pay = Define("pay", f).Describe("Pay").Risk(1).Effect(action.Idempotent).MustBuild()
	w.ask = Define("ask", f).Describe("Pay after asking").Risk(1).RequireApproval().Effect(action.Compensatable).
		Undo(w.back, func(in cardIn, out cardOut) any { return cardIn{in.Card + "+" + out.Token} }).MustBuild()
	w.then = Define("then", f).Describe("Pay again").Risk(1).Needs(w.pay.On("card")).MustBuild()
	w.agent = NewAgent("till").Grant(w.pay, w.ask, w.back, w.then).MustBuild()
	return w
}

func (w *till) open(ring keys.Ring) *Engine {
	e, err := New(Config{Store: w.InProcess, Keys: ring, Operators: []string{"olga"}, Poll: 20 * time.Millisecond,
		Authenticator: AuthenticatorFunc(func(_ context.Context, c any) (string, error) { return c.(string), nil })})
	require.NoError(w, err)
	w.Cleanup(func() { _ = e.Close(context.Background()) })
	require.NoError(w, e.Register(w.agent))
	return e
}

func (w *till) as(e *Engine, name string) Identity {
	id, err := e.Authenticate(w.Context(), name)
	require.NoError(w, err)
	return id
}

func (w *till) start(e *Engine, subject string) *Task {
	t, err := e.Start(w.Context(), Goal{Agent: w.agent, Approvers: []string{"ana"}, Subject: subject})
	require.NoError(w, err)
	return t
}

func (w *till) key(id string) keys.Key {
	k, err := keys.NewKey(id, time.Now())
	require.NoError(w, err)
	return k
}

func (w *till) ring(all ...keys.Key) *keys.Set {
	s, err := keys.NewSet(all...)
	require.NoError(w, err)
	return s
}

func code(err error) action.Code {
	if f := action.FailureOf(err); f != nil {
		return f.Code
	}
	return action.OK
}

// sound checks that the ledger of a task is whole, and that the task's state is its fold.
func (w *till) sound(t *Task) {
	records, report, err := t.Ledger(w.Context())
	require.NoError(w, err)
	assert.NotZero(w, report.Records)
	folded, err := engine.FoldLedger(records)
	require.NoError(w, err)
	snap, err := w.Load(w.Context(), "till", t.local, nil)
	require.NoError(w, err)
	assert.Empty(w, engine.CompareTask(folded, snap))
}

// TestI06_RotationKeepsApprovals: a request that was parked under one key is approved and runs after the ring got another,
// by whichever worker, and its digest stays.
func TestI06_RotationKeepsApprovals(t *testing.T) {
	for _, subject := range []string{"", "somebody"} {
		w := newTill(t)
		march, april := w.key("march"), w.key("april")
		before := w.open(w.ring(march))
		task := w.start(before, subject)
		o := task.Do(t.Context(), Call{ID: "c", Action: "ask", Input: []byte(`{"card":"4111222233334444"}`)}).MustGet()
		require.Equal(t, action.ApprovalRequired, o.Code)

		after := w.open(w.ring(march, april))
		require.NoError(t, after.Approve(t.Context(), o.Failure.Approval(), w.as(after, "ana"), "fine"))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- after.Work(ctx) }()
		require.Eventually(t, func() bool { return w.runs.Load() == 1 }, 30*time.Second, 5*time.Millisecond)
		stop()
		<-done
		assert.Equal(t, "4111222233334444", *w.got.Load(), "the exact input")
		again, err := after.Open(t.Context(), task.ID())
		require.NoError(t, err)
		out, err := w.ask.Do(t.Context(), again, cardIn{"4111222233334444"}, CallID("c")).Get()
		require.NoError(t, err, "the same call: its recorded output is opened")
		assert.Equal(t, "token-of-4111222233334444", out.Token)
		assert.EqualValues(t, 1, w.runs.Load())
		c, err := again.Compensate(t.Context(), "changed their mind")
		require.NoError(t, err)
		require.NoError(t, c.Err())
		assert.Equal(t, "4111222233334444+token-of-4111222233334444", *w.got.Load(), "input and output are opened to be undone")
		w.sound(again)
	}
}

// TestWithoutTheKeyNothingRuns: an engine whose ring lacks the key, or that has none, says so and runs nothing: neither a new
// call nor a parked one, which waits for a worker that has it.
func TestWithoutTheKeyNothingRuns(t *testing.T) {
	for _, c := range []struct {
		name string
		ring func(*till) keys.Ring
		says error
	}{
		{"no ring", func(*till) keys.Ring { return nil }, ErrNoRing},
		{"another key", func(w *till) keys.Ring { return w.ring(w.key("other")) }, keys.ErrNoKey},
		{"another key of that name", func(w *till) keys.Ring { return w.ring(w.key("march")) }, keys.ErrSealed},
		{"a service that is down", func(*till) keys.Ring { return brokenRing{} }, errBroken},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTill(t)
			has := w.open(w.ring(w.key("march")))
			task := w.start(has, "")
			parked := task.Do(t.Context(), Call{Action: "ask", Input: []byte(`{"card":"41112222"}`)}).MustGet()
			require.NoError(t, has.Approve(t.Context(), parked.Failure.Approval(), w.as(has, "ana"), "fine"))

			lacks := w.open(c.ring(w))
			other, err := lacks.Open(t.Context(), task.ID())
			require.NoError(t, err)
			_, err = w.pay.Do(t.Context(), other, cardIn{"41112222"}).Get()
			require.Equal(t, action.KeyUnavailable, code(err))
			require.ErrorIs(t, err, c.says)
			require.Error(t, lacks.runReady(t.Context(), lacks.state(w.agent), task.local+"\n"+parked.Intent))
			assert.Zero(t, w.runs.Load())
			events, err := task.Events(t.Context())
			require.NoError(t, err)
			assert.NotContains(t, fmt.Sprintf("%+v", events), "41112222")

			require.NoError(t, has.runReady(t.Context(), has.state(w.agent), task.local+"\n"+parked.Intent))
			assert.EqualValues(t, 1, w.runs.Load())
			w.sound(task)
		})
	}
}

var errBroken = errors.New("broken")

// brokenRing panics, as user code may.
type brokenRing struct{}

func (brokenRing) Wrap(context.Context, []byte, string) (string, error) { panic(errBroken) }

func (brokenRing) Unwrap(context.Context, string, string) ([]byte, error) { return nil, errBroken }

// TestTakeoverOpensTheInput: a worker that takes a call over repeats it with its exact input; one that cannot open it leaves
// it to others.
func TestTakeoverOpensTheInput(t *testing.T) {
	w := newTill(t)
	ring := w.ring(w.key("march"))
	first := w.open(ring)
	task := w.start(first, "")
	w.started, w.release = make(chan struct{}), make(chan struct{})
	out := make(chan action.Outcome, 1)
	go func() {
		out <- task.Do(context.Background(), Call{Action: "pay", Input: []byte(`{"card":"41112222"}`)}).MustGet()
	}()
	<-w.started
	w.started = nil
	w.ahead.Store(int64(time.Hour))
	due, err := w.Queued(t.Context(), "till", txn.Leases, txn.Queued{}, true, 9)
	require.NoError(t, err)
	require.Len(t, due, 1)

	lacks := w.open(nil)
	err = lacks.takeOver(t.Context(), lacks.state(w.agent), due[0].Member)
	require.ErrorIs(t, err, ErrNoRing)
	has := w.open(ring)
	w.got.Store(nil)
	require.NoError(t, has.takeOver(t.Context(), has.state(w.agent), due[0].Member))
	assert.Equal(t, "41112222", *w.got.Load())
	close(w.release)
	assert.Equal(t, action.Late, (<-out).Code)
	w.sound(task)
}

// TestSecretFactsAreKeyed: a prerequisite bound on a secret is met by that secret and no other.
func TestSecretFactsAreKeyed(t *testing.T) {
	for _, subject := range []string{"", "somebody"} {
		w := newTill(t)
		e := w.open(nil)
		task := w.start(e, subject)
		_, err := w.pay.Do(t.Context(), task, cardIn{"41112222"}).Get()
		require.NoError(t, err)
		_, err = w.then.Do(t.Context(), task, cardIn{"41113333"}).Get()
		require.Equal(t, action.NotLegal, code(err))
		assert.NotContains(t, err.Error(), "41113333")
		other, err := w.open(nil).Open(t.Context(), task.ID())
		require.NoError(t, err)
		_, err = w.then.Do(t.Context(), other, cardIn{"41112222"}).Get()
		require.NoError(t, err, "on another worker too")
		w.sound(task)
	}
}

// TestErase: the keys go, what waited ends with the reason, nothing of it can be read any more, and ledgers stay sound.
func TestErase(t *testing.T) {
	for _, subject := range []string{"", "somebody"} {
		w := newTill(t)
		ring := w.ring(w.key("march"))
		e, elsewhere := w.open(ring), w.open(ring)
		task := w.start(e, subject)
		name := subject
		if name == "" {
			name = task.ID()
		}
		done := task.Do(t.Context(), Call{ID: "c", Action: "pay", Input: []byte(`{"card":"41112222"}`)}).MustGet()
		require.True(t, done.OK())
		parked := task.Do(t.Context(), Call{Action: "ask", Input: []byte(`{"card":"41113333"}`)}).MustGet()
		require.NoError(t, e.Approve(t.Context(), parked.Failure.Approval(), w.as(e, "ana"), "fine"))
		untouched := w.start(e, "else")

		_, err := elsewhere.Erase(t.Context(), name, w.as(elsewhere, "ana"), "asked to")
		require.ErrorContains(t, err, "operators")
		_, err = elsewhere.Erase(t.Context(), "nobody", w.as(elsewhere, "olga"), "asked to")
		require.ErrorIs(t, err, ErrNoSubject)
		olga := w.as(elsewhere, "olga")
		erased, err := elsewhere.Erase(t.Context(), name, olga, "asked to")
		require.NoError(t, err)
		assert.Equal(t, Erased{Keys: 1, Tasks: 1}, erased)
		erased, err = elsewhere.Erase(t.Context(), name, olga, "asked to")
		require.NoError(t, err, "once more changes nothing")
		assert.Equal(t, Erased{}, erased)

		runs := w.runs.Load()
		fresh := w.open(ring)
		require.NoError(t, fresh.runReady(t.Context(), fresh.state(w.agent), task.local+"\n"+parked.Intent))
		again := fresh.adopt(fresh.state(w.agent), task.local)
		o, ended, err := again.Outcome(t.Context(), parked.Intent)
		require.NoError(t, err)
		require.True(t, ended)
		assert.Equal(t, action.Cancelled, o.Code)
		assert.Contains(t, o.Failure.Error(), "erased")
		assert.Equal(t, runs, w.runs.Load())
		o, _, err = again.Outcome(t.Context(), done.Intent)
		require.NoError(t, err)
		assert.NotContains(t, string(o.Output), "41112222")
		assert.NotEmpty(t, o.Sealed)
		w.sound(task)

		_, err = w.pay.Do(t.Context(), untouched, cardIn{"41112222"}).Get()
		require.NoError(t, err, "others go on")
		if subject != "" {
			_, err = w.pay.Do(t.Context(), w.start(fresh, subject), cardIn{"41112222"}).Get()
			require.NoError(t, err, "whoever comes back gets another key")
			o, _, err = again.Outcome(t.Context(), done.Intent)
			require.NoError(t, err)
			assert.NotEmpty(t, o.Sealed, "which does not open what was erased")
		}
	}
}

// TestErasedBeforeCancelled: whoever erases may stop between the keys and the tasks. What waits then ends with the code that
// says so, and erasing again finishes it.
func TestErasedBeforeCancelled(t *testing.T) {
	w := newTill(t)
	e := w.open(nil)
	task := w.start(e, "somebody")
	parked := task.Do(t.Context(), Call{Action: "ask", Input: []byte(`{"card":"41113333"}`)}).MustGet()
	require.NoError(t, e.Approve(t.Context(), parked.Failure.Approval(), w.as(e, "ana"), "fine"))
	_, now, err := e.eraseKey(t.Context(), "till", engine.SubjectSpace("somebody"), e.whoIs(w.as(e, "olga"), "asked to"))
	require.NoError(t, err)
	require.True(t, now)

	fresh := w.open(nil)
	require.NoError(t, fresh.runReady(t.Context(), fresh.state(w.agent), task.local+"\n"+parked.Intent))
	again, err := fresh.Open(t.Context(), task.ID())
	require.NoError(t, err)
	o, ended, err := again.Outcome(t.Context(), parked.Intent)
	require.NoError(t, err)
	require.True(t, ended)
	assert.Equal(t, action.KeyUnavailable, o.Code)
	assert.False(t, o.Failure.Retryable)
	_, err = w.pay.Do(t.Context(), again, cardIn{"41112222"}).Get()
	require.ErrorIs(t, err, ErrErased)
	assert.Zero(t, w.runs.Load())
	erased, err := fresh.Erase(t.Context(), "somebody", w.as(fresh, "olga"), "asked to")
	require.NoError(t, err)
	assert.Equal(t, Erased{Keys: 0, Tasks: 1}, erased)
	w.sound(task)
}

// TestI16_AChildKnowsWhatItsParentWasRefused: a family has one key, so a secret call that a person rejected in the parent is
// not asked again in the child, and a child has no subject of its own.
func TestI16_AChildKnowsWhatItsParentWasRefused(t *testing.T) {
	for _, subject := range []string{"", "somebody"} {
		w := newTill(t)
		e := w.open(nil)
		task := w.start(e, subject)
		o := task.Do(t.Context(), Call{Action: "ask", Input: []byte(`{"card":"41112222"}`)}).MustGet()
		require.NoError(t, e.Reject(t.Context(), o.Failure.Approval(), w.as(e, "ana"), "no"))
		_, err := task.Delegate(t.Context(), Goal{Agent: w.agent, Subject: "another"})
		require.ErrorContains(t, err, "same data")
		c, err := task.Delegate(t.Context(), Goal{Agent: w.agent, Approvers: []string{"ana"}})
		require.NoError(t, err)
		child, err := c.Task(t.Context())
		require.NoError(t, err)
		_, err = w.ask.Do(t.Context(), child, cardIn{"41112222"}).Get()
		assert.Equal(t, action.ApprovalRejected, code(err))
		_, err = w.ask.Do(t.Context(), child, cardIn{"41113333"}).Get()
		assert.Equal(t, action.ApprovalRequired, code(err))
	}
}

// TestNamesOfCallsAreKeyed: of the same call under two keys nothing that names it is the same: neither its digest, nor the name
// of its value, nor the facts it establishes. So none of them can be made by who guesses the input.
func TestNamesOfCallsAreKeyed(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		w := newTill(t)
		e := w.open(nil)
		task, err := e.Start(t.Context(), Goal{ID: "same", Agent: w.agent})
		require.NoError(t, err)
		_, err = w.pay.Do(t.Context(), task, cardIn{"41112222"}).Get()
		require.NoError(t, err)
		events, err := task.Events(t.Context())
		require.NoError(t, err)
		n := 0
		for _, ev := range events {
			for _, name := range append(ev.Facts, ev.Digest, ev.Value, string(ev.Input), ev.Sealed) {
				if name == "" || name == "pay" {
					continue
				}
				assert.False(t, seen[name] && ev.Intent != "", "%s of %s", name, ev.Type)
				n++
			}
		}
		require.GreaterOrEqual(t, n, 5)
		for _, ev := range events {
			for _, name := range append(ev.Facts, ev.Digest, ev.Value, string(ev.Input), ev.Sealed) {
				seen[name] = true
			}
		}
	}
}

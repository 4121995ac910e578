package notify_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/notify"
)

var wipe = delta.Define("wipe", func(*delta.Context, struct {
	Disk string `json:"disk"`
}) mo.Result[string] {
	return mo.Ok("gone")
}).Describe("Wipe a disk").Risk(5).MustBuild()

var janitor = delta.NewAgent("janitor").Grant(wipe).MustBuild()

// patience is how long tests wait for what is to happen: much longer than it takes on a busy machine.
const patience = 30 * time.Second

// office is an engine whose desk tells the notifiers.
type office struct {
	*testing.T
	engine *delta.Engine
	desk   *notify.Desk
	ana    delta.Identity
}

func open(t *testing.T, store memory.Store, to ...notify.Notifier) *office {
	desk, err := notify.New(notify.Config{Notifiers: to, Pause: time.Millisecond, Tries: 3, Remind: 20 * time.Millisecond, Timeout: time.Minute})
	require.NoError(t, err)
	engine, err := delta.New(delta.Config{
		Store: store, Observers: []delta.Watch{desk.Watch()},
		Authenticator: delta.AuthenticatorFunc(func(_ context.Context, c any) (string, error) { return c.(string), nil }),
	})
	require.NoError(t, err)
	require.NoError(t, engine.Register(janitor))
	o := &office{T: t, engine: engine, desk: desk}
	o.ana, err = engine.Authenticate(t.Context(), "ana")
	require.NoError(t, err)
	return o
}

func (o *office) close() {
	require.NoError(o, o.engine.Close(context.Background()))
	require.NoError(o, o.desk.Close(context.Background()))
}

// ask has a person asked about a call.
func (o *office) ask() (task *delta.Task, id string) {
	task, err := o.engine.Start(o.Context(), delta.Goal{Agent: janitor, Text: "clean up", Approvers: []string{"ana"}})
	require.NoError(o, err)
	out := task.Do(o.Context(), delta.Call{Action: "wipe", Input: []byte(`{"disk":"secret-disk"}`)}).MustGet()
	require.Equal(o, action.ApprovalRequired, out.Code)
	return task, out.Failure.Approval()
}

// keep is a notifier that keeps what it is told, after what fails says.
type keep struct {
	mu    sync.Mutex
	told  []notify.Notice
	fails func(n notify.Notice) error
	tries atomic.Int64
}

func (k *keep) Notify(_ context.Context, n notify.Notice) error {
	k.tries.Add(1)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fails != nil {
		if err := k.fails(n); err != nil {
			return err
		}
	}
	k.told = append(k.told, n)
	return nil
}

func (k *keep) kinds() (out []notify.Kind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range k.told {
		out = append(out, n.Kind)
	}
	return out
}

// People are told of requests, escalations and their ends, in order, over a real request.
func TestDesk_TellsRequestsAndEnds(t *testing.T) {
	r := newReceiver(t, 500, 503)
	o := open(t, nil, hook(t, r.URL))
	task, id := o.ask()
	require.NoError(t, o.engine.Approve(t.Context(), id, o.ana, "it is empty"))
	esc, err := task.Escalate(t.Context(), action.ConcernSurprise, "smoke")
	require.NoError(t, err)
	require.NoError(t, o.engine.ResumeTask(t.Context(), esc.ID, o.ana, "it was steam"))
	o.close()
	got := r.received()
	require.Len(t, got, 4)
	asked, answered, raised, resolved := got[0], got[1], got[2], got[3]
	assert.Equal(t, notify.ApprovalRequested, asked.Kind)
	assert.Equal(t, id, asked.Approval)
	assert.Equal(t, "wipe", asked.Action)
	assert.NotNil(t, asked.Expires)
	assert.NotContains(t, fmt.Sprintf("%+v", asked), "secret-disk", "inputs are not told")
	assert.Equal(t, notify.ApprovalResolved, answered.Kind)
	assert.Equal(t, "approval_approved", answered.End)
	assert.Equal(t, "ana", answered.Identity)
	assert.Equal(t, notify.EscalationRaised, raised.Kind)
	assert.Equal(t, action.ConcernSurprise, raised.Concern)
	assert.True(t, raised.Paused)
	assert.Equal(t, esc.ID, raised.Escalation)
	assert.Equal(t, notify.EscalationResolved, resolved.Kind)
	assert.Equal(t, "it was steam", resolved.Reason)
	require.GreaterOrEqual(t, len(r.ids), 6)
	assert.Equal(t, []string{asked.ID, asked.ID, asked.ID}, r.ids[:3], "the same id each time it is tried")
}

// A notification that fails changes nothing: the approval stays pending, and is told when that works again.
func TestDesk_FailedNotificationLeavesItPending(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	k := &keep{fails: func(notify.Notice) error {
		if broken.Load() {
			return errors.New("no line")
		}
		return nil
	}}
	o := open(t, nil, k)
	o.desk.Attach(o.engine)
	_, id := o.ask()
	require.Eventually(t, func() bool { return k.tries.Load() >= 4 }, patience, time.Millisecond, "given up after three, and tried again")
	a, err := o.engine.Approval(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, approval.Pending, a.State)
	broken.Store(false)
	require.Eventually(t, func() bool { return len(k.kinds()) > 0 }, patience, time.Millisecond)
	time.Sleep(60 * time.Millisecond) // reminders
	o.close()
	assert.Equal(t, []notify.Kind{notify.ApprovalRequested}, k.kinds(), "once it was delivered no reminder repeats it")
}

// What was pending before a restart is told again, under the same id.
func TestDesk_TellsAgainAfterARestart(t *testing.T) {
	store := memory.New(memory.Config{})
	defer store.Close()
	first := &keep{}
	o := open(t, keepOpen{store}, first)
	o.ask()
	task, err := o.engine.Start(t.Context(), delta.Goal{Agent: janitor, Text: "another", Approvers: []string{"ana"}})
	require.NoError(t, err)
	_, err = task.Escalate(t.Context(), action.ConcernRisk, "hm")
	require.NoError(t, err)
	o.close()
	again := &keep{}
	o = open(t, keepOpen{store}, again)
	o.desk.Attach(o.engine)
	require.Eventually(t, func() bool { return len(again.kinds()) == 2 }, patience, time.Millisecond)
	o.close()
	ids := func(k *keep) (out []string) {
		for _, n := range k.told {
			out = append(out, n.ID)
		}
		return out
	}
	assert.ElementsMatch(t, ids(first), ids(again))
}

type keepOpen struct{ memory.Store }

func (keepOpen) Close() error { return nil }

// A notifier that panics or hangs is contained, and holds up neither calls nor the others.
func TestDesk_ContainsNotifiers(t *testing.T) {
	panics := &keep{fails: func(notify.Notice) error { panic("no") }}
	hangs := stuck{}
	good := &keep{}
	o := open(t, nil, panics, hangs, good)
	o.ask()
	require.Eventually(t, func() bool { return len(good.kinds()) == 1 && panics.tries.Load() == 3 }, patience, time.Millisecond)
	require.NoError(t, o.engine.Close(context.Background()))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, o.desk.Close(ctx), context.DeadlineExceeded)
	assert.EqualValues(t, 3, panics.tries.Load())
}

// stuck returns when it is told to.
type stuck struct{}

func (stuck) Notify(ctx context.Context, _ notify.Notice) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestNew_ChecksItsConfig(t *testing.T) {
	_, err := notify.New(notify.Config{})
	assert.ErrorContains(t, err, "Notifiers is empty")
	_, err = notify.New(notify.Config{Notifiers: []notify.Notifier{nil}, Queue: -1})
	assert.ErrorContains(t, err, "Notifiers[0] is nil")
	assert.ErrorContains(t, err, "positive")
}

func TestLog_SaysWhoIsWaitedFor(t *testing.T) {
	var out bytes.Buffer
	l := notify.Log{To: slog.New(slog.NewTextHandler(&out, nil))}
	require.NoError(t, l.Notify(t.Context(), notify.Notice{Kind: notify.EscalationRaised, Task: "a~t", Concern: action.ConcernLoop, Reason: "round and round"}))
	assert.Contains(t, out.String(), "level=WARN")
	assert.Contains(t, out.String(), `msg="a~t needs a look (loop): round and round"`)
	require.NoError(t, l.Notify(t.Context(), notify.Notice{Kind: notify.ApprovalResolved, Task: "a~t", End: "approval_approved"}))
	assert.Contains(t, out.String(), "level=INFO")
}

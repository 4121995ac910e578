package delta

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// changing is a task of which everything changes that a preview may rest on.
type changing struct {
	engine, other *Engine
	task, there   *Task // the same one, as this engine and another know it
	id            string
	ahead         atomic.Int64
	asked         int
	lasted        int
}

var changed = []string{"plain", "free", "bound", "costly", "risky", "once", "failing"}

func newChanging(r *rapid.T) *changing {
	w := &changing{}
	clock := func() time.Time { return time.UnixMicro(1_790_000_000_000_000 + w.ahead.Load()) }
	store := memory.New(memory.Config{Clock: clock})
	r.Cleanup(func() { _ = store.Close() })
	schema := []byte(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"additionalProperties":false}`)
	run := func(_ *Context, in action.Input) mo.Result[action.Output] { return mo.Ok(action.Output(in.Text())) }
	raw := func(name string, risk int) Builder[action.Input, action.Output] {
		return DefineRaw(name, schema, run).Describe(name).Risk(risk).Timeout(NoTimeout)
	}
	plain := raw("plain", 1).MustBuild()
	actions := []Definition{
		plain, raw("free", 1).Needs(plain).MustBuild(), raw("bound", 1).Needs(plain.On("id")).MustBuild(),
		raw("costly", 2).Cost(action.Cost{Tokens: 7}).MustBuild(), raw("risky", 4).MustBuild(), raw("once", 1).AtOnce(1).MustBuild(),
		DefineRaw("failing", schema, func(*Context, action.Input) mo.Result[action.Output] {
			return mo.Err[action.Output](fmt.Errorf("no"))
		}).Describe("Fail").Risk(2).Timeout(NoTimeout).MustBuild(),
	}
	agent := NewAgent("clerk").Grant(actions...).MustBuild()
	open := func() *Engine {
		e, err := New(Config{Store: store, Now: clock, Operators: []string{"ana"}, Authenticator: AuthenticatorFunc(
			func(context.Context, any) (string, error) { return "ana", nil })})
		require.NoError(r, err)
		r.Cleanup(func() { _ = e.Close(context.Background()) })
		require.NoError(r, e.Register(agent))
		return e
	}
	w.engine, w.other = open(), open()
	var err error
	goal := Goal{Agent: agent, Limit: action.Limit{Tokens: action.Max(60), Calls: action.Max(30)}, Approvers: []string{"ana"}}
	if rapid.Bool().Draw(r, "deadline") {
		goal.Deadline = clock().Add(time.Minute)
	}
	w.task, err = w.engine.Start(context.Background(), goal)
	require.NoError(r, err)
	w.there, err = w.other.Open(context.Background(), w.task.ID())
	require.NoError(r, err)
	return w
}

func (w *changing) preview(r *rapid.T, c Call) Verdict {
	v, err := w.task.Preview(context.Background(), c, nil)
	require.NoError(r, err)
	return v
}

// compare asks often enough for what lasts to be kept, and once more when nothing is.
func (w *changing) compare(r *rapid.T, c Call) {
	moved := func() int64 {
		w.task.state.mu.Lock()
		defer w.task.state.mu.Unlock()
		return w.task.state.edition
	}
	for {
		before := moved()
		for range rapid.IntRange(0, 2).Draw(r, "asked before") {
			w.preview(r, c)
		}
		if k, _ := w.task.lastingVerdict(c.Action); k.verdict != nil {
			w.lasted++
		}
		kept := w.preview(r, c)
		w.task.state.mu.Lock()
		had := w.task.lasting
		w.task.lasting = nil
		w.task.state.mu.Unlock()
		fresh := w.preview(r, c)
		w.task.state.mu.Lock()
		w.task.lasting = had
		w.task.state.mu.Unlock()
		if moved() != before {
			continue // something was folded in between
		}
		require.Equal(r, string(fresh.Event), string(kept.Event))
		require.Equal(r, fresh.Code, kept.Code)
		w.asked++
		return
	}
}

// change does something, and it does not matter what comes of it.
func (w *changing) change(r *rapid.T) {
	ctx, e, t := context.Background(), w.engine, w.task
	if rapid.IntRange(0, 3).Draw(r, "elsewhere") == 0 {
		e, t = w.other, w.there
	}
	name := rapid.SampledFrom(changed).Draw(r, "action")
	switch rapid.IntRange(0, 14).Draw(r, "what") {
	case 0, 1, 2, 3:
		_ = t.Do(ctx, w.call(r, name))
	case 4:
		_, _ = t.Offer(ctx)
	case 5:
		_ = t.SetThreshold(ctx, w.mine(e), float64(rapid.IntRange(1, 5).Draw(r, "threshold")), "")
	case 6:
		if rapid.Bool().Draw(r, "halt") {
			_ = e.HaltAgent(ctx, "clerk", w.mine(e), HaltNow, "stop")
		} else {
			_ = e.LiftAgent(ctx, "clerk", w.mine(e), "go")
		}
	case 7:
		_ = t.TopUp(ctx, w.mine(e), action.Cost{Tokens: 20}, "")
	case 8:
		_ = e.ResetBelief(ctx, "clerk", name, w.mine(e), "")
	case 9:
		w.ahead.Add(int64(rapid.IntRange(1, 20).Draw(r, "seconds")) * 1_000_000)
	case 10:
		if x, err := t.Escalate(ctx, action.ConcernRisk, "look"); err == nil {
			w.id = x.ID
		}
	case 11:
		_ = e.ResumeTask(ctx, w.id, w.mine(e), "go on")
	case 12:
		_ = e.Sync(ctx)
	case 13:
		if rapid.Bool().Draw(r, "halt it") {
			_ = e.HaltAction(ctx, "clerk", name, w.mine(e), HaltNow, "stop")
		} else {
			_ = e.LiftAction(ctx, "clerk", name, w.mine(e), "go")
		}
	case 14:
		if rapid.Bool().Draw(r, "break") {
			_, _ = t.BreakGlass(ctx, w.mine(e), Glass{Actions: []string{name}, For: 10 * time.Second}, "now")
		} else {
			_ = t.RestoreGlass(ctx, w.mine(e), "enough")
		}
	}
}

func (w *changing) mine(e *Engine) Identity {
	id, _ := e.Authenticate(context.Background(), nil)
	return id
}

func (w *changing) call(r *rapid.T, name string) Call {
	c := Call{Action: name, Input: []byte(rapid.SampledFrom([]string{`{"id":"a"}`, ` {"id" : "b"}`, `{"id":1}`, `{"id":"é"}`}).Draw(r, "input"))}
	if rapid.Bool().Draw(r, "reasons") {
		c.Provenance.Reason = "because <\xff> \"it\" must"
	}
	return c
}

// What previews keep says what would be found anew, whatever happened in between, byte by byte.
func TestAKeptPreviewIsWhatWouldBeFoundAnew(t *testing.T) {
	keptPreviewsAreWhatWouldBeFoundAnew(t, 8)
}

func keptPreviewsAreWhatWouldBeFoundAnew(t *testing.T, steps int) {
	asked, lasted := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		w := newChanging(r)
		for range rapid.IntRange(1, steps).Draw(r, "steps") {
			w.change(r)
			for range rapid.IntRange(0, 3).Draw(r, "previews") {
				w.compare(r, w.call(r, rapid.SampledFrom(changed).Draw(r, "previewed")))
			}
		}
		asked, lasted = asked+w.asked, lasted+w.lasted
		w.canonical(r)
	})
	require.Greater(t, lasted, asked/100, "else nothing was compared")
}

// canonical: calls are recorded as encoding/json would.
func (w *changing) canonical(r *rapid.T) {
	all, _, err := w.task.Ledger(context.Background())
	require.NoError(r, err)
	for _, record := range all {
		e, err := ledger.Decode(record.Val)
		require.NoError(r, err)
		text, err := ledger.Encode(e)
		require.NoError(r, err)
		require.Equal(r, text, record.Val)
	}
}

// Previews share what is kept with each other, and with calls that make it outdated.
func TestPreviewsBesideCalls(t *testing.T) {
	schema := []byte(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"additionalProperties":false}`)
	plain := DefineRaw("plain", schema, func(_ *Context, in action.Input) mo.Result[action.Output] { return mo.Ok(action.Output(in.Text())) }).
		Describe("Run").Risk(1).Timeout(NoTimeout).MustBuild()
	e, err := New(Config{})
	require.NoError(t, err)
	defer func() { _ = e.Close(context.Background()) }()
	task, err := e.Start(t.Context(), Goal{Agent: NewAgent("clerk").Grant(plain).MustBuild(), Limit: action.Limit{Calls: action.Max(20)}})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			c := Call{Action: "plain", Input: fmt.Appendf(nil, `{"id":"%d"}`, i)}
			for n := range 50 {
				if i == 0 && n%2 == 0 {
					_ = task.Do(t.Context(), c)
				}
				v, err := task.Preview(t.Context(), c, nil)
				if !assert.NoError(t, err) {
					return
				}
				event, err := ledger.Decode(string(v.Event))
				if !assert.NoError(t, err) {
					return
				}
				if v.OK() {
					assert.Equal(t, string(c.Input), string(event.Input))
					assert.Equal(t, approval.Digest("clerk", task.local, "plain", plain.d.version, plain.d.in.Hash(), string(c.Input)), event.Digest)
					continue
				}
				assert.Equal(t, action.BudgetExhausted, v.Code)
			}
		})
	}
	wg.Wait()
	v, err := task.Preview(t.Context(), Call{Action: "plain", Input: []byte(`{"id":"a"}`)}, nil)
	require.NoError(t, err)
	require.Equal(t, action.BudgetExhausted, v.Code, "the calls have used up what there was")
}

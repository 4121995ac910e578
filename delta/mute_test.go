package delta_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// loud is a task that is refused all the time, in a store whose clock is moved by hand.
type loud struct {
	*testing.T
	now    atomic.Int64 // ns, read by the engine's goroutines too
	store  *memory.InProcess
	engine *delta.Engine
	agent  *delta.Agent
	task   *delta.Task
}

func newLoud(t *testing.T, c delta.Config) *loud {
	l := &loud{T: t}
	l.now.Store(time.Now().UnixNano())
	l.store = memory.New(memory.Config{Clock: l.clock})
	c.Store, c.Now = bare{l.store}, l.clock
	var err error
	l.engine, err = delta.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.engine.Close(context.Background())) })
	first := delta.Define("first", func(_ *delta.Context, in bill) mo.Result[string] { return mo.Ok("done") }).Describe("First").Risk(1).MustBuild()
	then := delta.Define("then", func(_ *delta.Context, in bill) mo.Result[string] { return mo.Ok("done") }).Describe("Then").Risk(1).Needs(first.On("order")).MustBuild()
	l.agent = delta.NewAgent("desk").Grant(first, then).MustBuild()
	l.task, err = l.engine.Start(t.Context(), delta.Goal{ID: "t", Agent: l.agent})
	require.NoError(t, err)
	return l
}

func (l *loud) clock() time.Time { return time.Unix(0, l.now.Load()) }

func (l *loud) do(name string, times int) (out action.Outcome) {
	for i := range times {
		var err error
		out, err = l.task.Do(l.Context(), delta.Call{Action: name, Input: fmt.Appendf(nil, `{"order":"o%d"}`, i)}).Get()
		require.NoError(l, err)
	}
	return out
}

// told is what the ledger says of refusals: those recorded one by one, and how many by number.
func (l *loud) told() (single int, counted int64, codes map[string]int64) {
	records, report, err := l.engine.Ledger(l.Context(), "desk~t")
	require.NoError(l, err)
	require.NotZero(l, report.Records)
	codes = map[string]int64{}
	for _, r := range records {
		e, err := ledger.Decode(r.Val)
		require.NoError(l, err)
		switch e.Type {
		case ledger.Refused:
			single++
		case ledger.RefusalsCounted:
			counted += e.ToSeq
			var state struct{ Codes map[string]int64 }
			require.NoError(l, json.Unmarshal(e.State, &state))
			for code, n := range state.Codes {
				codes[code] += n
			}
		}
	}
	return single, counted, codes
}

// Whoever calls in a loop gets every answer, and does not fill the ledger; how often it was is recorded.
func TestRefusalsAreBounded(t *testing.T) {
	l := newLoud(t, delta.Config{Refusals: 20})
	require.Equal(t, action.NotLegal, l.do("then", 200).Code)
	single, counted, _ := l.told()
	assert.Equal(t, 20, single)
	assert.GreaterOrEqual(t, counted, int64(180/2), "at least half of them at any time")
	records, _, err := l.engine.Ledger(t.Context(), "desk~t")
	require.NoError(t, err)
	assert.Less(t, len(records), 30)

	// What is allowed runs, and calls go on to be refused for what they are.
	require.Equal(t, action.OK, l.do("first", 1).Code)
	require.Equal(t, action.OK, l.do("then", 1).Code)

	l.now.Add(int64(time.Hour))
	l.do("then", 30)
	single, _, _ = l.told()
	assert.Equal(t, 40, single, "an hour later they are recorded again; the one of o0 is Ok")

	require.NoError(t, l.task.Done(t.Context(), "done"))
	l.now.Add(int64(time.Hour))
	require.Equal(t, action.TaskClosed, l.do("then", 50).Code)
	single, _, _ = l.told()
	assert.Equal(t, 42, single, "of a task that is over there is less to learn")

	require.NoError(t, l.engine.Close(t.Context()))
	l.engine, err = delta.New(delta.Config{Store: bare{l.store}})
	require.NoError(t, err)
	_, counted, codes := l.told()
	assert.Equal(t, map[string]int64{"NOT_LEGAL": 189, "TASK_CLOSED": 48}, codes)
	assert.EqualValues(t, 189+48, counted, "all of them, once the engine is closed")
	require.NoError(t, l.engine.Adopt(t.Context(), "desk"))
	trust, err := l.engine.Trust(t.Context(), "desk")
	require.NoError(t, err)
	assert.EqualValues(t, 229, trust.Violations, "all of them count")
}

func TestAllRefusalsAreRecordedWhereThatIsAskedFor(t *testing.T) {
	l := newLoud(t, delta.Config{Refusals: -1})
	l.do("then", 60)
	single, counted, _ := l.told()
	assert.Equal(t, 60, single)
	assert.Zero(t, counted)
}

// Delegations that are refused count among them.
func TestRefusedDelegationsAreBounded(t *testing.T) {
	l := newLoud(t, delta.Config{Refusals: 5})
	other := delta.NewAgent("other").Grant(delta.Define("alien", func(*delta.Context, bill) mo.Result[string] { return mo.Ok("") }).Describe("Alien").Risk(1).MustBuild()).MustBuild()
	for i := range 40 {
		_, err := l.task.Delegate(t.Context(), delta.Goal{ID: fmt.Sprint("c", i), Agent: other, Threshold: 5})
		require.Error(t, err)
		require.NotNil(t, action.FailureOf(err), err)
	}
	require.NoError(t, l.engine.Sync(t.Context()))
	records, _, err := l.task.Ledger(t.Context())
	require.NoError(t, err)
	single, counted := 0, int64(0)
	for _, r := range records {
		e, err := ledger.Decode(r.Val)
		require.NoError(t, err)
		switch e.Type {
		case ledger.ChildRefused:
			single++
		case ledger.RefusalsCounted:
			counted += e.ToSeq
		}
	}
	assert.Equal(t, 5, single)
	assert.EqualValues(t, 32, counted, "16, as many again, and the rest when the engine closes")
}

package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/audit"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is ledgers to read from.
type memory struct {
	mu  sync.Mutex
	all map[string][]delta.Record
}

func (m *memory) add(agent, task string, typ ledger.Type) delta.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[string][]delta.Record{}
	}
	name := ledger.NameOf(agent, task)
	r := delta.Record{Event: ledger.Event{Type: typ, Agent: agent, Task: task}, Seq: int64(len(m.all[name]) + 1), Stored: 7}
	m.all[name] = append(m.all[name], r)
	return r
}

func (m *memory) of(id string) []delta.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]delta.Record(nil), m.all[id]...)
}

func (m *memory) Follow(ctx context.Context, id string, from int64) iter.Seq2[delta.Record, error] {
	return func(yield func(delta.Record, error) bool) {
		for {
			for _, r := range m.of(id)[min(from-1, int64(len(m.of(id)))):] {
				if from = r.Seq + 1; !yield(r, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
				yield(delta.Record{}, ctx.Err())
				return
			case <-time.After(time.Second):
			}
		}
	}
}

func (m *memory) Ledger(_ context.Context, id string) ([]txn.Stored, ledger.Report, error) {
	records := make([]txn.Stored, len(m.of(id)))
	for i, r := range m.of(id) {
		records[i].Seq = r.Seq
	}
	return records, ledger.Report{}, nil
}

// tray is a sink that remembers, and fails when told to.
type tray struct {
	mu      sync.Mutex
	entries []audit.Entry
	fail    func() error
	closed  bool
}

func (s *tray) Write(_ context.Context, entries []audit.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		if err := s.fail(); err != nil {
			return err
		}
	}
	s.entries = append(s.entries, entries...)
	return nil
}

func (s *tray) Close() error { s.closed = true; return nil }

// whole reports how the sink got each ledger: the numbers without repetitions.
func (s *tray) whole(t *testing.T) map[string]int64 {
	last := map[string]int64{}
	for _, e := range s.entries {
		if e.Seq <= last[e.Ledger] {
			continue // again
		}
		require.Equal(t, last[e.Ledger]+1, e.Seq, "of %s", e.Ledger)
		last[e.Ledger] = e.Seq
	}
	return last
}

// Whatever the sink refuses and the queue drops: once the sink is well, all is there, in the order of each ledger.
func TestASinkThatFailsLosesNothing(t *testing.T) {
	for seed := range uint64(16) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			src, well, moods := &memory{}, atomic.Bool{}, rand.New(rand.NewPCG(seed, 2))
			sink := &tray{fail: func() error {
				switch {
				case well.Load() || moods.IntN(3) > 0:
					return nil
				case moods.IntN(4) == 0:
					panic("a sink")
				}
				return errors.New("no room")
			}}
			trail, err := audit.New(audit.Config{Sink: sink})
			require.NoError(t, err)
			o := trail.Watch().Observer
			if seed%2 == 0 {
				require.NoError(t, trail.Attach(src))
			}
			for range 200 {
				r := src.add("a", fmt.Sprint("t", rng.IntN(3)), ledger.Note)
				switch rng.IntN(10) {
				case 0:
					o.Missed(t.Context(), delta.Gap{Agent: r.Agent, Task: r.Task, From: r.Seq, To: r.Seq, Events: 1})
				case 1:
					o.Missed(t.Context(), delta.Gap{Agent: r.Agent, Task: r.Task})
				case 2: // told of nothing; the next one of the ledger shows it
				case 3:
					r.Seq = 0
					o.Observe(t.Context(), r)
				default:
					o.Observe(t.Context(), r)
				}
				time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
			}
			well.Store(true)
			if seed%2 == 1 {
				require.NoError(t, trail.Attach(src))
			}
			want := map[string]int64{}
			for name := range src.all {
				r := src.add("a", strings.TrimPrefix(name, "a~"), ledger.Note)
				o.Observe(t.Context(), r)
				want[name] = r.Seq
			}
			require.NoError(t, trail.Sync(t.Context()))
			require.NoError(t, trail.Close(t.Context()))
			assert.Equal(t, want, sink.whole(t), "seed %d", seed)
			assert.True(t, sink.closed)
			assert.NoError(t, trail.Stats().Err)
		})
	}
}

// A process that ends leaves its positions; the next one goes on from them with what came in between.
func TestTheNextProcessGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "positions")
		src, first, second := &memory{}, &tray{}, &tray{}
		trail, err := audit.New(audit.Config{Sink: first, Positions: audit.NewFile(path)})
		require.NoError(t, err)
		require.NoError(t, trail.Attach(src))
		require.Error(t, trail.Attach(src), "once")
		for range 3 {
			trail.Watch().Observer.Observe(t.Context(), src.add("a", "t", ledger.Note))
		}
		trail.Watch().Observer.Observe(t.Context(), src.add("a", "over", ledger.TaskClosed))
		require.NoError(t, trail.Close(t.Context()))
		require.NoError(t, trail.Close(t.Context()), "closing again is nothing")

		for range 2 {
			src.add("a", "t", ledger.Note)
		}
		trail, err = audit.New(audit.Config{Sink: second, Positions: audit.NewFile(path)})
		require.NoError(t, err)
		require.NoError(t, trail.Attach(src))
		require.NoError(t, trail.Sync(t.Context()))
		require.NoError(t, trail.Close(t.Context()))
		var got []int64
		for _, e := range second.entries {
			got = append(got, e.Seq)
		}
		assert.Equal(t, []int64{4, 5}, got)
	})
}

func TestPositionsThatCannotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "positions")
	require.NoError(t, os.WriteFile(path, []byte("nonsense"), 0o600))
	_, err := audit.New(audit.Config{Sink: &tray{}, Positions: audit.NewFile(path)})
	assert.ErrorContains(t, err, path)
	assert.Error(t, audit.NewFile(filepath.Join(path, "x")).Save(nil))
	_, err = audit.NewFile(filepath.Join(path, "x")).Load()
	assert.Error(t, err)
}

// What is known is bounded: a ledger that was forgotten is written again, never left out.
func TestLedgersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, sink := &memory{}, &tray{}
		trail, err := audit.New(audit.Config{Sink: sink, Ledgers: 10})
		require.NoError(t, err)
		require.NoError(t, trail.Attach(src))
		for range 2 {
			for i := range 30 {
				trail.Watch().Observer.Observe(t.Context(), src.add("a", fmt.Sprint("t", i), ledger.Note))
			}
		}
		require.NoError(t, trail.Sync(t.Context()))
		require.NoError(t, trail.Close(t.Context()))
		got := sink.whole(t)
		assert.Len(t, got, 30)
		assert.EqualValues(t, 2, got["a~t0"])
	})
}

func TestConfigThatCannotBe(t *testing.T) {
	for name, c := range map[string]audit.Config{
		"no Sink": {}, "want at least 16": {Sink: &tray{}, Key: []byte("short")}, "is negative": {Sink: &tray{}, Queue: -1},
	} {
		_, err := audit.New(c)
		assert.ErrorContains(t, err, name)
	}
}

func TestStatusOfEveryEvent(t *testing.T) {
	sink := &tray{}
	trail, err := audit.New(audit.Config{Sink: sink})
	require.NoError(t, err)
	for i, typ := range ledger.Types() {
		trail.Watch().Observer.Observe(t.Context(), delta.Record{Event: ledger.Event{Type: typ, Agent: "a"}, Seq: int64(i + 1)})
	}
	for _, c := range []action.Code{action.OK, action.Failed, action.Interrupted} {
		trail.Watch().Observer.Observe(t.Context(), delta.Record{Event: ledger.Event{Type: ledger.Settled, Agent: "b", Code: c}, Seq: int64(len(sink.entries)) + 1 - int64(len(ledger.Types()))})
	}
	got := map[string]bool{}
	for _, e := range sink.entries {
		assert.NotEmpty(t, e.Status)
		got[e.Status] = true
	}
	assert.Len(t, got, 8)
	require.NoError(t, trail.Close(t.Context()))
}

// An engine's events, as an auditor reads them: no input, output or failure text in clear, and the same value has the same
// digest.
func TestTrailOfAnEngine(t *testing.T) {
	var out, logged bytes.Buffer
	trail, err := audit.New(audit.Config{Sink: audit.Lines(&out), Key: []byte("0123456789abcdef"), Log: slog.New(slog.NewTextHandler(&logged, nil))})
	require.NoError(t, err)
	charge := delta.Define("charge", func(_ *delta.Context, in struct {
		Card string `json:"card" delta:"secret"`
	}) mo.Result[string] {
		if in.Card == "visa-BAD" {
			return mo.Err[string](errors.New("card " + in.Card + " was declined"))
		}
		return mo.Ok("charged " + in.Card)
	}).Describe("Charge a card").Risk(2).MustBuild()
	engine, err := delta.New(delta.Config{Observers: []delta.Watch{trail.Watch()}})
	require.NoError(t, err)
	require.NoError(t, trail.Attach(engine))
	task, err := engine.Start(t.Context(), delta.Goal{ID: "t1", Agent: delta.NewAgent("clerk").Grant(charge).MustBuild(), Text: "charge visa-GOOD"})
	require.NoError(t, err)
	for _, card := range []string{"visa-GOOD", "visa-BAD", "visa-GOOD"} {
		_, err := task.Do(t.Context(), delta.Call{Action: "charge", Input: fmt.Appendf(nil, `{"card":%q}`, card)}).Get()
		require.NoError(t, err)
	}
	require.NoError(t, trail.Sync(t.Context()))
	require.NoError(t, engine.Close(t.Context()))
	require.NoError(t, trail.Close(t.Context()))
	assert.NotContains(t, out.String(), "visa-")

	var begun, ended []audit.Entry
	for line := range strings.Lines(out.String()) {
		var e audit.Entry
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		switch e.Event {
		case ledger.Begun:
			begun = append(begun, e)
		case ledger.Settled:
			ended = append(ended, e)
		}
	}
	require.Len(t, begun, 3)
	require.Len(t, ended, 3)
	assert.Equal(t, begun[0].Input, begun[2].Input)
	assert.NotEqual(t, begun[0].Input, begun[1].Input)
	assert.Equal(t, begun[0].At, ended[0].Started)
	assert.Equal(t, []string{audit.Completed, audit.Failed, audit.Completed}, []string{ended[0].Status, ended[1].Status, ended[2].Status})
	assert.Equal(t, "clerk~t1", ended[0].Task)
	assert.Empty(t, logged.String())
}

func Example() {
	trail, err := audit.New(audit.Config{Sink: audit.Lines(os.Stdout)})
	if err != nil {
		panic(err)
	}
	defer trail.Close(context.Background())
	trail.Watch().Observer.Observe(context.Background(), delta.Record{
		Event: ledger.Event{Type: ledger.Refused, Agent: "clerk", Task: "t1", Action: "charge", Code: action.Denied}, Seq: 1,
	})
	// Output:
	// {"ledger":"clerk~t1","seq":1,"event":"refused","status":"refused","code":"DENIED","agent":"clerk","task":"clerk~t1","action":"charge","at":"1970-01-01T00:00:00Z","stored":"1970-01-01T00:00:00Z"}
}

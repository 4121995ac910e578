//go:build heavy

package workers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

func TestMain(m *testing.M) {
	hired()
	os.Exit(m.Run())
}

// patience is how long is waited for what has to happen.
const patience = time.Minute

// lease is the lease of workers that nobody stops: no machine is busy for that long.
const lease = time.Minute

// bed is a store, a world, and what looks at both; it decides nothing and runs nothing.
type bed struct {
	*testing.T
	ctx           context.Context
	server, other *redistest.Server
	world         *redis.Client
	store         *redisstore.Store
	engine        *delta.Engine
	crews         []*worker
}

func newBed(t *testing.T) *bed {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	b := &bed{T: t, ctx: ctx, server: redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always"), other: redistest.Start(t)}
	b.world = b.other.Client(t)
	var err error
	b.store, err = redisstore.Open(ctx, redisstore.Config{URL: b.server.URL(), Dial: 10 * time.Second, Read: 10 * time.Second})
	require.NoError(t, err)
	b.engine, _, _, err = engineOf(hire{Name: "bed", Lease: lease}, b.store, b.world)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, b.engine.Close(context.Background()))
		assert.NoError(t, b.store.Close())
	})
	return b
}

// worker is another process.
type worker struct {
	b    *bed
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	said saying // on standard error

	mu      sync.Mutex
	n       int
	waiting map[int]chan report
	gone    bool
	ended   chan struct{} // no reports come any more
}

// saying is a text that is read while it is written.
type saying struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *saying) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *saying) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.text.String()
	return text[max(0, len(text)-4000):]
}

// hire starts a worker; what is not said of it is as usual.
func (b *bed) hire(h hire) *worker {
	b.Helper()
	h.Name, h.Store, h.World = fmt.Sprint("w", len(b.crews)+1), b.server.URL(), b.other.URL()
	if h.Lease == 0 {
		h.Lease = lease
	}
	text, err := json.Marshal(h)
	require.NoError(b, err)
	self, err := os.Executable()
	require.NoError(b, err)
	w := &worker{b: b, name: h.Name, cmd: exec.Command(self), waiting: map[int]chan report{}, ended: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), hireEnv+"="+string(text))
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	w.cmd.Stderr = &w.said
	w.in, err = w.cmd.StdinPipe()
	require.NoError(b, err)
	out, err := w.cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, w.cmd.Start())
	go w.listen(out)
	b.crews = append(b.crews, w)
	b.Cleanup(w.leave)
	return w
}

// crew hires several workers that work.
func (b *bed) crew(n int) (all []*worker) {
	for range n {
		all = append(all, b.hire(hire{Works: true}))
	}
	return all
}

func (w *worker) listen(out io.Reader) {
	defer close(w.ended)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var r report
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue
		}
		w.mu.Lock()
		w.waiting[r.N] <- r
		w.mu.Unlock()
	}
}

// tell gives an order; the returned function waits for what comes of it.
func (w *worker) tell(o order) func() report {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	o.N = w.n
	c := make(chan report, 1)
	w.waiting[o.N] = c
	text, err := json.Marshal(o)
	if err == nil {
		_, err = fmt.Fprintf(w.in, "%s\n", text)
	}
	return func() report {
		if err != nil {
			return report{Err: err.Error()}
		}
		select {
		case r := <-c:
			return r
		case <-w.ended:
			select {
			case r := <-c:
				return r
			default:
				return report{Err: "killed"}
			}
		case <-w.b.ctx.Done():
			return report{Err: "no answer"}
		}
	}
}

func (w *worker) do(o order) report { return w.tell(o)() }

// must does what has to succeed.
func (w *worker) must(o order) report {
	w.b.Helper()
	r := w.do(o)
	require.Empty(w.b, r.Err, "%s %s", o.Do, o.Call.Action)
	return r
}

// call is an order to make a call.
func call(task, name, id string, in work) order {
	raw, _ := json.Marshal(in)
	return order{Do: "call", Task: task, Call: delta.Call{ID: id, Action: name, Input: raw}}
}

// asks makes a call that has to wait for a person, and returns the request.
func (w *worker) asks(task, name, id string, in work) string {
	w.b.Helper()
	r := w.must(call(task, name, id, in))
	require.Equal(w.b, action.ApprovalRequired, r.Code, "%v", r.Out.Failure)
	return r.Out.Failure.Approval()
}

func (w *worker) signal(s syscall.Signal) { _ = w.cmd.Process.Signal(s) }

// pause stops the process as a machine does that is suspended.
func (w *worker) pause() { w.signal(syscall.SIGSTOP) }

func (w *worker) resume() { w.signal(syscall.SIGCONT) }

func (w *worker) kill() {
	w.signal(syscall.SIGKILL)
	<-w.ended
	_ = w.cmd.Wait()
	w.gone = true
}

// leave lets a worker finish what it has in hand, and go.
func (w *worker) leave() {
	if w.gone {
		return
	}
	w.gone = true
	w.resume()
	_ = w.in.Close()
	stuck := time.AfterFunc(patience, func() { w.signal(syscall.SIGKILL) })
	defer stuck.Stop()
	<-w.ended
	assert.NoError(w.b, w.cmd.Wait(), "%s", w.said.String())
}

// start starts a task of the clerk's with so many tokens and returns its id.
func (w *worker) start(id string, tokens int64) string {
	w.b.Helper()
	return w.must(order{Do: "start", ID: id, Name: "clerk", Tokens: tokens, TTL: time.Hour}).Text
}

// told is what the workers said, and what the ledgers hold, for whoever has to find out why.
func (b *bed) told() string {
	var out strings.Builder
	for _, w := range b.crews {
		fmt.Fprintf(&out, "\n%s said:\n%s", w.name, w.said.String())
	}
	page, err := b.engine.Tasks(b.ctx, delta.TaskQuery{})
	if err != nil {
		return out.String()
	}
	for _, t := range page.Tasks {
		for i, e := range b.events(t.ID) {
			fmt.Fprintf(&out, "\n%s %d: %s %s %s %s %s", t.ID, i+1, e.Type, e.Action, e.Code, e.Owner, e.Reason)
		}
	}
	return out.String()
}

// eventually waits until something is so.
func (b *bed) eventually(what string, ok func() bool) {
	b.Helper()
	for until := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			b.Fatal("it did not happen: " + what + b.told())
		}
	}
}

// entered waits until so many functions wait for what is to be opened, and returns who runs them.
func (b *bed) entered(hold string, n int) (who []string) {
	b.Helper()
	b.eventually(fmt.Sprint(n, " wait for ", hold), func() bool {
		who = b.world.LRange(b.ctx, entered+hold, 0, -1).Val()
		return len(who) >= n
	})
	return who
}

func (b *bed) open(hold string) { require.NoError(b, b.world.Set(b.ctx, opened+hold, 1, 0).Err()) }

// happened is how often the action had its effect, by n.
func (b *bed) happened(name string) map[int]int {
	b.Helper()
	times := map[int]int{}
	list, err := b.world.LRange(b.ctx, effects+name, 0, -1).Result()
	require.NoError(b, err)
	for _, text := range list {
		var e effect
		require.NoError(b, json.Unmarshal([]byte(text), &e))
		times[e.N]++
	}
	return times
}

// times is so many of each n below.
func times(each, below int) map[int]int {
	out := map[int]int{}
	for n := range below {
		out[n] = each
	}
	return out
}

// events are those of a task.
func (b *bed) events(task string) []ledger.Event {
	b.Helper()
	t, err := b.engine.Open(b.ctx, task)
	require.NoError(b, err)
	events, err := t.Events(b.ctx)
	require.NoError(b, err)
	return events
}

func (b *bed) count(task string, of ledger.Type) (n int) {
	b.Helper()
	for _, e := range b.events(task) {
		if e.Type == of {
			n++
		}
	}
	return n
}

// holds demands of a task what every play must leave: a chain that verifies, state that is the fold of it, no grant beyond
// the limit at any place of the ledger, and intents that end once.
func (b *bed) holds(task string) {
	b.Helper()
	t, err := b.engine.Open(b.ctx, task)
	require.NoError(b, err)
	records, _, err := t.Ledger(b.ctx)
	require.NoError(b, err, "I14: the chain")
	state, err := engine.FoldLedger(records)
	require.NoError(b, err)
	agent, name, _ := strings.Cut(task, "~")
	snap, err := b.store.Load(b.ctx, agent, name, nil)
	require.NoError(b, err)
	for key, c := range snap.Task.Cells {
		assert.Equal(b, c.Val, state.Task.Cells[key].Val, "I14: %s", key)
	}
	assert.Equal(b, snap.Task.Counters, state.Task.Counters, "I14")
	budget, err := t.Budget(b.ctx)
	require.NoError(b, err)
	most, limited := budget.Limit.Tokens.Get()
	granted, held, ends := int64(0), map[string]int64{}, map[string]int{}
	for _, e := range b.events(task) {
		switch e.Type {
		case ledger.Begun:
			if e.Fence == 1 {
				granted += e.Reserved.Tokens
				held[e.Intent] = e.Reserved.Tokens
			}
		case ledger.Settled, ledger.Resolved:
			if ends[e.Intent]++; e.Code != action.StartedUnknown {
				granted += e.Charged.Tokens - held[e.Intent]
			}
		}
		if limited {
			assert.LessOrEqual(b, granted, most, "I7")
		}
	}
	for intent, n := range ends {
		assert.Equal(b, 1, n, "%s ended once", intent)
	}
}

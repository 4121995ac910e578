//go:build heavy

package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

const childEnv = "DELTA_CRASH_WORKER" // url, point, hit, first call, calls

func TestMain(m *testing.M) {
	if args := strings.Split(os.Getenv(childEnv), "\t"); len(args) == 5 {
		t := &trap{at: point(args[1])}
		hit, _ := strconv.Atoi(args[2])
		from, _ := strconv.Atoi(args[3])
		calls, _ := strconv.Atoi(args[4])
		t.left.Store(int64(hit))
		if err := worker(args[0], t, from, calls, 300*time.Millisecond); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if is, err := flowProcess(); is {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// spawn starts a worker that dies at a point; "" never dies.
func spawn(t *testing.T, url string, p point, hit, from, calls int) (cmd *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd, out = exec.Command(self), &bytes.Buffer{}
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join([]string{url, string(p), strconv.Itoa(hit), strconv.Itoa(from), strconv.Itoa(calls)}, "\t"))
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	return cmd, out
}

const limit = 2000 // tokens of the task

// TestHeavyCrashMatrix kills one of three workers at each point, under the load of the others, lets a fresh one clean up,
// and demands of what is there: I6 an approval runs once, I7 no grant beyond the limit, I8 no effect without an intent, I9
// no effect twice that may not be repeated, and none forgotten.
func TestHeavyCrashMatrix(t *testing.T) {
	srv := redistest.Start(t)
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "killed at\tpass\teffects\tended Ok\tnot known\trepeated, as they may be")
	for _, p := range points {
		for _, hit := range []int{1, 2} {
			t.Run(fmt.Sprint(p, " ", hit), func(t *testing.T) {
				require.NoError(t, srv.Client(t).FlushAll(context.Background()).Err())
				matrix(t, srv.URL(), p, hit, w)
			})
		}
	}
	require.NoError(t, w.Flush())
	t.Log("\n" + table.String())
}

func matrix(t *testing.T, url string, p point, hit int, w *tabwriter.Writer) {
	ctx := context.Background()
	s, err := redisstore.Open(ctx, redisstore.Config{URL: url})
	require.NoError(t, err)
	e, err := delta.New(config(mined{s, &trap{}}))
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(e.Close(ctx), s.Close())) }()
	o, _ := redis.ParseURL(url)
	outside := redis.NewClient(o)
	defer func() { _ = outside.Close() }()
	clerk := agent(outside, &trap{})
	task, err := e.Start(ctx, delta.Goal{ID: taskName, Agent: clerk, Text: "a day's work", Approvers: []string{"ana"}, Threshold: 4.5,
		Limit: action.Limit{Tokens: action.Max(limit)}})
	require.NoError(t, err)

	victim, said := spawn(t, url, p, hit, 0, 24) // enough of each kind, where a busy machine lets others take some over
	one, saidOne := spawn(t, url, "", 0, 100, 12)
	two, saidTwo := spawn(t, url, "", 0, 200, 12)
	err = victim.Wait()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "the victim passed the point: %s", said)
	status, _ := exit.Sys().(syscall.WaitStatus)
	require.Equal(t, syscall.SIGKILL, status.Signal(), "%s", said)
	require.NoError(t, one.Wait(), "%s", saidOne)
	require.NoError(t, two.Wait(), "%s", saidTwo)
	fresh, saidFresh := spawn(t, url, "", 0, 0, 24) // makes the victim's calls again, by their ids
	require.NoError(t, fresh.Wait(), "%s", saidFresh)
	look(t, outside, task, fmt.Sprintf("%s\t%d", p, hit), w)
}

// look judges what is there.
func look(t *testing.T, outside *redis.Client, task *delta.Task, row string, w *tabwriter.Writer) {
	ctx := context.Background()
	events, err := task.Events(ctx)
	require.NoError(t, err)
	ends, begun := map[string]action.Code{}, map[string]ledger.Event{}
	orders := map[string]int{}
	var granted, reserved int64
	for _, e := range events {
		switch e.Type {
		case ledger.Begun:
			if e.Fence == 1 {
				granted += e.Reserved.Tokens
			}
			begun[e.Intent] = e
			var in order
			require.NoError(t, json.Unmarshal(e.Input, &in))
			orders[e.Intent] = in.N
		case ledger.Attempt:
			granted += e.Charged.Tokens - begun[e.Intent].Reserved.Tokens + e.Reserved.Tokens
			b := begun[e.Intent]
			b.Reserved = e.Reserved
			begun[e.Intent] = b
		case ledger.Settled:
			ends[e.Intent] = e.Code
		}
		require.LessOrEqual(t, granted, int64(limit), "I7")
	}
	total, unknown, repeated, ok := 0, 0, 0, 0
	for _, name := range actions {
		list, err := outside.LRange(ctx, effects+name, 0, -1).Result()
		require.NoError(t, err)
		times := map[int]int{}
		for _, text := range list {
			var f effect
			require.NoError(t, json.Unmarshal([]byte(text), &f))
			assert.True(t, f.Begun, "I8: %s of %d ran before its intent was recorded", name, f.Order)
			assert.Contains(t, begun, f.Intent, "I8")
			times[f.Order]++
			total++
		}
		for n, k := range times {
			if name == charge || name == refund {
				assert.Equal(t, 1, k, "I9, I6: %s of order %d", name, n)
			} else if usual := map[string]int{tag: 1, retry: 2}[name]; k > usual {
				repeated += k - usual
			}
		}
	}
	for id := range begun {
		code, ended := ends[id]
		assert.True(t, ended, "none is forgotten: %s of order %d", begun[id].Action, orders[id])
		switch code {
		case action.OK:
			ok++
		case action.StartedUnknown:
			unknown++
			reserved += begun[id].Reserved.Tokens
		}
	}
	b, err := task.Budget(ctx)
	require.NoError(t, err)
	assert.Equal(t, reserved, b.Reserved.Tokens, "nothing stays reserved but for what is not known")
	assert.LessOrEqual(t, b.Spent.Tokens+b.Reserved.Tokens, int64(limit), "I7")
	_, _, err = task.Ledger(ctx)
	require.NoError(t, err, "I14: the chain holds")
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\n", row, total, ok, unknown, repeated)
}

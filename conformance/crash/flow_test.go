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
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

const flowEnv = "DELTA_CRASH_FLOW" // url, boundary, fails

// flowProcess is what this binary is where it was started as a worker of workflows.
func flowProcess() (is bool, err error) {
	args := strings.Split(os.Getenv(flowEnv), "\t")
	if len(args) != 3 {
		return false, nil
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return true, err
	}
	return true, flowWorker(args[0], n, args[2] == "true")
}

// TestHeavyCrashWorkflow kills a worker at every boundary of the commands of a workflow that has steps of all types, once
// where it completes and once where it is undone: the instance ends elsewhere with each effect once, and its state is the
// fold of its ledger.
func TestHeavyCrashWorkflow(t *testing.T) {
	srv := redistest.Start(t)
	for _, fails := range []bool{false, true} {
		total := crashFlow(t, srv, 0, fails)
		require.Greater(t, total, 20)
		for n := 1; n <= total; n++ {
			t.Run(fmt.Sprintf("fails=%v/%d of %d", fails, n, total), func(t *testing.T) { crashFlow(t, srv, n, fails) })
		}
	}
}

// flowPlay is one instance, whose worker was killed.
type flowPlay struct {
	*testing.T
	ctx   context.Context
	world *redis.Client
	e     *delta.Engine
	never bool // a person found that the charge, which had begun, did not happen
}

func crashFlow(t *testing.T, srv *redistest.Server, n int, fails bool) (total int) {
	ctx := context.Background()
	require.NoError(t, srv.Client(t).FlushAll(ctx).Err())
	s, err := redisstore.Open(ctx, redisstore.Config{URL: srv.URL()})
	require.NoError(t, err)
	p := &flowPlay{T: t, ctx: ctx, world: srv.Client(t)}
	a, parent, child := flowDesk(p.world, &fuse{}, fails)
	p.e, err = flowEngine(fused{s, &fuse{}}, parent, child)
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(p.e.Close(ctx), s.Close())) }()
	i, err := p.e.StartWorkflow(ctx, parent, delta.Goal{ID: taskName, Agent: a, Approvers: []string{"ana"}}, json.RawMessage(`{"id":"o1"}`))
	require.NoError(t, err)

	self, err := os.Executable()
	require.NoError(t, err)
	cmd, out, said := exec.Command(self), &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Env = append(os.Environ(), flowEnv+"="+strings.Join([]string{srv.URL(), strconv.Itoa(n), strconv.FormatBool(fails)}, "\t"))
	cmd.Stdout, cmd.Stderr = out, said
	require.NoError(t, cmd.Start())
	running, over := context.WithCancel(ctx)
	gone := make(chan error, 1)
	go func() {
		gone <- cmd.Wait()
		over()
	}()
	p.accompany(running, i)
	err = <-gone
	require.True(t, err == nil || n > 0, "%v %s", err, said)
	total, _ = strconv.Atoi(strings.TrimSpace(out.String()))

	work, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- p.e.Work(work) }()
	patient, tired := context.WithTimeout(ctx, 30*time.Second)
	st := p.accompany(patient, i)
	tired()
	stop()
	<-done
	p.judge(i, st, fails)
	return total
}

// accompany waits, each time that nothing goes on without a person, and answers, until the instance has ended or ctx has.
func (p *flowPlay) accompany(ctx context.Context, i *delta.Instance) (st workflow.State) {
	for ctx.Err() == nil {
		s, err := i.Wait(ctx)
		if err != nil {
			continue
		}
		if st = s; s.Status.Terminal() {
			break
		}
		p.person(i)
	}
	return st
}

// person answers all that waits for people, here and in what is nested.
func (p *flowPlay) person(i *delta.Instance) {
	s, err := i.State(p.ctx)
	if err != nil || len(s.Steps) == 0 {
		return
	}
	ana, err := p.e.Authenticate(p.ctx, "ana")
	require.NoError(p, err)
	for _, w := range s.Waits() {
		switch w.For {
		case workflow.WaitIntake:
			_ = i.Signal(p.ctx, w.Step, ana, []byte(`{"ok":true}`))
		case workflow.WaitResolution:
			ok := slices.ContainsFunc(p.effects(), func(e string) bool { return strings.HasSuffix(e, " "+w.Intent) })
			p.never = p.never || !ok && w.Step == "pay"
			var out []byte
			if ok {
				out = []byte(`{"id":"o1"}`)
			}
			_ = i.Task().Resolve(p.ctx, w.Intent, ana, ok, out, action.Cost{}, "I looked")
		}
	}
	kids, err := i.Task().Children(p.ctx)
	require.NoError(p, err)
	for _, k := range kids {
		if c, err := p.e.OpenWorkflow(p.ctx, k.ID); err == nil {
			p.person(c)
		}
	}
}

func (p *flowPlay) effects() []string {
	list, err := p.world.LRange(p.ctx, flowEffects, 0, -1).Result()
	require.NoError(p, err)
	return list
}

func (p *flowPlay) judge(i *delta.Instance, st workflow.State, fails bool) {
	text, _ := json.Marshal(st)
	assert.Equal(p, map[bool]workflow.Status{false: workflow.Completed, true: workflow.Failed}[fails || p.never], st.Status, "%s", text)
	records, _, err := i.Task().Ledger(p.ctx)
	require.NoError(p, err, "I14: the chain holds")
	folded, is, err := engine.FoldFlow(records)
	require.NoError(p, err)
	require.True(p, is)
	again, _ := json.Marshal(folded)
	assert.JSONEq(p, string(text), string(again), "I14: the state is the fold of the ledger")

	have, ids := map[string]int{}, map[string]bool{}
	for _, e := range p.effects() {
		name, _, _ := strings.Cut(e, " ")
		if again := ids[e]; !again {
			have[name]++
		} else if name == "charge" || name == "send" {
			assert.Fail(p, "I9: an effect happened twice that may not be repeated", e)
		}
		ids[e] = true
	}
	want := map[string]int{"charge": 1, "send": 1, "last": 1}
	switch {
	case p.never:
		want = map[string]int{}
	case fails:
		want = map[string]int{"charge": 1, "send": 1, "undo": 2}
	}
	assert.Equal(p, want, have)
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/planner"
)

// unmarshal is what most figures are measured against: encoding/json reading the input into any.
func unmarshal() work {
	in := []byte(input)
	return timed(func() error {
		var v any
		return json.Unmarshal(in, &v)
	})
}

// edge is the strict edge, the schema and the canonical form, into a buffer that is used again.
func edge(context.Context) (pair, error) {
	s, err := orders()
	if err != nil {
		return pair{}, err
	}
	in, buf := []byte(input), []byte(nil)
	return pair{timed(func() error {
		var ok bool
		if buf, ok = s.Pass(buf[:0], in); !ok {
			return fmt.Errorf("the pass refuses the input")
		}
		return nil
	}), unmarshal(), func() {}}, nil
}

// preview is gates 1 to 8 from the raw bytes, and the event that would be written, into a buffer that is used again.
func preview(ctx context.Context) (pair, error) {
	d, err := chargeDesk(ctx, delta.NoTimeout)
	if err != nil {
		return pair{}, err
	}
	c, buf := delta.Call{Action: "charge", Input: json.RawMessage(input)}, []byte(nil)
	return pair{timed(func() error {
		v, err := d.task.Preview(ctx, c, buf[:0])
		if err == nil && !v.OK() {
			err = fmt.Errorf("the call would end as %s", v.Code)
		}
		buf = v.Event
		return err
	}), unmarshal(), d.close}, nil
}

// queued is a governed call without a timeout; what it teaches is folded, and its records are sealed, beside the calls that follow.
func queued(ctx context.Context) (pair, error) {
	d, err := chargeDesk(ctx, delta.NoTimeout)
	if err != nil {
		return pair{}, err
	}
	return pair{timed(func() error { return call(ctx, d.task) }), unmarshal(), d.close}, nil
}

// folded is a governed call under a timeout of its own, with nothing left to do when it counts as over.
func folded(ctx context.Context) (pair, error) {
	d, err := chargeDesk(ctx, 10*time.Second)
	if err != nil {
		return pair{}, err
	}
	return pair{timed(func() error {
		if err := call(ctx, d.task); err != nil {
			return err
		}
		return d.engine.Sync(ctx)
	}), unmarshal(), d.close}, nil
}

func chargeDesk(ctx context.Context, timeout time.Duration) (*desk, error) {
	a, err := charge(timeout)
	if err != nil {
		return nil, err
	}
	d, err := open(ctx, a)
	if err != nil {
		return nil, err
	}
	return d, call(ctx, d.task)
}

// stepsOfRun is how many proposals one run makes.
const stepsOfRun = 32

// run is a step of engine.Run with a scripted planner, beside the call that the step makes.
func run(ctx context.Context) (pair, error) {
	d, err := chargeDesk(ctx, delta.NoTimeout)
	if err != nil {
		return pair{}, err
	}
	orders := 0
	script := func() planner.Scripted { // of other orders each time: a planner that repeats itself is stopped
		steps := make(planner.Scripted, stepsOfRun)
		for i := range steps {
			orders++
			steps[i] = planner.Propose(planner.Call("charge", strings.Replace(input, "000042", fmt.Sprintf("%06d", orders), 1)))
		}
		return steps
	}
	steps := func(n int) (sum time.Duration, err error) {
		runs := (n + stepsOfRun - 1) / stepsOfRun
		for range runs {
			s := script()
			from := time.Now()
			r, err := d.engine.RunWithin(ctx, d.task, s, delta.Bounds{Steps: stepsOfRun}).Get()
			sum += time.Since(from)
			if err == nil && len(r.Results) != stepsOfRun {
				err = fmt.Errorf("the run ended after %d calls as %s: %s, %v", len(r.Results), r.Ended, r.Why, r.Err)
			}
			if err != nil {
				return 0, err
			}
		}
		return time.Duration(float64(sum) * float64(n) / float64(runs*stepsOfRun)), nil
	}
	return pair{steps, timed(func() error { return call(ctx, d.task) }), d.close}, nil
}

// agents is how many agents work at a time, each on its own task.
const agents = 64

// atOnce is as many calls by 64 goroutines on 64 agents, beside one goroutine that makes them all. Both count what goes on
// beside the calls until it is done.
func atOnce(ctx context.Context) (pair, error) {
	e, err := newEngine()
	if err != nil {
		return pair{}, err
	}
	tasks := make([]*delta.Task, agents)
	for i := range tasks {
		a, err := charge(delta.NoTimeout)
		if err != nil {
			return pair{}, err
		}
		if tasks[i], err = start(ctx, e, fmt.Sprintf("clerk-%d", i), a); err != nil {
			return pair{}, err
		}
	}
	many := func(n int) (time.Duration, error) {
		errs := make([]error, agents)
		from := time.Now()
		var wg sync.WaitGroup
		for i, t := range tasks {
			wg.Go(func() {
				for range share(n, i) {
					if errs[i] = call(ctx, t); errs[i] != nil {
						return
					}
				}
			})
		}
		wg.Wait()
		errs = append(errs, e.Sync(ctx))
		return time.Since(from), join(errs)
	}
	one := func(n int) (time.Duration, error) {
		from := time.Now()
		for i, t := range tasks { // the same agents, so that the same is held and learned
			for range share(n, i) {
				if err := call(ctx, t); err != nil {
					return 0, err
				}
			}
		}
		err := e.Sync(ctx)
		return time.Since(from), err
	}
	return pair{many, one, func() { _ = e.Close(context.Background()) }}, nil
}

// onOneCore is the same beside one goroutine that has one core for its calls and for what goes on beside them: with a second
// one, folding, sealing and collecting garbage are done there, and one goroutine is no longer one core's work.
func onOneCore(ctx context.Context) (pair, error) {
	p, err := atOnce(ctx)
	if err != nil {
		return pair{}, err
	}
	one := p.beside
	p.beside = func(n int) (time.Duration, error) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		return one(n)
	}
	return p, nil
}

// share is how many of n calls the agent makes.
func share(n, agent int) int { return (n + agents - 1 - agent) / agents }

func join(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

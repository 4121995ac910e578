package delta

import (
	"context"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// whole makes steps until the run has ended, on a goroutine of its own: the function of an action without a timeout runs on
// it too, and may end it. Then another one goes on. A panic comes back to the caller.
func (r *run) whole(ctx context.Context) {
	back := make(chan any, 1)
	for {
		go r.steps(ctx, back)
		switch p := <-back; p {
		case nil:
			return
		case errExited:
		default:
			panic(p)
		}
	}
}

// steps makes steps until the run has ended, and says nil then, or what ended its goroutine.
func (r *run) steps(ctx context.Context, back chan<- any) {
	said := any(errExited)
	defer func() {
		if p := recover(); p != nil {
			said = p
		}
		back <- said
	}()
	roomy()
	for !r.step(ctx) {
	}
	said = nil
}

// calls makes the calls of one proposal in parallel and returns when each has ended. One alone is made on the run's own
// goroutine.
func (r *run) calls(ctx context.Context, calls []Call) {
	r.out = make([]Result, len(calls))
	for i, c := range calls {
		r.out[i].Call = c
	}
	if len(calls) == 1 {
		r.out[0].Outcome = r.call(ctx, calls[0])
		return
	}
	twice := duplicates(calls)
	var all sync.WaitGroup
	for i, c := range calls {
		if twice[i] {
			r.out[i] = refuseAll(calls[i:i+1], action.Fail(action.InputInvalid, "call id %q is used twice in one proposal; give every call an id of its own", c.ID))[0]
			continue
		}
		all.Go(func() {
			roomy()
			r.out[i].Outcome = r.call(ctx, c)
		})
	}
	all.Wait()
}

// duplicates marks the calls whose id an earlier one of the same proposal has: refused before anything is stored.
func duplicates(calls []Call) map[int]bool {
	out, seen := map[int]bool{}, map[string]bool{}
	for i, c := range calls {
		if c.ID != "" && seen[c.ID] {
			out[i] = true
		}
		seen[c.ID] = true
	}
	return out
}

func (r *run) call(ctx context.Context, c Call) action.Outcome {
	do := r.t.Do
	if r.b.Wait {
		do = r.t.DoWait
	}
	o, err := do(ctx, c).Get()
	if err != nil {
		f := action.Fail(action.NotStarted, "the run was stopped before the call").Because(err)
		return action.Outcome{Action: c.Action, Code: f.Code, Failure: f}
	}
	return o
}

func refuseAll(calls []Call, f *action.Failure) []Result {
	out := make([]Result, len(calls))
	for i, c := range calls {
		out[i] = Result{c, action.Outcome{Action: c.Action, Code: f.Code, Failure: f}}
	}
	return out
}

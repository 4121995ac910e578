package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/statespace"
)

// all is how many actions the agent of the offers has.
const all = 10_000

// graph declares them; so many need the first one.
func graph(dependents int) (*statespace.Graph, error) {
	nodes := make([]statespace.Node, all)
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("act-%d", i)
		if i > 0 && i <= dependents {
			nodes[i].Needs = []statespace.Need{{Action: "act-0"}}
		}
	}
	return statespace.Compile(nodes)
}

// completion is the completion of the first action, and its being used up, as half of the two: either visits every
// dependent.
func completion(s *statespace.Set) work {
	return func(n int) (time.Duration, error) {
		from := time.Now()
		for range (n + 1) / 2 {
			s.Put("act-0", 1)
			s.Use("act-0")
		}
		return time.Since(from), nil
	}
}

// few is the prerequisite set after a completion with 8 dependents, beside copying its bits into a set that is there.
func few(context.Context) (pair, error) {
	g, err := graph(8)
	if err != nil {
		return pair{}, err
	}
	from, to := make([]uint64, (all+63)/64), make([]uint64, (all+63)/64)
	return pair{completion(g.NewSet()), timed(func() error {
		copy(to, from)
		return nil
	}), func() {}}, nil
}

// dependentsOfMany is how many actions wait for the first in the figure of many.
const dependentsOfMany = 500

// many is the same with 500 dependents, beside a loop that asks of every action whether what it needs is there.
func many(context.Context) (pair, error) {
	g, err := graph(dependentsOfMany)
	if err != nil {
		return pair{}, err
	}
	needs := map[string][]string{}
	for i := range all {
		name := fmt.Sprintf("act-%d", i)
		if needs[name] = nil; i > 0 && i <= dependentsOfMany {
			needs[name] = []string{"act-0"}
		}
	}
	held := map[string]bool{"act-0": true}
	return pair{completion(g.NewSet()), timed(func() error {
		legal := make(map[string]bool, len(needs))
		for name, ns := range needs {
			if !slices.ContainsFunc(ns, func(n string) bool { return !held[n] }) {
				legal[name] = true
			}
		}
		if len(legal) != all {
			return fmt.Errorf("%d legal", len(legal))
		}
		return nil
	}), func() {}}, nil
}

// legal is how many of the actions the agent may call.
const legal = 100

// wide is a desk whose agent holds 10,000 actions, of which 100 are legal.
func wide(ctx context.Context) (*desk, error) {
	first, err := charge(delta.NoTimeout)
	if err != nil {
		return nil, err
	}
	s, err := orders()
	if err != nil {
		return nil, err
	}
	act := func(*delta.Context, action.Input) mo.Result[action.Output] { return mo.Ok(action.Output(receipt)) }
	defs := []delta.Definition{first}
	for i := 1; i < all; i++ {
		name := fmt.Sprintf("act-%d", i)
		b := delta.DefineRaw(name, s.JSON(), act)
		if i >= legal { // never offered: what it takes does not matter
			b = delta.DefineRaw(name, []byte(`{"type":"object"}`), act).Needs(defs[1].(delta.Prereq))
		}
		a, err := b.Describe("Do something else").Risk(1 + i%3).Build()
		if err != nil {
			return nil, err
		}
		defs = append(defs, a)
	}
	return open(ctx, defs...)
}

// read is a whole offer, beside copying as many entries that are made already.
func read(ctx context.Context) (pair, error) {
	d, err := wide(ctx)
	if err != nil {
		return pair{}, err
	}
	prepared, err := d.task.Offer(ctx)
	if err == nil && len(prepared.Actions) != legal {
		err = fmt.Errorf("%d actions are offered", len(prepared.Actions))
	}
	if err != nil {
		return pair{}, err
	}
	subject := timed(func() error {
		o, err := d.task.Offer(ctx)
		if err == nil && len(o.Actions) != legal {
			err = fmt.Errorf("%d actions are offered", len(o.Actions))
		}
		return err
	})
	return pair{subject, copying(prepared), d.close}, nil
}

// afterCall is the same, each after a call that changed the budget and what is believed.
func afterCall(ctx context.Context) (pair, error) {
	d, err := wide(ctx)
	if err != nil {
		return pair{}, err
	}
	prepared, err := d.task.Offer(ctx)
	if err != nil {
		return pair{}, err
	}
	subject := func(n int) (sum time.Duration, err error) {
		for range n {
			if err := call(ctx, d.task); err != nil {
				return 0, err
			}
			if err := d.engine.Sync(ctx); err != nil {
				return 0, err
			}
			from := time.Now()
			if _, err := d.task.Offer(ctx); err != nil {
				return 0, err
			}
			sum += time.Since(from)
		}
		return sum, nil
	}
	return pair{subject, copying(prepared), d.close}, nil
}

func copying(o action.Offer) work {
	return timed(func() error {
		runtime.KeepAlive(slices.Clone(o.Actions)) // else it might be left out
		return nil
	})
}

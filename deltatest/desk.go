package deltatest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/faulty"
)

// Desk is an engine to test agents on.
type Desk struct {
	*delta.Engine
	Clock *Clock
	Store *faulty.Store // between the engine and its store; loses nothing until it gets a plan, see Lose

	tb testing.TB
}

// Open opens an engine and closes it with the test. Of the configuration, what is not given is filled in:
//
//	Now            the clock of the desk
//	Store          an in-process store by the same clock
//	Authenticator  vouches for any name, see [Desk.As]
//	ID             numbers, so that runs are alike
//
// A configuration that the engine refuses ends the test.
func Open(tb testing.TB, c delta.Config) *Desk {
	tb.Helper()
	d := &Desk{tb: tb, Clock: &Clock{}}
	if c.Now == nil {
		c.Now = d.Clock.Now
	}
	if c.Store == nil {
		c.Store = memory.New(memory.Config{Clock: c.Now})
	}
	d.Store = faulty.New(c.Store, nil)
	c.Store = d.Store
	if c.Authenticator == nil {
		c.Authenticator = delta.VoucherFunc(vouch)
	}
	if c.ID == nil {
		var n atomic.Int64
		c.ID = func() string { return fmt.Sprintf("id%d", n.Add(1)) }
	}
	e, err := delta.New(c)
	if err != nil {
		tb.Fatalf("deltatest: open: %v", err)
	}
	d.Engine = e
	tb.Cleanup(func() {
		d.Store.Replan(nil) // what is still to be written gets through
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			tb.Errorf("deltatest: close: %v", err)
		}
	})
	return d
}

// vouch takes a name, or who somebody is with roles, at their word.
func vouch(_ context.Context, credential any) (delta.Vouched, error) {
	switch c := credential.(type) {
	case string:
		return delta.Vouched{Name: c}, nil
	case delta.Vouched:
		return c, nil
	}
	return delta.Vouched{}, errors.New("deltatest: a credential is a name, or a delta.Vouched")
}

// Start opens a task; a goal that the engine refuses ends the test.
func (d *Desk) Start(g delta.Goal) *delta.Task {
	d.tb.Helper()
	t, err := d.Engine.Start(context.Background(), g)
	if err != nil {
		d.tb.Fatalf("deltatest: start: %v", err)
	}
	return t
}

// As returns the identity of that name, with roles where some are given, as the desk's authenticator vouches for it; one that
// it refuses ends the test. An authenticator of your own is given the name where there are no roles, else a delta.Vouched.
func (d *Desk) As(name string, roles ...string) delta.Identity {
	d.tb.Helper()
	var credential any = name
	if len(roles) > 0 {
		credential = delta.Vouched{Name: name, Roles: roles}
	}
	id, err := d.Authenticate(context.Background(), credential)
	if err != nil {
		d.tb.Fatalf("deltatest: authenticate %q: %v", name, err)
	}
	return id
}

// Lose has the store lose calls from now on: the numbers of the plan count from the next call. Nil loses none.
func (d *Desk) Lose(plan faulty.Plan) {
	before, _ := d.Store.Calls()
	if plan == nil {
		d.Store.Replan(nil)
		return
	}
	d.Store.Replan(func(call int) faulty.Fault { return plan(call - before) })
}

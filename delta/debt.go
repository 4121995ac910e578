package delta

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// debt is what a proposal used that is not written down yet. It is kept until it is: no further proposal of the task is
// asked for before. If this engine disappears, whoever takes the proposal over charges what was reserved for it.
type debt struct {
	t     *Task
	plan  *plan
	used  action.Cost
	f     *action.Failure
	at    int64
	late  *txn.Txn // what is written where another worker has ended the proposal meanwhile
	tried bool     // late was sent, and perhaps written
}

// debts are those of an engine.
type debts struct {
	mu   sync.Mutex
	owed []*debt
}

// pay writes a debt down.
func (d *debt) pay(ctx context.Context) error {
	e := d.t.engine
	begun := d.plan.begun
	if d.late == nil {
		if e.instant != nil {
			d.plan.room.Lend()
			defer d.plan.room.Return()
		}
		x := engine.SettlePlan(&d.plan.room, begun, d.plan.owner, d.used, d.f, d.at, d.plan.estimated)
		reply, err := e.apply(ctx, x)
		if err != nil {
			return err
		}
		if reply.OK {
			d.t.advance(x, reply, nil)
			return nil
		}
		d.late = engine.LatePlan(*begun, d.plan.owner, d.used, d.f, d.at)
	}
	send := e.apply
	if d.tried {
		send = e.again
	}
	d.tried = true
	reply, err := send(ctx, d.late)
	if err == nil && !reply.OK {
		err = errors.New("what the proposal used cannot be recorded")
	}
	if err == nil {
		d.t.advance(d.late, reply, nil)
	}
	return err
}

// again sends a transaction of which it is not known whether it was written.
func (e *Engine) again(ctx context.Context, x *txn.Txn) (r txn.Reply, err error) {
	if e.watch != nil {
		answered := e.watch.send(x)
		defer func() { answered(r, err) }()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.StoreTimeout)
	defer cancel()
	r, err = e.applyAgain(ctx, x)
	if err != nil || r.OK {
		e.noteBooks(x, &r)
	}
	return r, err
}

// owe keeps a debt, and has it paid later.
func (e *Engine) owe(d *debt) {
	e.debts.mu.Lock()
	e.debts.owed = append(e.debts.owed, d)
	e.debts.mu.Unlock()
	e.keeper.owe()
}

// payDebts pays what is owed of a task, or of all of them where id is "". It returns the first error; what could not be
// paid stays owed.
func (e *Engine) payDebts(ctx context.Context, id string) (first error) {
	e.debts.mu.Lock()
	defer e.debts.mu.Unlock()
	var left []*debt
	for _, d := range e.debts.owed {
		if id != "" && d.t.ID() != id {
			left = append(left, d)
			continue
		}
		if err := d.pay(ctx); err != nil {
			left = append(left, d)
			if first == nil {
				first = err
			}
		}
	}
	e.debts.owed = left
	return first
}

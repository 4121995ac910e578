package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/examples/internal/held"
	"github.com/seed-ab2cfece/delta-agents/examples/orders/desk"
)

// world is everything the story happens in.
type world struct {
	db       *desk.Store
	provider *desk.Provider
	desk     desk.Desk
	engine   *delta.Engine
	place    *held.Place // of the engine's state
}

// open makes a new one. Close it.
func open(ctx context.Context, p *held.Place) (_ *world, err error) {
	w := &world{provider: &desk.Provider{}, place: p}
	if w.db, err = desk.OpenStore(ctx); err != nil {
		return nil, err
	}
	if w.desk, err = desk.New(w.db, w.provider); err != nil {
		return nil, errors.Join(err, w.db.Close())
	}
	w.engine, err = delta.New(delta.Config{Store: p.Store(), Authenticator: delta.AuthenticatorFunc(signIn)})
	if err != nil {
		return nil, errors.Join(err, w.db.Close())
	}
	return w, nil
}

func (w *world) close(ctx context.Context) error {
	return errors.Join(w.engine.Close(ctx), w.place.Close(), w.db.Close())
}

// story is a world with an agent at work and a person who watches.
type story struct {
	*world
	out      io.Writer
	mouth    sync.Mutex
	task     *delta.Task
	approver approver
	by       delta.Identity
	chapter  int
	results  []delta.Result // of all runs
}

// play tells the story from beginning to end.
func play(ctx context.Context, w *world, a approver, out io.Writer) (*story, error) {
	s := &story{world: w, approver: a, out: out}
	var err error
	if s.by, err = w.engine.Authenticate(ctx, badge(a.name())); err != nil {
		return s, err
	}
	s.task, err = w.engine.Start(ctx, delta.Goal{
		ID: w.place.ID("monday"), Agent: w.desk.Agent, Text: "Charge the orders ORD-1 to ORD-3 and keep their customers informed.",
		Limit:     action.Limit{Calls: action.Max(40), Tokens: action.Max(6_000), Money: action.Max(5_000_000), Currency: "EUR"},
		Threshold: 4, Approvers: []string{a.name()}, Requester: "order-desk", ApprovalTTL: a.patience(),
	})
	if err != nil {
		return s, err
	}
	s.say("ORDER DESK: an agent with real power over a real database, and what keeps it from harm")
	s.say("Bounds   EUR 5.00, 6000 tokens, 40 calls; from an effective risk of 4 (of 5) on, a person decides.")
	s.say("Person   %s", a.describe())
	for _, chapter := range []func(context.Context) error{
		s.onlyWhatIsLegal, s.riskIsLearned, s.aPersonSaysNo, s.aPersonSaysYes, s.moneyAndUndoing, s.theBooks,
	} {
		if err := chapter(ctx); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *story) onlyWhatIsLegal(ctx context.Context) error {
	s.heading("What is not legal does not exist", "Charging needs a confirmation of that very order. The agent tries without.")
	err := errors.Join(s.offered(ctx), s.run(ctx, delta.Bounds{},
		step{action: "charge-order", input: of("ORD-1"), why: "the customer is waiting"},
		step{action: "look-up-order", input: of("ORD-1")},
		step{action: "confirm-order", input: of("ORD-1")},
		step{action: "charge-order", input: of("ORD-2"), why: "something was confirmed, after all"},
	), s.offered(ctx))
	return errors.Join(err, s.run(ctx, delta.Bounds{},
		step{action: "charge-order", input: of("ORD-1"), why: "the order that was confirmed"},
		step{action: "notify-customer", input: mail("ORD-1", "Thank you, your order is on its way.")},
	))
}

func (s *story) riskIsLearned(ctx context.Context) error {
	s.heading("Risk is learned from what happens", "The payment provider goes down. The agent keeps trying until the risk reaches the threshold.")
	s.provider.Set(true)
	return s.run(ctx, delta.Bounds{},
		step{action: "look-up-order", input: of("ORD-2")},
		step{action: "confirm-order", input: of("ORD-2")},
		step{action: "charge-order", input: of("ORD-2"), why: "it may work now", stick: 9},
	)
}

func (s *story) aPersonSaysNo(ctx context.Context) error {
	s.heading("A person decides", "The call is parked with exactly its input; nobody is blocked. The answer reaches the agent.")
	pending, err := s.engine.Approvals(ctx, 10)
	if err != nil {
		return err
	}
	for _, a := range pending {
		if err := s.decide(ctx, a); err != nil {
			return err
		}
	}
	return s.run(ctx, delta.Bounds{},
		step{action: "charge-order", input: of("ORD-2"), why: "what did they say?"},
		step{action: "notify-customer", input: excuse("ORD-2"), why: "tells the customer the reason"},
	)
}

func (s *story) aPersonSaysYes(ctx context.Context) error {
	s.heading("Another input is another question", "The provider is back, the risk is still high. This time the agent waits for the answer.")
	s.provider.Set(false)
	before := s.provider.Asked()
	err := s.attended(ctx, func(ctx context.Context) error {
		return s.run(ctx, delta.Bounds{Wait: true},
			step{action: "look-up-order", input: of("ORD-3")},
			step{action: "confirm-order", input: of("ORD-3")},
			step{action: "charge-order", input: of("ORD-3"), why: "under the approval, which is used up now", id: "charge-3"},
			step{action: "notify-customer", input: excuse("ORD-3"), why: "tells the customer the reason"},
		)
	})
	if err != nil {
		return err
	}
	again, err := s.task.Do(ctx, delta.Call{ID: "charge-3", Action: "charge-order", Input: json.RawMessage(`{"orderId":"ORD-3"}`)}).Get()
	if err != nil {
		return err
	}
	text := "decided anew"
	if again.Recorded {
		text = "the same call id: answered from the record"
	}
	s.line("charge-order ORD-3", again.Code, fmt.Sprintf("%s; payments asked of the provider: %d", text, s.provider.Asked()-before))
	return nil
}

func (s *story) moneyAndUndoing(ctx context.Context) error {
	s.heading("Budgets hold, and a charge is refunded once", "A gift costs EUR 25, which is not there: it was never offered. Then the desk's own code refunds.")
	err := s.run(ctx, delta.Bounds{}, step{action: "send-gift", input: of("ORD-2"), why: "to say sorry"})
	for range 2 {
		// A typed call: Go values in and out, every refusal an *action.Failure.
		r := s.desk.Refund.Do(ctx, s.task, desk.OrderID{ID: "ORD-1"})
		switch f := action.FailureOf(r.Error()); {
		case f != nil:
			s.line("refund-order ORD-1", f.Code, f.Message)
		case r.IsError():
			return errors.Join(err, r.Error())
		default:
			s.line("refund-order ORD-1", action.OK, "it used up the charge, on which it depends")
		}
	}
	return err
}

// run lets the agent work through some steps, and tells what becomes of each.
func (s *story) run(ctx context.Context, b delta.Bounds, steps ...step) error {
	heard := 0
	hear := func(r delta.Result) {
		heard++
		s.tell(ctx, r)
	}
	report, err := s.engine.RunWithin(ctx, s.task, &script{steps: steps, hear: hear}, b).Get()
	if err != nil {
		return err
	}
	for _, r := range report.Results[heard:] {
		hear(r)
	}
	if report.Ended != delta.RunDone {
		return errors.Join(fmt.Errorf("the run ended early (%s): %s", report.Ended, report.Why), report.Err)
	}
	return nil
}

// attended runs f while the person answers whatever is asked.
func (s *story) attended(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watching sync.WaitGroup
	done := make(chan struct{})
	watching.Go(func() {
		look := time.NewTicker(20 * time.Millisecond)
		defer look.Stop()
		for {
			select {
			case <-done:
				return
			case <-look.C:
			}
			pending, err := s.engine.Approvals(ctx, 10)
			for i := 0; err == nil && i < len(pending); i++ {
				err = s.decide(ctx, pending[i])
			}
			if err != nil {
				cancel(err) // or the agent would wait for nobody
				return
			}
		}
	})
	err := f(ctx)
	close(done)
	watching.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

package desk

import (
	"errors"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// OrderID names an order.
type OrderID struct {
	ID string `json:"orderId" jsonschema:"pattern=^ORD-[0-9]+$"`
}

// Order is an order as the database has it.
type Order struct {
	ID       string `json:"orderId"`
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
	Status   string `json:"status"`
}

// Charged says what was taken.
type Charged struct {
	ID    string `json:"orderId"`
	Cents int64  `json:"cents"`
}

// Mail is a message to the customer of an order.
type Mail struct {
	ID   string `json:"orderId"`
	Text string `json:"text" jsonschema:"minLength=1,maxLength=500"`
}

// Desk is what the agent may do. Nothing below checks permissions, order, risk, budget or approvals: the engine does.
type Desk struct {
	LookUp  *delta.Action[OrderID, Order]
	Confirm *delta.Action[OrderID, OrderID]
	Charge  *delta.Action[OrderID, Charged]
	Notify  *delta.Action[Mail, OrderID]
	Refund  *delta.Action[OrderID, OrderID]
	Gift    *delta.Action[OrderID, OrderID]
	Agent   *delta.Agent
}

// fee is what the provider asks for a payment, and gift what a gift costs, in micro-euros.
const (
	fee  = 350_000
	gift = 25_000_000
)

func euro(micros int64) action.Cost { return action.Cost{Money: micros, Currency: "EUR"} }

// New declares the actions over a database and a provider.
func New(s *Store, p *Provider) (d Desk, err error) {
	var faults [6]error
	d.LookUp, faults[0] = delta.Define("look-up-order", delta.Lift(func(ctx *delta.Context, in OrderID) (Order, error) {
		return s.order(ctx, in.ID)
	})).Describe("Read an order").Risk(1).Effect(action.None).Build()

	d.Confirm, faults[1] = delta.Define("confirm-order", delta.Lift(func(ctx *delta.Context, in OrderID) (OrderID, error) {
		return in, s.confirm(ctx, in.ID)
	})).Describe("Confirm an order with its customer").Risk(1).Effect(action.Idempotent).
		Needs(d.LookUp.On("orderId")).
		Build()

	// Confirming ORD-1 makes charging ORD-1 legal, and no other order. A charge can be undone, by a refund; an attempt
	// that may have happened is never repeated.
	d.Charge, faults[2] = delta.Define("charge-order", func(ctx *delta.Context, in OrderID) mo.Result[Charged] {
		charged, err := s.charge(ctx, p, in.ID, ctx.ExecutionID())
		if err != nil {
			return mo.Err[Charged](err) // no fee: the provider asks one for payments only
		}
		if err := ctx.Spend(euro(fee)); err != nil {
			return mo.Err[Charged](action.Unknown(err))
		}
		return mo.Ok(charged)
	}).Describe("Charge a confirmed order").Risk(2).Cost(euro(fee)).Effect(action.Compensatable).UndoneBy("refund-order").
		Needs(d.Confirm.On("orderId")).
		Build()

	d.Notify, faults[3] = delta.Define("notify-customer", delta.Lift(func(ctx *delta.Context, in Mail) (OrderID, error) {
		return OrderID{in.ID}, s.mail(ctx, in.ID, in.Text)
	})).Describe("Mail the customer of an order").Risk(1).
		Needs(d.LookUp.On("orderId")).
		Build()

	// A charge is used up by its refund: there is no second one.
	d.Refund, faults[4] = delta.Define("refund-order", delta.Lift(func(ctx *delta.Context, in OrderID) (OrderID, error) {
		return in, s.refund(ctx, in.ID, ctx.ExecutionID())
	})).Describe("Refund a charged order").Risk(2).
		Needs(d.Charge.On("orderId").Consumed()).
		Build()

	d.Gift, faults[5] = delta.Define("send-gift", delta.Lift(func(ctx *delta.Context, in OrderID) (OrderID, error) {
		if err := s.gift(ctx, in.ID); err != nil {
			return in, err
		}
		return in, ctx.Spend(euro(gift))
	})).Describe("Send the customer of an order a gift").Risk(1).Cost(euro(gift)).
		Needs(d.LookUp.On("orderId")).
		Build()

	if err := errors.Join(faults[:]...); err != nil {
		return d, err
	}
	d.Agent, err = delta.NewAgent("order-desk").Role("You serve the customers of a small shop.").
		Grant(d.LookUp, d.Confirm, d.Charge, d.Notify, d.Refund, d.Gift).Build()
	return d, err
}

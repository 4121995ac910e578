package engine

import (
	"errors"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// TopUp raises the limits of a running task by an amount on each axis. An axis without a limit cannot be raised: naming it
// is a mistake that the caller should hear of.
func TopUp(v *View, more action.Cost, who Who) (*txn.Txn, error) {
	if v.Task.Parent != nil {
		return nil, errors.New("the budget of a child task is granted by its parent: top up the parent")
	}
	if err := more.Check(); err != nil {
		return nil, err
	}
	next, raised := v.Task, false
	for a := range action.AxisCount {
		n := more.Amount(a)
		if n == 0 {
			continue
		}
		have, limited := next.Limit.On(a).Get()
		switch {
		case !limited:
			return nil, fmt.Errorf("%s is not limited in this task: there is nothing to top up", a)
		case a == action.Money && more.Currency != next.Limit.Currency:
			return nil, fmt.Errorf("%w: the limit is in %s, the top-up in %s", action.ErrCurrency, next.Limit.Currency, more.Currency)
		case have > action.MaxAmount-n:
			return nil, fmt.Errorf("%s would be limited to more than %d", a, action.MaxAmount)
		}
		next.Limit, raised = next.Limit.With(a, have+n), true
	}
	if !raised {
		return nil, errors.New("the top-up is nothing: say how much on which axis")
	}
	return Change(v, ledger.TaskChanged, next, who)
}

// MayReset reports why somebody may not correct an agent's beliefs: they must be an operator and not the agent.
func MayReset(agent string, operators []string, who Who) error {
	return mayAsOperator(agent, operators, who)
}

func mayAsOperator(agent string, operators []string, who Who) error {
	err := approval.MayDecide(approval.Request{Agent: agent}, operators, who.person())
	if errors.Is(err, approval.ErrNotApprover) {
		return notOperator(who.Identity)
	}
	return err
}

// notOperator is somebody who is on no list of operators.
type notOperator string

func (n notOperator) Error() string {
	return fmt.Sprintf("only the engine's operators may, and %q is none of them", string(n))
}

func (n notOperator) Is(target error) bool { return target == approval.ErrNotApprover }

// ResetBelief forgets what was learned of one action of an agent, or, where name is "", the trust that the agent earned.
// What happened before the reset is folded first, so that none of it counts afterwards.
func ResetBelief(rules *Rules, agent *Agent, snap *txn.Snapshot, name string, who Who) (*txn.Txn, error) {
	stored, err := storedBeliefs(rules, &snap.Agent)
	if err != nil {
		return nil, err
	}
	before, steps, err := foldPending(rules, agent, stored, snap.Pending)
	if err != nil {
		return nil, err
	}
	if _, known := before.Action(name); name != "" && !known {
		return nil, fmt.Errorf("nothing was learned of action %q of agent %q: there is nothing to reset", name, agent.Name)
	}
	after := reset(rules, before, name)
	t := &txn.Txn{Agent: agent.Name, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Agent, Key: cellTrust, N: snap.Agent.Cells[cellTrust].Ver})
	touched := []ledger.Observed{}
	if len(steps) > 0 {
		e := foldedEvent(rules, agent, snap.Pending, before, steps, who.At)
		t.Add(txn.Clause{Op: txn.Event, Scope: txn.Agent, Val: eventText(&e)}, txn.Clause{Op: txn.Trim, Scope: txn.Agent, N: e.ToSeq})
		touched = append(touched, e.Outcomes...)
	}
	e := ledger.Event{V: ledger.Version, Type: ledger.BeliefReset, At: who.At, Agent: agent.Name, Action: name, Version: rules.Estimator, Identity: who.Identity, Reason: who.Reason}
	e.Changes = []ledger.Change{correction(rules, agent, before, after, name)}
	t.Add(txn.Clause{Op: txn.Event, Scope: txn.Agent, Val: eventText(&e)})
	if name != "" {
		touched = append(touched, ledger.Observed{Action: name})
		t.Add(txn.Clause{Op: txn.Put, Scope: txn.Agent, Key: cellBelief + name}) // an empty block is none
	}
	cells, _ := beliefCells(rules, agent, &snap.Agent, after, touched, newLevels(rules, agent, &snap.Agent, before))
	t.Add(cells...)
	return t, nil
}

// correction says what a reset did to the belief.
func correction(rules *Rules, agent *Agent, before, after risk.Belief, name string) ledger.Change {
	if name == "" {
		was, now := rules.Model.Trust(before), rules.Model.Trust(after)
		return ledger.Change{Belief: "trust", Was: was.Score, Now: now.Score, Lo: now.Lower, Hi: now.Upper, N: now.Ok + now.Err, Reason: "reset"}
	}
	d := declarationOf(rules, agent, ledger.Observed{Action: name})
	was, now := rules.Model.Risk(before, d), rules.Model.Risk(after, d)
	return ledger.Change{
		Belief: name, Was: was.Score, Now: now.Score, Level: risk.Level(now.Score), P: now.P, Lo: now.Lo, Hi: now.Hi, N: now.N, Reason: "reset",
	}
}

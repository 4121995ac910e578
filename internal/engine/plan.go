package engine

import (
	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/statespace"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// PlanAction is the built-in action that planning is charged to. It passes gates 1, 7, 9 and 13 only: no belief, no
// policy, no approval.
const PlanAction = "delta.plan"

// planner is the agent that holds nothing but the built-in action: planning satisfies nothing.
var planGraph = func() *statespace.Graph {
	g, err := statespace.Compile(nil)
	if err != nil {
		panic(err) // an empty graph compiles
	}
	return g
}()

// planning is what the rounds of planning decide on. It is never changed.
var planning = Action{Name: PlanAction, Effect: action.None}

// DecidePlan reserves what one proposal of the planner is expected to cost. Of the rules it goes by the number of refusals alone.
func DecidePlan(rules *Rules, agent *Agent, view *View, call *Call, estimate action.Cost) Decision {
	r := newRound(&Rules{Refusals: rules.Refusals}, &Agent{Name: agent.Name, Graph: planGraph}, view, call)
	defer r.done()
	r.act = &planning
	if f := r.taskRuns(); f != nil {
		return r.refuse(f)
	}
	if f := r.notHalted(); f != nil {
		return r.refuse(f)
	}
	grant, no := budget.Reserve(view.Account(), budget.Ask{Estimate: estimate})
	if f := r.reserve(grant, no); f != nil {
		if r.lease != nil {
			return Decision{Lease: r.lease}
		}
		return r.refuse(f)
	}
	t := r.txn(txn.Begin, call.Intent.ID)
	e := &call.Room.begin().event
	r.eventInto(e, ledger.Begun)
	e.Fence, e.Owner, e.Attempt, e.Reserved, e.Pools = 1, call.Owner, 1, grant.Reserved, r.pools
	write(t, e, nil)
	return Decision{Txn: t, Begun: e}
}

// LatePlan charges what a proposal used beyond what was reserved for it, once another worker has taken it over and counted
// the reservation as used.
func LatePlan(begun ledger.Event, owner string, used action.Cost, f *action.Failure, at int64) *txn.Txn {
	x := &Run{Agent: &Agent{Name: begun.Agent, Graph: planGraph}, Begun: &begun, Fence: 1, Owner: owner}
	end := End{Code: action.OK, Failure: f, Cost: used, At: at}
	if f != nil {
		end.Code = f.Code
	}
	return x.Late(end, action.Interrupted, Beyond(used, begun.Reserved))
}

// SettlePlan ends a proposal: what it used is spent whether it was any good or not. Nothing is learned and nothing
// satisfied. The event says where what was used is the planner's estimate. room may be nil.
func SettlePlan(room *Room, begun *ledger.Event, owner string, used action.Cost, f *action.Failure, at int64, estimated bool) *txn.Txn {
	x := &Run{Begun: begun, Fence: 1, Owner: owner, Room: room}
	t, e := x.on(room.transaction(), txn.Settle), blank()
	defer e.done()
	x.eventInto(&e.Event, ledger.Settled, at)
	e.Code = action.OK
	if f != nil {
		e.Code, e.Failure = f.Code, f
	}
	if e.Code.Info().Charge == action.ChargeActual {
		e.Charged = used
		e.Overrun = exceeds(used, begun.Reserved)
		if estimated {
			e.Text = "the cost is an estimate: the provider did not say what was used"
		}
	}
	write(t, &e.Event, begun)
	return t
}

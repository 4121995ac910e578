package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
)

// Office is in what capacity somebody acts on a task.
type Office uint8

// The offices. Whatever somebody does to a task by a name of theirs is done in one of them; only to stop it is anybody's.
const (
	Approver  Office = iota // decides its requests for approval: the task's approvers
	Consenter               // takes back a consent: whoever gave it, also once they are on no list any more
	Overseer                // operates the task: its approvers and the engine's operators
	Operator                // overrides its gates: the engine's operators alone
)

// May reports why somebody may not act on the task in an office, about a request where there is one. On whatever list they
// are, it is never whoever requested the task, its agent, or an agent for which that one works: they would decide about
// what they asked for themselves. Every verb of a person goes through here.
func (v *View) May(as Office, operators []string, q *approval.Request, who Who) error {
	if q == nil {
		q = &approval.Request{}
	}
	self := *q
	self.Agent, self.Requester = v.Task.Agent, v.Task.Requester
	err := approval.MayDecide(self, v.office(as, operators, who), who.person())
	if as == Operator && errors.Is(err, approval.ErrNotApprover) {
		err = notOperator(who.Identity)
	}
	return errors.Join(err, v.ofKin(who))
}

func (v *View) office(as Office, operators []string, who Who) []string {
	switch as {
	case Approver:
		return v.Task.Approvers
	case Overseer:
		return slices.Concat(v.Task.Approvers, operators)
	case Operator:
		return operators
	}
	return []string{who.Identity} // its consent is looked for
}

// MayOperate is May for whoever operates the task.
func MayOperate(v *View, operators []string, who Who) error {
	return v.May(Overseer, operators, nil, who)
}

// MayBreakGlass is May for whoever opens or closes an override.
func MayBreakGlass(v *View, operators []string, who Who) error {
	return v.May(Operator, operators, nil, who)
}

// kin are those who decide nothing about the task: its requester, its agent, and the agents for which that one works.
func (p *TaskState) kin() []string {
	all := []string{p.Requester, p.Agent}
	for i := range p.Bounds {
		all = append(all, p.Bounds[i].Agent)
	}
	return all
}

// ofKin reports that somebody is an agent for which the task works, or reads like one: it decides about its own request.
func (v *View) ofKin(who Who) error {
	for i := range v.Task.Bounds {
		if name := v.Task.Bounds[i].Agent; action.SameIdentity(who.Identity, name) {
			return fmt.Errorf("%w: %q is, or reads like, %q, for which the task works", approval.ErrSelf, who.Identity, name)
		}
	}
	return nil
}

// somebody reports whether there is anybody on the list who may decide about the task, as far as names tell.
func (p *TaskState) somebody(list []string) bool {
	n, open := approval.Could(list, nil, p.kin()...)
	return open || n > 0
}

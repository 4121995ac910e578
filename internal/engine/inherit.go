package engine

import (
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// fit gives a child what its parent has where the wish leaves it open, and refuses a wish that goes beyond it. Budget and
// number of children are another matter.
func (p *TaskState) fit(d *Delegation) *action.Failure {
	s := &d.State
	if p.Family.Depth < 1 {
		return beyond("this task may not have children: %q is as deep as it goes", p.ID)
	}
	s.Family.Depth = min(s.Family.Depth, p.Family.Depth-1)
	if len(d.Bound.Granted)+len(d.Bound.Held) == 0 {
		return beyond("agent %q could do nothing: %q may pass on none of its actions", s.Agent, p.Agent)
	}
	s.Bounds = append(slices.Clone(p.Bounds), d.Bound)
	if f := p.fitRisk(s); f != nil {
		return f
	}
	if f := p.fitPeople(s); f != nil {
		return f
	}
	if f := p.fitContext(s); f != nil {
		return f
	}
	if p.Deadline > 0 && (s.Deadline == 0 || s.Deadline > p.Deadline) {
		s.Deadline = p.Deadline
	}
	switch {
	case s.Limit.Currency == "":
		s.Limit.Currency = p.Limit.Currency
	case s.Limit.Currency != p.Limit.Currency:
		return beyond("the child counts money in %s and its parent in %q: name the currency in the parent's limit", s.Limit.Currency, p.Limit.Currency)
	}
	return nil
}

func beyond(format string, args ...any) *action.Failure {
	return action.Fail(action.Denied, "a child goes beyond its parent: "+format, args...)
}

func (p *TaskState) fitRisk(s *TaskState) *action.Failure {
	if s.Threshold == 0 {
		s.Threshold = p.Threshold
	}
	if s.Threshold > p.Threshold {
		return beyond("its threshold is %v, the parent's %v", s.Threshold, p.Threshold)
	}
	if s.Ceiling == 0 {
		s.Ceiling = p.Ceiling
	}
	if p.Ceiling > 0 && s.Ceiling > p.Ceiling {
		return beyond("its ceiling is %v, the parent's %v", s.Ceiling, p.Ceiling)
	}
	return nil
}

// fitPeople: whoever stands behind the parent stands behind the child, and decides about it.
func (p *TaskState) fitPeople(s *TaskState) *action.Failure {
	if s.Requester != "" && s.Requester != p.Requester {
		return beyond("its requester is %q, the parent's %q", s.Requester, p.Requester)
	}
	s.Requester = p.Requester
	if s.Tenant != "" && s.Tenant != p.Tenant {
		return beyond("its tenant is %q, the parent's %q", s.Tenant, p.Tenant)
	}
	s.Tenant = p.Tenant
	if len(s.Approvers) == 0 {
		s.Approvers = p.Approvers
	}
	for _, who := range s.Approvers {
		if !slices.Contains(p.Approvers, who) && !slices.Contains(p.Approvers, approval.Anybody) {
			return beyond("%q approves it and not its parent", who)
		}
	}
	if s.Brought == nil {
		return nil
	}
	for _, c := range s.Brought.Channels {
		if p.Brought == nil || !slices.Contains(p.Brought.Channels, c) {
			return beyond("the parent may not use the channel %q", c)
		}
	}
	return nil
}

// fitContext: a child claims no context that its parent lacks. What it is given to read stands under names that the parent
// chose; they are context only where the parent has it.
func (p *TaskState) fitContext(s *TaskState) *action.Failure {
	lacks := func(name string) bool { return !slices.Contains(p.Context, name) }
	s.Context = slices.DeleteFunc(slices.Clone(s.Context), func(name string) bool { return lacks(name) && s.Brought.attached(name) })
	if i := slices.IndexFunc(s.Context, lacks); i >= 0 {
		return beyond("it claims the context %q, which its parent does not have", s.Context[i])
	}
	return nil
}

// attached reports whether the task brings an attachment of that name along.
func (b *Brought) attached(name string) bool {
	return b != nil && slices.ContainsFunc(b.Attachments, func(a action.AttachmentInfo) bool { return a.ID == name })
}

// within reports a change that would lead a child beyond what it was given: its parent decides about more.
func within(was, next *TaskState) *action.Failure {
	p := was.Parent
	if p == nil {
		return nil
	}
	if next.Threshold > p.Threshold {
		return beyond("its threshold would be %v, the parent's is %v", next.Threshold, p.Threshold)
	}
	if p.Ceiling > 0 && (next.Ceiling == 0 || next.Ceiling > p.Ceiling) {
		return beyond("its ceiling would be %v, the parent's is %v", next.Ceiling, p.Ceiling)
	}
	if was.Deadline > 0 && (next.Deadline == 0 || next.Deadline > was.Deadline) {
		return beyond("its deadline would be later")
	}
	for a := range action.AxisCount {
		n, bounded := was.Limit.On(a).Get()
		if m, still := next.Limit.On(a).Get(); bounded && (!still || m > n) {
			return beyond("its limit of %s would be higher than what it was granted", a)
		}
	}
	return nil
}

// endOfFamily marks the end of a task for those who depend on it: its parent must be told, and its children must end.
func (v *View) endOfFamily(x *txn.Txn, e *ledger.Event) {
	if e.Type != ledger.TaskCancelled && e.Type != ledger.TaskClosed {
		return
	}
	if e.Cascade = v.HasChildren(); !e.Cascade {
		x.Add(count(countChildren, 0, 0, 0), count(countWaiting, 0, 0, 0))
	}
	if v.Task.Parent != nil {
		e.Child = v.Task.Parent.Child
	}
}

// allowed asks every ancestor of the task whether it lets the call through: nobody passes on what it may not do.
func (r *round) allowed(q policy.Request, own policy.Decision) policy.Decision {
	for i := range r.view.Task.Bounds {
		if !own.Permit {
			return own
		}
		b := &r.view.Task.Bounds[i]
		d := b.permits(r.rules, q)
		if !d.Permit {
			d.Permit, d.Reason, d.Version = false, "agent "+b.Agent+", for which it works: "+d.Reason, own.Version
			return d
		}
		own.Ask = both(own.Ask, both(b.Autonomy.Asks(b.Agent, q.Effect), d.Ask))
	}
	return own
}

func (b *Bound) permits(rules *Rules, q policy.Request) policy.Decision {
	q.Agent = b.Agent
	granted := slices.Contains(b.Granted, q.Action)
	if !granted && !slices.Contains(b.Held, q.Action) {
		return policy.Decision{Reason: "it does not pass " + q.Action + " on"}
	}
	own := policy.Func(func(policy.Request) (policy.Decision, error) {
		return policy.Decision{Permit: granted, Reason: "it holds " + q.Action + " without a grant"}, nil
	})
	if rules.Policy == nil {
		return policy.Evaluate(own, q)
	}
	q.Input = action.CopyTree(q.Input)
	return policy.Evaluate(policy.Any(own, rules.Policy), q)
}

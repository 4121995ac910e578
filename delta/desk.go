package delta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// ErrNotShown says that a request waits behind older ones of its agent, of which as many are open as are shown at a time
// (Config.DeskLimit).
var ErrNotShown = errors.New("the request waits behind older ones of its agent; decide those first")

// deskPage is how many requests are read at a time.
const deskPage = 64

// Approvals returns the pending requests of the registered agents' running tasks that are shown now, those that were made
// first first: of each agent at most limit, and never more than Config.DeskLimit.
func (e *Engine) Approvals(ctx context.Context, limit int) ([]Approval, error) {
	var out []Approval
	for _, s := range e.known() {
		err := e.desk(ctx, s.agent.name, min(limit, e.cfg.DeskLimit), func(a Approval) {
			e.dress(ctx, &a)
			out = append(out, a)
		})
		if err != nil {
			return nil, fmt.Errorf("list approvals: %w", err)
		}
	}
	slices.SortFunc(out, func(a, b Approval) int {
		if a.Asked != b.Asked {
			return int(max(-1, min(1, a.Asked-b.Asked)))
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, nil
}

// Inbox returns those of the requests that are shown now which this identity may consent to and has not: of each agent as
// many as are shown, the oldest first.
func (e *Engine) Inbox(ctx context.Context, by Identity) ([]Approval, error) {
	if err := e.mine(by); err != nil {
		return nil, fmt.Errorf("inbox: %w", err)
	}
	all, err := e.Approvals(ctx, e.cfg.DeskLimit)
	if err != nil {
		return nil, err
	}
	var out []Approval
	for _, a := range all {
		_, v, digest, err := e.ask(ctx, a.ID)
		if astray(err) {
			continue // it went since the list was read
		}
		if err != nil {
			return nil, fmt.Errorf("inbox: %w", err)
		}
		if _, err := engine.DecideAsk(v, digest, approval.Approve, nil, e.whoIs(by, "")); err == nil {
			out = append(out, a)
		}
	}
	return out, nil
}

// Approval returns a request by its id, shown or not.
func (e *Engine) Approval(ctx context.Context, id string) (Approval, error) {
	a, _, err := e.approval(ctx, id)
	if err != nil {
		return Approval{}, err
	}
	e.dress(ctx, &a)
	a.Ended = e.endOf(ctx, &a.Request)
	return a, nil
}

// endOf says how the call of a request ended, as far as that can be read.
func (e *Engine) endOf(ctx context.Context, q *approval.Request) action.Code {
	e.mu.Lock()
	s := e.agents[q.Agent]
	e.mu.Unlock()
	if s == nil {
		return ""
	}
	own := newSight()
	if err := e.adopt(s, q.Task).readRecord(ctx, q.Intent, own); err != nil {
		return ""
	}
	if o, ok := engine.Ended(&own.record, q.Intent); ok && own.leases[q.Intent].Phase == txn.Settle {
		return o.Code
	}
	return ""
}

// desk passes the first requests of an agent on which somebody can decide.
func (e *Engine) desk(ctx context.Context, agent string, limit int, pass func(Approval)) error {
	ended := map[string]bool{}
	for after := (txn.Queued{}); limit > 0; {
		page, err := e.store.Queued(ctx, agent, engine.QueueDesk, after, false, deskPage)
		if err != nil {
			return err
		}
		for _, q := range page {
			a, open, err := e.openRequest(ctx, q.Member, ended)
			if err != nil {
				return err
			}
			if !open {
				continue
			}
			pass(a)
			if limit--; limit == 0 {
				return nil
			}
		}
		if len(page) < deskPage {
			return nil
		}
		after = page[len(page)-1]
	}
	return nil
}

// openRequest reads a member of the desk; one that was decided since the queue was read, that expired, or whose task has
// ended is not open. Ended remembers tasks: their requests stay until they expire, and may be many.
func (e *Engine) openRequest(ctx context.Context, id string, ended map[string]bool) (Approval, bool, error) {
	task := id[:max(0, strings.LastIndex(id, idSeparator))]
	if ended[task] {
		return Approval{}, false, nil
	}
	a, status, err := e.approval(ctx, id)
	ended[task] = err == nil && status.Ended()
	switch {
	case errors.Is(err, errReplaced):
		return a, false, nil
	case astray(err):
		agent, _, _ := strings.Cut(id, idSeparator)
		e.stray(ctx, agent, engine.QueueDesk, id, err)
		return a, false, nil
	}
	return a, err == nil && a.State == approval.Pending && !status.Ended(), err
}

// shown reports a request that waits behind as many open ones as are shown at a time.
func (e *Engine) shown(ctx context.Context, id string) error {
	if err := alive(ctx); err != nil {
		return err
	}
	agent, _, _ := strings.Cut(id, idSeparator)
	open, full, ended := 0, false, map[string]bool{}
	for after := (txn.Queued{}); ; {
		page, err := e.store.Queued(ctx, agent, engine.QueueDesk, after, false, max(deskPage, e.cfg.DeskLimit))
		if err != nil {
			return failedStore(err)
		}
		at := slices.IndexFunc(page, func(q txn.Queued) bool { return q.Member == id })
		switch {
		case at >= 0 && full:
			return ErrNotShown
		case at >= 0 && open+at < e.cfg.DeskLimit:
			return nil
		}
		for i := 0; i < len(page) && !full && i != at; i++ {
			if _, is, err := e.openRequest(ctx, page[i].Member, ended); err != nil {
				return err
			} else if is {
				open++
			}
			full = open >= e.cfg.DeskLimit
		}
		switch {
		case at >= 0 && full:
			return ErrNotShown
		case at >= 0, len(page) == 0:
			return nil // or it is no longer pending: the decision says how it stands
		case full: // however far behind it is
			if _, is, err := e.openRequest(ctx, id, ended); err != nil || !is {
				return err
			}
			return ErrNotShown
		}
		after = page[len(page)-1]
	}
}

// Decided is what became of one request of a batch.
type Decided struct {
	ID  string
	Err error // nil: consented to
}

// ApproveBatch consents to several calls that one look can judge, that at the first: of the same agent, action, version and
// schema, for the same tenant, raised by the same per-argument rule or by none, the same in every field but those that may
// differ (dotted paths; one covers what is below it, a star any element), and by their inputs ([Builder.CostOf]) none costs
// more than the first. All are checked
// before any is consented to: pending, shown, open to this identity, alike, and at most Config.BatchLimit of them. Each is
// then approved for itself, with its own exact input, event and single use, so that one that expires meanwhile fails alone.
// The error says that nothing was consented to.
func (e *Engine) ApproveBatch(ctx context.Context, ids []string, by Identity, differ []string, reason string) ([]Decided, error) {
	if err := e.batch(ctx, ids, by, differ); err != nil {
		return nil, fmt.Errorf("approve a batch: %w", err)
	}
	out := make([]Decided, len(ids))
	for i, id := range ids {
		out[i] = Decided{id, e.resolve(ctx, id, approval.Approve, by, reason)}
	}
	return out, nil
}

func (e *Engine) batch(ctx context.Context, ids []string, by Identity, differ []string) error {
	if err := e.mine(by); err != nil {
		return err
	}
	if err := alive(ctx); err != nil {
		return err
	}
	switch {
	case len(ids) == 0:
		return errors.New("it is empty")
	case len(ids) > e.cfg.BatchLimit:
		return fmt.Errorf("%d calls, at most %d are judged at a time (Config.BatchLimit)", len(ids), e.cfg.BatchLimit)
	}
	for _, path := range differ {
		if path == "" || path == "*" {
			return fmt.Errorf("%q is no field: name those that may differ", path)
		}
	}
	var first Approval
	var tenant string
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return fmt.Errorf("approval %s is in it twice", id)
		}
		a, of, err := e.votable(ctx, id, by)
		if err != nil {
			return err
		}
		if i == 0 {
			first, tenant = a, of
		}
		if of != tenant {
			return fmt.Errorf("approvals %s and %s are for two tenants", first.ID, id)
		}
		if err := alike(first, a, differ); err != nil {
			return fmt.Errorf("approvals %s and %s: %w", first.ID, id, err)
		}
	}
	return nil
}

// votable returns a request that the identity may consent to now, and the tenant that it is for.
func (e *Engine) votable(ctx context.Context, id string, by Identity) (a Approval, tenant string, err error) {
	if err := e.shown(ctx, id); err != nil {
		return Approval{}, "", fmt.Errorf("approval %s: %w", id, err)
	}
	_, v, digest, err := e.ask(ctx, id)
	if err != nil {
		return Approval{}, "", err
	}
	// Deciding is a function: what it would write is not needed here.
	if _, err := engine.DecideAsk(v, digest, approval.Approve, nil, e.whoIs(by, "")); err != nil {
		return Approval{}, "", err
	}
	a, _, err = e.approval(ctx, id)
	return a, v.Task.Tenant, err
}

// alike reports why one look does not judge both.
func alike(a, b Approval, differ []string) error {
	if a.Agent != b.Agent || a.Action != b.Action || a.Version != b.Version || a.Schema != b.Schema {
		return fmt.Errorf("%s v%s of %s and %s v%s of %s are not the same action", a.Action, a.Version, a.Agent, b.Action, b.Version, b.Agent)
	}
	if a.Risk.Rule != b.Risk.Rule {
		return fmt.Errorf("the risk of the one is raised by the rule %q, that of the other by %q", a.Risk.Rule, b.Risk.Rule)
	}
	if err := approval.DifferOnly(a.Input, b.Input, differ); err != nil {
		return err
	}
	return noDearer(a.Priced, b.Priced)
}

// noDearer reports that a call costs more by its input than the one that is looked at.
func noDearer(first, other action.Limit) error {
	for x := range action.AxisCount {
		most, told := first.On(x).Get()
		n, tells := other.On(x).Get()
		if told != tells || n > most || x == action.Money && n > 0 && first.Currency != other.Currency {
			return fmt.Errorf("the second will cost %s, the first %s: put the dearest first, for that is the one that is looked at", other.Amounts(), first.Amounts())
		}
	}
	return nil
}

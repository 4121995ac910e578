package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// What tasks need somebody for.
const (
	needsEscalation = "escalation"
	needsApproval   = "approval"
	needsOutcome    = "outcome"
	needsBudget     = "budget"
)

// gaze looks at the standings again and again.
type gaze struct {
	d     *desk
	named []string // agents; none is all
	limit int

	agents []string // those that are known here
	asked  time.Time
}

const (
	// newcomers is how long an agent may be in the store before it is looked at.
	newcomers = 30 * time.Second
	// lookThrough is how many tasks are looked through for an empty budget.
	lookThrough = 200
)

// arrive makes agents known. All of them are many: it is done again after a while only.
func (g *gaze) arrive(ctx context.Context) error {
	if len(g.agents) > 0 && time.Since(g.asked) < newcomers {
		return nil
	}
	g.agents, g.asked = nil, time.Now()
	if len(g.named) == 0 {
		return g.d.agents(ctx, "", func(name string) (bool, error) {
			g.agents = append(g.agents, name)
			return true, nil
		})
	}
	for _, name := range g.named {
		if err := g.d.know(ctx, name); err != nil {
			return err
		}
	}
	g.agents = slices.Compact(slices.Sorted(slices.Values(g.named)))
	return nil
}

// look returns the tasks that need somebody, and others as far as there is room; and how the agents stand, those first whose
// tasks are shown.
func (g *gaze) look(ctx context.Context) (standings, error) {
	s := standings{At: time.Now().UTC(), Agents: []agentRow{}, Tasks: []taskRow{}, Approvals: []approvalRow{}}
	if err := g.arrive(ctx); err != nil {
		return s, err
	}
	waiting, err := g.d.engine.Approvals(ctx, delta.MaxTasks)
	if err != nil {
		return s, err
	}
	for _, a := range waiting[:min(g.limit, len(waiting))] {
		s.Approvals = append(s.Approvals, newApprovalRow(a))
	}
	s.More.Approvals = len(waiting) - len(s.Approvals)
	if err := g.tasks(ctx, waiting, &s); err != nil {
		return s, err
	}
	var order []string
	for _, t := range s.Tasks {
		order = append(order, t.Agent)
	}
	return s, g.standing(ctx, append(order, g.agents...), &s)
}

// standing adds agents, each once.
func (g *gaze) standing(ctx context.Context, order []string, s *standings) error {
	shown := map[string]bool{}
	for _, name := range order {
		if shown[name] || len(shown) == g.limit {
			continue
		}
		shown[name] = true
		row, err := g.d.stands(ctx, name)
		if err != nil {
			return err
		}
		s.Agents = append(s.Agents, row)
	}
	s.More.Agents = len(g.agents) - len(s.Agents)
	return nil
}

func (d *desk) stands(ctx context.Context, name string) (row agentRow, err error) {
	t, err := d.engine.Trust(ctx, name)
	if err != nil {
		return row, err
	}
	row = agentRow{Agent: name, Trust: t.Score, Lower: t.Lower, Upper: t.Upper}
	risks, err := d.engine.Risks(ctx, name)
	for _, r := range risks {
		if r.Effective > row.Level {
			row.Riskiest, row.Level = r.Action, r.Effective
		}
	}
	return row, err
}

// needing names the tasks that need somebody, and what for: what is worst first.
func (g *gaze) needing(ctx context.Context, waiting []delta.Approval) (ids []string, why map[string]string, err error) {
	why = map[string]string{}
	add := func(id, what string) {
		if why[id] == "" {
			ids, why[id] = append(ids, id), what
		}
	}
	raised, err := g.d.engine.Escalations(ctx, delta.MaxTasks)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range raised {
		add(e.Task, needsEscalation)
	}
	left, err := g.d.engine.Unresolved(ctx, g.limit)
	if err != nil {
		return nil, nil, err
	}
	for _, u := range left {
		add(u.Task, needsOutcome)
	}
	for _, a := range waiting {
		add(a.Task, needsApproval)
	}
	return ids, why, nil
}

// tasks adds the tasks that are shown.
func (g *gaze) tasks(ctx context.Context, waiting []delta.Approval, s *standings) error {
	ids, why, err := g.needing(ctx, waiting)
	if err != nil {
		return err
	}
	add := func(x delta.TaskStanding, needs string) {
		row := newTaskRow(x)
		row.Needs = needs
		s.Tasks, s.budgets = append(s.Tasks, row), append(s.budgets, spentOf(x))
	}
	ended := 0 // of those shown, which are not counted among the others
	for _, id := range ids[:min(g.limit, len(ids))] {
		t, err := g.d.task(ctx, id)
		if err != nil {
			continue // it went meanwhile
		}
		x, err := t.Standing(ctx)
		if err != nil {
			return err
		}
		if x.Status != "running" && x.Status != "paused" {
			ended++
		}
		add(x, why[id])
	}
	if err := g.running(ctx, why, add, s); err != nil {
		return err
	}
	n, err := g.count(ctx)
	s.More.Tasks = max(0, n-(len(s.Tasks)-ended))
	return err
}

// running adds tasks that nobody was asked about, those first that have nothing left to spend.
func (g *gaze) running(ctx context.Context, why map[string]string, add func(delta.TaskStanding, string), s *standings) error {
	page, err := g.d.engine.Tasks(ctx, delta.TaskQuery{Limit: max(lookThrough, g.limit)})
	if err != nil {
		return err
	}
	for _, needs := range []string{needsBudget, ""} {
		for _, x := range page.Tasks {
			if len(s.Tasks) < g.limit && why[x.ID] == "" && broke(x) == (needs != "") {
				add(x, needs)
			}
		}
	}
	return nil
}

// broke reports whether a task that runs has nothing left on an axis: no call that needs some of it will begin.
func broke(x delta.TaskStanding) bool {
	for a := range action.AxisCount {
		if left, limited := x.Budget.Left.On(a).Get(); limited && left <= 0 {
			return true
		}
	}
	return false
}

// count is how many tasks have not ended.
func (g *gaze) count(ctx context.Context) (n int, err error) {
	for _, name := range g.agents {
		has, err := g.d.engine.Unended(ctx, name)
		if err != nil {
			return n, err
		}
		n += has
	}
	return n, nil
}

// spentOf says what a task has spent of what is limited: "3 calls of 10 calls".
func spentOf(x delta.TaskStanding) string {
	var parts []string
	b := x.Budget
	for a := range action.AxisCount {
		if n, limited := b.Limit.On(a).Get(); limited {
			parts = append(parts, a.Amount(b.Spent.Amount(a), b.Limit.Currency)+" of "+a.Amount(n, b.Limit.Currency))
		}
	}
	return strings.Join(parts, ", ")
}

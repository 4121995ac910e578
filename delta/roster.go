package delta

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// minPresence is the least time for which a worker is taken to be there after it said so last.
const minPresence = 15 * time.Second

// Worker is an [Engine.Work] that is under way somewhere on the store, as it says itself: it is there, or was until a moment ago.
type Worker struct {
	ID        string
	Actions   []string         // of the agent, that it can execute; in the order of their names
	Workflows []WorkerWorkflow // that it goes on with
}

// WorkerWorkflow names a definition that a worker holds.
type WorkerWorkflow struct{ Name, Version, Digest string }

// Workers returns the workers that work for an agent now. One that disappeared without a word is among them for up to 15 seconds,
// or three times its Config.Poll where that is longer. Workers say that they are there where the store is one that people look
// into, as Redis is; of others there are none.
func (e *Engine) Workers(ctx context.Context, agent string) ([]Worker, error) {
	found, err := e.workers(ctx, agent)
	if err != nil {
		return nil, fmt.Errorf("workers of agent %q: %w", agent, err)
	}
	var out []Worker
	for _, w := range found {
		x := Worker{ID: w.ID, Actions: w.Actions}
		for _, f := range w.Workflows {
			x.Workflows = append(x.Workflows, WorkerWorkflow{f.Workflow, f.Version, f.Digest})
		}
		out = append(out, x)
	}
	return out, nil
}

func (e *Engine) workers(ctx context.Context, agent string) (out []engine.Worker, err error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	all, err := e.roster(ctx, agent, false)
	if err != nil {
		return nil, err
	}
	gone, err := e.roster(ctx, agent, true)
	if err != nil {
		return nil, err
	}
	for _, member := range all {
		if slices.Contains(gone, member) {
			continue
		}
		w, err := engine.ReadWorker(member)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b engine.Worker) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// roster reads who said to be there, or of these who is gone.
func (e *Engine) roster(ctx context.Context, agent string, gone bool) (out []string, err error) {
	for after := (txn.Queued{}); ; {
		page, err := e.store.Queued(ctx, agent, engine.QueueWorkers, after, gone, workPage)
		if err != nil {
			return nil, failedStore(err)
		}
		for _, q := range page {
			out, after = append(out, q.Member), q
		}
		if len(page) < workPage {
			return out, nil
		}
	}
}

// present says, until ctx ends or the engine closes, that somebody works here, to those who look into the store.
func (w *shift) present(ctx context.Context) {
	e := w.e
	if !e.rules.Show {
		return
	}
	stays := max(minPresence, 3*e.cfg.Poll)
	beat := time.NewTicker(stays / 3)
	defer beat.Stop()
	id, said := e.newOwner(), map[string]string{}
	for {
		for _, s := range e.known() {
			if err := w.announce(ctx, s, id, stays, said); err != nil && ctx.Err() == nil {
				e.cfg.Log.Warn("others cannot be told that somebody works here", "agent", s.agent.name, "error", err)
			}
		}
		select {
		case <-beat.C:
		case <-ctx.Done():
			w.absent(context.WithoutCancel(ctx), said)
			return
		case <-e.draining:
			w.absent(context.WithoutCancel(ctx), said)
			return
		}
	}
}

// announce says so for one agent, and takes out who is gone.
func (w *shift) announce(ctx context.Context, s *agentState, id string, stays time.Duration, said map[string]string) error {
	if s.agent.card != nil {
		return nil
	}
	e := w.e
	if err := e.leaveCard(ctx, s); err != nil {
		return err
	}
	text, err := e.presence(s.agent, id)
	if err != nil {
		return err
	}
	gone, err := e.roster(ctx, s.agent.name, true)
	if err != nil {
		return err
	}
	if was, told := said[s.agent.name]; told && was != text {
		gone = append(gone, was)
	}
	said[s.agent.name] = text
	_, err = e.apply(ctx, engine.Announce(s.agent.name, text, stays.Microseconds(), gone))
	return err
}

// presence is what a worker says of itself.
func (e *Engine) presence(a *Agent, id string) (string, error) {
	w := engine.Worker{ID: id, Actions: a.Actions()}
	slices.Sort(w.Actions)
	for _, d := range e.flows.Definitions {
		if len(unheld(d, a)) > 0 {
			continue
		}
		w.Workflows = append(w.Workflows, engine.WorkerFlow{
			Workflow: d.Name(), Version: d.Version(), Digest: d.Digest(), Secret: e.placesIn(d, a).input, Latest: e.flows.latest(d.Name()) == d,
		})
	}
	return w.Text()
}

// absent says that nobody works here any more.
func (w *shift) absent(ctx context.Context, said map[string]string) {
	for _, agent := range slices.Sorted(maps.Keys(said)) {
		if _, err := w.e.apply(ctx, engine.Announce(agent, "", 0, []string{said[agent]})); err != nil {
			w.e.cfg.Log.Warn("others cannot be told that nobody works here any more", "agent", agent, "error", err)
		}
	}
}

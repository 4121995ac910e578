package delta

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// ErrNoSubject says that nothing of a subject is kept under a key.
var ErrNoSubject = errors.New("no data key is kept for this subject")

// Erased is what an erasure did.
type Erased struct {
	Keys  int // data keys that were destroyed, one for each agent that worked on the subject's data
	Tasks int // tasks on it that had not ended, and were cancelled
}

// Erase destroys the data keys of a subject, which is a name that goals gave, or the full id of a task, "agent~task", whose
// goal named none. What was sealed under them cannot be read from then on, wherever copies of it are: inputs and outputs with
// secrets in them, for the digests in their place no guess can be tested, and of a named subject all inputs, outputs and
// notes. The ledgers stay, and verify and fold as before. Tasks on that data which have not ended are cancelled: what waited in
// them for a person, or to be taken over, ends.
//
// It is for the engine's operators alone, is recorded with who did it and why, and concerns all agents that the store can
// list, or else those that this engine knows. Where it fails half-way it is simply repeated. Other workers may hold a key in
// memory until the task that they work on has ended. Copies of the store itself, its backups say, still hold wrapped keys:
// they are erased when the keys of the ring that wrapped them are destroyed.
func (e *Engine) Erase(ctx context.Context, subject string, by Identity, reason string) (done Erased, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("erase %q: %w", action.CutTo(subject, 2*action.MaxName), err)
		}
	}()
	if err := errors.Join(alive(ctx), e.mine(by)); err != nil {
		return done, err
	}
	if err := e.enter(); err != nil {
		return done, err
	}
	defer e.inside.Done()
	agents, space, err := e.whereAbout(ctx, subject)
	if err != nil {
		return done, err
	}
	who := e.whoIs(by, reason)
	for _, name := range agents {
		if err := engine.MayErase(name, e.cfg.Operators, who); err != nil {
			return done, err
		}
	}
	defer e.dropVaults()
	found := false
	for _, name := range agents { // all keys first: from then on nothing of it can be read
		was, now, err := e.eraseKey(ctx, name, space, who)
		if err != nil {
			return done, err
		}
		found = found || was
		if now {
			done.Keys++
		}
	}
	if !found {
		return done, ErrNoSubject
	}
	for _, name := range agents {
		n, err := e.cancelAbout(ctx, name, space, by, reason)
		if done.Tasks += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// whereAbout says which agents may hold data of a subject, and where.
func (e *Engine) whereAbout(ctx context.Context, subject string) (agents []string, space string, err error) {
	if agent, task, isTask := strings.Cut(subject, idSeparator); isTask {
		return []string{agent}, task, errors.Join(action.CheckName(agent), action.CheckName(task))
	}
	if err := action.CheckName(subject); err != nil {
		return nil, "", err
	}
	for _, s := range e.inOrder() {
		agents = append(agents, s.agent.name)
	}
	if _, lists := e.raw().(memory.Lister); lists {
		agents, err = e.everyAgent(ctx)
	}
	return agents, engine.SubjectSpace(subject), err
}

func (e *Engine) everyAgent(ctx context.Context) (all []string, err error) {
	for after := ""; ; {
		page, err := e.Agents(ctx, after, recordPage)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < recordPage {
			return all, nil
		}
		after = page[len(page)-1]
	}
}

// eraseKey destroys a data key. It reports whether there ever was one, and whether it was destroyed now.
func (e *Engine) eraseKey(ctx context.Context, agent, space string, who engine.Who) (was, now bool, err error) {
	for range 4 * rounds {
		snap, err := e.store.Load(ctx, agent, space, nil)
		if err != nil {
			return was, false, failedStore(err)
		}
		cell, ver, err := engine.ReadKey(snap)
		if err != nil || ver == 0 || cell.Erased > 0 {
			return ver > 0, false, err
		}
		x := engine.EraseKey(agent, space, ver, cell, who)
		reply, err := e.apply(ctx, x)
		if err != nil {
			return true, false, failedStore(err)
		}
		if reply.OK {
			e.noteParent(x, reply)
			return true, true, nil
		}
	}
	return true, false, action.Fail(action.Stale, "the data key kept changing; try again")
}

// cancelAbout cancels the tasks of an agent that work on the data of a subject.
func (e *Engine) cancelAbout(ctx context.Context, agent, space string, by Identity, reason string) (n int, err error) {
	if err := e.adoptStored(ctx, agent); err != nil && !errors.Is(err, ErrNoAgent) {
		return 0, err
	}
	e.mu.Lock()
	s := e.agents[agent]
	e.mu.Unlock()
	if s == nil {
		return 0, nil
	}
	why := "the data of its subject was erased"
	if reason != "" {
		why += ": " + reason
	}
	for after := (txn.Queued{}); ; {
		page, err := e.store.Queued(ctx, agent, engine.QueueTasks, after, false, workPage)
		if err != nil {
			return n, failedStore(err)
		}
		for _, q := range page {
			after = q
			v, err := e.lookAtTask(ctx, agent, q.Member)
			if err != nil && !astray(err) {
				return n, failedStore(err)
			}
			if err != nil || !v.Exists() {
				continue
			}
			if home, at := vaultOf(&v.Task); home != agent || at != space {
				continue
			}
			switch err := e.adopt(s, q.Member).CancelBy(ctx, by, why); {
			case err == nil:
				n++
			case action.FailureOf(err) == nil || action.FailureOf(err).Code != action.TaskClosed: // else it ended by itself
				return n, err
			}
		}
		if len(page) < workPage {
			return n, nil
		}
	}
}

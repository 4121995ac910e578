package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Lister is implemented by stores that can say which agents they hold.
type Lister interface {
	// Agents returns up to limit names of agents that were ever written to, in the order of their names, after the given one
	// ("" is from the start).
	Agents(ctx context.Context, after string, limit int) ([]string, error)
}

// Forgetter is implemented by stores that can drop the ledger of a task that is over.
type Forgetter interface {
	// Forget drops what is left of a task, in one step: the ledger that was seen, of so many records of which the last one has
	// that link, and its links. It is ErrKept while the task's state is kept, see [Store.Apply], and ErrAnother where another
	// ledger stands there, because the id was used anew; a task of which nothing is left is no error. Queues may still name it.
	Forget(ctx context.Context, agent, task string, records int64, head string) error
}

// Cutter is implemented by stores that can drop the beginning of an agent's own ledger.
type Cutter interface {
	// Cut drops the records of the agent's own ledger up to and including that number, and their links. Those behind keep
	// their numbers, new ones go on from there, and [Store.Records] reads from the first one left where it is asked for one
	// before. It is an error to drop the last record; what is dropped already is none. Where it breaks off, some of the first
	// may be gone and it is repeated.
	Cut(ctx context.Context, agent string, upto int64) error
}

var (
	_ Lister    = (*InProcess)(nil)
	_ Forgetter = (*InProcess)(nil)
	_ Cutter    = (*InProcess)(nil)
)

// ErrKept is returned by Forget while a task's state is still kept.
var ErrKept = errors.New("the task's state is still kept: its ledger may still grow")

// ErrAnother is returned by Forget where the ledger of a task is not the one that was seen.
var ErrAnother = errors.New("another ledger stands there: the task was begun anew")

// Agents implements [Lister].
func (s *InProcess) Agents(ctx context.Context, after string, limit int) ([]string, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	var names []string
	s.agents.Range(func(k, _ any) bool {
		if name := k.(string); name > after {
			names = append(names, name)
		}
		return true
	})
	slices.Sort(names)
	return names[:max(0, min(limit, len(names)))], nil
}

// Forget implements [Forgetter].
func (s *InProcess) Forget(ctx context.Context, agent, task string, records int64, head string) error {
	a, err := s.lock(ctx, agent, false)
	if err != nil {
		return err
	}
	defer a.mu.Unlock()
	a.sweep(s.now())
	k := a.tasks[task]
	switch {
	case k == nil:
		return nil
	case !k.expired:
		return fmt.Errorf("forget task %q of agent %q: %w", task, agent, ErrKept)
	case !k.book.ends(records, head):
		return fmt.Errorf("forget task %q of agent %q: %w", task, agent, ErrAnother)
	}
	delete(a.tasks, task)
	return nil
}

// Cut implements [Cutter].
func (s *InProcess) Cut(ctx context.Context, agent string, upto int64) error {
	a, err := s.lock(ctx, agent, false)
	if err != nil {
		return err
	}
	defer a.mu.Unlock()
	if upto > 0 && upto >= a.book.n {
		return fmt.Errorf("cut the ledger of agent %q at record %d: %w", agent, upto, ErrLast)
	}
	a.book.cut(upto)
	return nil
}

// ErrLast is returned by Cut where nothing would be left, and nothing to verify what is.
var ErrLast = errors.New("the last record of a ledger stays")

package delta

import (
	"context"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/memory"
)

const (
	// recallLimit is how many notes Recall returns.
	recallLimit = 10
	// recallSealed is how many of the tenant's newest notes are looked through for those of the task's subject: the store
	// cannot rank what it cannot read.
	recallSealed = 500
	// sealedNote begins a note that is sealed.
	sealedNote = "sealed note "
)

// remember adds a note to the agent's memory, for tasks of the same tenant. That of a task about somebody can be read in tasks
// about the same alone.
func (t *Task) remember(ctx context.Context, n memory.Note) error {
	about, err := t.about(ctx)
	if err != nil {
		return err
	}
	s, err := t.configuration(ctx)
	if err != nil {
		return err
	}
	n.Tenant = s.Tenant
	if about == aboutSomebody {
		v, err := t.vault(ctx, false)
		if err != nil {
			return keyUnavailable(err)
		}
		n.Content = sealedNote + v.data.Seal(n.Content, aboutNote(t.agent.name))
	}
	return t.engine.store.Remember(ctx, t.agent.name, n)
}

func aboutNote(agent string) string { return "note\n" + agent }

// recall returns the notes most relevant to a query, of those of the task's tenant: that anybody there may read, and about whom
// the task is about.
func (t *Task) recall(ctx context.Context, query string) ([]memory.Note, error) {
	about, err := t.about(ctx)
	if err != nil {
		return nil, err
	}
	s, err := t.configuration(ctx)
	if err != nil {
		return nil, err
	}
	found, err := t.engine.store.Recall(ctx, t.agent.name, s.Tenant, query, recallLimit)
	if err != nil || about != aboutSomebody && !slices.ContainsFunc(found, isSealed) {
		return found, err
	}
	newest, err := t.engine.store.Recall(ctx, t.agent.name, s.Tenant, "", recallSealed)
	if err != nil {
		return nil, err
	}
	var own []memory.Note
	if about == aboutSomebody {
		if own, err = t.ownNotes(ctx, newest); err != nil {
			return nil, err
		}
	}
	if query == "" { // sealed ones may have crowded out others
		found = newest
	}
	found = append(slices.DeleteFunc(slices.Clone(found), isSealed), own...)
	slices.SortStableFunc(found, func(a, b memory.Note) int { return a.At.Compare(b.At) })
	return memory.Rank(found, query, recallLimit), nil
}

func isSealed(n memory.Note) bool { return strings.HasPrefix(n.Content, sealedNote) }

// ownNotes opens the sealed notes about whom the task is about.
func (t *Task) ownNotes(ctx context.Context, all []memory.Note) (own []memory.Note, err error) {
	v, err := t.vault(ctx, false)
	if err != nil {
		return nil, keyUnavailable(err)
	}
	for _, n := range all {
		sealed, is := strings.CutPrefix(n.Content, sealedNote)
		if !is {
			continue
		}
		if text, err := v.data.Open(sealed, aboutNote(t.agent.name)); err == nil {
			n.Content = text
			own = append(own, n)
		}
	}
	return own, nil
}

package delta

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/keys"
)

// Why secrets of a task cannot be written down, or read.
var (
	// ErrErased says that the data of a task, or of whom it is about, was erased; see [Engine.Erase].
	ErrErased = errors.New("its data was erased")
	// ErrNoRing says that a data key is wrapped, and that the engine was given no ring to unwrap it with.
	ErrNoRing = errors.New("it is wrapped by a key ring: set Config.Keys to the one that the other workers have")

	errNoKeyYet = errors.New("there is no data key yet")
)

// vault is the data key of a task as this engine holds it.
type vault struct {
	data *keys.Data
	all  bool  // the task is about somebody: nothing that goes in or comes out may be read
	of   int64 // erasures of this engine before it was read: it does not outlast the next one
}

// What is known of whether a task is about somebody.
const (
	aboutUnknown = iota
	aboutNobody
	aboutSomebody
)

// keyUnavailable is the refusal of a call whose secrets cannot be written down, or opened.
func keyUnavailable(err error) *action.Failure {
	if f := action.FailureOf(err); f != nil {
		return f
	}
	f := action.Fail(action.KeyUnavailable, "the key for the secrets of this call cannot be had; nothing was run").Because(err)
	f = f.With(action.DetailRule, action.TextOf(err))
	if errors.Is(err, ErrErased) {
		f.Message, f.Retryable = "the data of this task was erased; nothing was run", false
	}
	return f
}

// keyless reports whether something cannot be done here because a data key cannot be had.
func keyless(err error) bool {
	f := action.FailureOf(err)
	return f != nil && f.Code == action.KeyUnavailable
}

// about learns whether the task is about somebody.
func (t *Task) about(ctx context.Context) (int32, error) {
	if known := t.private.Load(); known != aboutUnknown {
		return known, nil
	}
	s, err := t.configuration(ctx)
	if err != nil || s.ID == "" {
		return aboutUnknown, err // there is no such task, which gate 1 says
	}
	known := aboutWhom(&s)
	t.private.Store(known)
	return known, nil
}

func aboutWhom(s *engine.TaskState) int32 {
	if s.Subject != "" {
		return aboutSomebody
	}
	return aboutNobody
}

// configuration is the task as it is known here; its ID is "" where there is none.
func (t *Task) configuration(ctx context.Context) (s engine.TaskState, err error) {
	if t.agent.card != nil { // it is looked at from outside
		v, err := t.engine.lookAtTask(ctx, t.agent.name, t.local)
		if err != nil {
			return s, failedStore(err)
		}
		return v.Task, nil
	}
	t.state.mu.Lock()
	if t.view.Describes(&t.space) && t.view.Exists() {
		s = t.view.Task
	}
	t.state.mu.Unlock()
	if s.ID != "" {
		return s, nil
	}
	if err := t.refresh(ctx, false); err != nil {
		return s, failedStore(err)
	}
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	v, err := t.glance(t.snapshot(nil))
	if err != nil {
		return s, failedStore(err)
	}
	return v.Task, nil
}

// vault returns the data key of the task, which is made where there is none yet. A dry one writes nothing: then the key is one
// that nothing else is under.
func (t *Task) vault(ctx context.Context, dry bool) (*vault, error) {
	of := t.engine.erasures.Load()
	if v := t.kept.Load(); v != nil && v.of == of {
		return v, nil
	}
	s, err := t.configuration(ctx)
	if err != nil {
		return nil, err
	}
	passing := func() (*vault, error) {
		data, err := keys.DataOf(keys.NewData())
		return &vault{data, s.ID == "" || s.Subject != "", of}, err
	}
	if s.ID == "" { // nothing of the call will be written: gate 1 refuses it
		return passing()
	}
	agent, space := vaultOf(&s)
	data, err := t.engine.dataKey(ctx, agent, space, !dry && !s.Status.Ended(), false)
	if errors.Is(err, errNoKeyYet) && (dry || s.Status.Ended()) {
		return passing()
	}
	if err != nil {
		return nil, err
	}
	v := &vault{data, s.Subject != "", of}
	t.kept.Store(v)
	return v, nil
}

// vaultOf says where the data key of a task is kept: with whom it is about, or else with the first of its family, so that
// what a parent was refused is known in the child.
func vaultOf(s *engine.TaskState) (agent, space string) {
	switch {
	case s.Vault != "":
		agent, space, _ = strings.Cut(s.Vault, idSeparator)
		return agent, space
	case s.Subject != "":
		return s.Agent, engine.SubjectSpace(s.Subject)
	}
	return s.Agent, s.ID
}

// sharesVault has a child work on the data of its parent, under its data key.
func (t *Task) sharesVault(ctx context.Context, child *engine.TaskState) error {
	s, err := t.configuration(ctx)
	if err != nil || s.ID == "" {
		return err // the delegation says that there is no such task
	}
	if child.Subject != "" && child.Subject != s.Subject {
		return fmt.Errorf("the goal's subject is %q, its parent's %q: a child works on the same data", child.Subject, s.Subject)
	}
	agent, space := vaultOf(&s)
	child.Subject, child.Vault = s.Subject, agent+idSeparator+space
	return nil
}

// dataKey reads a data key. Where there is none it is made, if that is wanted; renewed makes another one in place of one that
// was erased.
func (e *Engine) dataKey(ctx context.Context, agent, space string, wanted, renewed bool) (*keys.Data, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.StoreTimeout)
	defer cancel()
	for range rounds {
		snap, err := e.store.Load(ctx, agent, space, nil)
		if err != nil {
			return nil, failedStore(err)
		}
		cell, ver, err := engine.ReadKey(snap)
		switch {
		case err != nil:
			return nil, fmt.Errorf("data key %s%s%s: %w", agent, idSeparator, space, err)
		case ver > 0 && cell.Erased == 0:
			return e.unwrap(ctx, agent, space, cell)
		case ver > 0 && !renewed:
			return nil, fmt.Errorf("data key %s: %w", cell.ID, ErrErased)
		case ver == 0 && !wanted:
			return nil, errNoKeyYet
		}
		data, cell, err := e.wrapNew(ctx, agent, space)
		if err != nil {
			return nil, err
		}
		x := engine.MakeKey(agent, space, ver, cell, e.clock())
		reply, err := e.apply(ctx, x)
		if err != nil {
			return nil, failedStore(err)
		}
		if reply.OK {
			e.noteParent(x, reply)
			return data, nil
		}
	}
	return nil, action.Fail(action.Stale, "the data key changed %d times while it was read; try again", rounds)
}

func aboutKey(agent, space string) string { return agent + "\n" + space }

// wrapNew makes a data key and wraps it where there is a ring.
func (e *Engine) wrapNew(ctx context.Context, agent, space string) (*keys.Data, engine.KeyCell, error) {
	raw := keys.NewData()
	data, err := keys.DataOf(raw)
	if err != nil {
		return nil, engine.KeyCell{}, err
	}
	cell := engine.KeyCell{ID: data.ID()}
	if e.cfg.Keys == nil {
		cell.Bare = raw
		return data, cell, nil
	}
	cell.Wrapped, err = safely(func() (string, error) { return e.cfg.Keys.Wrap(ctx, raw, aboutKey(agent, space)) })
	if err == nil && cell.Wrapped == "" {
		err = errors.New("the key ring returned nothing")
	}
	if err != nil {
		return nil, engine.KeyCell{}, fmt.Errorf("wrap data key: %w", err)
	}
	return data, cell, nil
}

func (e *Engine) unwrap(ctx context.Context, agent, space string, cell engine.KeyCell) (*keys.Data, error) {
	raw := cell.Bare
	if cell.Wrapped != "" {
		if e.cfg.Keys == nil {
			return nil, fmt.Errorf("data key %s: %w", cell.ID, ErrNoRing)
		}
		var err error
		raw, err = safely(func() ([]byte, error) { return e.cfg.Keys.Unwrap(ctx, cell.Wrapped, aboutKey(agent, space)) })
		if err != nil {
			return nil, fmt.Errorf("data key %s: %w", cell.ID, err)
		}
	}
	data, err := keys.DataOf(raw)
	if err == nil && data.ID() != cell.ID {
		err = fmt.Errorf("data key %s: %w", cell.ID, keys.ErrSealed)
	}
	return data, err
}

// dropVaults forgets every data key that is held here, whoever holds the task.
func (e *Engine) dropVaults() { e.erasures.Add(1) }

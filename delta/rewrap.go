package delta

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Rewrapped is what [Engine.Rewrap] did.
type Rewrapped struct {
	Keys    int  // data keys that are now under the newest key of the ring
	Already int  // that were
	More    bool // the limit was reached: repeat it
}

// errEnough ends a walk over the keys.
var errEnough = errors.New("enough")

// Rewrap wraps data keys again under the newest key of the ring, so that older ones may go: those that an older key wraps, and
// those that were made before there was a ring. Digests and what is sealed do not change, and no call waits for it. It is for
// the engine's operators. At most limit keys are wrapped, 0 is all of them; what was done stays done, and to go on it is
// repeated. It concerns all agents that the store can list, or else those that this engine knows.
//
// Of a ring that is not a [keys.Set] a text that Wrap returns should begin with the name of the key and a colon: else every
// data key is wrapped again each time.
func (e *Engine) Rewrap(ctx context.Context, by Identity, limit int) (done Rewrapped, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("rewrap: %w", err)
		}
	}()
	if err := errors.Join(alive(ctx), e.mine(by)); err != nil {
		return done, err
	}
	if e.cfg.Keys == nil {
		return done, ErrNoRing
	}
	if err := e.enter(); err != nil {
		return done, err
	}
	defer e.inside.Done()
	agents, err := e.allAgents(ctx)
	if err != nil {
		return done, err
	}
	for _, name := range agents {
		if err := engine.MayErase(name, e.cfg.Operators, e.whoIs(by, "")); err != nil {
			return done, err
		}
	}
	for _, name := range agents {
		err := e.eachVault(ctx, name, func(space string) error {
			wrapped, was, err := e.rewrap(ctx, name, space)
			switch {
			case err != nil:
				return fmt.Errorf("data key of %s%s%s: %w", name, idSeparator, space, err)
			case wrapped:
				done.Keys++
			case was:
				done.Already++
			}
			if limit > 0 && done.Keys >= limit {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			done.More = true
			return done, nil
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func (e *Engine) allAgents(ctx context.Context) (names []string, err error) {
	if _, lists := e.raw().(memory.Lister); lists {
		return e.everyAgent(ctx)
	}
	for _, s := range e.inOrder() {
		names = append(names, s.agent.name)
	}
	return names, nil
}

// eachVault passes the places where an agent's data keys may lie: its tasks, and the subjects that its ledger names.
func (e *Engine) eachVault(ctx context.Context, agent string, pass func(space string) error) error {
	for after := (txn.Queued{}); ; {
		page, err := e.store.Queued(ctx, agent, engine.QueueHistory, after, false, recordPage)
		if err != nil {
			return failedStore(err)
		}
		for _, q := range page {
			after = q
			if err := pass(q.Member); err != nil {
				return err
			}
		}
		if len(page) < recordPage {
			break
		}
	}
	seen := map[string]bool{}
	for from := int64(1); ; {
		page, err := e.store.Records(ctx, agent, "", from, recordPage)
		if err != nil {
			return failedStore(err)
		}
		for _, r := range page {
			from = r.Seq + 1
			ev, err := ledger.Decode(r.Val)
			if err != nil {
				return fmt.Errorf("record %d of agent %q: %w", r.Seq, agent, err)
			}
			if ev.Type != ledger.KeyMade || ev.Child == "" || seen[ev.Child] {
				continue
			}
			seen[ev.Child] = true
			if err := pass(engine.SubjectSpace(ev.Child)); err != nil {
				return err
			}
		}
		if len(page) < recordPage {
			return nil
		}
	}
}

// rewrap wraps one data key under the newest key of the ring; was says that it is already.
func (e *Engine) rewrap(ctx context.Context, agent, space string) (wrapped, was bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.StoreTimeout)
	defer cancel()
	for range rounds {
		snap, err := e.store.Load(ctx, agent, space, nil)
		if err != nil {
			return false, false, failedStore(err)
		}
		cell, ver, err := engine.ReadKey(snap)
		if err != nil || ver == 0 || cell.Erased > 0 {
			return false, false, err
		}
		next := engine.KeyCell{ID: cell.ID}
		if next.Wrapped, err = e.wrapAgain(ctx, agent, space, cell); err != nil {
			return false, false, err
		}
		if under(next.Wrapped) == under(cell.Wrapped) {
			return false, true, nil
		}
		reply, err := e.apply(ctx, engine.RewrapKey(agent, space, ver, next))
		if err != nil {
			return false, false, failedStore(err)
		}
		if reply.OK {
			return true, false, nil
		}
	}
	return false, false, action.Fail(action.Stale, "it changed %d times while it was wrapped; repeat it", rounds)
}

func (e *Engine) wrapAgain(ctx context.Context, agent, space string, cell engine.KeyCell) (string, error) {
	if _, err := e.unwrap(ctx, agent, space, cell); err != nil { // what cannot be opened is not to be replaced
		return "", err
	}
	about := aboutKey(agent, space)
	return safely(func() (string, error) {
		raw := cell.Bare
		if cell.Wrapped != "" {
			var err error
			if raw, err = e.cfg.Keys.Unwrap(ctx, cell.Wrapped, about); err != nil {
				return "", err
			}
		}
		text, err := e.cfg.Keys.Wrap(ctx, raw, about)
		if err == nil && text == "" {
			err = errors.New("the key ring returned nothing")
		}
		return text, err
	})
}

// under names the key of the ring under which a data key is wrapped, or is all of what the ring returned.
func under(wrapped string) string {
	name, _, _ := strings.Cut(wrapped, ":")
	return name
}

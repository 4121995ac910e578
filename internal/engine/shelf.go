package engine

import (
	"encoding/json"
	"errors"
	"math"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/statespace"
)

// Shelf keeps what offers of one task are made of: the last offer as long as nothing changed, and narrowed schemas as long
// as the facts behind them stand. It is for one task under one set of rules, and not safe for concurrent use. Its zero
// value is empty.
type Shelf struct {
	set   *statespace.Set // that the schemas come from
	texts map[string]*shelved

	offer       []action.Offered
	task, agent int64 // revisions it was made at
	from, until int64 // store time in which it holds
	told        bool
	guidance    []string // what is to be told of the offer's risks, once that was asked for
}

// shelved is the narrowed schema of an action.
type shelved struct {
	moved    uint64
	text     json.RawMessage
	possible bool // some input satisfies the prerequisites
}

// offerHolds is how long an offer is kept at most, µs, though nothing in the snapshot changed: what is outside it, in
// another agent's keys, shows this soon.
const offerHolds = 250_000

// Drop empties the shelf: for a reading that may differ under the revisions that were known before.
func (s *Shelf) Drop() { *s = Shelf{} }

// Offer is the offer of the view, as the function [Offer] would make it. What it returns is shared and must not change.
func (s *Shelf) Offer(rules *Rules, agent *Agent, v *View, set *statespace.Set, now int64) ([]action.Offered, error) {
	if rules.Policy != nil { // it may decide otherwise at any time
		return Offer(rules, agent, v, set, now)
	}
	task, its := v.Snap.Task.Rev, v.Snap.Agent.Rev
	if s.from <= now && now < s.until && s.task == task && s.agent == its && s.set == set {
		return s.offer, nil
	}
	if s.set != set {
		*s = Shelf{set: set}
	}
	out, err := offerOf(rules, agent, v, set, now, s.narrowed)
	if err != nil {
		return nil, err
	}
	s.offer, s.task, s.agent, s.from, s.until = out, task, its, now, s.ends(agent, v, now)
	s.told, s.guidance = false, nil
	return out, nil
}

// RiskGuidance is the function [RiskGuidance] for the offer of this view, which may be the shelf's last.
func (s *Shelf) RiskGuidance(rules *Rules, agent *Agent, v *View, offered []action.Offered) []string {
	last := s.task == v.Snap.Task.Rev && s.agent == v.Snap.Agent.Rev && len(offered) == len(s.offer) && len(offered) > 0 && &offered[0] == &s.offer[0]
	if !last {
		return RiskGuidance(rules, agent, v, offered)
	}
	if !s.told {
		s.told, s.guidance = true, RiskGuidance(rules, agent, v, offered)
	}
	return s.guidance
}

// ends returns the store time from which an offer made now may be another one without anybody writing.
func (s *Shelf) ends(agent *Agent, v *View, now int64) int64 {
	until := now + offerHolds
	if d := v.Task.Deadline; d > 0 && now < d {
		until = min(until, d)
	}
	if t, has := v.Snap.Task.Tokens[tokenGlass]; has && t.Exp > 0 && t.Live(now) {
		until = min(until, t.Exp)
	}
	for name := range s.set.All {
		if agent.Graph.Timed(name) {
			return math.MinInt64
		}
	}
	return until
}

// narrowed returns the schema of an action, narrowed to what satisfies its prerequisites, and whether anything does.
func (s *Shelf) narrowed(agent *Agent, name string, now int64) (json.RawMessage, bool, error) {
	moved, timed := s.set.Moved(name), agent.Graph.Timed(name)
	kept := s.texts[name]
	if kept != nil && kept.moved == moved && !timed {
		return kept.text, kept.possible, nil
	}
	text, possible, err := narrow(agent.Actions[name], s.set, now)
	if err != nil || timed {
		return text, possible, err
	}
	if s.texts == nil {
		s.texts = map[string]*shelved{}
	}
	s.texts[name] = &shelved{moved, text, possible}
	return text, possible, nil
}

// narrow restricts the schema of an action to the values that satisfy its prerequisites, where they are few; possible is
// false where no input at all satisfies them.
func narrow(a *Action, set *statespace.Set, now int64) (text json.RawMessage, possible bool, err error) {
	allowed, possible := together(set.Allowed(a.Name, now))
	if !possible {
		return nil, false, nil
	}
	text, err = narrowed(a, allowed)
	if errors.Is(err, schema.ErrNoValue) {
		return nil, false, nil
	}
	return text, err == nil, err
}

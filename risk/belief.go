package risk

import (
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// maxCount bounds every counter; counting stops there.
const maxCount = 1<<53 - 1

// Belief is everything known of one agent: an immutable value that may be copied, kept and read from many goroutines. The
// zero value knows nothing.
//
// Updating copies the shared block, and the path to one action in a balanced tree, so its cost grows with the logarithm of
// the number of actions, and the old value stays as it was. A [Tracker] updates in place.
type Belief struct {
	shared  shared
	actions table
	seen    *seen // what the last observation left behind, nil where that is not known; it says nothing that the others do not
}

// state is what is known of one action. The log-odds are kept as a deviation from the base of the declared level, so that
// a declaration that changes moves the estimate by as much.
type state struct {
	name string
	record
	era      uint64    // the era at whose beginning f holds
	k        int       // shared parts known then; 0 before the first observation
	f        []float64 // per member: v, a, b
	currency string    // of the money level, "" where that has not started
	costs    [action.AxisCount]level
}

func (s *state) leaf(member int) []float64 {
	return s.f[member*(s.k+2) : (member+1)*(s.k+2)]
}

func (s *state) clone() state {
	c := *s
	c.f = slices.Clone(s.f)
	return c
}

// currencyFor returns the currency in which money is forecast: that of an amount observed, else that declared, else that
// of the history.
func (s *state) currencyFor(estimate, observed action.Cost) string {
	switch {
	case observed.Money > 0:
		return observed.Currency
	case estimate.Money > 0:
		return estimate.Currency
	}
	return s.currency
}

// costsIn returns the cost levels, without that of money where it is in another currency.
func (s *state) costsIn(currency string) (l [action.AxisCount]level) {
	l = s.costs
	if s.currency != currency {
		l[action.Money] = level{}
	}
	return l
}

// Prior returns the belief about an agent that never ran anything. Actions appear as they are observed.
func (m *Model) Prior() Belief { return Belief{shared: m.prior()} }

func (m *Model) prior() shared {
	n := len(m.cfg.Members)
	s := shared{trust: m.priorTrust(), members: n, f: make([]float64, floats(n, fixed, 0), floats(n, fixed, 2))}
	for i := range n {
		s.weights()[i] = 1 / float64(n)
		cov := s.cov(i)
		cov[packed(iAgent)+iAgent] = m.cfg.Members[i].Agent
		cov[packed(iSlope)+iSlope] = m.cfg.Slope
	}
	s.begin()
	return s
}

func (m *Model) priorTrust() gauss { return gauss{m.cfg.Trust.Mean, m.cfg.Trust.Variance} }

// Names returns the actions that were observed, sorted.
func (b Belief) Names() []string { return b.actions.names() }

// Knows reports whether an action was observed.
func (b Belief) Knows(name string) bool {
	_, ok := b.actions.get(name)
	return ok
}

// Tags returns the tags of the actions that were observed, in order of first appearance.
func (b Belief) Tags() []string { return slices.Clone(b.shared.tags) }

// AgentChange returns the last change found over all actions of the agent, and at which of its outcomes, counted from 1;
// 0 for none.
func (b Belief) AgentChange() (Event, int64) { return b.shared.agent.changed, int64(b.shared.agent.at) }

// Changing returns the actions whose own outcomes speak for a change of that kind, sorted: those of which one was found in
// their last recent executions, and those whose last outcomes count towards one. Of an agent's change it tells whether it
// is that of more than one action.
func (b Belief) Changing(event Event, recent int64) []string {
	var out []string
	for _, name := range b.actions.names() {
		s, _ := b.actions.get(name)
		sum := s.own.sums.worse
		if event == GotBetter {
			sum = s.own.sums.better
		}
		if sum > 0 || s.own.changed == event && int64(s.n-s.own.at) < recent {
			out = append(out, name)
		}
	}
	return out
}

// Reset returns b without what is known of an action alone: an operator's decision, to be recorded. What it taught of the
// agent and of its tags stays, and so does trust. The shared block changes too.
func (m *Model) Reset(b Belief, name string) Belief {
	s, ok := b.actions.get(name)
	if !ok {
		return b
	}
	b.actions, b.seen = b.actions.without(name), nil
	b.shared = b.shared.clone()
	b.shared.eras[b.shared.find(s.era)].refs--
	b.shared.sweep()
	return b
}

// ResetTrust returns b with the trust of an agent that never ran anything, its counts at zero. Actions and what they share
// stay.
func (m *Model) ResetTrust(b Belief) Belief {
	b, err := m.adopt(b)
	if err != nil {
		return b
	}
	b.shared.trust, b.shared.ok, b.shared.err = m.priorTrust(), 0, 0
	b.shared.agent.changed, b.shared.agent.at = NoChange, 0
	return b
}

// Innovation says what one observation did to a belief.
type Innovation struct {
	PBefore, PAfter         float64 // published probability of Err
	ScoreBefore, ScoreAfter float64 // the same on the scale of declared levels, 1 to 5
	Surprise                float64 // KL(posterior‖prior) of the log-odds, nats
	Bits                    float64 // −log2 of the probability given to what happened
	Flag                    bool    // surprising enough to be shown: Surprise at the configured flag or above, or a change
	Change                  Event   // of the action
	AgentChange             Event   // of the agent: all its actions together
}

// Update folds one executed outcome of the action d into b. On an error, which names the action and what is wrong with it,
// the belief returned is b.
//
// An Ok never raises the published probability of its action and an Err never lowers it, although a change in the same
// step may widen the belief and move its mean; what is not published stays in the belief.
func (m *Model) Update(b Belief, d Declaration, o Observation) (Belief, Innovation, error) {
	if err := m.admit(&b.shared, d); err != nil {
		return b, Innovation{}, err
	}
	if err := o.check(d); err != nil {
		return b, Innovation{}, err
	}
	next, err := m.adopt(b)
	if err != nil {
		return b, Innovation{}, err
	}
	var s state
	if old, ok := b.actions.get(d.Name); ok {
		s = old.clone()
	} else {
		s.name = d.Name
	}
	m.learnTags(&next.shared, d)
	f := m.frame()
	last := new(seen)
	in := m.observe(f, &next.shared, &s, d, o, last)
	m.pool.Put(f)
	next.actions, next.seen = next.actions.with(&s), last
	return next, in, nil
}

// admit reports why a declaration cannot be learned of, nor anything be said of it. Whatever reads a belief asks it as well
// as whatever changes one: a call of which nothing can be learned must not pass as one of which nothing is known.
func (m *Model) admit(s *shared, d Declaration) error {
	if err := m.Check(d); err != nil {
		return err
	}
	if s.empty() {
		return nil
	}
	if err := m.fits(s); err != nil {
		return err
	}
	if len(s.tags)+s.newTags(d) > maxShared {
		return fmt.Errorf("risk: action %q: its agent already has %d tags, at most %d are possible: use tags that it has",
			d.Name, len(s.tags), maxShared)
	}
	return nil
}

// adopt returns a copy of b whose shared block may be changed, the prior where b knows nothing.
func (m *Model) adopt(b Belief) (Belief, error) {
	if b.shared.empty() {
		return m.Prior(), nil
	}
	if err := m.fits(&b.shared); err != nil {
		return b, err
	}
	b.shared = b.shared.clone()
	return b, nil
}

func (m *Model) fits(s *shared) error {
	if s.members != len(m.cfg.Members) {
		return fmt.Errorf("risk: the belief has %d members and the model %d: reset the belief or use the configuration that made it",
			s.members, len(m.cfg.Members))
	}
	return nil
}

// newTags counts the tags that the agent does not have yet.
func (s *shared) newTags(d Declaration) (n int) {
	for _, t := range d.Tags {
		if !slices.Contains(s.tags, t) {
			n++
		}
	}
	return n
}

// learnTags adds them; there is room, see admit.
func (m *Model) learnTags(s *shared, d Declaration) {
	for _, t := range d.Tags {
		if !slices.Contains(s.tags, t) {
			s.learnTag(t, m.cfg.Members)
		}
	}
}

func (m *Model) frame() *frame {
	if f, ok := m.pool.Get().(*frame); ok {
		return f
	}
	return new(frame)
}

// observe folds an outcome that was checked into memory that the caller owns. What was seen last, and is seen then, is kept
// where there is room for it.
func (m *Model) observe(f *frame, sh *shared, s *state, d Declaration, o Observation, last *seen) Innovation {
	f.open(m, sh, s, d)
	base := f.base[:sh.members]
	var prior mixture
	if last != nil && last.is(s, d) {
		prior = last.mix
	} else {
		prior = m.look(f, base)
	}
	in, post := m.learn(f, base, prior, &sh.agent, sh.ok+sh.err, &s.record, d.Risk, o.Err)
	if last != nil {
		*last = seen{m, s, d.Risk, d.Tags, post}
	}
	m.learnCost(s, d, o)
	m.learnTrust(sh, o.Err)
	return in
}

func (o Observation) check(d Declaration) error {
	if err := o.Cost.Check(); err != nil {
		return fmt.Errorf("risk: action %q: observed %w", d.Name, err)
	}
	if o.Cost.Money > 0 && d.Estimate.Money > 0 && o.Cost.Currency != d.Estimate.Currency {
		return fmt.Errorf("risk: action %q: observed cost: %w: declared %s, used %s",
			d.Name, action.ErrCurrency, d.Estimate.Currency, o.Cost.Currency)
	}
	return nil
}

func (m *Model) learnCost(s *state, d Declaration, o Observation) {
	for a := range action.AxisCount {
		if a != action.Money && !o.Skip[a] {
			s.costs[a] = m.cfg.Cost.observe(s.costs[a], d.Estimate.Amount(a), o.Cost.Amount(a))
		}
	}
	if !o.Skip[action.Money] {
		m.learnMoney(s, d, o.Cost)
	}
}

func (m *Model) learnMoney(s *state, d Declaration, used action.Cost) {
	currency := s.currencyFor(d.Estimate, used)
	l := s.costsIn(currency)[action.Money]
	l = m.cfg.Cost.observe(l, d.Estimate.Money, used.Money)
	s.costs[action.Money], s.currency = l, ""
	if l.started() {
		s.currency = currency
	}
}

package risk

import (
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// maxCount bounds every counter; counting stops there.
const maxCount = 1<<53 - 1

// Belief is everything known of one agent: an immutable value that may be copied, kept and read from many goroutines. The
// zero value knows nothing.
//
// Updating copies the path to one action in a balanced tree, so its cost grows with the logarithm of the number of
// actions, and the old value stays as it was.
type Belief struct {
	shared  shared
	actions table
}

// shared is the part that every observation changes.
type shared struct {
	trust   gauss // log-odds of Err of the agent as a whole; variance 0 before the first observation
	ok, err uint64
}

func (s shared) empty() bool { return s.trust.variance == 0 }

// state is what is known of one action. The log-odds are kept as a deviation from the base of the declared level, so that
// a declaration that changes moves the estimate by as much.
type state struct {
	name      string
	declared  uint8
	dev       gauss
	published float64 // the probability last published, under that declaration
	sums      sums
	n, errs   uint64
	changed   Event
	changedAt uint64 // the observation, counted from 1, at which the last change was found
	currency  string // of the money level, "" where that has not started
	costs     [action.AxisCount]level
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
	return shared{trust: gauss{m.cfg.Trust.Mean, m.cfg.Trust.Variance}}
}

// Names returns the actions that were observed, sorted.
func (b Belief) Names() []string { return b.actions.names() }

// Reset returns b without what is known of an action: an operator's decision, to be recorded. Trust stays.
func (m *Model) Reset(b Belief, name string) Belief {
	b.actions = b.actions.without(name)
	return b
}

// ResetTrust returns b with the trust of an agent that never ran anything, its counts at zero. Actions stay.
func (m *Model) ResetTrust(b Belief) Belief {
	b.shared = m.prior()
	return b
}

// Innovation says what one observation did to a belief.
type Innovation struct {
	PBefore, PAfter         float64 // published probability of Err
	ScoreBefore, ScoreAfter float64 // the same on the scale of declared levels, 1 to 5
	Surprise                float64 // KL(posterior‖prior) of the log-odds, nats
	Bits                    float64 // −log2 of the probability given to what happened
	Flag                    bool    // surprising enough to be shown: Surprise at the configured flag or above, or a Change
	Change                  Event
}

// Update folds one executed outcome of the action d into b. On an error, which names the action and what is wrong with it,
// the belief returned is b.
//
// An Ok never raises the published probability and an Err never lowers it, although a change in the same step may widen
// the belief and move its mean; what is not published stays in the belief and shows with the next outcome.
func (m *Model) Update(b Belief, d Declaration, o Observation) (Belief, Innovation, error) {
	next, err := m.lookup(b, d)
	if err != nil {
		return b, Innovation{}, err
	}
	if err := o.check(d); err != nil {
		return b, Innovation{}, err
	}
	in := m.learn(&next, o.Err)
	m.learnCost(&next, d, o.Cost)
	b.shared = m.learnTrust(b.shared, o.Err)
	b.actions = b.actions.with(&next)
	return b, in, nil
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

// lookup returns the state of an action under its declaration, that of the prior where it was never observed.
func (m *Model) lookup(b Belief, d Declaration) (state, error) {
	if err := d.check(); err != nil {
		return state{}, err
	}
	if s, ok := b.actions.get(d.Name); ok {
		return m.redeclared(*s, d.Risk), nil
	}
	return state{
		name:      d.Name,
		declared:  uint8(d.Risk),
		dev:       gauss{0, m.cfg.PriorVariance},
		published: declared(d.Risk),
	}, nil
}

// redeclared returns s under another declared level: the deviation stays, what was published does not.
func (m *Model) redeclared(s state, risk int) state {
	if int(s.declared) != risk {
		s.declared = uint8(risk)
		s.published = m.rule.expect(m.logOdds(&s))
	}
	return s
}

// logOdds returns the belief about eta, the log-odds of Err.
func (m *Model) logOdds(s *state) gauss {
	return gauss{clamp(m.bases[s.declared]+s.dev.mean, -maxLogOdds, maxLogOdds), s.dev.variance}
}

// learn ages the belief, looks for a change, and corrects it by the moments of its posterior.
func (m *Model) learn(s *state, err bool) Innovation {
	before := s.published
	prior := m.logOdds(s).age(m.cfg.Drift)
	sums, event, inflation := s.sums.step(&m.cfg, before, err)
	post, _ := m.rule.match(prior.age(inflation), err)

	after := m.rule.expect(post)
	if err {
		after = max(after, before)
	} else {
		after = min(after, before)
	}
	s.dev = gauss{post.mean - m.bases[s.declared], post.variance}
	s.published, s.sums = after, sums
	s.n = min(s.n+1, maxCount)
	if err {
		s.errs = min(s.errs+1, maxCount)
	}
	if event != NoChange {
		s.changed, s.changedAt = event, s.n
	}
	surprise := post.divergence(prior)
	return Innovation{
		PBefore: before, PAfter: after, ScoreBefore: score(before), ScoreAfter: score(after),
		Surprise: surprise, Bits: bits(before, err), Change: event,
		Flag: surprise >= m.cfg.SurpriseFlag || event != NoChange,
	}
}

func (m *Model) learnCost(s *state, d Declaration, used action.Cost) {
	currency := s.currencyFor(d.Estimate, used)
	s.costs = s.costsIn(currency)
	for a := range action.AxisCount {
		s.costs[a] = m.cfg.Cost.observe(s.costs[a], d.Estimate.Amount(a), used.Amount(a))
	}
	s.currency = ""
	if s.costs[action.Money].started() {
		s.currency = currency
	}
}

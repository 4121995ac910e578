package risk

import "math"

// Estimate is what is believed of the risk of one action.
type Estimate struct {
	P              float64 // probability that the next execution ends in Err; contains the uncertainty, so a gate needs no bound
	Lo, Hi         float64 // central 90 % of the failure rate
	Mean, Variance float64 // of the log-odds of the failure rate
	Score          float64 // P on the scale of declared levels: clamp(5 + logit(P), 1, 5)
	OwnLo          float64 // the failure rate is this or higher, five to one, by the action's own outcomes alone; 0 with none
	Floor          float64 // OwnLo on the scale of declared levels; no relative can lower it
	N, Errs        int64   // executions, and those that ended in Err
	LastChange     Event   // the last change found
	ChangedAt      int64   // at which execution, counted from 1; 0 for none
}

// Risk returns the estimate for the action d; of one never observed, what was declared, moved by what its agent and its
// tags have shown. A declaration that Update would refuse is estimated as certain to fail: whoever gates on it stops.
func (m *Model) Risk(b Belief, d Declaration) Estimate {
	sh, s, err := m.lookup(b, d)
	if err != nil {
		return unknown
	}
	if b.seen != nil && b.seen.by == m && b.seen.is(s, d) {
		return m.estimated(&s.record, b.seen.mix, d.Risk)
	}
	f := m.frame()
	defer m.pool.Put(f)
	return m.estimate(f, sh, s, d)
}

// lookup returns the parts of a belief that speak of an action, those of the prior where nothing is known.
func (m *Model) lookup(b Belief, d Declaration) (*shared, *state, error) {
	sh := &b.shared
	if err := m.admit(sh, d); err != nil {
		return nil, nil, err
	}
	if sh.empty() {
		prior := m.prior()
		sh = &prior
	}
	s, _ := b.actions.get(d.Name)
	return sh, s, nil
}

// estimate reads sh and s; it changes neither.
func (m *Model) estimate(f *frame, sh *shared, s *state, d Declaration) Estimate {
	return m.estimated(&s.record, m.read(f, sh, s, d), d.Risk)
}

func (m *Model) estimated(r *record, mix mixture, risk int) Estimate {
	lo, hi := mix.interval()
	p := r.publish(mix.raw)
	floor := m.floor(r, risk)
	return Estimate{
		P: p, Lo: math.Min(lo, p), Hi: math.Max(hi, p),
		Mean: mix.mean, Variance: mix.variance, Score: score(p),
		OwnLo: sigma(floor), Floor: onScale(floor),
		N: int64(r.n), Errs: int64(r.errs), LastChange: r.own.changed, ChangedAt: int64(r.own.at),
	}
}

// read opens an action whose tags may be new to the agent.
func (m *Model) read(f *frame, sh *shared, s *state, d Declaration) mixture {
	if sh.newTags(d) > 0 {
		with := sh.clone()
		m.learnTags(&with, d)
		sh = &with
	}
	f.open(m, sh, s, d)
	return m.look(f, f.base[:sh.members])
}

// Effective returns the risk that a gate compares with its threshold: the highest of the declared level, the estimated
// score, the floor that the action's own record sets, and what a per-argument rule says (0 where none applies). It is
// never below what was declared nor below what was observed of the action itself: relatives may raise it, and what they
// lower is bounded by the floor. A gate compares it as it is, unrounded. A score that is not a number counts as the
// highest level, because no comparison with it would stop anything.
func (e Estimate) Effective(declared, rule int) float64 {
	if math.IsNaN(e.Score) || math.IsNaN(e.Floor) {
		return maxRisk
	}
	return math.Max(math.Max(float64(declared), float64(rule)), math.Max(e.Score, e.Floor))
}

// score puts a probability on the scale of declared levels.
func score(p float64) float64 { return onScale(logit(p)) }

// onScale puts log-odds on the scale of declared levels. It is rounded to a billionth, so that a level declared is exactly
// that level estimated.
func onScale(logOdds float64) float64 {
	return clamp(math.Round((maxRisk+logOdds)*1e9)/1e9, 1, maxRisk)
}

func bits(p float64, err bool) float64 {
	if !err {
		p = 1 - p
	}
	return -math.Log2(math.Max(p, minProbability))
}

// Trust is how far an agent may be trusted: the same scale for all agents.
type Trust struct {
	Score        float64 // the lower bound
	Lower, Upper float64 // both ends of the 5 to 95 % band of the filter, in which every Err counts several times
	Ok, Err      int64   // executions
}

// Trust returns the trust of an agent: a deliberately pessimistic bound of its rate of success, so that it must be earned by
// evidence. It is no estimate of that rate: the band lies below it, because an Err counts several times
// ([TrustConfig].ErrCount). Upper is the other end of the same band. With no evidence trust is 0.385.
func (m *Model) Trust(b Belief) Trust {
	s := b.shared
	if s.empty() {
		s.trust = m.priorTrust()
	}
	return s.trusted()
}

func (s *shared) trusted() Trust {
	lo, hi := s.trust.interval()
	return Trust{Score: 1 - hi, Lower: 1 - hi, Upper: 1 - lo, Ok: int64(s.ok), Err: int64(s.err)}
}

// learnTrust folds one executed outcome. An Err counts as several in a row, ageing once: from the starting trust upward a
// failure costs more than a success earns.
func (m *Model) learnTrust(s *shared, err bool) {
	s.trust = s.trust.age(m.cfg.Trust.Drift)
	times := 1
	if err {
		s.err, times = min(s.err+1, maxCount), m.cfg.Trust.ErrCount
	} else {
		s.ok = min(s.ok+1, maxCount)
	}
	for range times {
		s.trust, _ = m.rule.match(s.trust, err)
	}
}

package risk

import "math"

// What an action's own record says of it, whatever its relatives do: one scalar filter per action that sees its outcomes and
// nothing else, with the constants of [Single] and no change detection. It is not what is believed of the action, which
// learns from its relatives as well; its lower bound is what no relative may talk away at a gate. See [Estimate.Floor].
const (
	aloneVariance = 5
	aloneDrift    = 1e-3
	zAlone        = 1 // standard deviations: five to one that the rate is no lower
	maxAlone      = 2 * maxLogOdds
)

// aloneBase is the log-odds in which the filter begins for a declared level: that with which it expects what was declared.
func (m *Model) aloneBase(risk int) float64 {
	return m.cached(&m.aloneBases[risk], func() float64 { return m.rule.preserve(declared(risk), aloneVariance) })
}

// lone returns the filter of a record under a declared level, which may differ from that of the last outcome: as in the
// joint state the deviation is what is kept.
func (m *Model) lone(r *record, risk int) gauss {
	g := gauss{m.aloneBase(risk), aloneVariance}
	if r.n > 0 {
		g.mean, g.variance = clamp(g.mean+r.alone.mean, -maxLogOdds, maxLogOdds), r.alone.variance
	}
	return g
}

// learnAlone folds an outcome of the action itself; r.n does not count it yet.
func (m *Model) learnAlone(r *record, risk int, err bool) {
	g, _ := m.rule.match(m.lone(r, risk).age(aloneDrift), err)
	r.alone = gauss{g.mean - m.aloneBase(risk), g.variance}
}

// floor returns the log-odds that the action's own record supports five to one, −Inf with no record.
func (m *Model) floor(r *record, risk int) float64 {
	if r.n == 0 {
		return math.Inf(-1)
	}
	g := m.lone(r, risk)
	return g.mean - zAlone*math.Sqrt(g.variance)
}

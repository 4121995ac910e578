package risk

import "math"

// space is the joint Gaussian state seen from one action, whatever its form.
type space interface {
	// predict returns mean and variance of the action's log-odds, without the base.
	predict(member int) (mean, variance float64)
	// weights returns those of the members; the slice is good until settle.
	weights() []float64
	// agentVariance returns the variance of the agent's part.
	agentVariance(member int) float64
	// age adds variance to the agent's part and to the action's own.
	age(member int, agent, own float64)
	// correct moves the state along the last prediction, of variance S: its mean by S·al, its variance by S²·be.
	correct(member int, al, be float64)
	// settle makes the corrected state the one that is read.
	settle()
}

// record is what is known of an action apart from the Gaussian state.
type record struct {
	n, errs uint64
	own     track
	held    float64 // what was held back from being published, in log-odds
	alone   gauss   // the filter of its own outcomes only, as a deviation from aloneBase; see [Model.floor]
}

// mixture is what the members believe together.
type mixture struct {
	each   [maxMembers]float64 // probability of Err by member
	spread [maxMembers]float64 // variance of the log-odds by member
	raw    float64             // the weighted mean of each
	gauss
}

// look reads the members' predictions: the weighted probability, and the Gaussian with the moments of the mixture.
func (m *Model) look(sp space, base []float64) (mix mixture) {
	weights := sp.weights()
	var means [maxMembers]float64
	for i, w := range weights {
		g, s := predicted(sp, i, base[i])
		mix.spread[i] = s
		mix.each[i] = m.rule.expect(g)
		mix.raw += w * mix.each[i]
		mix.mean += w * g.mean
		mix.variance += w * g.variance
		means[i] = g.mean
	}
	for i, w := range weights {
		mix.variance += w * (means[i] - mix.mean) * (means[i] - mix.mean)
	}
	mix.raw = clamp(mix.raw, minProbability, 1-minProbability)
	return mix
}

// predicted is a prediction within the reach of the quadrature, and its variance as it is.
func predicted(sp space, member int, base float64) (gauss, float64) {
	mean, s := sp.predict(member)
	return gauss{clamp(base+mean, -maxLogOdds, maxLogOdds), clamp(s, minVariance, maxVariance)}, s
}

// publish returns what is published where the members say raw.
func (r *record) publish(raw float64) float64 {
	if r.held == 0 {
		return raw
	}
	return clamp(sigma(logit(raw)+r.held), minProbability, 1-minProbability)
}

// hold sees to it that what is published does not move against the outcome: a variance that was raised, or a weight that
// moved, can carry the mean of the probability with it.
func (r *record) hold(raw, before float64, err bool) float64 {
	r.held = 0
	wrong := func(p float64) bool { return err && p < before || !err && p > before }
	if !wrong(raw) {
		return raw
	}
	r.held = clamp(logit(before)-logit(raw), -maxHeld, maxHeld)
	step := 1e-15
	if !err {
		step = -step
	}
	for wrong(r.publish(raw)) { // the last digits
		r.held += step
		step *= 2
	}
	return r.publish(raw)
}

// maxHeld bounds what may be held back: probabilities published lie between 1e-13 and 1−1e-13.
const maxHeld = 100

// learn looks for a change, ages the state, corrects it by the moments of its posterior, and weighs the members anew. It is
// given what the members say, and returns what they say thereafter.
func (m *Model) learn(sp space, base []float64, prior mixture, agent *track, runs uint64, r *record, level int, err bool) (Innovation, mixture) {
	before := r.publish(prior.raw)
	var in Innovation
	var own, shared float64
	in.Change, own = r.own.step(&m.cfg, before, err, min(r.n+1, maxCount))
	in.AgentChange, _ = agent.step(&m.cfg, before, err, min(runs+1, 2*maxCount))
	switch in.AgentChange {
	case GotWorse:
		shared = m.cfg.Worse.AgentInflation
	case GotBetter:
		shared = m.cfg.Better.AgentInflation
	}
	for i := range sp.weights() {
		m.correct(sp, i, base[i], prior.spread[i], shared, own, err)
	}
	m.weigh(sp.weights(), prior.each[:], err)
	sp.settle()

	post := m.look(sp, base)
	after := r.hold(post.raw, before, err)
	m.learnAlone(r, level, err)
	r.n = min(r.n+1, maxCount)
	if err {
		r.errs = min(r.errs+1, maxCount)
	}
	in.PBefore, in.PAfter, in.ScoreBefore, in.ScoreAfter = before, after, score(before), score(after)
	in.Surprise, in.Bits = post.divergence(prior.gauss), bits(before, err)
	in.Flag = in.Surprise >= m.cfg.SurpriseFlag || in.Change != NoChange || in.AgentChange != NoChange
	return in, post
}

// correct ages one member, whose prediction has the variance s, by its drift and what a change adds, and corrects it. The
// variance of a prediction stays within the reach of the quadrature.
func (m *Model) correct(sp space, i int, base, s, shared, own float64, err bool) {
	c := &m.cfg.Members[i]
	room := max(0, maxVariance-s)
	shared = max(0, min(shared+c.AgentDrift, room, maxVariance-sp.agentVariance(i)))
	own = min(own+c.ActionDrift, room)
	sp.age(i, shared, own)
	g, s := predicted(sp, i, base)
	post, _ := m.rule.match(g, err)
	sp.correct(i, (post.mean-g.mean)/g.variance, (post.variance-g.variance)/(g.variance*s))
}

// weigh moves the weights to the members that gave the outcome more probability.
func (m *Model) weigh(w, p []float64, err bool) {
	if len(w) == 1 {
		return
	}
	var sum float64
	for i := range w {
		like := p[i]
		if !err {
			like = 1 - like
		}
		w[i] = math.Pow(w[i], m.cfg.Forget) * like
		sum += w[i]
	}
	var again float64
	for i := range w {
		w[i] = math.Max(w[i]/sum, m.cfg.Floor)
		again += w[i]
	}
	for i := range w {
		w[i] /= again
	}
}

// step adds one outcome to a detector and returns what it found and the variance that an action gains by it.
func (t *track) step(c *Config, p float64, err bool, at uint64) (Event, float64) {
	sums, event, inflation := t.sums.step(c, p, err)
	t.sums = sums
	if event != NoChange {
		t.changed, t.at = event, at
	}
	return event, inflation
}

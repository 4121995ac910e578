package risk

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Part is what one part of the state adds to the log-odds of Err of an action: above 0 it raises the risk.
type Part struct {
	Name   string // "agent", "slope", a tag, or "action"
	Mean   float64
	SD     float64 // standard deviation of the part by itself; parts are correlated, so that these do not add up
	Shared bool    // other actions of the agent have this part too
}

// Why says what an estimate rests on. The means add up: Declared + Agent + Slope + Tags + Action = Estimate.Mean, and with
// Uncertainty and Held they are the log-odds of Estimate.P.
type Why struct {
	Declaration Declaration
	Estimate    Estimate
	Prior       float64 // probability of Err that the declared level stands for
	Declared    float64 // the log-odds to start from, such that nothing but the declaration gives Prior
	Agent       Part
	Slope       Part // how much more or less than they say this agent's declared levels mean
	Tags        []Part
	Action      Part
	Uncertainty float64   // log-odds that being unsure adds: a small rate that is not known well fails more often on average than its middle value
	Held        float64   // log-odds that what is published differs by, because the belief moved against the last outcome
	Weights     []float64 // of the members, in the order of the configuration
	AgentChange Event     // the last change found over all actions of the agent
	AgentAt     int64     // at which outcome of the agent, counted from 1; 0 for none
	Changing    []string  // the actions whose own outcomes speak for that change, as far as their records still tell; sorted
}

// Explain returns what the estimate for d rests on. The error is that of Update for the same declaration.
func (m *Model) Explain(b Belief, d Declaration) (Why, error) {
	sh, s, err := m.lookup(b, d)
	if err != nil {
		return Why{}, err
	}
	f := m.frame()
	defer m.pool.Put(f)
	mix := m.read(f, sh, s, d)
	w := Why{
		Declaration: d, Estimate: m.estimated(&s.record, mix, d.Risk), Prior: declared(d.Risk), Held: s.held,
		Uncertainty: logit(mix.raw) - mix.mean,
		Weights:     slices.Clone(f.sh.weights()),
		AgentChange: sh.agent.changed, AgentAt: int64(sh.agent.at),
	}
	if w.AgentAt > 0 {
		w.Changing = b.Changing(w.AgentChange, maxCount)
	}
	for i, wt := range w.Weights {
		w.Declared += wt * f.base[i]
	}
	w.Agent = f.shared("agent", iAgent)
	w.Slope = f.shared("slope", iSlope)
	for _, t := range d.Tags {
		w.Tags = append(w.Tags, f.shared(t, fixed+slices.Index(f.sh.tags, t)))
	}
	w.Action = f.own()
	return w, nil
}

// shared returns the part of that index, weighted over the members.
func (f *frame) shared(name string, i int) Part {
	return f.part(name, true, func(member int) (mean, variance float64) {
		h := f.h[i]
		return h * f.sh.mean(member)[i], h * h * f.sh.cov(member)[packed(i)+i]
	})
}

// own returns what the action has of its own.
func (f *frame) own() Part {
	return f.part("action", false, func(member int) (mean, variance float64) {
		l := &f.leaves[member]
		p := make([]float64, len(l.b))
		multiply(p, f.sh.cov(member), l.b)
		mean, variance = l.a, l.v
		for i, b := range l.b {
			mean += b * f.sh.mean(member)[i]
			variance += b * p[i]
		}
		return mean, variance
	})
}

func (f *frame) part(name string, shared bool, of func(member int) (mean, variance float64)) Part {
	var mix gauss
	weights := f.sh.weights()
	for i, w := range weights {
		mean, variance := of(i)
		mix.mean += w * mean
		mix.variance += w * (variance + mean*mean)
	}
	return Part{Name: name, Mean: mix.mean, SD: sqrt0(mix.variance - mix.mean*mix.mean), Shared: shared}
}

// Parts returns the parts in the order in which they are best read: from what most actions share to what one has alone.
func (w Why) Parts() []Part {
	return append(append([]Part{w.Agent, w.Slope}, w.Tags...), w.Action)
}

// String explains for a person, one line per part.
func (w Why) String() string {
	var b strings.Builder
	e := w.Estimate
	fmt.Fprintf(&b, "%s: probability of Err %.3f, 90 %% within %.3f to %.3f, after %d executions with %d Err\n",
		w.Declaration.Name, e.P, e.Lo, e.Hi, e.N, e.Errs)
	fmt.Fprintf(&b, "  %-24s %6.2f   level %d stands for %.3f\n", "declared", w.Declared, w.Declaration.Risk, w.Prior)
	for _, p := range w.Parts() {
		whose := "its own"
		if p.Shared {
			whose = "shared"
		}
		fmt.Fprintf(&b, "  %-24s %+6.2f   ± %.2f, %s\n", label(p), p.Mean, p.SD, whose)
	}
	fmt.Fprintf(&b, "  %-24s %6.2f   ± %.2f in log-odds\n", "together", e.Mean, sqrt0(e.Variance))
	sure := e.Mean + w.Uncertainty
	fmt.Fprintf(&b, "  %-24s %+6.2f   %.3f → %.3f: a rate that is not known well may be high\n", "uncertainty", w.Uncertainty, sigma(e.Mean), sigma(sure))
	if w.Held != 0 {
		fmt.Fprintf(&b, "  %-24s %+6.2f   %.3f → %.3f: no move against the last outcome\n", "held back", w.Held, sigma(sure), e.P)
	}
	if e.Floor > 1 {
		fmt.Fprintf(&b, "  own record alone: at least %.3f, five to one; relatives cannot take it below level %.2f at a gate\n", e.OwnLo, e.Floor)
	}
	if e.ChangedAt > 0 {
		fmt.Fprintf(&b, "  changed for the %s at execution %d\n", e.LastChange, e.ChangedAt)
	}
	if len(w.Changing) > 1 { // of one action alone its own line tells
		fmt.Fprintf(&b, "  the agent changed for the %s at outcome %d\n", w.AgentChange, w.AgentAt)
	}
	return b.String()
}

// label names a part for a person.
func label(p Part) string {
	switch {
	case p.Name != "slope":
		return p.Name
	case p.Mean < 0:
		return "level means less"
	}
	return "level means more"
}

// sqrt0 is the square root of what only rounding makes negative.
func sqrt0(x float64) float64 { return math.Sqrt(math.Max(0, x)) }

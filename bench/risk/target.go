package riskbench

import (
	"fmt"
)

// Target is what the product's estimator is held to: a value from lo to hi.
type Target struct {
	Scenario string
	Metric   string
	Lo, Hi   float64
}

// Verdict is a target beside what was measured.
type Verdict struct {
	Scenario string  `json:"scenario"`
	Metric   string  `json:"metric"`
	Measured float64 `json:"measured"`
	Lo       float64 `json:"lo,omitempty"`
	Hi       float64 `json:"hi"`
	SE       float64 `json:"se,omitempty"` // standard error over the seeds; 0 where there are fewer than twenty
	Pass     bool    `json:"pass"`
	Close    bool    `json:"close,omitempty"` // not passed, by less than two standard errors
}

// overall is the scenario of what is judged over all eleven.
const overall = "mean of the eleven"

// targets, in the order of the scenarios.
var targets = func() (out []Target) {
	add := func(scenario, metric string, lo, hi float64) { out = append(out, Target{scenario, metric, lo, hi}) }
	row := func(scenario string, gap, ece, lo, hi float64) {
		add(scenario, "gap", 0, gap)
		add(scenario, "ece", 0, ece)
		add(scenario, "cover", lo, hi)
	}
	row("stationary-01", .025, .006, .85, .98)
	add("stationary-01", "gated", 0, .0005)
	row("stationary-05", .02, .018, .85, .98)
	add("stationary-05", "gated", 0, .0025)
	row("stationary-20", .015, .025, .85, .98)
	row("stationary-35", .015, .025, .85, .98)
	row("step", .023, .017, .88, .98)
	add("step", "delay median", 0, 8)
	add("step", "delay p90", 0, 16)
	row("slow", .015, .008, .78, 1)
	row("ramp", .025, .026, .72, 1)
	row("bursty", .15, .023, .78, 1)
	add("bursty", "regret median", 0, 180)
	row("sleeper", .035, .032, .90, .98)
	add("sleeper", "delay median", 0, 3)
	add("sleeper", "delay p90", 0, 5)
	row("rare", .01, .003, .80, .98)
	row("recovery", .045, .015, .80, .98)
	add(overall, "gap", 0, .025)
	add(overall, "regret", 0, 33)
	row("H1", .07, .015, .90, .98)
	row("H2", .075, .015, .90, .98)
	add("H2", "early regret", 0, 260)
	row("H3", .078, .015, .90, .98)
	for _, c := range costs {
		gap := .022
		if c.walk == .05 {
			gap = .06
		}
		add(c.Name, "gap", 0, gap)
		add(c.Name, "cover", .945, .955)
	}
	return out
}()

// Targets returns what the product's estimator is held to.
func Targets() []Target { return append([]Target(nil), targets...) }

// judge puts every target whose scenario ran beside what was measured.
func judge(r *Report) []Verdict {
	out := []Verdict{}
	for _, t := range targets {
		if x, se, ok := r.measured(t); ok {
			v := Verdict{Scenario: t.Scenario, Metric: t.Metric, Measured: x, Lo: t.Lo, Hi: t.Hi, SE: se}
			v.Pass = v.within(0)
			v.Close = !v.Pass && v.within(2*se)
			out = append(out, v)
		}
	}
	return out
}

// within reports whether the target is met with that much room. There is no lower bound where it is nought.
func (v Verdict) within(room float64) bool {
	return v.Measured <= v.Hi+room && (v.Lo == 0 || v.Measured >= v.Lo-room)
}

func (r *Report) measured(t Target) (v, se float64, ok bool) {
	if t.Scenario == overall {
		for _, m := range r.Mean {
			if m.Name == Delta {
				return map[string]float64{"gap": m.Gap, "regret": m.Regret}[t.Metric], m.SE[t.Metric], true
			}
		}
		return 0, 0, false
	}
	for _, list := range [][]Result{r.Scenarios, r.Families} {
		for _, x := range list {
			if s, ok := x.Of(Delta); ok && x.Scenario == t.Scenario {
				v, ok := s.metric(t.Metric)
				return v, s.SE[t.Metric], ok
			}
		}
	}
	for _, x := range r.Costs {
		if x.Scenario == t.Scenario {
			s := x.Scores[0]
			return map[string]float64{"gap": s.Gap, "cover": s.Cover}[t.Metric], s.SE[t.Metric], true
		}
	}
	return 0, 0, false
}

// metrics are the names of what a score tells.
var metrics = []string{
	"logloss", "gap", "brier", "ece", "cover", "nis", "gated", "regret", "regret median", "early regret",
	"delay median", "delay p90", "matched median", "matched p90",
}

func (s Score) metric(name string) (v float64, ok bool) {
	var d Delays
	if s.Delay != nil {
		d = *s.Delay
	}
	switch name {
	case "logloss":
		return s.LogLoss, true
	case "gap":
		return s.Gap, true
	case "brier":
		return s.Brier, true
	case "ece":
		return s.ECE, true
	case "cover":
		return s.Cover, true
	case "nis":
		return s.NIS, true
	case "gated":
		return s.Gated, true
	case "regret":
		return s.Regret, true
	case "regret median":
		return s.Median, true
	case "early regret":
		return s.Early, true
	case "delay median":
		return d.Median, s.Delay != nil
	case "delay p90":
		return d.P90, s.Delay != nil
	case "matched median":
		return d.MatchedMedian, s.Delay != nil
	case "matched p90":
		return d.MatchedP90, s.Delay != nil
	}
	return 0, false
}

// String is "gap 2.1 % ≤ 2.3 %".
func (v Verdict) String() string {
	if v.Lo > 0 {
		return fmt.Sprintf("%s %s within %s to %s", v.Metric, v.unit(v.Measured), v.unit(v.Lo), v.unit(v.Hi))
	}
	return fmt.Sprintf("%s %s ≤ %s", v.Metric, v.unit(v.Measured), v.unit(v.Hi))
}

func (v Verdict) unit(x float64) string {
	switch v.Metric {
	case "gap", "ece":
		return fmt.Sprintf("%.2f %%", 100*x)
	case "cover":
		return fmt.Sprintf("%.3f", x)
	case "gated":
		return fmt.Sprintf("%.4f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

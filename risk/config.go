package risk

import (
	"fmt"
	"math"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Estimator names the mathematics of this package. It changes whenever the same observations would give other bytes.
const Estimator = "scalar/1"

// Config holds the constants of the model. A field that is zero takes the default, which was found on synthetic streams
// kept apart from those it was judged on, one setting for all of them.
type Config struct {
	// PriorVariance is the variance of the log-odds of an action never executed. Default 5, at most 10.
	PriorVariance float64
	// Drift is the variance added to an action's log-odds per execution of its own. Default 1e-3, at most 1.
	Drift float64
	// Worse and Better are the two sides of the change detector.
	Worse, Better Change
	// SurpriseFlag is the divergence in nats from which an observation is flagged. Default 0.5.
	SurpriseFlag float64
	// Trust holds the constants of the agent's trust.
	Trust TrustConfig
	// Cost holds the constants of the cost forecast.
	Cost CostConfig
}

// Change is one side of a cumulative-sum change detector.
type Change struct {
	// Shift in log-odds that is looked for, a positive number. Default 3.0 for Worse, 1.9 for Better.
	Shift float64
	// Threshold of the summed log likelihood ratio, in nats. Default 5.5.
	Threshold float64
	// Inflation is the variance added when the threshold is crossed. Default 2.0 for Worse, 5.0 for Better.
	Inflation float64
}

// TrustConfig holds the constants of the trust filter: one scalar filter per agent without change detection.
type TrustConfig struct {
	Mean     float64 // prior mean of the log-odds of Err. Default -2
	Variance float64 // prior variance. Default 2.25, at most 10
	Drift    float64 // variance added per executed outcome. Default 0.002
	ErrCount int     // how often an Err is applied. Default 2, at most 10
}

// CostConfig holds the constants of the forecast of one cost axis, all on the scale of log(1+amount).
type CostConfig struct {
	LevelVariance float64 // prior variance of the level around the declared estimate. Default 0.25
	Drift         float64 // variance added to the level per observation. Default 8e-4
	Noise         float64 // prior guess of the observation variance. Default 0.4
	NoiseWeight   float64 // how many observations that guess is worth. Default 29
	Discount      float64 // per observation, of what is known about the noise. Default 0.998
	Slack         float64 // standard deviations per observation that the change detector forgives. Default 0.75
	Threshold     float64 // standard deviations summed beyond the slack that signal a change. Default 5
	Inflation     float64 // variance added to the level by a change. Default 0.5
}

// WithDefaults returns a copy of c in which every zero field has its default.
func (c Config) WithDefaults() Config {
	def(&c.PriorVariance, 5)
	def(&c.Drift, 1e-3)
	// Page 1954, Moustakides 1986: a one-sided sum of log likelihood ratios is the quickest detector of a known shift.
	c.Worse = c.Worse.withDefaults(3.0, 5.5, 2.0)
	c.Better = c.Better.withDefaults(1.9, 5.5, 5.0)
	// 0.5 nats is reached by the first Err after some hundred Ok, and in control by less than one outcome in a thousand.
	def(&c.SurpriseFlag, 0.5)
	def(&c.Trust.Mean, -2)
	def(&c.Trust.Variance, 2.25)
	def(&c.Trust.Drift, 0.002)
	if c.Trust.ErrCount == 0 {
		c.Trust.ErrCount = 2
	}
	// West and Harrison 1997, §10.8: local level with the observation variance learned by a discounted inverse gamma.
	def(&c.Cost.LevelVariance, 0.25)
	def(&c.Cost.Drift, 8e-4)
	def(&c.Cost.Noise, 0.4)
	def(&c.Cost.NoiseWeight, 29)
	def(&c.Cost.Discount, 0.998)
	def(&c.Cost.Slack, 0.75)
	def(&c.Cost.Threshold, 5)
	def(&c.Cost.Inflation, 0.5)
	return c
}

func (c Change) withDefaults(shift, threshold, inflation float64) Change {
	def(&c.Shift, shift)
	def(&c.Threshold, threshold)
	def(&c.Inflation, inflation)
	return c
}

func def(f *float64, v float64) {
	if *f == 0 {
		*f = v
	}
}

func (c Config) validate() error {
	for _, f := range []struct {
		name    string
		v       float64
		min, mx float64
	}{
		{"PriorVariance", c.PriorVariance, minVariance, maxVariance},
		{"Drift", c.Drift, minVariance, 1},
		{"Worse.Shift", c.Worse.Shift, 0.1, 20},
		{"Worse.Threshold", c.Worse.Threshold, 0.1, maxSum},
		{"Worse.Inflation", c.Worse.Inflation, minVariance, maxVariance},
		{"Better.Shift", c.Better.Shift, 0.1, 20},
		{"Better.Threshold", c.Better.Threshold, 0.1, maxSum},
		{"Better.Inflation", c.Better.Inflation, minVariance, maxVariance},
		{"SurpriseFlag", c.SurpriseFlag, 1e-6, 1e6},
		{"Trust.Mean", c.Trust.Mean, -10, 10},
		{"Trust.Variance", c.Trust.Variance, minVariance, maxVariance},
		{"Trust.Drift", c.Trust.Drift, minVariance, 1},
		{"Trust.ErrCount", float64(c.Trust.ErrCount), 1, 10},
		{"Cost.LevelVariance", c.Cost.LevelVariance, minVariance, maxVariance},
		{"Cost.Drift", c.Cost.Drift, minVariance, 1},
		{"Cost.Noise", c.Cost.Noise, minNoise, maxVariance},
		{"Cost.NoiseWeight", c.Cost.NoiseWeight, 1, 1e6},
		{"Cost.Discount", c.Cost.Discount, 0.5, 1},
		{"Cost.Slack", c.Cost.Slack, 1e-3, 10},
		{"Cost.Threshold", c.Cost.Threshold, 0.1, maxSum},
		{"Cost.Inflation", c.Cost.Inflation, minVariance, maxVariance},
	} {
		if !(f.v >= f.min && f.v <= f.mx) { // written so that NaN fails
			return fmt.Errorf("risk: config %s is %v, want %v to %v", f.name, f.v, f.min, f.mx)
		}
	}
	return nil
}

// Model turns observations into beliefs. It is immutable and safe for concurrent use.
type Model struct {
	cfg   Config
	rule  rule
	bases [maxRisk + 1]float64 // by declared level; index 0 unused
}

// New returns a model with the constants of cfg, or an error naming the field that is out of range.
func New(cfg Config) (*Model, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg, rule: newRule()}
	for d := 1; d <= maxRisk; d++ {
		m.bases[d] = m.rule.preserve(declared(d), cfg.PriorVariance)
	}
	return m, nil
}

// Config returns the constants in use.
func (m *Model) Config() Config { return m.cfg }

// maxRisk is the highest declared level.
const maxRisk = 5

// declared is the probability of Err that a declared level stands for: 0.018, 0.047, 0.119, 0.269, 0.5.
func declared(risk int) float64 { return sigma(float64(risk) - maxRisk) }

// Declaration is what is known of an action before it ever ran.
type Declaration struct {
	Name     string      // names the belief; see action.CheckName
	Risk     int         // declared level, 1 to 5
	Tags     []string    // kinds the action belongs to; checked, and not yet used
	Estimate action.Cost // declared cost; an axis at zero has no estimate
}

func (d Declaration) check() error {
	if err := action.CheckName(d.Name); err != nil {
		return fmt.Errorf("risk: action: %w", err)
	}
	if d.Risk < 1 || d.Risk > maxRisk {
		return fmt.Errorf("risk: action %q: declared risk is %d, want 1 to %d", d.Name, d.Risk, maxRisk)
	}
	for _, t := range d.Tags {
		if err := action.CheckName(t); err != nil {
			return fmt.Errorf("risk: action %q: tag: %w", d.Name, err)
		}
	}
	if err := d.Estimate.Check(); err != nil {
		return fmt.Errorf("risk: action %q: estimated %w", d.Name, err)
	}
	return nil
}

// Observation is one executed outcome.
type Observation struct {
	Err  bool        // it ended in Err
	Cost action.Cost // what it used; an amount of zero is an observation too
}

// Effective returns the risk that a gate compares with its threshold: the highest of the declared level, the estimated
// score and what a per-argument rule says (0 where none applies). It is never below what was declared nor below what was
// observed. A gate compares it as it is, unrounded. A score that is not a number counts as the highest level, because
// no comparison with it would stop anything.
func Effective(declared int, score float64, rule int) float64 {
	if math.IsNaN(score) {
		score = maxRisk
	}
	return math.Max(math.Max(float64(declared), float64(rule)), score)
}

// Level rounds a score down to a level, 1 to 5, for people to read. Down, so that a level shown as 4 is exactly one that a
// threshold of 4 stops.
func Level(score float64) int {
	return int(math.Max(1, math.Min(maxRisk, math.Floor(score))))
}

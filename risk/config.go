package risk

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Estimator names the mathematics of this package. It changes whenever the same observations would give other bytes.
const Estimator = "star/2"

const (
	maxMembers = 8
	maxTags    = 16  // of one declaration
	maxShared  = 256 // tags of one agent: the shared block grows with their square
)

// Config holds the constants of the model. A field that is zero takes the default, one setting for everything. Defaults were
// compared on synthetic streams kept apart from those that they are judged on, and on recorded calls, which are therefore
// no blind test of them.
type Config struct {
	// Members are the variance settings that are averaged, at most eight. Default [Bank].
	Members []Member
	// Slope is the prior variance of the slope on the declared level: how far declarations may turn out to mean more or
	// less than they say. Default 0.25.
	Slope float64
	// Forget is the power that a member's weight is raised to before each outcome: 1 remembers for ever. Default 0.995.
	Forget float64
	// Floor is the least weight of a member. Default 1e-6.
	Floor float64
	// Worse and Better are the two sides of the change detector, one per action and one per agent.
	Worse, Better Change
	// SurpriseFlag is the divergence in nats from which an observation is flagged. Default 0.5.
	SurpriseFlag float64
	// Tags are the tags that a declaration may name. Default none, which allows any; with it, another tag is an error.
	Tags []string
	// Trust holds the constants of the agent's trust.
	Trust TrustConfig
	// Cost holds the constants of the cost forecast.
	Cost CostConfig
}

// Member is one setting of the variances, all in squared log-odds. A belief keeps a state for every member and weighs them
// by how well they predict (dynamic model averaging, McCormick et al. 2012).
type Member struct {
	Agent       float64 // prior variance of what all actions of an agent share, 1e-9 to 10
	Tag         float64 // prior variance of what the actions of one tag share, 1e-9 to 10
	Action      float64 // prior variance of what an action has of its own, 1e-9 to 10
	AgentDrift  float64 // added to the first per executed outcome of the agent, 0 to 1
	ActionDrift float64 // added to the third per executed outcome of the action, 0 to 1
}

// Bank returns the members used by default: actions that have nothing in common, actions that are much alike, and the
// middle.
func Bank() []Member {
	return []Member{
		{Agent: .02, Tag: .02, Action: 6, AgentDrift: 1e-5, ActionDrift: 1e-3},
		{Agent: 1.15, Tag: .045, Action: 1.47, AgentDrift: 4e-4, ActionDrift: 8e-4},
		{Agent: .9, Tag: .2, Action: .35, AgentDrift: 2e-4, ActionDrift: 4e-4},
	}
}

// Single returns the constants for an agent of one action, or of actions that have nothing to do with each other: one
// member without shared parts.
func Single() Config {
	return Config{
		Members: []Member{{Agent: minVariance, Tag: minVariance, Action: 5, ActionDrift: 1e-3}},
		Slope:   minVariance,
		Worse:   Change{AgentInflation: minVariance},
		Better:  Change{AgentInflation: minVariance},
	}
}

// Change is one side of a cumulative-sum change detector.
type Change struct {
	// Shift in log-odds that is looked for, a positive number. Default 3.0 for Worse, 1.9 for Better.
	Shift float64
	// Threshold of the summed log likelihood ratio, in nats. Default 5.5.
	Threshold float64
	// Inflation is the variance added to the action when its threshold is crossed. Default 2.0 for Worse, 5.0 for Better.
	Inflation float64
	// AgentInflation is the variance added to the agent when its own is crossed. Default 0.8.
	AgentInflation float64
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
	if len(c.Members) == 0 {
		c.Members = Bank()
	}
	def(&c.Slope, .25)
	def(&c.Forget, .995)
	def(&c.Floor, 1e-6)
	// Page 1954, Moustakides 1986: a one-sided sum of log likelihood ratios is the quickest detector of a known shift.
	c.Worse = c.Worse.withDefaults(3.0, 5.5, 2.0, 0.8)
	c.Better = c.Better.withDefaults(1.9, 5.5, 5.0, 0.8)
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

func (c Change) withDefaults(shift, threshold, inflation, agent float64) Change {
	def(&c.Shift, shift)
	def(&c.Threshold, threshold)
	def(&c.Inflation, inflation)
	def(&c.AgentInflation, agent)
	return c
}

func def(f *float64, v float64) {
	if *f == 0 {
		*f = v
	}
}

// field is one constant and what it may be.
type field struct {
	name       string
	v, min, mx float64
}

func (c Config) validate() error {
	for _, f := range append(c.members(), c.fields()...) {
		if !(f.v >= f.min && f.v <= f.mx) { // written so that NaN fails
			return fmt.Errorf("risk: config %s is %v, want %v to %v", f.name, f.v, f.min, f.mx)
		}
	}
	for _, t := range c.Tags {
		if err := action.CheckName(t); err != nil {
			return fmt.Errorf("risk: config Tags: %w", err)
		}
	}
	return nil
}

func (c Config) members() []field {
	out := []field{{"len(Members)", float64(len(c.Members)), 1, maxMembers}}
	for i, m := range c.Members {
		at := "Members[" + strconv.Itoa(i) + "]."
		out = append(out,
			field{at + "Agent", m.Agent, minVariance, maxVariance},
			field{at + "Tag", m.Tag, minVariance, maxVariance},
			field{at + "Action", m.Action, minVariance, maxVariance},
			field{at + "AgentDrift", m.AgentDrift, 0, 1},
			field{at + "ActionDrift", m.ActionDrift, 0, 1})
	}
	return out
}

func (c Config) fields() []field {
	return []field{
		{"Slope", c.Slope, minVariance, 1},
		{"Forget", c.Forget, 0.5, 1},
		{"Floor", c.Floor, 1e-12, 1. / maxMembers},
		{"Worse.Shift", c.Worse.Shift, 0.1, 20},
		{"Worse.Threshold", c.Worse.Threshold, 0.1, maxSum},
		{"Worse.Inflation", c.Worse.Inflation, minVariance, maxVariance},
		{"Worse.AgentInflation", c.Worse.AgentInflation, minVariance, maxVariance},
		{"Better.Shift", c.Better.Shift, 0.1, 20},
		{"Better.Threshold", c.Better.Threshold, 0.1, maxSum},
		{"Better.Inflation", c.Better.Inflation, minVariance, maxVariance},
		{"Better.AgentInflation", c.Better.AgentInflation, minVariance, maxVariance},
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
	}
}

// Model turns observations into beliefs. Its constants never change; it is safe for concurrent use.
type Model struct {
	cfg   Config
	rule  rule
	known map[string]bool // the tags allowed; nil for any
	bases [maxMembers][maxRisk + 1][maxTags + 1]atomic.Uint64
	pool  sync.Pool // of *frame

	aloneBases [maxRisk + 1]atomic.Uint64
}

// New returns a model with the constants of cfg, or an error naming the field that is out of range.
func New(cfg Config) (*Model, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Members, cfg.Tags = slices.Clone(cfg.Members), slices.Clone(cfg.Tags)
	m := &Model{cfg: cfg, rule: newRule()}
	if len(cfg.Tags) > 0 {
		m.known = map[string]bool{}
		for _, t := range cfg.Tags {
			m.known[t] = true
		}
	}
	return m, nil
}

// base returns the log-odds about which the shared and own parts of an action vary, such that what is expected with no
// evidence is what was declared.
func (m *Model) base(member, risk, tags int) float64 {
	return m.cached(&m.bases[member][risk][tags], func() float64 {
		c := &m.cfg.Members[member]
		slope := float64(risk - middle)
		total := c.Agent + slope*slope*m.cfg.Slope + float64(tags)*c.Tag + c.Action
		return m.rule.preserve(declared(risk), math.Min(total, maxVariance))
	})
}

// cached finds log-odds once that are a pure function of the constants.
func (m *Model) cached(at *atomic.Uint64, find func() float64) float64 {
	if b := at.Load(); b != 0 {
		return math.Float64frombits(^b) // complemented: no log-odds then has all bits zero
	}
	b := find()
	at.Store(^math.Float64bits(b))
	return b
}

// Config returns the constants in use.
func (m *Model) Config() Config {
	c := m.cfg
	c.Members, c.Tags = slices.Clone(c.Members), slices.Clone(c.Tags)
	return c
}

const (
	maxRisk = 5 // the highest declared level
	middle  = 3 // the level about which the slope turns
)

// declared is the probability of Err that a declared level stands for: 0.018, 0.047, 0.119, 0.269, 0.5.
func declared(risk int) float64 { return sigma(float64(risk) - maxRisk) }

// Declaration is what is known of an action before it ever ran.
type Declaration struct {
	Name     string      // names the belief; see action.CheckName
	Risk     int         // declared level, 1 to 5
	Tags     []string    // kinds the action belongs to, at most 16; the actions of one tag share a part of their risk
	Estimate action.Cost // declared cost; an axis at zero has no estimate
}

// Check reports why m cannot take a declaration: its name, its level, a tag that is not a name, is named twice or is not
// among those of [Config], or its estimate.
func (m *Model) Check(d Declaration) error {
	if err := action.CheckName(d.Name); err != nil {
		return fmt.Errorf("risk: action: %w", err)
	}
	if d.Risk < 1 || d.Risk > maxRisk {
		return fmt.Errorf("risk: action %q: declared risk is %d, want 1 to %d", d.Name, d.Risk, maxRisk)
	}
	if len(d.Tags) > maxTags {
		return fmt.Errorf("risk: action %q: %d tags, at most %d are possible", d.Name, len(d.Tags), maxTags)
	}
	for i, t := range d.Tags {
		if err := m.checkTag(d.Tags[:i], t); err != nil {
			return fmt.Errorf("risk: action %q: %w", d.Name, err)
		}
	}
	if err := d.Estimate.Check(); err != nil {
		return fmt.Errorf("risk: action %q: estimated %w", d.Name, err)
	}
	return nil
}

func (m *Model) checkTag(before []string, t string) error {
	if err := action.CheckName(t); err != nil {
		return fmt.Errorf("tag: %w", err)
	}
	if slices.Contains(before, t) {
		return fmt.Errorf("tag %q is named twice", t)
	}
	if m.known != nil && !m.known[t] {
		return fmt.Errorf("unknown tag %q: name one of %s, or add it to the tags of the risk configuration",
			t, strings.Join(m.cfg.Tags, ", "))
	}
	return nil
}

// Observation is one executed outcome.
type Observation struct {
	Err  bool        // it ended in Err
	Cost action.Cost // what it used; an amount of zero is an observation too
	// Skip are the axes on which what it used is not known: nothing is learned of them.
	Skip [action.AxisCount]bool
}

// Level rounds a score down to a level, 1 to 5, for people to read. Down, so that a level shown as 4 is exactly one that a
// threshold of 4 stops. What is not a number is level 5.
func Level(score float64) int {
	if math.IsNaN(score) {
		return maxRisk
	}
	return int(math.Max(1, math.Min(maxRisk, math.Floor(score))))
}

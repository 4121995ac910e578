package riskbench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Config says what to run. Its zero value runs everything as it is judged.
type Config struct {
	Seeds     int      // streams per scenario, counted from FirstSeed. Default 240
	FirstSeed uint64   // default 80: constants of the product were compared on those below, baselines were tuned on those from 1000 on
	Scenarios []string // names of scenarios, families and costs; default all
	Kinds     []Kind   // default [Estimators]
	Workers   int      // goroutines; default one per processor. The result does not depend on it
	// Progress is told about every stream that is done. Nil: nobody is told. It is called by one goroutine at a time.
	Progress func(what string, done, total int64)
}

// firstBlind is the first seed that no constant of the product was ever compared on.
const firstBlind = 80

// WithDefaults returns c with every default filled in.
func (c Config) WithDefaults() Config {
	if c.Seeds == 0 {
		c.Seeds = 240
	}
	if c.FirstSeed == 0 {
		c.FirstSeed = firstBlind
	}
	if len(c.Scenarios) == 0 {
		c.Scenarios = Names()
	}
	if c.Kinds == nil {
		c.Kinds = Estimators()
	}
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.Progress == nil {
		c.Progress = func(string, int64, int64) {}
	}
	return c
}

// Check reports a value out of range.
func (c Config) Check() error {
	if c.Seeds < 1 || c.Seeds > 100_000 {
		return fmt.Errorf("seeds is %d, want 1 to 100000", c.Seeds)
	}
	names := Names()
	for _, s := range c.Scenarios {
		if !slices.Contains(names, s) {
			return fmt.Errorf("no scenario %q, want one of %s", s, strings.Join(names, ", "))
		}
	}
	return nil
}

// Names returns the names of everything that can be run.
func Names() (out []string) {
	for _, s := range scenarios {
		out = append(out, s.Name)
	}
	for _, f := range families {
		out = append(out, f.Name)
	}
	for _, c := range costs {
		out = append(out, c.Name)
	}
	return out
}

// Result is how every estimator did on one scenario.
type Result struct {
	Scenario string  `json:"scenario"`
	Steps    int     `json:"steps"`            // executions per stream
	Oracle   *Score  `json:"oracle,omitempty"` // of the exact filter; families have none, their floor knows the rate
	Scores   []Score `json:"estimators"`
}

// Of returns the score of the estimator of that name.
func (r Result) Of(name string) (Score, bool) {
	for _, s := range r.Scores {
		if s.Name == name {
			return s, true
		}
	}
	return Score{}, false
}

// Report is the outcome of a run.
type Report struct {
	Seeds     int          `json:"seeds"`
	Scenarios []Result     `json:"scenarios"`
	Families  []Result     `json:"families"`
	Costs     []CostResult `json:"costs"`
	Mean      []Mean       `json:"mean,omitempty"` // over the eleven scenarios; only where all of them ran
	Verdicts  []Verdict    `json:"targets"`
}

// Mean is an estimator's mean over the eleven scenarios.
type Mean struct {
	Name   string  `json:"name"` // "oracle" for the exact filter
	Gap    float64 `json:"gap"`
	Median float64 `json:"gap_median"` // of the eleven gaps
	Brier  float64 `json:"brier"`
	ECE    float64 `json:"ece"`
	Cover  float64 `json:"cover"`
	NIS    float64 `json:"nis"`
	Regret float64 `json:"regret"`
	// SE holds the standard errors of gap and regret over the seeds; nil of fewer than twenty seeds.
	SE map[string]float64 `json:"se,omitempty"`
}

// Run takes every estimator along every stream.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	r := &runner{Config: cfg, match: map[string]float64{}}
	r.plan()
	out := &Report{Seeds: cfg.Seeds, Scenarios: []Result{}, Families: []Result{}, Costs: []CostResult{}}
	if err := r.quiet(ctx); err != nil {
		return nil, err
	}
	for _, s := range scenarios {
		if r.wants(s.Name) {
			res, err := r.scenario(ctx, s)
			if err != nil {
				return nil, err
			}
			out.Scenarios = append(out.Scenarios, res)
		}
	}
	for _, f := range families {
		if r.wants(f.Name) {
			res, err := r.family(ctx, f)
			if err != nil {
				return nil, err
			}
			out.Families = append(out.Families, res)
		}
	}
	for _, c := range costs {
		if r.wants(c.Name) {
			res, err := r.cost(ctx, c)
			if err != nil {
				return nil, err
			}
			out.Costs = append(out.Costs, res)
		}
	}
	out.Mean = means(out.Scenarios)
	out.Verdicts = judge(out)
	return out, nil
}

type runner struct {
	Config
	match       map[string]float64 // matched threshold by estimator
	done, total int64
}

func (r *runner) wants(name string) bool { return slices.Contains(r.Scenarios, name) }

func (r *runner) jumps() bool {
	return slices.ContainsFunc(scenarios, func(s Scenario) bool { return s.jumps && r.wants(s.Name) })
}

func (r *runner) plan() {
	n := 0
	for _, name := range Names() {
		if r.wants(name) {
			n++
		}
	}
	if r.jumps() {
		n++
	}
	r.total = int64(n * r.Seeds)
}

// oracle is the name of the exact filter.
const oracle = "oracle"

// quiet finds the matched thresholds.
func (r *runner) quiet(ctx context.Context) error {
	if !r.jumps() {
		return nil
	}
	all, err := r.single(ctx, quiet, true)
	if err != nil {
		return err
	}
	for k, name := range r.names() {
		var stated []float64
		for _, t := range all[k] {
			stated = append(stated, t.stated...)
		}
		r.match[name] = alarm(stated)
	}
	return nil
}

// names are those of the oracle and of the estimators.
func (r *runner) names() []string {
	out := []string{oracle}
	for _, k := range r.Kinds {
		out = append(out, k.Name)
	}
	return out
}

func (r *runner) watch(s Scenario, name string) watch {
	w := watch{jump: -1, change: -1, match: r.match[name]}
	if s.jumps {
		w.jump = jumpAt
	}
	return w
}

// single walks the oracle and every estimator along all streams of a scenario. The first index is that of names.
func (r *runner) single(ctx context.Context, s Scenario, keep bool) ([][]tally, error) {
	names := r.names()
	all := make([][]tally, len(names))
	for k := range all {
		all[k] = make([]tally, r.Seeds)
	}
	err := r.each(ctx, s.Name, func(i int) {
		stream := s.Stream(r.FirstSeed + uint64(i))
		for k, name := range names {
			w := r.watch(s, name)
			w.keep = keep
			e := Estimator(s.oracle())
			if k > 0 {
				e = r.Kinds[k-1].New()
			}
			all[k][i] = walk(e, stream, w)
			all[k][i].best = all[0][i].own
		}
	})
	return all, err
}

func (r *runner) scenario(ctx context.Context, s Scenario) (Result, error) {
	all, err := r.single(ctx, s, false)
	if err != nil {
		return Result{}, err
	}
	out := Result{Scenario: s.Name, Steps: horizon}
	for k, name := range r.names() {
		score := gather(name, all[k], r.watch(s, name), false)
		if k == 0 {
			out.Oracle = &score
		} else {
			out.Scores = append(out.Scores, score)
		}
	}
	return out, nil
}

func (r *runner) family(ctx context.Context, f Family) (Result, error) {
	n := f.rounds * familyActions
	w := watch{jump: -1, change: -1}
	if f.rounds > familyRounds {
		w.change = n / 2
	}
	all := make([][]tally, len(r.Kinds))
	for k := range all {
		all[k] = make([]tally, r.Seeds)
	}
	err := r.each(ctx, f.Name, func(i int) {
		stream := f.Stream(r.FirstSeed + uint64(i))
		best := known(stream)
		for k, kind := range r.Kinds {
			all[k][i] = walk(kind.New(), stream, w)
			all[k][i].best = best
		}
	})
	out := Result{Scenario: f.Name, Steps: n}
	for k, kind := range r.Kinds {
		out.Scores = append(out.Scores, gather(kind.Name, all[k], w, true))
	}
	return out, err
}

// each does the work of every seed on several goroutines, until ctx ends.
func (r *runner) each(ctx context.Context, what string, do func(i int)) error {
	var next atomic.Int64
	var mu sync.Mutex
	var group sync.WaitGroup
	for range min(r.Workers, r.Seeds) {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(r.Seeds) && ctx.Err() == nil; i = next.Add(1) - 1 {
				do(int(i))
				mu.Lock()
				r.done++
				r.Progress(what, r.done, r.total)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// means averages over the eleven scenarios, or returns nil where not all of them ran.
func means(results []Result) []Mean {
	if len(results) != len(scenarios) {
		return nil
	}
	var out []Mean
	add := func(pick func(Result) Score) {
		var m Mean
		var gaps []float64
		n := float64(len(results))
		for _, r := range results {
			s := pick(r)
			m.Name = s.Name
			m.Gap += s.Gap / n
			gaps = append(gaps, s.Gap)
			m.Brier += s.Brier / n
			m.ECE += s.ECE / n
			m.Cover += s.Cover / n
			m.NIS += s.NIS / n
			m.Regret += s.Regret / n
		}
		m.Median = quantile(sorted(gaps), .5)
		for _, name := range []string{"gap", "regret"} {
			var v float64
			for _, r := range results {
				se := pick(r).SE[name]
				v += se * se / (n * n)
			}
			if v > 0 {
				if m.SE == nil {
					m.SE = map[string]float64{}
				}
				m.SE[name] = math.Sqrt(v)
			}
		}
		out = append(out, m)
	}
	add(func(r Result) Score { return *r.Oracle })
	for k := range results[0].Scores {
		add(func(r Result) Score { return r.Scores[k] })
	}
	return out
}

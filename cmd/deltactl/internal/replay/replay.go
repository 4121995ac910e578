package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// Config says how to replay. Its zero value has the defaults named here.
type Config struct {
	// Declared is the risk that every action is declared with, 1 to 5. Default 2: recordings do not say.
	Declared int
	// Threshold is the effective risk from which a call counts as gated, 1 to 5. Default 4.
	Threshold float64
	// Why is the AGENT/ACTION whose risk is explained; "" for none.
	Why string
	// Stdin is what the path "-" stands for; nil: os.Stdin.
	Stdin io.Reader
	// Progress is told what is done and of how many rows, 0 while that is not known. Nil: nobody is told.
	Progress func(what string, done, total int64)
}

// WithDefaults returns the configuration with every default filled in.
func (c Config) WithDefaults() Config {
	if c.Declared == 0 {
		c.Declared = 2
	}
	if c.Threshold == 0 {
		c.Threshold = delta.DefaultThreshold
	}
	if c.Progress == nil {
		c.Progress = func(string, int64, int64) {}
	}
	return c
}

// Check reports a value out of range.
func (c Config) Check() error {
	switch {
	case c.Declared < 1 || c.Declared > 5:
		return fmt.Errorf("declared risk is %d, want 1 to 5", c.Declared)
	case !(c.Threshold >= 1 && c.Threshold <= 5):
		return fmt.Errorf("threshold is %v, want 1 to 5", c.Threshold)
	}
	return nil
}

// Files replays the recordings at the given paths, one after the other, on a fresh engine. Agents of the same name are
// the same agent, whichever file names them. There is no report of a recording with a bad row.
func Files(ctx context.Context, cfg Config, paths ...string) (report *Report, err error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	r := &replay{cfg: cfg, agents: map[string]*agent{}}
	defer func() {
		for _, s := range r.sources {
			err = errors.Join(err, s.close())
		}
	}()
	for _, p := range paths {
		s, err := openSource(p, cfg.Stdin)
		if err != nil {
			return nil, err
		}
		r.sources = append(r.sources, s)
	}
	if err := r.survey(ctx); err != nil {
		return nil, err
	}
	if cfg.Why != "" {
		if _, _, err := r.find(); err != nil {
			return nil, err
		}
	}
	return r.run(ctx)
}

// replay is one replay under way.
type replay struct {
	cfg     Config
	sources []*source
	engine  *delta.Engine
	agents  map[string]*agent
	total   int64
}

// agent is one recorded agent.
type agent struct {
	name  string
	tools map[string]*Action
	names names
	made  *delta.Agent
	task  *delta.Task
	run   string // of the task
}

// survey is the first pass: it checks every row and learns the agents and their tools.
func (r *replay) survey(ctx context.Context) error {
	return r.each(ctx, func(row Row) error {
		r.total++
		r.cfg.Progress("reading", r.total, 0)
		a := r.agents[row.Agent]
		if a == nil {
			a = &agent{name: row.Agent, tools: map[string]*Action{}}
			r.agents[row.Agent] = a
		}
		if a.tools[row.Tool] == nil {
			a.tools[row.Tool] = &Action{Agent: row.Agent, Name: row.Tool, Declared: r.cfg.Declared}
		}
		return nil
	})
}

func (r *replay) each(ctx context.Context, do func(Row) error) error {
	for _, s := range r.sources {
		if err := s.rows(ctx, do); err != nil {
			return err
		}
	}
	return nil
}

// run is the second pass: every row becomes a call.
func (r *replay) run(ctx context.Context) (report *Report, err error) {
	store := forgetful{memory.New(memory.Config{})}
	defer func() { err = errors.Join(err, store.Close()) }()
	if r.engine, err = delta.New(delta.Config{Store: store, Observe: true, Lease: enough, Timeout: enough, StoreTimeout: enough}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.engine.Close(context.WithoutCancel(ctx))) }()
	if err := r.declare(); err != nil {
		return nil, err
	}
	done := int64(0)
	err = r.each(ctx, func(row Row) error {
		done++
		r.cfg.Progress("replaying", done, r.total)
		return r.call(ctx, row)
	})
	switch {
	case err != nil:
		return nil, err
	case done != r.total:
		return nil, errChanged
	}
	return r.report(ctx)
}

// errChanged is returned where the second reading of a file is not the first.
var errChanged = errors.New("the recording changed while it was read")

// declare makes an agent of every recorded one.
func (r *replay) declare() error {
	ids := newNames(slices.Collect(maps.Keys(r.agents)))
	for _, name := range slices.Sorted(maps.Keys(r.agents)) {
		a := r.agents[name]
		tools := slices.Sorted(maps.Keys(a.tools))
		a.names = newNames(tools)
		b := delta.NewAgent(ids.to[name])
		for _, t := range tools {
			act, err := delta.DefineRaw(a.names.to[t], []byte(inputSchema), answer).
				Describe("a recorded tool").Risk(r.cfg.Declared).Effect(action.Irreversible).Build()
			if err != nil {
				return fmt.Errorf("agent %q: tool %q: %w", name, t, err)
			}
			b = b.Grant(act)
		}
		var err error
		if a.made, err = b.Build(); err != nil {
			return fmt.Errorf("agent %q: %w", name, err)
		}
		if err := r.engine.Register(a.made); err != nil {
			return err
		}
	}
	return nil
}

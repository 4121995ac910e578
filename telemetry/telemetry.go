package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-ab2cfece/delta-agents/delta"
)

// Scope is the name of the instrumentation scope of all that this package makes.
const Scope = "github.com/seed-ab2cfece/delta-agents/telemetry"

// Config says where telemetry goes. What is nil is off; the zero value is off altogether.
type Config struct {
	Meter  metric.MeterProvider
	Tracer trace.TracerProvider
	Log    *slog.Logger
	// Queue bounds the events that wait. Default 4096.
	Queue int
	// Open bounds the calls and tasks whose end is awaited, for spans and waits; of more, the oldest are given up.
	// Default 10,000.
	Open int
}

// Telemetry is an observer of one engine. Give Watches to the engine's configuration.
type Telemetry struct {
	cfg    Config
	meters *meters
	meter  metric.Meter
	spans  *spans
	asked  *recent[askedFor]
	begun  *recent[int64]

	mu       sync.Mutex
	agents   map[string]bool // seen, for the gauges
	attached metric.Registration
}

// agentsKept bounds the agents whose trust and risk are read when gauges are.
const agentsKept = 1000

// New returns telemetry that is ready to observe.
func New(cfg Config) (*Telemetry, error) {
	if cfg.Queue < 0 || cfg.Open < 0 {
		return nil, errors.New("telemetry: Queue or Open is negative; 0 is the default")
	}
	if cfg.Queue == 0 {
		cfg.Queue = 4096
	}
	if cfg.Open == 0 {
		cfg.Open = 10_000
	}
	t := &Telemetry{cfg: cfg, agents: map[string]bool{}, asked: newRecent[askedFor](cfg.Open), begun: newRecent[int64](cfg.Open)}
	if cfg.Meter != nil {
		t.meter = cfg.Meter.Meter(Scope)
		var err error
		if t.meters, err = newMeters(t.meter); err != nil {
			return nil, err
		}
	}
	if cfg.Tracer != nil {
		t.spans = newSpans(cfg.Tracer.Tracer(Scope), cfg.Open)
	}
	return t, nil
}

// Watches returns what to add to the observers of the engine: nothing where all is off.
func (t *Telemetry) Watches() []delta.Watch {
	if t.meters == nil && t.spans == nil && t.cfg.Log == nil {
		return nil
	}
	return []delta.Watch{{Observer: observer{t}, Name: "telemetry", Queue: t.cfg.Queue}}
}

// observer keeps the methods of an Observer off the face of Telemetry.
type observer struct{ t *Telemetry }

// Observe makes what there is to make of one record.
func (o observer) Observe(ctx context.Context, r delta.Record) {
	t := o.t
	t.saw(r.Agent)
	if t.meters != nil {
		t.measure(ctx, &r)
	}
	if t.spans != nil {
		t.spans.of(ctx, &r)
	}
	if t.cfg.Log != nil {
		t.log(ctx, &r)
	}
}

// Missed counts what was left out.
func (o observer) Missed(ctx context.Context, g delta.Gap) {
	if o.t.meters != nil {
		o.t.meters.counters["delta.telemetry.missed"].Add(ctx, g.Events)
	}
	if o.t.cfg.Log != nil {
		o.t.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "telemetry missed events; the ledger has them", slog.String("agent", g.Agent),
			slog.String("task", g.Task), slog.Int64("from", g.From), slog.Int64("to", g.To), slog.Int64("events", g.Events))
	}
}

func (t *Telemetry) saw(agent string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.agents) < agentsKept {
		t.agents[agent] = true
	}
}

// recent holds a bounded number of values by key, and gives up the oldest.
type recent[V any] struct {
	max    int
	order  []string
	values map[string]V
	gone   func(V) // told of what is given up
}

func newRecent[V any](max int) *recent[V] { return &recent[V]{max: max, values: map[string]V{}} }

func (r *recent[V]) put(key string, v V) {
	if _, there := r.values[key]; !there {
		r.order = append(r.order, key)
	}
	r.values[key] = v
	if len(r.order) > 2*r.max {
		r.order = slices.DeleteFunc(r.order, func(k string) bool { _, there := r.values[k]; return !there })
	}
	for len(r.values) > r.max {
		oldest := r.order[0]
		r.order = r.order[1:]
		if v, there := r.take(oldest); there && r.gone != nil {
			r.gone(v)
		}
	}
}

func (r *recent[V]) get(key string) (V, bool) {
	v, there := r.values[key]
	return v, there
}

func (r *recent[V]) take(key string) (V, bool) {
	v, there := r.values[key]
	delete(r.values, key)
	return v, there
}

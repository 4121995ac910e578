package telemetry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/seed-ab2cfece/delta-agents/delta"
)

// Engine is what gauges are read from; *delta.Engine is one.
type Engine interface {
	Abandoned() int
	Observers() []delta.ObserverStats
	Trust(ctx context.Context, agent string) (delta.Trust, error)
	Risks(ctx context.Context, agent string) ([]delta.ActionRisk, error)
}

// Attach makes the gauges read from the engine whenever they are collected: trust and risk of the agents that telemetry was
// told of (at most 1,000), what was abandoned, how observers fare. Call it once; without a Meter it does nothing.
func (t *Telemetry) Attach(e Engine) error {
	if t.meters == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attached != nil {
		return errors.New("telemetry: an engine is attached already")
	}
	var all []metric.Observable
	for _, name := range slices.Sorted(maps.Keys(t.meters.gauges)) {
		all = append(all, t.meters.gauges[name])
	}
	reg, err := t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error { return t.collect(ctx, o, e) }, all...)
	if err != nil {
		return fmt.Errorf("telemetry: attach: %w", err)
	}
	t.attached = reg
	return nil
}

// Detach stops the gauges: before the engine is closed, where the provider lives on.
func (t *Telemetry) Detach() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attached == nil {
		return nil
	}
	err := t.attached.Unregister()
	t.attached = nil
	return err
}

func (t *Telemetry) collect(ctx context.Context, o metric.Observer, e Engine) error {
	see := func(name string, x float64, a ...attribute.KeyValue) {
		o.ObserveFloat64(t.meters.gauges[name], x, metric.WithAttributes(a...))
	}
	see("delta.abandoned", float64(e.Abandoned()))
	for _, s := range e.Observers() {
		see("delta.observer.dropped", float64(s.Dropped), str(observerKey, s.Name))
		see("delta.observer.waiting", float64(s.Waiting), str(observerKey, s.Name))
	}
	t.mu.Lock()
	agents := slices.Sorted(maps.Keys(t.agents))
	t.mu.Unlock()
	for _, agent := range agents {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.collectAgent(ctx, see, e, agent)
	}
	return nil
}

// collectAgent leaves out what cannot be read now: an agent that is not registered here, a store that is away.
func (t *Telemetry) collectAgent(ctx context.Context, see func(string, float64, ...attribute.KeyValue), e Engine, agent string) {
	a := str(agentKey, agent)
	if x, err := e.Trust(ctx, agent); err == nil {
		see("delta.trust", x.Score, a, str(boundKey, "score"))
		see("delta.trust", x.Lower, a, str(boundKey, "lower"))
		see("delta.trust", x.Upper, a, str(boundKey, "upper"))
	}
	risks, err := e.Risks(ctx, agent)
	if err != nil {
		return
	}
	for _, r := range risks {
		act := str(actionKey, r.Action)
		see("delta.risk.score", r.Score, a, act)
		see("delta.risk.probability", r.P, a, act, str(boundKey, "mean"))
		see("delta.risk.probability", r.Lo, a, act, str(boundKey, "lower"))
		see("delta.risk.probability", r.Hi, a, act, str(boundKey, "upper"))
	}
}

package telemetry

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/metric"
)

// Kind is how an instrument counts.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"   // only grows
	Histogram Kind = "histogram" // distribution
	Gauge     Kind = "gauge"     // read when it is collected; only after Attach
)

// Instrument is one thing that is measured.
type Instrument struct {
	Name        string
	Kind        Kind
	Unit        string // UCUM; "" is a bare number
	Attributes  []string
	Description string
	bounds      []float64
}

// seconds are the bounds of durations: from a lookup to a slow model.
var seconds = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}

// waits are the bounds of what people take: from a click to a week.
var waits = []float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600}

// levels are the bounds of risk, which is 1 to 5.
var levels = []float64{1.5, 2, 2.5, 3, 3.5, 4, 4.5}

var perAction = []string{agentKey, actionKey}

func with(more ...string) []string { return append(slices.Clone(perAction), more...) }

var instruments = []Instrument{
	{Name: "delta.action.started", Kind: Counter, Unit: "{call}", Attributes: perAction, Description: "calls that passed the gates and were begun"},
	{Name: "delta.action.ended", Kind: Counter, Unit: "{call}", Attributes: with(endKey, codeKey, layerKey), Description: "calls by their end: completed, failed, or refused by a gate"},
	{Name: "delta.action.duration", Kind: Histogram, Unit: "s", Attributes: with(endKey), Description: "from the begin of a call to its end, all attempts and waits between them", bounds: seconds},
	{Name: "delta.tool.started", Kind: Counter, Unit: "{attempt}", Attributes: with(toolKey), Description: "attempts handed to what executes the action"},
	{Name: "delta.tool.ended", Kind: Counter, Unit: "{attempt}", Attributes: with(toolKey, endKey, codeKey), Description: "attempts by their end: succeeded, failed, denied (by a gate or a check before the call), timed_out, cancelled"},
	{Name: "delta.tool.duration", Kind: Histogram, Unit: "s", Attributes: with(toolKey, endKey), Description: "measured time in the function, all attempts of a call", bounds: seconds},
	{Name: "delta.tool.late", Kind: Counter, Unit: "{result}", Attributes: with(toolKey), Description: "results that came after the end of their call was recorded"},
	{Name: "delta.risk.effective", Kind: Histogram, Attributes: perAction, Description: "the risk that gated a call, 1 to 5", bounds: levels},
	{Name: "delta.risk.score", Kind: Gauge, Attributes: perAction, Description: "the estimated risk of an action, 1 to 5"},
	{Name: "delta.risk.probability", Kind: Gauge, Attributes: with(boundKey), Description: "the probability that the next call fails: mean, lower, upper"},
	{Name: "delta.trust", Kind: Gauge, Attributes: []string{agentKey, boundKey}, Description: "trust in an agent, 0 to 1: score, lower, upper"},
	{Name: "delta.cost.tokens", Kind: Counter, Unit: "{token}", Attributes: perAction, Description: "tokens that calls used"},
	{Name: "delta.cost.calls", Kind: Counter, Unit: "{call}", Attributes: perAction, Description: "calls that were charged"},
	{Name: "delta.cost.bytes", Kind: Counter, Unit: "By", Attributes: perAction, Description: "bytes that calls used"},
	{Name: "delta.cost.money", Kind: Counter, Unit: "{micro}", Attributes: with(currencyKey), Description: "money that calls cost, in millionths of the currency"},
	{Name: "delta.cost.duration", Kind: Counter, Unit: "s", Attributes: perAction, Description: "time that calls were charged for"},
	{Name: "delta.budget.overruns", Kind: Counter, Unit: "{call}", Attributes: perAction, Description: "calls that used more than was reserved for them"},
	{Name: "delta.approval.requested", Kind: Counter, Unit: "{request}", Attributes: perAction, Description: "calls that a person was asked about"},
	{Name: "delta.approval.ended", Kind: Counter, Unit: "{request}", Attributes: with(endKey), Description: "answers: approved, rejected, revoked, expired, waived"},
	{Name: "delta.approval.wait", Kind: Histogram, Unit: "s", Attributes: with(endKey), Description: "from a request to its answer; an answer given in another process is measured when the call begins here (used)", bounds: waits},
	{Name: "delta.escalations", Kind: Counter, Unit: "{escalation}", Attributes: []string{agentKey, concernKey}, Description: "tasks brought before a person"},
	{Name: "delta.glass.used", Kind: Counter, Unit: "{call}", Attributes: perAction, Description: "calls that an operator's override let through"},
	{Name: "delta.tasks.started", Kind: Counter, Unit: "{task}", Attributes: []string{agentKey}, Description: "tasks started"},
	{Name: "delta.tasks.ended", Kind: Counter, Unit: "{task}", Attributes: []string{agentKey, endKey}, Description: "tasks by their end: the verdict on the goal, closed without one, or cancelled"},
	{Name: "delta.hooks.failed", Kind: Counter, Unit: "{hook}", Attributes: perAction, Description: "hooks that returned an error, panicked or took too long"},
	{Name: "delta.telemetry.missed", Kind: Counter, Unit: "{event}", Description: "events that telemetry was not told of, at least"},
	{Name: "delta.abandoned", Kind: Gauge, Unit: "{function}", Description: "user code that was given up and still runs"},
	{Name: "delta.observer.dropped", Kind: Gauge, Unit: "{event}", Attributes: []string{observerKey}, Description: "events that an observer's queue had no room for, so far"},
	{Name: "delta.observer.waiting", Kind: Gauge, Unit: "{event}", Attributes: []string{observerKey}, Description: "events in an observer's queue"},
}

// Instruments returns the table of all that is measured.
func Instruments() []Instrument { return slices.Clone(instruments) }

// meters are the instruments as the provider made them.
type meters struct {
	counters   map[string]metric.Int64Counter
	seconds    map[string]metric.Float64Counter
	histograms map[string]metric.Float64Histogram
	gauges     map[string]metric.Float64ObservableGauge
}

func newMeters(m metric.Meter) (*meters, error) {
	out := &meters{
		counters: map[string]metric.Int64Counter{}, seconds: map[string]metric.Float64Counter{},
		histograms: map[string]metric.Float64Histogram{}, gauges: map[string]metric.Float64ObservableGauge{},
	}
	for _, i := range instruments {
		if err := out.make(m, i); err != nil {
			return nil, fmt.Errorf("telemetry: instrument %s: %w", i.Name, err)
		}
	}
	return out, nil
}

func (out *meters) make(m metric.Meter, i Instrument) (err error) {
	unit, text := metric.WithUnit(i.Unit), metric.WithDescription(i.Description)
	switch {
	case i.Kind == Counter && i.Unit == "s":
		out.seconds[i.Name], err = m.Float64Counter(i.Name, unit, text)
	case i.Kind == Counter:
		out.counters[i.Name], err = m.Int64Counter(i.Name, unit, text)
	case i.Kind == Histogram:
		out.histograms[i.Name], err = m.Float64Histogram(i.Name, unit, text, metric.WithExplicitBucketBoundaries(i.bounds...))
	case i.Kind == Gauge:
		out.gauges[i.Name], err = m.Float64ObservableGauge(i.Name, unit, text)
	}
	return err
}

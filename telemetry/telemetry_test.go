package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// update rewrites the document: go test ./telemetry -run TestTelemetryTable -update.
var update = flag.Bool("update", false, "rewrite generated documents")

// bed is telemetry with everything on, and what came of it.
type bed struct {
	t      *testing.T
	tel    *telemetry.Telemetry
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	log    *bytes.Buffer
}

func newBed(t *testing.T) *bed {
	b := &bed{t: t, reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder(), log: &bytes.Buffer{}}
	var err error
	b.tel, err = telemetry.New(telemetry.Config{
		Meter:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.reader)),
		Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b.spans), sdktrace.WithIDGenerator(telemetry.IDs{})),
		Log:    slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	require.NoError(t, err)
	return b
}

// tell hands events to telemetry as an engine does.
func (b *bed) tell(events ...ledger.Event) {
	for i, e := range events {
		if e.Agent == "" {
			e.Agent, e.Task = "clerk", "t1"
		}
		e.At += int64(i) * 1_000_000
		b.tel.Watches()[0].Observer.Observe(b.t.Context(), delta.Record{Event: e, Seq: int64(i + 1), Stored: e.At})
	}
}

// metrics are the values of an instrument by their attributes in one line; of a histogram its count.
func (b *bed) metrics(name string) map[string]float64 {
	var all metricdata.ResourceMetrics
	require.NoError(b.t, b.reader.Collect(b.t.Context(), &all))
	out := map[string]float64{}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			if m.Name != name {
				continue
			}
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					out[line(p.Attributes)] = float64(p.Value)
				}
			case metricdata.Sum[float64]:
				for _, p := range d.DataPoints {
					out[line(p.Attributes)] = p.Value
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					out[line(p.Attributes)] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					out[line(p.Attributes)] = float64(p.Count)
				}
			}
		}
	}
	return out
}

func line(s attribute.Set) string {
	var parts []string
	for _, kv := range s.ToSlice() {
		parts = append(parts, kv.Value.String())
	}
	return strings.Join(parts, " ") // in the order of the keys
}

// call is the events of one call that ends with a code.
func call(code action.Code) []ledger.Event {
	begun := ledger.Event{Type: ledger.Begun, Intent: "i", Action: "charge", Risk: &ledger.RiskShown{Effective: 3.2}}
	end := begun
	end.Type, end.Code = ledger.Settled, code
	end.Charged = action.Cost{Tokens: 10, Duration: time.Second, Calls: 1, Bytes: 2, Money: 5, Currency: "EUR"}
	end.Overrun = true
	if code != action.OK {
		end.Failure = action.Fail(code, "it holds sk-secret-17")
	}
	return []ledger.Event{begun, end}
}

// scenes are for each instrument the events that move it, and what it then reads by its attributes.
var scenes = map[string]struct {
	events []ledger.Event
	want   map[string]float64
}{
	"delta.action.started":  {call(action.OK), map[string]float64{"charge clerk": 1}},
	"delta.action.ended":    {slices.Concat(call(action.OK), call(action.Failed), refused(action.Denied), refused(action.ActionUnknown)), map[string]float64{"charge OK completed tool clerk": 1, "charge FAILED failed tool clerk": 1, "charge DENIED refused authority clerk": 1, "_OTHER ACTION_UNKNOWN refused state-space clerk": 1}},
	"delta.action.duration": {call(action.OK), map[string]float64{"charge completed clerk": 1}},
	"delta.tool.started":    {slices.Insert(call(action.OK), 1, ledger.Event{Type: ledger.Attempt, Intent: "i", Action: "charge", Attempt: 2}), map[string]float64{"charge clerk charge": 2}},
	"delta.tool.ended": {slices.Concat(call(action.OK), call(action.Timeout), call(action.Interrupted), call(action.Panicked), call(action.HookFailed), call(action.StartedUnknown), refused(action.NotLegal),
		[]ledger.Event{{Type: ledger.Attempt, Intent: "i", Action: "charge", Attempt: 2, Failure: action.Fail(action.Timeout, "slow")}}),
		map[string]float64{"charge OK succeeded clerk charge": 1, "charge TIMEOUT timed_out clerk charge": 2, "charge INTERRUPTED cancelled clerk charge": 1, "charge PANICKED failed clerk charge": 1, "charge HOOK_FAILED denied clerk charge": 1, "charge STARTED_UNKNOWN failed clerk charge": 1, "charge NOT_LEGAL denied clerk charge": 1}},
	"delta.tool.duration":   {call(action.Failed), map[string]float64{"charge failed clerk charge": 1}},
	"delta.tool.late":       {[]ledger.Event{{Type: ledger.Late, Action: "charge"}}, map[string]float64{"charge clerk charge": 1}},
	"delta.risk.effective":  {slices.Concat(call(action.OK), asked()), map[string]float64{"charge clerk": 2}},
	"delta.cost.tokens":     {slices.Concat(call(action.OK), call(action.OK)), map[string]float64{"charge clerk": 20}},
	"delta.cost.calls":      {call(action.OK), map[string]float64{"charge clerk": 1}},
	"delta.cost.bytes":      {call(action.OK), map[string]float64{"charge clerk": 2}},
	"delta.cost.money":      {call(action.OK), map[string]float64{"charge EUR clerk": 5}},
	"delta.cost.duration":   {call(action.OK), map[string]float64{"charge clerk": 1}},
	"delta.budget.overruns": {call(action.OK), map[string]float64{"charge clerk": 1}},

	"delta.approval.requested": {asked(), map[string]float64{"charge clerk": 1}},
	"delta.approval.ended":     {answered(), map[string]float64{"charge approved clerk": 1, "charge rejected clerk": 1, "charge revoked clerk": 1, "charge expired clerk": 1, "charge waived clerk": 1}},
	"delta.approval.wait":      {slices.Concat(answered(), asked(), []ledger.Event{{Type: ledger.Begun, Intent: "i", Action: "charge", Approval: "p"}}), map[string]float64{"charge approved clerk": 1, "charge rejected clerk": 1, "charge revoked clerk": 1, "charge expired clerk": 1, "charge waived clerk": 1, "charge used clerk": 1}},

	"delta.escalations":   {[]ledger.Event{{Type: ledger.EscalationRaised, Text: "loop"}, {Type: ledger.EscalationRaised, Text: "my own words"}}, map[string]float64{"loop clerk": 1, "_OTHER clerk": 1}},
	"delta.glass.used":    {[]ledger.Event{{Type: ledger.GlassUsed, Action: "charge"}}, map[string]float64{"charge clerk": 1}},
	"delta.hooks.failed":  {[]ledger.Event{{Type: ledger.HookFailed, Action: "charge"}}, map[string]float64{"charge clerk": 1}},
	"delta.tasks.started": {[]ledger.Event{{Type: ledger.TaskStarted}}, map[string]float64{"clerk": 1}},
	"delta.tasks.ended":   {[]ledger.Event{{Type: ledger.TaskClosed}, {Type: ledger.TaskCancelled}, {Type: ledger.TaskClosed, Verdict: action.Reached}}, map[string]float64{"closed clerk": 1, "cancelled clerk": 1, string(action.Reached) + " clerk": 1}},
}

func refused(code action.Code) []ledger.Event {
	return []ledger.Event{{Type: ledger.Refused, Intent: "r", Action: "charge", Code: code, Failure: action.Fail(code, "no")}}
}

func asked() []ledger.Event {
	return []ledger.Event{{Type: ledger.ApprovalRequested, Intent: "i", Action: "charge", Approval: "p", Risk: &ledger.RiskShown{Effective: 4}}}
}

func answered() (all []ledger.Event) {
	for _, typ := range []ledger.Type{ledger.ApprovalApproved, ledger.ApprovalRejected, ledger.ApprovalRevoked, ledger.ApprovalExpired, ledger.ApprovalWaived} {
		all = append(append(all, asked()...), ledger.Event{Type: typ, Approval: "p"}) // an answer may not name the action
	}
	return all
}

// TestTelemetryTable walks the table: every instrument is moved by events, with exactly the attributes it says, and the
// document holds the table.
func TestTelemetryTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| instrument | kind | unit | attributes | what it counts |\n|---|---|---|---|---|\n")
	for _, i := range telemetry.Instruments() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", i.Name, i.Kind, cell(i.Unit), cell(i.Attributes...), i.Description)
		switch scene, there := scenes[i.Name]; {
		case there:
			t.Run(i.Name, func(t *testing.T) {
				bed := newBed(t)
				bed.tell(scene.events...)
				assert.Equal(t, scene.want, bed.metrics(i.Name))
			})
		case i.Kind == telemetry.Gauge:
			t.Run(i.Name, func(t *testing.T) {
				bed := newBed(t)
				bed.tell(ledger.Event{Type: ledger.TaskStarted})
				require.NoError(t, bed.tel.Attach(stub{}))
				assert.NotEmpty(t, bed.metrics(i.Name))
				require.NoError(t, bed.tel.Detach())
				assert.Empty(t, bed.metrics(i.Name))
			})
		default:
			assert.Equal(t, "delta.telemetry.missed", i.Name, "no scene moves it")
		}
	}
	holds(t, "TestTelemetryTable", b.String())
}

func cell(words ...string) string {
	if len(words) == 0 || words[0] == "" {
		return "—"
	}
	return "`" + strings.Join(words, "` `") + "`"
}

// holds compares what the document says between the marks of a test.
func holds(t *testing.T, test, text string) {
	const path = "../doc/telemetry.md"
	begin, end := "<!-- generated by: go test ./telemetry -run "+test+" -update -->", "<!-- end of what is generated -->"
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(raw), begin)
	require.True(t, ok, "%s has no mark of %s", path, test)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := before + begin + "\n\n" + text + "\n" + end + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(raw), "run: go test ./telemetry -run %s -update", test)
}

// stub is an engine to read gauges from.
type stub struct{}

func (stub) Abandoned() int { return 2 }

func (stub) Observers() []delta.ObserverStats {
	return []delta.ObserverStats{{Name: "telemetry", Dropped: 3, Waiting: 1}}
}

func (stub) Trust(context.Context, string) (delta.Trust, error) { return delta.Trust{}, nil }

func (stub) Risks(_ context.Context, agent string) ([]delta.ActionRisk, error) {
	if agent != "clerk" {
		return nil, errors.New("not here")
	}
	return []delta.ActionRisk{{Action: "charge"}}, nil
}

func TestMissedEventsAreCounted(t *testing.T) {
	b := newBed(t)
	b.tel.Watches()[0].Observer.Missed(t.Context(), delta.Gap{Agent: "clerk", Events: 4})
	assert.Equal(t, map[string]float64{"": 4}, b.metrics("delta.telemetry.missed"))
	assert.Contains(t, b.log.String(), `"events":4`)
}

// Every code stays what it is, in the counters, in the span and in the log.
func TestI12_EveryCodeStaysApart(t *testing.T) {
	for _, info := range action.Infos() {
		if info.Code == action.ApprovalRequired || info.Code == action.Late {
			continue // are events of their own
		}
		b := newBed(t)
		events := call(info.Code)
		if info.Gate > 0 && info.Gate < 10 {
			events = refused(info.Code)
		}
		b.tell(events...)
		got := b.metrics("delta.action.ended")
		require.Len(t, got, 1)
		for k := range got {
			assert.Contains(t, " "+k+" ", " "+string(info.Code)+" ")
		}
		ended := b.spans.Ended()
		require.Len(t, ended, 1, "%s", info.Code)
		assert.Contains(t, ended[0].Attributes(), attribute.String("delta.code", string(info.Code)))
		assert.Contains(t, b.log.String(), `"code":"`+string(info.Code)+`"`)
	}
}

// What is free text never leaves.
func TestNothingSecretLeaves(t *testing.T) {
	const s = "sk-secret-17"
	b := newBed(t)
	text := json.RawMessage(`{"card":"` + s + `"}`)
	for _, typ := range ledger.Types() {
		e := ledger.Event{Type: typ, Intent: "i", Action: "charge", Code: action.Failed, Failure: action.Fail(action.Failed, "card %s", s).With("card", s),
			Input: text, Output: text, State: text, Text: s, Reason: s, Identity: s, Facts: []string{s}, Value: s, Call: s, Approval: "p",
			Provenance: action.Provenance{Goal: s}, Verdict: "", Digest: s}
		b.tell(e)
	}
	b.tell(ledger.Event{Type: ledger.Refused, Intent: "i2", Action: s, Code: action.ActionUnknown})
	for _, i := range telemetry.Instruments() {
		assert.NotContains(t, fmt.Sprint(b.metrics(i.Name)), s, i.Name)
	}
	assert.NotContains(t, b.log.String(), s)
	require.NotEmpty(t, b.spans.Ended())
	for _, sp := range b.spans.Ended() {
		assert.NotContains(t, fmt.Sprint(sp.Name(), sp.Attributes(), sp.Events(), sp.Status()), s)
	}
}

func TestSpansOfATaskAreOneTraceAcrossProcesses(t *testing.T) {
	one, two := newBed(t), newBed(t)
	begun := ledger.Event{Type: ledger.Begun, Intent: "i", Action: "charge"}
	inner := ledger.Event{Type: ledger.Begun, Intent: "j", Action: "look-up", Within: "i"}
	end := func(e ledger.Event) ledger.Event { e.Type, e.Code = ledger.Settled, action.OK; return e }
	one.tell(ledger.Event{Type: ledger.TaskStarted}, begun, inner, ledger.Event{Type: ledger.Attempt, Intent: "i", Attempt: 2}, end(inner), end(begun), ledger.Event{Type: ledger.TaskClosed})
	two.tell(ledger.Event{Type: ledger.Begun, Intent: "k", Action: "charge"}, ledger.Event{Type: ledger.Settled, Intent: "k", Action: "charge", Code: action.OK})

	spans := one.spans.Ended()
	require.Len(t, spans, 3)
	look, charge, task := spans[0], spans[1], spans[2]
	assert.Equal(t, []string{"execute_tool look-up", "execute_tool charge", "invoke_agent clerk"}, []string{look.Name(), charge.Name(), task.Name()})
	assert.Equal(t, charge.SpanContext().SpanID(), look.Parent().SpanID())
	assert.Equal(t, task.SpanContext().SpanID(), charge.Parent().SpanID())
	assert.False(t, task.Parent().IsValid())
	require.Len(t, charge.Events(), 1)
	assert.Equal(t, "delta.attempt", charge.Events()[0].Name)
	assert.Equal(t, 4*time.Second, charge.EndTime().Sub(charge.StartTime()), "the times of the events")

	require.Len(t, two.spans.Ended(), 1)
	assert.Equal(t, task.SpanContext().TraceID(), two.spans.Ended()[0].SpanContext().TraceID())

	// What a function does shows below its call.
	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(telemetry.IDs{}))
	_, own := provider.Tracer("own").Start(telemetry.Context(t.Context(), "clerk~t1", "i"), "query")
	assert.Equal(t, task.SpanContext().TraceID(), own.SpanContext().TraceID())
	assert.Equal(t, charge.SpanContext().SpanID(), own.(sdktrace.ReadOnlySpan).Parent().SpanID())
	assert.NotEqual(t, charge.SpanContext().SpanID(), own.SpanContext().SpanID())
	_, stray := provider.Tracer("own").Start(t.Context(), "stray")
	assert.NotEqual(t, task.SpanContext().TraceID(), stray.SpanContext().TraceID())
}

func TestWhatIsAwaitedIsBounded(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tel, err := telemetry.New(telemetry.Config{Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), Open: 2})
	require.NoError(t, err)
	for i := range 5 {
		tel.Watches()[0].Observer.Observe(t.Context(), delta.Record{Event: ledger.Event{Type: ledger.Begun, Agent: "a", Task: "t", Intent: fmt.Sprint(i), Action: "x"}})
	}
	assert.Len(t, spans.Ended(), 3)
	_, err = telemetry.New(telemetry.Config{Open: -1})
	assert.ErrorContains(t, err, "negative")
}

// An engine's own calls, from end to end, with gauges read from it.
func TestTelemetryOfAnEngine(t *testing.T) {
	b := newBed(t)
	charge := delta.Define("charge", func(_ *delta.Context, in struct {
		Card string `json:"card" delta:"secret"`
	}) mo.Result[string] {
		if in.Card == "bad" {
			return mo.Err[string](errors.New("card " + in.Card + " was declined"))
		}
		return mo.Ok("charged " + in.Card)
	}).Describe("Charge a card").Risk(2).MustBuild()
	engine, err := delta.New(delta.Config{Observers: b.tel.Watches()})
	require.NoError(t, err)
	agent := delta.NewAgent("clerk").Grant(charge).MustBuild()
	task, err := engine.Start(t.Context(), delta.Goal{Agent: agent, Text: "charge cards"})
	require.NoError(t, err)
	for _, card := range []string{"4111-SECRET", "bad"} {
		_, err := task.Do(t.Context(), delta.Call{Action: "charge", Input: fmt.Appendf(nil, `{"card":%q}`, card)}).Get()
		require.NoError(t, err)
	}
	_, err = task.Do(t.Context(), delta.Call{Action: "4111-SECRET", Input: []byte(`{}`)}).Get()
	require.NoError(t, err)
	require.NoError(t, b.tel.Attach(engine))
	require.Error(t, b.tel.Attach(engine), "once")
	require.Eventually(t, func() bool { return engine.Observers()[0].Told > 0 && len(b.metrics("delta.trust")) == 3 }, 30*time.Second, time.Millisecond)
	assert.Len(t, b.metrics("delta.risk.score"), 1)
	require.NoError(t, b.tel.Detach())
	require.NoError(t, engine.Close(t.Context()))
	assert.Equal(t, map[string]float64{"charge OK completed tool clerk": 1, "charge FAILED failed tool clerk": 1, "_OTHER ACTION_UNKNOWN refused state-space clerk": 1}, b.metrics("delta.action.ended"))
	assert.NotContains(t, b.log.String(), "SECRET")
}

// Off costs nothing: there is no observer, so a call allocates what it allocates without.
func TestOffIsNothing(t *testing.T) {
	off, err := telemetry.New(telemetry.Config{})
	require.NoError(t, err)
	assert.Nil(t, off.Watches())
	require.NoError(t, off.Attach(stub{}))
	require.NoError(t, off.Detach())
}

package wire_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	metricservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/telemetry"
)

// receiver decodes what exporters send; while it is away it answers 503, while it is silent it does not answer.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []*traces.Span
	metrics map[string]*metrics.Metric // the newest of each
	away    atomic.Bool
	asked   atomic.Int64
	silent  chan struct{} // nil: it answers
}

func newReceiver(t *testing.T, silent chan struct{}) *receiver {
	r := &receiver{silent: silent, metrics: map[string]*metrics.Metric{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.asked.Add(1)
		body, err := io.ReadAll(q.Body)
		if r.silent != nil {
			select {
			case <-r.silent:
			case <-q.Context().Done():
				return
			}
		}
		if err == nil && !r.away.Load() {
			err = r.take(q.URL.Path, body)
		}
		if err != nil || r.away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take(path string, body []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch path {
	case "/v1/traces":
		var sent traceservice.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &sent); err != nil {
			return err
		}
		for _, of := range sent.ResourceSpans {
			for _, s := range of.ScopeSpans {
				if s.Scope.Name == telemetry.Scope {
					r.spans = append(r.spans, s.Spans...)
				}
			}
		}
	case "/v1/metrics":
		var sent metricservice.ExportMetricsServiceRequest
		if err := proto.Unmarshal(body, &sent); err != nil {
			return err
		}
		for _, of := range sent.ResourceMetrics {
			for _, s := range of.ScopeMetrics {
				for _, m := range s.Metrics {
					r.metrics[m.Name] = m
				}
			}
		}
	default:
		return errors.New("nothing is received at " + path)
	}
	return nil
}

// got is what has arrived.
func (r *receiver) got() ([]*traces.Span, map[string]*metrics.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := map[string]*metrics.Metric{}
	for name, m := range r.metrics {
		of[name] = m
	}
	return slices.Clone(r.spans), of
}

func attr(of []*common.KeyValue, key string) string {
	for _, kv := range of {
		if kv.Key == key {
			return kv.Value.GetStringValue()
		}
	}
	return ""
}

type card struct {
	Number string `json:"number" delta:"secret"`
}

// world is an engine whose telemetry goes to a receiver.
type world struct {
	*testing.T
	engine *delta.Engine
	task   *delta.Task
	pay    *delta.Action[card, string]
	tracer *sdktrace.TracerProvider
	meter  *sdkmetric.MeterProvider
}

// queue is how many spans wait for the receiver at most.
const queue = 64

func newWorld(t *testing.T, r *receiver) *world {
	w := &world{T: t}
	spans, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(r.URL+"/v1/traces"), otlptracehttp.WithTimeout(300*time.Millisecond),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
	require.NoError(t, err)
	values, err := otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithEndpointURL(r.URL+"/v1/metrics"), otlpmetrichttp.WithTimeout(300*time.Millisecond),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}))
	require.NoError(t, err)
	w.tracer = sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(telemetry.IDs{}),
		sdktrace.WithBatcher(spans, sdktrace.WithBatchTimeout(20*time.Millisecond), sdktrace.WithMaxQueueSize(queue), sdktrace.WithMaxExportBatchSize(queue)))
	w.meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(values, sdkmetric.WithInterval(20*time.Millisecond))))
	tel, err := telemetry.New(telemetry.Config{Tracer: w.tracer, Meter: w.meter})
	require.NoError(t, err)
	w.engine, err = delta.New(delta.Config{Observers: tel.Watches()})
	require.NoError(t, err)
	require.NoError(t, tel.Attach(w.engine))
	w.pay = delta.Define("pay", func(_ *delta.Context, in card) mo.Result[string] {
		if in.Number == "MARKED-bad" {
			return mo.Err[string](errors.New("no such card: " + in.Number))
		}
		return mo.Ok("paid")
	}).Describe("Pay").Risk(1).MustBuild()
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		require.NoError(t, w.engine.Close(ctx))
		_, _ = w.tracer.Shutdown(ctx), w.meter.Shutdown(ctx) // who did not listen is told nothing
	})
	w.task, err = w.engine.Start(t.Context(), delta.Goal{ID: "t", Agent: delta.NewAgent("desk").Grant(w.pay).MustBuild(), Text: "MARKED-goal"})
	require.NoError(t, err)
	return w
}

// call makes a call that ends well, one that fails and one that is refused.
func (w *world) call() {
	require.NoError(w, w.pay.Do(w.Context(), w.task, card{"MARKED-good"}).Error())
	require.Error(w, w.pay.Do(w.Context(), w.task, card{"MARKED-bad"}).Error())
	require.Equal(w, action.ActionUnknown, w.task.Do(w.Context(), delta.Call{Action: "MARKED-name"}).MustGet().Code)
}

// span returns the newest span that arrived of that code.
func (r *receiver) span(t *testing.T, code string) *traces.Span {
	var found *traces.Span
	require.Eventually(t, func() bool {
		spans, _ := r.got()
		i := slices.IndexFunc(spans, func(s *traces.Span) bool { return attr(s.Attributes, "delta.code") == code })
		if i >= 0 {
			found = spans[i]
		}
		return i >= 0
	}, 30*time.Second, 5*time.Millisecond, code)
	return found
}

// ended waits until the calls are counted by their ends.
func (r *receiver) ended(t *testing.T, want int64) *metrics.Metric {
	var m *metrics.Metric
	require.Eventually(t, func() bool {
		_, all := r.got()
		if m = all["delta.action.ended"]; m == nil {
			return false
		}
		n := int64(0)
		for _, p := range m.GetSum().DataPoints {
			n += p.GetAsInt()
		}
		return n == want
	}, 30*time.Second, 5*time.Millisecond)
	return m
}

// What happened arrives as spans and metrics of the protocol, with the attributes that are declared, and no secret.
func TestWhatArrives(t *testing.T) {
	r := newReceiver(t, nil)
	w := newWorld(t, r)
	w.call()
	require.NoError(t, w.task.Done(t.Context(), "done"))
	ok, failed, unknown := r.span(t, "OK"), r.span(t, "FAILED"), r.span(t, "ACTION_UNKNOWN")
	var root *traces.Span
	require.Eventually(t, func() bool {
		spans, _ := r.got()
		i := slices.IndexFunc(spans, func(s *traces.Span) bool { return s.Name == "invoke_agent desk" })
		if i >= 0 {
			root = spans[i]
		}
		return i >= 0
	}, 30*time.Second, 5*time.Millisecond)
	assert.Equal(t, "invoke_agent", attr(root.Attributes, "gen_ai.operation.name"))
	assert.Equal(t, "execute_tool pay", ok.Name)
	assert.Equal(t, traces.Status_STATUS_CODE_ERROR, failed.Status.Code)
	assert.Equal(t, "FAILED", attr(failed.Attributes, "error.type"))
	for _, s := range []*traces.Span{ok, failed, unknown} {
		assert.Equal(t, root.SpanId, s.ParentSpanId)
		assert.Equal(t, root.TraceId, s.TraceId)
		assert.Equal(t, "desk", attr(s.Attributes, "gen_ai.agent.name"))
		assert.Equal(t, "desk~t", attr(s.Attributes, "gen_ai.conversation.id"))
		assert.Equal(t, "execute_tool", attr(s.Attributes, "gen_ai.operation.name"))
		assert.NotEmpty(t, attr(s.Attributes, "gen_ai.tool.call.id"))
		assert.GreaterOrEqual(t, s.EndTimeUnixNano, s.StartTimeUnixNano)
	}
	ended := r.ended(t, 3)
	assert.Equal(t, "{call}", ended.Unit)
	declared := map[string]telemetry.Instrument{}
	for _, i := range telemetry.Instruments() {
		declared[i.Name] = i
	}
	spans, values := r.got()
	for name, m := range values {
		i, there := declared[name]
		if !assert.True(t, there, "%s is in no table", name) {
			continue
		}
		assert.Equal(t, i.Unit, m.Unit, name)
		assert.Equal(t, i.Description, m.Description, name)
		for _, of := range attributesOf(m) {
			for _, kv := range of {
				assert.Contains(t, i.Attributes, kv.Key, name)
			}
		}
		assert.NotContains(t, m.String(), "MARKED")
	}
	for _, name := range []string{"delta.action.started", "delta.action.duration", "delta.tool.started", "delta.tool.ended", "delta.trust", "delta.risk.score", "delta.tasks.ended", "delta.abandoned"} {
		assert.Contains(t, values, name)
	}
	for _, s := range spans {
		assert.NotContains(t, s.String(), "MARKED")
	}
}

func attributesOf(m *metrics.Metric) (out [][]*common.KeyValue) {
	for _, p := range append(m.GetSum().GetDataPoints(), m.GetGauge().GetDataPoints()...) {
		out = append(out, p.Attributes)
	}
	for _, p := range m.GetHistogram().GetDataPoints() {
		out = append(out, p.Attributes)
	}
	return out
}

// A receiver that is away, or does not answer, holds up no call, and what waits for it is bounded. Once it is well again the
// metrics tell all that was counted, and traces what happens from then on; the ledger has everything.
func TestAReceiverThatIsNotThere(t *testing.T) {
	for _, name := range []string{"away", "silent"} {
		t.Run(name, func(t *testing.T) {
			silent := make(chan struct{})
			answers := sync.OnceFunc(func() { close(silent) })
			if name == "away" {
				answers()
			}
			r := newReceiver(t, silent)
			t.Cleanup(answers) // before it is closed
			r.away.Store(name == "away")
			w := newWorld(t, r)
			const rounds = 3 * queue
			for range rounds {
				require.NoError(t, w.pay.Do(t.Context(), w.task, card{"MARKED-good"}).Error())
			}
			require.Eventually(t, func() bool { return r.asked.Load() > 1 }, 30*time.Second, time.Millisecond)
			spans, values := r.got()
			require.Empty(t, spans)
			require.Empty(t, values)
			require.NoError(t, w.pay.Do(t.Context(), w.task, card{"MARKED-good"}).Error(), "nobody waits for it")
			records, report, err := w.task.Ledger(t.Context())
			require.NoError(t, err)
			require.Len(t, records, report.Records)
			require.Eventually(t, func() bool { // telemetry itself keeps up: what waits is with the exporters
				return slices.IndexFunc(w.engine.Observers(), func(s delta.ObserverStats) bool { return s.Waiting > 0 || s.Dropped > 0 }) < 0
			}, 30*time.Second, time.Millisecond)
			r.away.Store(false)
			answers()
			r.ended(t, rounds+1)
			require.Eventually(t, func() bool { // a span for which there was no room is lost
				require.NoError(t, w.pay.Do(t.Context(), w.task, card{"MARKED-good"}).Error())
				spans, _ := r.got()
				return slices.ContainsFunc(spans, func(s *traces.Span) bool { return s.Name == "execute_tool pay" })
			}, 30*time.Second, 5*time.Millisecond)
		})
	}
}

package wire_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	collector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/seed-ab2cfece/delta-agents/audit"
	"github.com/seed-ab2cfece/delta-agents/audit/otlp"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// receiver decodes what an exporter sends; while it is away it answers 503, while it hangs it does not answer.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	got   []*logs.LogRecord
	away  atomic.Bool
	asked atomic.Int64
	hang  chan struct{}
}

func newReceiver(t *testing.T, hang chan struct{}) *receiver {
	r := &receiver{hang: hang}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.asked.Add(1)
		body, err := io.ReadAll(q.Body)
		if r.hang != nil {
			select {
			case <-r.hang:
			case <-q.Context().Done():
				return
			}
		}
		var sent collector.ExportLogsServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &sent)
		}
		if err != nil || r.away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, of := range sent.ResourceLogs {
			for _, s := range of.ScopeLogs {
				r.got = append(r.got, s.LogRecords...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) records() []*logs.LogRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*logs.LogRecord(nil), r.got...)
}

func attr(r *logs.LogRecord, key string) string {
	for _, kv := range r.Attributes {
		if kv.Key == key {
			return kv.Value.GetStringValue()
		}
	}
	return ""
}

type card struct {
	Number string `json:"number" delta:"secret"`
}

// governed makes calls on an engine whose trail goes to the receiver, and returns the trail.
func governed(t *testing.T, r *receiver) *audit.Trail {
	exporter, err := otlploghttp.New(t.Context(), otlploghttp.WithEndpointURL(r.URL), otlploghttp.WithTimeout(500*time.Millisecond),
		otlploghttp.WithRetry(otlploghttp.RetryConfig{Enabled: false}))
	require.NoError(t, err)
	sink, err := otlp.New(exporter)
	require.NoError(t, err)
	trail, err := audit.New(audit.Config{Sink: sink, Timeout: time.Second, Retry: 20 * time.Millisecond})
	require.NoError(t, err)
	e, err := delta.New(delta.Config{Observers: []delta.Watch{trail.Watch()}})
	require.NoError(t, err)
	require.NoError(t, trail.Attach(e))
	t.Cleanup(func() {
		require.NoError(t, e.Close(context.Background()))
		_ = trail.Close(context.Background()) // what could not be sent stays in the ledger
	})
	pay := delta.Define("pay", func(_ *delta.Context, in card) mo.Result[string] {
		if in.Number == "MARK-bad" {
			return mo.Err[string](errors.New("no such card: " + in.Number))
		}
		return mo.Ok("paid")
	}).Describe("Pay").Risk(1).MustBuild()
	desk := delta.NewAgent("desk").Grant(pay).MustBuild()
	task, err := e.Start(t.Context(), delta.Goal{ID: "t", Agent: desk})
	require.NoError(t, err)
	require.NoError(t, pay.Do(t.Context(), task, card{"MARK-good"}).Error())
	require.Error(t, pay.Do(t.Context(), task, card{"MARK-bad"}).Error())
	records, report, err := task.Ledger(t.Context())
	require.NoError(t, err)
	require.Len(t, records, report.Records, "the ledger has everything, wherever the receiver is")
	return trail
}

// arrived waits until the end of both calls has arrived.
func arrived(t *testing.T, r *receiver) map[string]*logs.LogRecord {
	ends := map[string]*logs.LogRecord{}
	require.Eventually(t, func() bool {
		for _, rec := range r.records() {
			if code := attr(rec, "delta.code"); attr(rec, "delta.action") == "pay" && code != "" {
				ends[code] = rec
			}
		}
		return ends["OK"] != nil && ends["FAILED"] != nil
	}, 30*time.Second, 5*time.Millisecond)
	return ends
}

// What was decided arrives as log records of the protocol, with its fields as attributes and no secret.
func TestWhatArrives(t *testing.T) {
	r := newReceiver(t, nil)
	governed(t, r)
	ends := arrived(t, r)
	failed := ends["FAILED"]
	assert.Equal(t, logs.SeverityNumber_SEVERITY_NUMBER_ERROR, failed.SeverityNumber)
	assert.Equal(t, "desk", attr(failed, "gen_ai.agent.name"))
	assert.NotZero(t, failed.TimeUnixNano)
	for _, rec := range r.records() {
		assert.NotEmpty(t, rec.EventName)
		assert.NotContains(t, rec.String(), "MARK")
	}
}

// A receiver that is away, or does not answer, holds up no call; once it is well again everything arrives.
func TestAReceiverThatIsNotThere(t *testing.T) {
	t.Run("away", func(t *testing.T) {
		r := newReceiver(t, nil)
		r.away.Store(true)
		governed(t, r)
		require.Eventually(t, func() bool { return r.asked.Load() > 0 }, 30*time.Second, time.Millisecond)
		assert.Empty(t, r.records())
		r.away.Store(false)
		arrived(t, r)
	})
	t.Run("silent", func(t *testing.T) {
		hang := make(chan struct{})
		answers := sync.OnceFunc(func() { close(hang) })
		r := newReceiver(t, hang)
		t.Cleanup(answers) // before it is closed
		governed(t, r)
		require.Eventually(t, func() bool { return r.asked.Load() > 0 }, 30*time.Second, time.Millisecond)
		assert.Empty(t, r.records())
		answers()
		arrived(t, r)
	})
}

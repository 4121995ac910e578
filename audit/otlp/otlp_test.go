package otlp_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	sdk "go.opentelemetry.io/otel/sdk/log"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/audit"
	"github.com/seed-ab2cfece/delta-agents/audit/otlp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector is an exporter that keeps what it gets.
type collector struct {
	records []sdk.Record
	err     error
	shut    int
}

func (c *collector) Export(_ context.Context, rs []sdk.Record) error {
	if c.err == nil {
		for _, r := range rs {
			c.records = append(c.records, r.Clone())
		}
	}
	return c.err
}

func (c *collector) Shutdown(context.Context) error   { c.shut++; return nil }
func (c *collector) ForceFlush(context.Context) error { return nil }

func TestEntriesAreRecords(t *testing.T) {
	c := &collector{}
	sink, err := otlp.New(c)
	require.NoError(t, err)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	require.NoError(t, sink.Write(t.Context(), []audit.Entry{
		{Ledger: "clerk~t", Seq: 3, Event: "settled", Status: audit.Failed, Code: action.Failed, Agent: "clerk", Task: "clerk~t", Action: "charge", Intent: "i", At: at},
		{Ledger: "clerk~t", Seq: 4, Event: "refused", Status: audit.Refused}, {Ledger: "clerk~t", Seq: 5, Event: "note", Status: audit.Recorded},
	}))
	require.Len(t, c.records, 3)
	r := c.records[0]
	assert.Equal(t, "delta.audit.settled", r.EventName())
	assert.Equal(t, log.SeverityError, r.Severity())
	assert.Equal(t, at, r.Timestamp().UTC())
	assert.Contains(t, r.Body().AsString(), `"code":"FAILED"`)
	got := map[string]string{}
	r.WalkAttributes(func(kv attribute.KeyValue) bool { got[string(kv.Key)] = kv.Value.String(); return true })
	assert.Equal(t, map[string]string{"delta.ledger": "clerk~t", "delta.seq": "3", "delta.status": "failed", "delta.code": "FAILED", "gen_ai.agent.name": "clerk", "gen_ai.conversation.id": "clerk~t", "delta.action": "charge", "gen_ai.tool.call.id": "i"}, got)
	assert.Equal(t, log.SeverityWarn, c.records[1].Severity())
	assert.Equal(t, log.SeverityInfo, c.records[2].Severity())
	require.NoError(t, sink.Close())
	assert.Equal(t, 1, c.shut)
}

// A collector that is away is an error, so that the trail brings the entries again.
func TestACollectorThatIsAway(t *testing.T) {
	c := &collector{err: errors.New("connection refused")}
	sink, err := otlp.New(c)
	require.NoError(t, err)
	require.ErrorContains(t, sink.Write(t.Context(), []audit.Entry{{Seq: 1}}), "connection refused")
	c.err = nil
	require.NoError(t, sink.Write(t.Context(), []audit.Entry{{Seq: 1}, {Seq: 2}}))
	assert.Len(t, c.records, 2)
	_, err = otlp.New(nil)
	assert.Error(t, err)
}

func ExampleNew() {
	sink, err := otlp.New(&collector{}) // otlploghttp.New(ctx), say
	if err != nil {
		panic(err)
	}
	fmt.Println(sink.Write(context.Background(), []audit.Entry{{Ledger: "clerk~t", Seq: 1, Event: "note"}}), sink.Close())
	// Output: <nil> <nil>
}

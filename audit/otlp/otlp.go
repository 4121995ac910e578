// Package otlp sends an audit trail to an OpenTelemetry collector as log records. The program gives the exporter, which is
// where the weight lies: otlploghttp or otlploggrpc, say.
//
//	exporter, err := otlploghttp.New(ctx)
//	sink, err := otlp.New(exporter)
//
// Entries are handed to the exporter at once and its answer is waited for, so an audit trail knows what arrived: none is
// lost in a queue. The body of a record is the entry as JSON, its attributes are the fields one searches for.
package otlp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	sdk "go.opentelemetry.io/otel/sdk/log"

	"github.com/seed-ab2cfece/delta-agents/audit"
)

// scope is the name of the instrumentation scope of the records.
const scope = "github.com/seed-ab2cfece/delta-agents/audit"

// New returns the sink. Options are those of the provider of records: a resource, limits. Closing the sink shuts the
// exporter down.
func New(exporter sdk.Exporter, options ...sdk.LoggerProviderOption) (audit.Sink, error) {
	if exporter == nil {
		return nil, errors.New("audit otlp: no exporter")
	}
	s := &sink{exporter: exporter, tray: &tray{}}
	s.provider = sdk.NewLoggerProvider(append(options[:len(options):len(options)], sdk.WithProcessor(s.tray))...)
	s.logger = s.provider.Logger(scope)
	return s, nil
}

type sink struct {
	exporter sdk.Exporter
	provider *sdk.LoggerProvider
	logger   log.Logger
	tray     *tray
}

// Write exports the entries together.
func (s *sink) Write(ctx context.Context, entries []audit.Entry) error {
	s.tray.records = s.tray.records[:0]
	for i := range entries {
		r, err := record(&entries[i])
		if err != nil {
			return err
		}
		s.logger.Emit(ctx, r)
	}
	if err := s.exporter.Export(ctx, s.tray.records); err != nil {
		return fmt.Errorf("audit otlp: %w", err)
	}
	return nil
}

func (s *sink) Close() error {
	ctx := context.Background() // an exporter bounds its own last words
	return errors.Join(s.provider.Shutdown(ctx), s.exporter.Shutdown(ctx))
}

// tray gathers the records of one write.
type tray struct{ records []sdk.Record }

// OnEmit keeps a record.
func (t *tray) OnEmit(_ context.Context, r *sdk.Record) error {
	t.records = append(t.records, r.Clone())
	return nil
}

// Enabled says yes.
func (t *tray) Enabled(context.Context, sdk.EnabledParameters) bool { return true }

// Shutdown does nothing.
func (t *tray) Shutdown(context.Context) error { return nil }

// ForceFlush does nothing.
func (t *tray) ForceFlush(context.Context) error { return nil }

func record(e *audit.Entry) (r log.Record, err error) {
	b, err := json.Marshal(e)
	if err != nil {
		return r, fmt.Errorf("audit otlp: entry %d of %s: %w", e.Seq, e.Ledger, err)
	}
	r.SetTimestamp(e.At)
	r.SetObservedTimestamp(e.Stored)
	r.SetEventName("delta.audit." + string(e.Event))
	r.SetBody(attribute.StringValue(string(b)))
	r.SetSeverity(severity(e.Status))
	add := func(key, value string) {
		if value != "" {
			r.AddAttributes(attribute.String(key, value))
		}
	}
	add("delta.ledger", e.Ledger)
	r.AddAttributes(attribute.Int64("delta.seq", e.Seq))
	add("delta.status", e.Status)
	add("delta.code", string(e.Code))
	add("gen_ai.agent.name", e.Agent)
	add("gen_ai.conversation.id", e.Task)
	add("delta.action", e.Action)
	add("gen_ai.tool.name", e.Tool)
	add("gen_ai.tool.call.id", e.Intent)
	add("delta.approval", e.Approval)
	add("enduser.id", e.Identity)
	return r, nil
}

func severity(status string) log.Severity {
	switch status {
	case audit.Failed:
		return log.SeverityError
	case audit.Refused, audit.Cancelled:
		return log.SeverityWarn
	}
	return log.SeverityInfo
}

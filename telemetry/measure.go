package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// askedFor is a request for approval whose answer is awaited.
type askedFor struct {
	at     int64
	action string
}

func (t *Telemetry) add(ctx context.Context, name string, n int64, attrs ...attribute.KeyValue) {
	t.meters.counters[name].Add(ctx, n, metric.WithAttributes(attrs...))
}

func (t *Telemetry) record(ctx context.Context, name string, x float64, attrs ...attribute.KeyValue) {
	t.meters.histograms[name].Record(ctx, x, metric.WithAttributes(attrs...))
}

// measure counts one record.
func (t *Telemetry) measure(ctx context.Context, r *delta.Record) {
	e := &r.Event
	agent := str(agentKey, e.Agent)
	act := []attribute.KeyValue{agent, str(actionKey, nameOf(e))}
	switch e.Type {
	case ledger.TaskStarted:
		t.add(ctx, "delta.tasks.started", 1, agent)
	case ledger.TaskClosed, ledger.TaskCancelled:
		t.add(ctx, "delta.tasks.ended", 1, agent, str(endKey, taskEnd(e)))
	case ledger.Refused:
		t.refused(ctx, r, act)
	case ledger.Begun:
		t.began(ctx, r, act)
	case ledger.Attempt:
		t.again(ctx, e, act)
	case ledger.Settled:
		t.settled(ctx, r, act)
	case ledger.Late:
		t.add(ctx, "delta.tool.late", 1, append(act, str(toolKey, toolOf(e)))...)
		t.cost(ctx, e, act)
	case ledger.Resolved:
		t.cost(ctx, e, act)
	case ledger.EscalationRaised:
		t.add(ctx, "delta.escalations", 1, agent, str(concernKey, concernOf(e)))
	case ledger.GlassUsed:
		t.add(ctx, "delta.glass.used", 1, act...)
	case ledger.HookFailed:
		t.add(ctx, "delta.hooks.failed", 1, act...)
	default:
		t.approval(ctx, r, act)
	}
}

func taskEnd(e *ledger.Event) string {
	switch {
	case e.Type == ledger.TaskCancelled:
		return "cancelled"
	case e.Verdict != "":
		return string(e.Verdict)
	}
	return "closed"
}

// concernOf is one of the words that action declares for concerns; a person's own words stay where they are.
func concernOf(e *ledger.Event) string {
	if action.Concern(e.Text).Valid() {
		return e.Text
	}
	return other
}

func (t *Telemetry) refused(ctx context.Context, r *delta.Record, act []attribute.KeyValue) {
	e := &r.Event
	end, code := str(endKey, actionEnd(e.Code)), str(codeKey, string(e.Code))
	t.add(ctx, "delta.action.ended", 1, with2(act, end, code, str(layerKey, layerOf(e)))...)
	t.add(ctx, "delta.tool.ended", 1, with2(act, str(toolKey, toolOf(e)), str(endKey, toolEnd(e.Code)), code)...)
	t.risk(ctx, e, act)
}

func (t *Telemetry) began(ctx context.Context, r *delta.Record, act []attribute.KeyValue) {
	e := &r.Event
	t.begun.put(e.Intent, e.At)
	t.add(ctx, "delta.action.started", 1, act...)
	t.add(ctx, "delta.tool.started", 1, with2(act, str(toolKey, toolOf(e)))...)
	t.risk(ctx, e, act)
	if a, there := t.asked.take(e.Approval); there { // answered in another process
		t.waited(ctx, a, r, "used")
	}
}

// again counts the end of the attempt before, and the start of this one.
func (t *Telemetry) again(ctx context.Context, e *ledger.Event, act []attribute.KeyValue) {
	code := action.Failed
	if e.Failure != nil {
		code = e.Failure.Code
	}
	tool := str(toolKey, toolOf(e))
	t.add(ctx, "delta.tool.ended", 1, with2(act, tool, str(endKey, toolEnd(code)), str(codeKey, string(code)))...)
	t.add(ctx, "delta.tool.started", 1, with2(act, tool)...)
}

func (t *Telemetry) settled(ctx context.Context, r *delta.Record, act []attribute.KeyValue) {
	e := &r.Event
	end, code, tool := str(endKey, actionEnd(e.Code)), str(codeKey, string(e.Code)), str(toolKey, toolOf(e))
	ended := str(endKey, toolEnd(e.Code))
	t.add(ctx, "delta.action.ended", 1, with2(act, end, code, str(layerKey, layerOf(e)))...)
	t.add(ctx, "delta.tool.ended", 1, with2(act, tool, ended, code)...)
	if at, there := t.begun.take(e.Intent); there && e.At >= at {
		t.record(ctx, "delta.action.duration", micros(e.At-at), with2(act, end)...)
	}
	if e.Charged.Duration > 0 {
		t.record(ctx, "delta.tool.duration", e.Charged.Duration.Seconds(), with2(act, tool, ended)...)
	}
	if e.Overrun {
		t.add(ctx, "delta.budget.overruns", 1, act...)
	}
	t.cost(ctx, e, act)
}

func (t *Telemetry) cost(ctx context.Context, e *ledger.Event, act []attribute.KeyValue) {
	c := e.Charged
	for name, n := range map[string]int64{"delta.cost.tokens": c.Tokens, "delta.cost.calls": c.Calls, "delta.cost.bytes": c.Bytes} {
		if n != 0 {
			t.add(ctx, name, n, act...)
		}
	}
	if c.Money != 0 {
		t.add(ctx, "delta.cost.money", c.Money, with2(act, str(currencyKey, c.Currency))...)
	}
	if c.Duration > 0 {
		t.meters.seconds["delta.cost.duration"].Add(ctx, c.Duration.Seconds(), metric.WithAttributes(act...))
	}
}

func (t *Telemetry) risk(ctx context.Context, e *ledger.Event, act []attribute.KeyValue) {
	if e.Risk != nil && e.Risk.Effective > 0 {
		t.record(ctx, "delta.risk.effective", e.Risk.Effective, act...)
	}
}

var answers = map[ledger.Type]string{
	ledger.ApprovalApproved: "approved", ledger.ApprovalRejected: "rejected", ledger.ApprovalRevoked: "revoked",
	ledger.ApprovalExpired: "expired", ledger.ApprovalWaived: "waived",
}

func (t *Telemetry) approval(ctx context.Context, r *delta.Record, act []attribute.KeyValue) {
	e := &r.Event
	if e.Type == ledger.ApprovalRequested {
		t.asked.put(e.Approval, askedFor{r.Stored, nameOf(e)})
		t.add(ctx, "delta.approval.requested", 1, act...)
		t.risk(ctx, e, act)
		return
	}
	end, is := answers[e.Type]
	if !is {
		return
	}
	a, there := t.asked.take(e.Approval)
	if there && e.Action == "" {
		act = []attribute.KeyValue{str(agentKey, e.Agent), str(actionKey, a.action)}
	}
	t.add(ctx, "delta.approval.ended", 1, with2(act, str(endKey, end))...)
	if there {
		t.waited(ctx, a, r, end)
	}
}

func (t *Telemetry) waited(ctx context.Context, a askedFor, r *delta.Record, end string) {
	if r.Stored >= a.at {
		t.record(ctx, "delta.approval.wait", micros(r.Stored-a.at), str(agentKey, r.Agent), str(actionKey, a.action), str(endKey, end))
	}
}

func micros(n int64) float64 { return (time.Duration(n) * time.Microsecond).Seconds() }

// with2 is the attributes and more, in memory of its own.
func with2(act []attribute.KeyValue, more ...attribute.KeyValue) []attribute.KeyValue {
	return append(act[:len(act):len(act)], more...)
}

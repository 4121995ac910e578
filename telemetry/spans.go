package telemetry

import (
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// IDs gives spans ids that follow from the task and the intent, so that all processes that work on a task tell of one
// trace, and so that [Context] knows them. Hand it to the SDK: sdktrace.WithIDGenerator(telemetry.IDs{}). Other spans get
// random ids. Without it spans have the ids that the SDK gives them.
type IDs struct{}

type idsKey struct{}

// ids are those that the next span gets.
type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// NewIDs returns the ids of a span without a parent.
func (IDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if want, ok := ctx.Value(idsKey{}).(ids); ok {
		return want.trace, want.span
	}
	var t trace.TraceID
	for i := range t {
		t[i] = byte(rand.Uint32())
	}
	return t, randomSpan()
}

// NewSpanID returns the id of a span within a trace.
func (IDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if want, ok := ctx.Value(idsKey{}).(ids); ok {
		return want.span
	}
	return randomSpan()
}

func randomSpan() (s trace.SpanID) {
	for i := range s {
		s[i] = byte(rand.Uint32())
	}
	return s
}

// idsOf are those of a call in a task, or of the task itself where intent is "".
func idsOf(task, intent string) (x ids) {
	t := sha256.Sum256([]byte("delta-agents trace\n" + task))
	s := sha256.Sum256([]byte("delta-agents span\n" + task + "\n" + intent))
	copy(x.trace[:], t[:])
	copy(x.span[:], s[:])
	return x
}

// Context returns a context in which spans begin under the call's: what a function does shows below it. It needs [IDs] in
// the SDK. The task is the full id; an empty intent is the task's own span.
func Context(ctx context.Context, task, intent string) context.Context {
	x := idsOf(task, intent)
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: x.trace, SpanID: x.span, TraceFlags: trace.FlagsSampled, Remote: true,
	}))
}

// spans turns events into spans: one for each task, call and refusal.
type spans struct {
	tracer trace.Tracer
	open   *recent[trace.Span]
}

func newSpans(t trace.Tracer, most int) *spans {
	s := &spans{t, newRecent[trace.Span](most)}
	s.open.gone = func(sp trace.Span) {
		sp.SetStatus(codes.Unset, "telemetry awaited too many ends")
		sp.End()
	}
	return s
}

func (s *spans) of(ctx context.Context, r *delta.Record) {
	e := &r.Event
	switch e.Type {
	case ledger.TaskStarted:
		s.start(ctx, r, "", "invoke_agent "+e.Agent, append(place(r), str(operationKey, "invoke_agent")))
	case ledger.TaskClosed, ledger.TaskCancelled:
		if sp, there := s.open.take(r.TaskID() + "\n"); there {
			sp.SetAttributes(str(endKey, taskEnd(e)))
			sp.End(trace.WithTimestamp(at(e)))
		}
	case ledger.Begun:
		s.start(ctx, r, e.Intent, spanName(e), callAttributes(r))
	case ledger.Refused:
		s.start(ctx, r, e.Intent, spanName(e), callAttributes(r))
		s.end(r)
	case ledger.Settled:
		s.end(r)
	case ledger.Attempt:
		s.note(r, attribute.Int(attemptKey, e.Attempt))
	case ledger.ApprovalRequested, ledger.ApprovalApproved, ledger.ApprovalRejected, ledger.ApprovalRevoked, ledger.ApprovalExpired:
		s.note(r, str(approvalKey, e.Approval))
	case ledger.EscalationRaised:
		s.note(r, str(concernKey, concernOf(e)))
	}
}

func spanName(e *ledger.Event) string { return "execute_tool " + toolOf(e) }

func at(e *ledger.Event) time.Time { return time.UnixMicro(e.At) }

func callAttributes(r *delta.Record) []attribute.KeyValue {
	e := &r.Event
	a := append(place(r), str(operationKey, "execute_tool"), str(actionKey, nameOf(e)), str(toolKey, toolOf(e)), str(callKey, e.Intent),
		attribute.Int64(seqKey, r.Seq))
	if e.Version != "" {
		a = append(a, str(versionKey, e.Version))
	}
	if e.Risk != nil {
		a = append(a, attribute.Float64(riskKey, e.Risk.Effective))
	}
	if e.Approval != "" {
		a = append(a, str(approvalKey, e.Approval))
	}
	if e.Within != "" {
		a = append(a, str(withinKey, e.Within))
	}
	return a
}

// start begins a span under that of the call whose function made it, else under the task's. Where this process has
// neither, it is another root of the same trace: whether it is sampled the sampler says, and says the same of all.
func (s *spans) start(ctx context.Context, r *delta.Record, intent, name string, a []attribute.KeyValue) {
	e, task := &r.Event, r.TaskID()
	ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	if intent != "" {
		parent, there := s.open.get(task + "\n" + e.Within)
		if !there {
			parent, there = s.open.get(task + "\n")
		}
		if there {
			ctx = trace.ContextWithSpan(ctx, parent)
		}
	}
	ctx = context.WithValue(ctx, idsKey{}, idsOf(task, intent))
	_, sp := s.tracer.Start(ctx, name, trace.WithTimestamp(at(e)), trace.WithAttributes(a...))
	s.open.put(task+"\n"+intent, sp)
}

// end ends the span of a call.
func (s *spans) end(r *delta.Record) {
	e := &r.Event
	sp, there := s.open.take(r.TaskID() + "\n" + e.Intent)
	if !there {
		return
	}
	sp.SetAttributes(str(codeKey, string(e.Code)), str(executedKey, string(e.Code.Info().Executed)))
	if e.Charged.Tokens > 0 {
		sp.SetAttributes(attribute.Int64(tokensKey, e.Charged.Tokens))
	}
	if e.Code != action.OK {
		sp.SetAttributes(str(errorKey, string(e.Code)), str(layerKey, layerOf(e)))
		sp.SetStatus(codes.Error, string(e.Code))
	}
	sp.End(trace.WithTimestamp(at(e)))
}

// note puts an event into the span of the call, else of the task.
func (s *spans) note(r *delta.Record, a ...attribute.KeyValue) {
	e := &r.Event
	sp, there := s.open.get(r.TaskID() + "\n" + e.Intent)
	if !there {
		sp, there = s.open.get(r.TaskID() + "\n")
	}
	if there {
		sp.AddEvent("delta."+string(e.Type), trace.WithTimestamp(at(e)), trace.WithAttributes(a...))
	}
}

package telemetry

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// Keys of attributes. Those that begin with gen_ai and error are of the semantic conventions of OpenTelemetry.
const (
	agentKey    = "gen_ai.agent.name"
	actionKey   = "delta.action"
	toolKey     = "gen_ai.tool.name"
	endKey      = "delta.end"
	codeKey     = "delta.code"
	layerKey    = "delta.layer"
	boundKey    = "delta.bound"
	currencyKey = "delta.currency"
	concernKey  = "delta.concern"
	observerKey = "delta.observer"

	operationKey = "gen_ai.operation.name"
	callKey      = "gen_ai.tool.call.id" // the intent
	taskKey      = "gen_ai.conversation.id"
	errorKey     = "error.type" // the code
	versionKey   = "delta.action.version"
	attemptKey   = "delta.attempt"
	riskKey      = "delta.risk.effective"
	approvalKey  = "delta.approval"
	executedKey  = "delta.executed"
	typeKey      = "delta.event"
	seqKey       = "delta.seq"
	withinKey    = "delta.within"
	tokensKey    = "delta.cost.tokens"
)

// other stands for a name that nobody declared.
const other = "_OTHER"

// nameOf is the action of an event, as far as somebody declared it: what a model made up may be anything.
func nameOf(e *ledger.Event) string {
	if e.Code == action.ActionUnknown {
		return other
	}
	return e.Action
}

// toolOf names what executes the action of an event: the tool where there is one, else the action's own function.
func toolOf(e *ledger.Event) string {
	if e.Tool != "" {
		return e.Tool
	}
	return nameOf(e)
}

// actionEnds and toolEnds are the words for ends.
func actionEnd(c action.Code) string {
	switch {
	case c == action.OK:
		return "completed"
	case c.Info().Gate < 10:
		return "refused"
	}
	return "failed"
}

func toolEnd(c action.Code) string {
	switch c {
	case action.OK:
		return "succeeded"
	case action.Timeout:
		return "timed_out"
	case action.Interrupted, action.NotStarted, action.Cancelled, action.TaskClosed:
		return "cancelled"
	case action.HookFailed:
		return "denied"
	}
	if c.Info().Gate < 10 {
		return "denied"
	}
	return "failed"
}

// layerOf says where a failure came from.
func layerOf(e *ledger.Event) string {
	if e.Failure != nil && e.Failure.Layer != "" {
		return string(e.Failure.Layer)
	}
	return string(e.Code.Info().Layer)
}

func str(key, value string) attribute.KeyValue { return attribute.String(key, value) }

// place is what every span has.
func place(r *delta.Record) []attribute.KeyValue {
	return []attribute.KeyValue{str(agentKey, r.Agent), str(taskKey, r.TaskID())}
}

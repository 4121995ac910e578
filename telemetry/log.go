package telemetry

import (
	"context"
	"log/slog"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// log writes one line for a record: names, ids, codes and numbers, never text.
func (t *Telemetry) log(ctx context.Context, r *delta.Record) {
	e := &r.Event
	a := []slog.Attr{slog.String("agent", e.Agent)}
	add := func(key, value string) {
		if value != "" {
			a = append(a, slog.String(key, value))
		}
	}
	add("task", r.TaskID())
	a = append(a, slog.Int64("seq", r.Seq))
	add("action", nameOf(e))
	add("version", e.Version)
	add("intent", e.Intent)
	add("code", string(e.Code))
	if e.Code != "" && e.Code != action.OK {
		add("layer", layerOf(e))
		add("executed", string(e.Code.Info().Executed))
	}
	add("approval", e.Approval)
	add("escalation", e.Escalation)
	if e.Attempt > 1 {
		a = append(a, slog.Int("attempt", e.Attempt))
	}
	if e.Risk != nil {
		a = append(a, slog.Float64("risk", e.Risk.Effective))
	}
	if e.Charged.Duration > 0 {
		a = append(a, slog.Duration("duration", e.Charged.Duration))
	}
	if e.Charged.Tokens > 0 {
		a = append(a, slog.Int64("tokens", e.Charged.Tokens))
	}
	t.cfg.Log.LogAttrs(ctx, severity(e), string(e.Type), a...)
}

// severity is a warning where somebody may want to look.
func severity(e *ledger.Event) slog.Level {
	switch e.Type {
	case ledger.EscalationRaised, ledger.GlassBroken, ledger.GlassUsed, ledger.HookFailed, ledger.Late:
		return slog.LevelWarn
	case ledger.Settled, ledger.Refused, ledger.ChildRefused:
		if e.Code != action.OK {
			return slog.LevelWarn
		}
	case ledger.BeliefsFolded, ledger.Attempt:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

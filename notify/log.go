package notify

import (
	"context"
	"log/slog"
)

// Log writes a line for each notice: at level warn where a person is waited for, at info for ends.
type Log struct {
	To *slog.Logger // nil: slog.Default()
}

// Notify implements [Notifier]. It never fails.
func (l Log) Notify(ctx context.Context, n Notice) error {
	to := l.To
	if to == nil {
		to = slog.Default()
	}
	level := slog.LevelInfo
	if n.Kind.Waits() {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{slog.String("kind", string(n.Kind)), slog.String("task", n.Task)}
	for _, a := range []struct{ key, value string }{
		{"approval", n.Approval}, {"escalation", n.Escalation}, {"action", n.Action}, {"concern", string(n.Concern)}, {"end", n.End},
		{"identity", n.Identity}, {"reason", n.Reason},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.key, a.value))
		}
	}
	to.LogAttrs(ctx, level, n.String(), attrs...)
	return nil
}

package main

import (
	"context"
	"log/slog"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/sandbox"
)

// confining says whether tools could be confined on this machine. No store needs it, so it is never worse than fine.
func confining(ctx context.Context) redisstore.Finding {
	x := redisstore.Finding{Check: "sandbox", Severity: redisstore.Fine}
	box, err := sandbox.New(sandbox.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		x.Found = err.Error()
		return x
	}
	r := box.Probe(ctx)
	if !r.OK() {
		x.Found, x.Do, _ = strings.Cut(r.Err, "; ")
		x.Found = "tools cannot be confined on this machine: " + x.Found
		return x
	}
	x.Found = "tools can be confined: " + r.Bubblewrap
	for _, l := range r.Limits {
		if l.Err != "" {
			x.Found += "; not " + string(l.Limit) + ": " + l.Err
		}
	}
	return x
}

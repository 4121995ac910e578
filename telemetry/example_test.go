package telemetry_test

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/telemetry"
)

// A line for each event: names, codes and numbers, never text.
func Example() {
	plain := func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, "intent", "duration", "version", "risk", "approval":
			return slog.Attr{}
		}
		return a
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: plain}))
	tel, err := telemetry.New(telemetry.Config{Log: log}) // and Meter, and Tracer
	if err != nil {
		panic(err)
	}
	engine, err := delta.New(delta.Config{Observers: tel.Watches()})
	if err != nil {
		panic(err)
	}
	charge := delta.Define("charge", func(*delta.Context, struct{}) mo.Result[string] {
		return mo.Err[string](errors.New("card 4111-1111 was declined"))
	}).Describe("Charge a card").Risk(2).MustBuild()
	ctx := context.Background()
	task, err := engine.Start(ctx, delta.Goal{ID: "t1", Agent: delta.NewAgent("clerk").Grant(charge).MustBuild(), Text: "charge"})
	if err != nil {
		panic(err)
	}
	charge.Do(ctx, task, struct{}{})
	if err := engine.Close(ctx); err != nil {
		panic(err)
	}
	// Output:
	// level=INFO msg=task_started agent=clerk task=clerk~t1 seq=1
	// level=INFO msg=begun agent=clerk task=clerk~t1 seq=2 action=charge
	// level=WARN msg=settled agent=clerk task=clerk~t1 seq=3 action=charge code=FAILED layer=tool executed=yes
}

package notify_test

import (
	"context"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/notify"
)

// printer is a notifier of one's own.
type printer struct{}

func (printer) Notify(_ context.Context, n notify.Notice) error {
	fmt.Println(n)
	return nil
}

func Example() {
	desk, err := notify.New(notify.Config{Notifiers: []notify.Notifier{printer{}}})
	if err != nil {
		panic(err)
	}
	engine, err := delta.New(delta.Config{
		Observers:     []delta.Watch{desk.Watch()},
		Authenticator: delta.AuthenticatorFunc(func(_ context.Context, session any) (string, error) { return session.(string), nil }),
	})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if err := engine.Register(janitor); err != nil {
		panic(err)
	}
	desk.Attach(engine) // what was pending before is told again
	task, err := engine.Start(ctx, delta.Goal{ID: "monday", Agent: janitor, Text: "clean up", Approvers: []string{"ana"}})
	if err != nil {
		panic(err)
	}
	task.Do(ctx, delta.Call{Action: "wipe", Input: []byte(`{"disk":"sda"}`)})
	_ = engine.Close(ctx)
	_ = desk.Close(ctx)
	// Output:
	// janitor asks to run wipe in janitor~monday: effective risk 5.00 reaches the threshold 4.00
}

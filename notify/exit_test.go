package notify_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/notify"
)

type exits struct{ told atomic.Int64 }

func (x *exits) Notify(context.Context, notify.Notice) error {
	if x.told.Add(1) < 3 {
		runtime.Goexit()
	}
	return nil
}

// A notifier that ends its goroutine is told again, as one that fails.
func TestANotifierThatEndsItsGoroutineIsToldAgain(t *testing.T) {
	x := &exits{}
	o := open(t, memory.New(memory.Config{}), x)
	defer o.close()
	o.ask()
	require.Eventually(t, func() bool { return x.told.Load() >= 3 }, patience, time.Millisecond)
}

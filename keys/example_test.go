package keys_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-ab2cfece/delta-agents/keys"
)

// A ring is rotated by one more key: it wraps from then on, and what was wrapped before is still unwrapped.
func Example() {
	ctx := context.Background()
	march, _ := keys.NewKey("2026-03", time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	ring, _ := keys.NewSet(march)
	wrapped, _ := ring.Wrap(ctx, keys.NewData(), "desk")

	april, _ := keys.NewKey("2026-04", time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC))
	ring, _ = ring.With(april)
	_, err := ring.Unwrap(ctx, wrapped, "desk")
	fmt.Println(ring, err)
	// Output: key ring of 2026-03, 2026-04 <nil>
}

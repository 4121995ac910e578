package delta

import "testing"

// What makes room on a stack leaves nothing behind and costs no allocation.
func TestRoomyTakesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(10, func() {
		if roomy() != 0 {
			t.Error("there was something")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

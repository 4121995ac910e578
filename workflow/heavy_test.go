//go:build heavy

package workflow_test

import "testing"

// TestAnyOrder, many times over.
func TestAnyOrderLong(t *testing.T) {
	for range 40 {
		TestAnyOrder(t)
	}
}

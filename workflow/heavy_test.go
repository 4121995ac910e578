//go:build heavy

package workflow_test

import "testing"

// TestAnyFamily, many times over.
func TestAnyFamilyLong(t *testing.T) {
	for range 40 {
		TestAnyFamily(t)
	}
}

// TestAnyOrder, many times over.
func TestAnyOrderLong(t *testing.T) {
	for range 40 {
		TestAnyOrder(t)
	}
}

//go:build heavy

package delta_test

import "testing"

func TestI08_AWorkflowWhoseWorkerStopsAnywhereGoesOnElsewhere(t *testing.T) { stopsAt(t, 1) }

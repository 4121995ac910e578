//go:build heavy

package replay

import "testing"

func TestAllRecordings(t *testing.T) { replayAll(t, "*") }

//go:build heavy

package delta

import "testing"

func TestHeavyKeptPreviews(t *testing.T) { keptPreviewsAreWhatWouldBeFoundAnew(t, 60) }

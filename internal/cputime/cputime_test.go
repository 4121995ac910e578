package cputime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-ab2cfece/delta-agents/internal/cputime"
)

// Work moves it.
func TestWorkCosts(t *testing.T) {
	from, n := cputime.Now(), 0
	for until := time.Now().Add(time.Minute); cputime.Now() == from && time.Now().Before(until); {
		for i := range 100_000 {
			n += i
		}
	}
	assert.Greater(t, cputime.Now(), from, n)
}

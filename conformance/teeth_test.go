package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-ab2cfece/delta-agents/conformance"
)

// TestTeeth runs the cases against an engine that means well. It has every fault at least once, so every case must fail;
// where a case stops doing so it has lost its point. C24 needs leases, which such an engine does not have.
func TestTeeth(t *testing.T) {
	for _, c := range conformance.Cases() {
		assert.True(t, noticed(t, openNaive, c.ID), "%s %s: nobody notices", c.ID, c.Symptom)
	}
}

// It works a little, and passes a little (C04, answered in reverse): the cases do not fail whatever they meet.
func TestTeethLetGo(t *testing.T) {
	passed := 0
	for _, c := range conformance.Cases() {
		if c.ID == "C04" || c.ID == "C18" || c.ID == "C19" {
			for _, v := range conformance.Check(openNaive, []conformance.Case{{ID: c.ID, Variants: c.Variants[:2]}}) {
				if v.Passed() {
					passed++
				}
			}
		}
	}
	assert.Equal(t, 2, passed)
}

// A subject that panics, or cannot even be opened, fails and is no reason to stop.
func TestBrokenSubjects(t *testing.T) {
	first := conformance.Cases()[:1]
	for _, v := range conformance.Check(func() (conformance.Subject, error) { return nil, assert.AnError }, first) {
		assert.Equal(t, []string{"cannot be opened: " + assert.AnError.Error()}, v.Symptoms)
	}
	for _, v := range conformance.Check(func() (conformance.Subject, error) { return brittle{}, nil }, first) {
		if assert.NotEmpty(t, v.Symptoms) {
			assert.Contains(t, v.Symptoms[0], "panic: ")
		}
	}
}

// brittle has nothing but a Close.
type brittle struct{ conformance.Subject }

func (brittle) Close() error { return nil }

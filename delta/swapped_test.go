package delta_test

import (
	"sync/atomic"

	"github.com/seed-ab2cfece/delta-agents/policy"
)

// swapped is a policy whose rules a test replaces.
type swapped struct{ now atomic.Pointer[policy.Bundle] }

func (s *swapped) Current() policy.Policy { return s.now.Load() }

func (s *swapped) Decide(r policy.Request) (policy.Decision, error) { return s.Current().Decide(r) }

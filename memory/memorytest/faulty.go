package memorytest

import (
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/faulty"
)

// ErrLost is [faulty.ErrLost].
var ErrLost = faulty.ErrLost

// The words of package faulty, for suites.
type (
	Fault  = faulty.Fault
	Plan   = faulty.Plan
	Faulty = faulty.Store
)

// The faults.
const (
	None        = faulty.None
	LostRequest = faulty.LostRequest
	LostReply   = faulty.LostReply
)

// NewFaulty wraps the store, as [faulty.New] does.
func NewFaulty(s memory.Store, plan Plan) *Faulty { return faulty.New(s, plan) }

// FailAt is [faulty.FailAt].
func FailAt(f Fault, calls ...int) Plan { return faulty.FailAt(f, calls...) }

// FailFrom is [faulty.FailFrom].
func FailFrom(f Fault, first int) Plan { return faulty.FailFrom(f, first) }

// FailRandomly is [faulty.FailRandomly].
func FailRandomly(seed uint64, request, reply float64) Plan {
	return faulty.FailRandomly(seed, request, reply)
}

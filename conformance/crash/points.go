// Package crash kills workers at every step of a governed call and looks at what is there afterwards. It holds tests only;
// the worker is the test binary itself, started again.
package crash

// point is a step of a governed call at which a worker may die.
type point string

// The points, in the order in which a call passes them. "sent" is before the store has it, "kept" after the store has it
// and before the worker knows.
const (
	parkSent   point = "park sent"
	parkKept   point = "park kept"
	beginSent  point = "begin sent"
	beginKept  point = "begin kept"
	hookBefore point = "before hook"
	inFunction point = "in the function, before the effect"
	afterwards point = "in the function, after the effect"
	stepSent   point = "next attempt sent"
	stepKept   point = "next attempt kept"
	settleSent point = "settle sent"
	settleKept point = "settle kept"
	hookAfter  point = "after hook"
	foldSent   point = "fold sent"
	foldKept   point = "fold kept"
	sealKept   point = "seal kept"
)

var points = []point{parkSent, parkKept, beginSent, beginKept, hookBefore, inFunction, afterwards, stepSent, stepKept, settleSent, settleKept,
	hookAfter, foldSent, foldKept, sealKept}

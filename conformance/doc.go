// Package conformance holds cases that every engine which governs agents should pass, whoever wrote it. Each restates a
// fault that was reported somewhere as what must not happen, and tries several members of its kind. The cases know an
// engine only as a [Subject]; enrolling one takes an adapter and
//
//	func TestConformance(t *testing.T) { conformance.Run(t, open) }
//
// where open returns a fresh engine over a fresh store. [Table] runs the same cases anywhere and prints case → pass or
// fail with a one-line symptom. What an engine cannot do at all (a second engine over one store, a clock that can be
// moved) it leaves out by not implementing the interface; the variants that need it are then shown as skipped, never as
// passed.
//
// Package subject is the adapter of the engine of this module, and an example of how to write one. That the cases have
// teeth is itself tested: an engine of plain maps and good intentions must fail most of them.
package conformance

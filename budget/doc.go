// Package budget is the arithmetic of what a task may spend: what a call reserves before it runs, what its end gives back,
// and whether what is spent buys progress. It holds no counters: an [Account] is read from those of a store, and what
// changes is handed back as differences, which the store applies under the same bounds.
//
//	granted = reserved + spent          what may no longer be promised to anybody
//	reserve   granted += r              only where granted + r ≤ limit, on every axis
//	settle    granted += actual − r     spent += actual
//	release   granted −= r
//
// Two things hold in any order of these steps: no reservation is ever granted that would take granted above the limit,
// and spent never falls. A cost above its reservation is settled in full. Granted may then stand above the limit; the axis
// is overrun, and nothing at all is granted until what is running has given enough back.
//
// An axis without a limit is unlimited. It is counted all the same, up to [action.MaxAmount].
package budget

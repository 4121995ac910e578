// Package memorytest is the contract of [memory.Store] as tests. It knows no implementation; enrolling one takes a
// function that opens a fresh store and says how its clock moves:
//
//	func TestStore(t *testing.T) {
//		open := func(tb testing.TB) memorytest.Instance { … }
//		memorytest.Run(t, open)
//		memorytest.Random(t, open(t), 2000, 1)
//		memorytest.Workload(t, open(t), memorytest.Load{})
//	}
//
// Run holds the promises one by one, each case on a store of its own. Random drives random transactions into the store
// and into a deliberately dumb reference and demands equal answers and equal state. Workload lets workers, lost requests,
// lost replies and takeovers loose on one task and checks what its ledger tells. Faulty is the wrapper that loses them,
// for others to use.
//
// That these have teeth is itself tested: the reference is a store too, and with any one of its rules broken something
// must fail.
package memorytest

// Package memory is the port to where state is held: the [Store] contract, the in-process store, and agents' notes. A
// store holds no rules: it applies transactions of package txn all or nothing, keeps leases and ledgers, and answers by
// its own clock. Package memorytest is the contract as a test suite; any implementation is enrolled in some twenty lines.
package memory

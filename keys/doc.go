// Package keys holds the keys under which secrets are written down.
//
// There are two storeys of them. A data key belongs to one data subject, or to one task where a goal names no subject. It
// makes the digests that stand for secret values and seals the inputs and outputs themselves, and it is kept in the store,
// beside the agent. A [Ring] holds the few keys that wrap data keys. It is kept elsewhere: who has the store and not the
// ring reads no secret, and who has a copy of the ledger alone reads none and can test no guess either. Destroying a data
// key makes everything that was written under it unreadable, wherever copies of it are.
//
// [Set] is a ring in memory, read from a file by [Read]; a key service is another one, by the interface alone.
//
// Not here: when something is sealed, and who may open it; that is said in package delta. Nothing here protects a process
// that holds a key from whoever can read its memory.
package keys

// Package ledger is the record of what was decided and what happened: the event types, their canonical encoding, and the
// hash chain that makes a change to the past show. Everything else an engine knows is a fold of these events.
//
// # Encoding
//
// An [Event] is one flat struct. [Encode] writes its non-zero fields as JSON in the order in which they are declared, so
// the same event is the same bytes everywhere; [Decode] accepts nothing that Encode would not have written.
//
// # Chain
//
// Every record carries a link, the SHA-256 of the link before it together with its own sequence number, store time and
// bytes:
//
//	Genesis(agent, task) ── Link ── record 1 ── Link ── record 2 ── … ── sealed head │ unsealed tail
//
// A store appends records unlinked, so that siblings do not wait for each other, and they are sealed in order right
// after. [Verify] therefore finds a sealed stretch and, at most, an unsealed tail behind it. What the chain shows:
//
//   - a record that was changed, left out, repeated or moved within the sealed stretch: always, and where;
//   - holes and repetitions in the tail: yes, by sequence number; a changed value in the tail: no, it is not sealed yet;
//   - an end that was cut off: only by comparison with a [Report] kept elsewhere, since a shorter chain is a valid chain.
//
// The chain is evidence against accidents and against whoever cannot rewrite all of it. It is not a signature.
//
// # Log
//
// A [Log] is the Merkle tree over the links of a ledger. Its [Head] stands for the whole ledger in three lines, and is
// signed with [SignHead]. An auditor who keeps the head of yesterday is shown, by proofs of a few hashes, that a record is
// in the ledger (CheckRecord) and that the ledger of today goes on from that of yesterday (CheckGrowth). An [Exporter]
// writes a ledger as lines of JSON, an [Importer] reads them and finds whatever was touched.
//
// What neither shows is a ledger that is missing as a whole: that is known to whoever kept a head of it.
package ledger

// Package audit keeps an audit trail beside the ledger: who did what with what right, when, for how long and with which
// end, one entry for each event, in a file that is rotated (audit/file), on standard output ([Lines]), in a Redis stream
// (audit/redis), or sent to an OpenTelemetry collector (audit/otlp).
//
//	trail, err := audit.New(audit.Config{Sink: sink, Key: key, Positions: audit.NewFile("audit.positions")})
//	engine, err := delta.New(delta.Config{Observers: []delta.Watch{trail.Watch()}})
//	err = trail.Attach(engine)
//	…
//	err = errors.Join(engine.Close(ctx), trail.Close(ctx))
//
// # What it promises
//
// A sink that is slow or dead holds up no call and loses nothing: the trail remembers how far it got in each ledger, and
// goes on from there by reading the ledger once the sink writes again, or once the next process runs. Entries of a ledger
// are written in its order. Each is written at least once; (Ledger, Seq) tells repetitions.
//
// # What is in it
//
// Names, ids, codes, numbers, times, and what people said when they decided. Inputs and outputs appear as keyed digests
// only, and what functions said of their failures does not, so that no secret does. What is behind them is in the ledger.
package audit

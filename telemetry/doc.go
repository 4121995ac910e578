// Package telemetry makes OpenTelemetry traces and metrics, and lines of a structured log, of what an engine writes into its
// ledgers. It uses the API of OpenTelemetry alone: which exporters there are, the program says with the providers it gives.
//
//	t, err := telemetry.New(telemetry.Config{Meter: meters, Tracer: tracers, Log: slog.Default()})
//	engine, err := delta.New(delta.Config{Observers: t.Watches()})
//	defer engine.Close(ctx)
//	err = t.Attach(engine)
//
// Package telemetry/prometheus is the provider of metrics for a Prometheus endpoint. [Instruments] is the table of what is
// measured, in doc/telemetry.md.
//
// # What leaves
//
// Names that the program declared (agents, actions), ids, codes, numbers and times. Inputs, outputs, goals, messages of
// failures, reasons that people gave and whatever else is free text never leave, so no secret can. A name that a model made
// up is told as "_OTHER".
//
// # What it costs
//
// Without any provider Watches returns nothing and a call costs what it costs without telemetry. With them, a call pays
// for the copy into the observer's queue; all else happens beside it. What the queue has no room for is counted
// (delta.telemetry.missed) and not made up for: the ledger is the record, this is a view of it.
package telemetry

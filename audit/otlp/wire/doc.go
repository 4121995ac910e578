// Package wire holds no code: its tests send an audit trail to a receiver of the OpenTelemetry protocol over the network of the
// machine, and read there what arrived. It is a module of its own because the exporter is heavy.
package wire

// Package wire holds no code: its tests send traces and metrics to a receiver of the OpenTelemetry protocol over the network of
// the machine, and read there what arrived. It is a module of its own because the exporters are heavy.
package wire

// Package prometheus keeps the metrics of package telemetry for a Prometheus server to fetch.
//
//	meters, endpoint, err := prometheus.New()
//	t, err := telemetry.New(telemetry.Config{Meter: meters})
//	mux.Handle("/metrics", endpoint)
//
// Names are those of the table in doc/telemetry.md with underscores for dots, with units and _total where Prometheus wants
// them: delta.action.duration is delta_action_duration_seconds.
package prometheus

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
)

// New returns a provider of metrics and the endpoint that serves them, with a registry of their own. Shut the provider down
// at the end.
func New() (*sdk.MeterProvider, http.Handler, error) {
	registry := prometheus.NewRegistry()
	reader, err := otelprom.New(otelprom.WithRegisterer(registry))
	if err != nil {
		return nil, nil, fmt.Errorf("prometheus: %w", err)
	}
	endpoint := promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
	return sdk.NewMeterProvider(sdk.WithReader(reader)), endpoint, nil
}

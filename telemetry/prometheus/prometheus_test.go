package prometheus_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/telemetry"
	"github.com/seed-ab2cfece/delta-agents/telemetry/prometheus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEndpoint(t *testing.T) {
	meters, endpoint, err := prometheus.New()
	require.NoError(t, err)
	tel, err := telemetry.New(telemetry.Config{Meter: meters})
	require.NoError(t, err)
	engine, err := delta.New(delta.Config{Observers: tel.Watches()})
	require.NoError(t, err)
	require.NoError(t, tel.Attach(engine))
	greet := delta.Define("greet", func(*delta.Context, struct{}) mo.Result[string] { return mo.Ok("hello") }).Describe("Greet").Risk(1).MustBuild()
	task, err := engine.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("porter").Grant(greet).MustBuild(), Text: "be kind"})
	require.NoError(t, err)
	require.True(t, greet.Do(t.Context(), task, struct{}{}).IsOk())
	require.NoError(t, tel.Detach())
	require.NoError(t, engine.Close(t.Context()))

	got := httptest.NewRecorder()
	endpoint.ServeHTTP(got, httptest.NewRequest("GET", "/metrics", nil))
	assert.Equal(t, 200, got.Code)
	for _, want := range []string{"delta_action_ended_total{", "delta_action_duration_seconds_bucket{", `delta_code="OK"`, `gen_ai_agent_name="porter"`} {
		assert.Contains(t, got.Body.String(), want)
	}
	require.NoError(t, meters.Shutdown(t.Context()))
}

func ExampleNew() {
	meters, endpoint, err := prometheus.New()
	if err != nil {
		panic(err)
	}
	tel, err := telemetry.New(telemetry.Config{Meter: meters})
	if err != nil {
		panic(err)
	}
	engine, err := delta.New(delta.Config{Observers: tel.Watches()})
	if err != nil {
		panic(err)
	}
	defer engine.Close(context.Background())
	defer meters.Shutdown(context.Background())
	fmt.Println(len(engine.Observers()), "observer")

	got := httptest.NewRecorder()
	endpoint.ServeHTTP(got, httptest.NewRequest("GET", "/metrics", nil))
	fmt.Println(got.Code, strings.Contains(got.Header().Get("Content-Type"), "text/plain"))
	// Output:
	// 1 observer
	// 200 true
}

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/mcp"
	"github.com/seed-ab2cfece/delta-agents/sandbox"
	"github.com/seed-ab2cfece/delta-agents/tool"
)

// The test binary is a server on its standard input and output where this variable says so.
const role = "DELTA_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(role) != "" {
		fmt.Fprintln(os.Stderr, strings.Repeat("noise ", 100))
		_ = peer().Run(context.Background(), &sdk.StdioTransport{})
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	anyInput = `{"type":"object"}`
	qInput   = `{"type":"object","properties":{"q":{"type":"string","maxLength":9}},"required":["q"],"additionalProperties":false}`
)

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

// handler is what a tool of a test does.
type handler = func(ctx context.Context, args json.RawMessage) (*sdk.CallToolResult, error)

func add(s *sdk.Server, t *sdk.Tool, f handler) {
	if t.InputSchema == nil {
		t.InputSchema = json.RawMessage(anyInput)
	}
	if f == nil {
		f = func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) { return text("done"), nil }
	}
	s.AddTool(t, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return f(ctx, r.Params.Arguments)
	})
}

func server() *sdk.Server { return sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, nil) }

// peer is a server with tools of every kind.
func peer() *sdk.Server {
	s := server()
	yes, no := true, false
	add(s, &sdk.Tool{Name: "echo", Description: "Say it again", InputSchema: json.RawMessage(qInput), OutputSchema: json.RawMessage(qInput), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no}},
		func(_ context.Context, args json.RawMessage) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{StructuredContent: args}, nil
		})
	add(s, &sdk.Tool{Name: "show", Description: "Show all kinds"}, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "hello"}, &sdk.ImageContent{Data: []byte("png"), MIMEType: "image/png"},
			&sdk.ResourceLink{URI: "file:///a", Name: "a"}, &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b", Text: "b"}},
		}}, nil
	})
	add(s, &sdk.Tool{Name: "fail", Description: "Say no", Annotations: &sdk.ToolAnnotations{DestructiveHint: &yes}}, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		r := text("there is no such card")
		r.IsError = true
		return r, nil
	})
	add(s, &sdk.Tool{Name: "crash", Description: "Go away"}, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		os.Exit(3)
		return nil, nil
	})
	add(s, &sdk.Tool{Name: "hang", Description: "Never return"}, func(ctx context.Context, _ json.RawMessage) (*sdk.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	add(s, &sdk.Tool{Name: "refuse", Description: "A protocol error"}, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		return nil, fmt.Errorf("no such thing")
	})
	add(s, &sdk.Tool{Name: "big", Description: "Write two megabytes"}, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("x", 2<<20)), nil
	})
	add(s, &sdk.Tool{Name: "huge", Description: "Write twenty megabytes"}, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("x", 20<<20)), nil
	})
	add(s, &sdk.Tool{Name: "count", Description: "Large numbers", OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}, func(_ context.Context, args json.RawMessage) (*sdk.CallToolResult, error) {
		const n = `{"n":9007199254740993}`
		r := &sdk.CallToolResult{StructuredContent: json.RawMessage(n)}
		if strings.Contains(string(args), "text") {
			r.Content = []sdk.Content{&sdk.TextContent{Text: n}}
		}
		return r, nil
	})
	return s
}

// within reaches a server of this process.
func within(s *sdk.Server) mcp.Server {
	return mcp.Using(func(ctx context.Context) (sdk.Transport, error) {
		here, there := sdk.NewInMemoryTransports()
		_, err := s.Connect(ctx, there, nil)
		return here, err
	})
}

// world is an engine whose agent holds what a server offers.
type world struct {
	t        *testing.T
	client   *mcp.Client
	registry *tool.Registry
	imported mcp.Imported
	task     *delta.Task
}

func open(t *testing.T, c mcp.Config) *mcp.Client {
	t.Helper()
	if c.Name == "" {
		c.Name = "peer"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	client, err := mcp.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func using(t *testing.T, c mcp.Config) *world {
	t.Helper()
	w := &world{t: t, client: open(t, c), registry: tool.NewRegistry()}
	var err error
	w.imported, err = mcp.Actions(context.Background(), w.client, w.registry)
	require.NoError(t, err)
	e, err := delta.New(delta.Config{Tools: w.registry})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(context.Background())) })
	agent, err := delta.NewAgent("user").Grant(w.imported.Actions...).Build()
	require.NoError(t, err)
	w.task, err = e.Start(context.Background(), delta.Goal{Agent: agent, Text: "x", Threshold: 5})
	require.NoError(t, err)
	return w
}

func (w *world) do(ctx context.Context, name, input string) action.Outcome {
	w.t.Helper()
	o, err := w.task.Do(ctx, delta.Call{Action: "peer." + name, Input: json.RawMessage(input)}).Get()
	require.NoError(w.t, err)
	return o
}

// confined is the test binary as a server in a sandbox.
func confined(t *testing.T) mcp.Server {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no bwrap: make deps installs it")
		}
		t.Skip("there is no bwrap here: make deps installs it, or the package bubblewrap")
	}
	me, err := os.Executable()
	require.NoError(t, err)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	at := filepath.Join(dir, "server")
	if os.Link(me, at) != nil { // another file system
		require.NoError(t, exec.Command("cp", me, at).Run())
	}
	box, err := sandbox.New(sandbox.Config{
		Binds: []sandbox.Bind{{Source: at, Target: "/server"}}, Env: map[string]string{role: "peer"},
		Limits: sandbox.Limits{Memory: -1, Time: time.Minute}, // the race detector reserves more than there is
	})
	require.NoError(t, err)
	return mcp.Stdio(box, "/server")
}

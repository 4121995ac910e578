package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/sandbox"
	"github.com/seed-ab2cfece/delta-agents/workflow"
	"github.com/seed-ab2cfece/delta-agents/workflowfile"
)

// dockhand is a worker of the dock that works until it is interrupted. It writes the workflow that it holds to ship.yaml.
func dockhand() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := labour(ctx); err != nil && !errors.Is(err, context.Canceled) {
		panic(err)
	}
}

func labour(ctx context.Context) error {
	store, err := redisstore.Open(ctx, redisstore.Config{URL: os.Getenv("DELTA_STORE"), Prefix: os.Getenv("DELTA_PREFIX")})
	if err != nil {
		return err
	}
	me, err := user.Current()
	if err != nil {
		return err
	}
	agent, def := dock(me.Username)
	defs := []*workflow.Definition{def}
	if os.Getenv("DOCK_NEXT") != "" { // the version that comes after, which has the parcel unpacked again
		spec := def.Spec()
		spec.Version = "2"
		next, err := workflow.Compile(spec)
		if err != nil {
			return err
		}
		if spec.Phases[0].Steps[2].Name != "sign" {
			return errors.New("the workflow of the dock is not what it was")
		}
		spec.Phases[0].Steps[2].Hitl.Prompt, spec.Version = "Sign twice", "3"
		last, err := workflow.Compile(spec)
		if err != nil {
			return err
		}
		defs, def = []*workflow.Definition{next, last}, last
	}
	engine, err := delta.New(delta.Config{Store: store, Authenticator: delta.VoucherFunc(osUser), Poll: 50 * time.Millisecond, Workflows: delta.Workflows{Definitions: defs}})
	if err != nil {
		return err
	}
	if err := engine.Register(agent); err != nil {
		return err
	}
	text, err := workflowfile.Format(def)
	if err != nil {
		return err
	}
	if err := os.WriteFile("ship.yaml", text, 0o600); err != nil {
		return err
	}
	err = engine.Work(ctx)
	return errors.Join(err, engine.Close(context.WithoutCancel(ctx)), store.Close())
}

// noteFile is where the server below keeps its note.
const noteFile = "/tmp/deltactl-script-note"

// notes is a server of tools that keeps a note in /tmp, which is its own where it is confined.
func notes() {
	type note struct {
		Text string `json:"text"`
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	add := func(does func(text string) error) sdk.ToolHandlerFor[note, note] {
		return func(_ context.Context, _ *sdk.CallToolRequest, in note) (*sdk.CallToolResult, note, error) {
			return nil, in, does(in.Text)
		}
	}
	yes, no := true, false
	sdk.AddTool(s, &sdk.Tool{Name: "write", Description: "Write a note down", Annotations: &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}},
		add(func(text string) error { return os.WriteFile(noteFile, []byte(text), 0o600) }))
	sdk.AddTool(s, &sdk.Tool{Name: "read", Description: "Read the note", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no}},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, note, error) {
			text, err := os.ReadFile(noteFile)
			return nil, note{string(text)}, err
		})
	sdk.AddTool(s, &sdk.Tool{Name: "purge", Description: "Delete all notes", Annotations: &sdk.ToolAnnotations{DestructiveHint: &yes}},
		add(func(string) error { return os.Remove(noteFile) }))
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		panic(err)
	}
}

// present is "present AGENT": it waits until somebody works for the agent.
func present(ts *testscript.TestScript, neg bool, args []string) {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{URL: ts.Getenv("DELTA_STORE"), Prefix: ts.Getenv("DELTA_PREFIX")})
	ts.Check(err)
	engine, err := delta.New(delta.Config{Store: store})
	ts.Check(err)
	defer func() { ts.Check(errors.Join(engine.Close(ctx), store.Close())) }()
	for {
		live, err := engine.Workers(ctx, args[0])
		ts.Check(err)
		if len(live) > 0 != neg {
			return
		}
	}
}

// sandboxed is "sandboxed": it sets NOTES to the server, where everybody reaches it, and SANDBOX to the flags under which it runs in a
// sandbox or, where this machine has none, without.
func sandboxed(ts *testscript.TestScript, _ bool, _ []string) {
	path, err := exec.LookPath("notes")
	ts.Check(err)
	path, err = filepath.EvalSymlinks(path)
	ts.Check(err)
	dir, err := os.MkdirTemp("", "notes")
	ts.Check(err)
	ts.Defer(func() { _ = os.RemoveAll(dir) })
	ts.Check(errors.Join(os.Chmod(dir, 0o755), os.Link(path, filepath.Join(dir, "notes"))))
	ts.Setenv("NOTES", filepath.Join(dir, "notes"))
	box, err := sandbox.New(sandbox.Config{Log: slog.New(slog.DiscardHandler), Binds: []sandbox.Bind{{Source: dir}}})
	ts.Check(err)
	if !box.Probe(context.Background()).OK() {
		ts.Setenv("SANDBOX", "--no-sandbox=there-is-none-here")
		return
	}
	ts.Setenv("SANDBOX", "--bind="+dir)
}

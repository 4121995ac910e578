package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/mcp"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/sandbox"
	"github.com/seed-ab2cfece/delta-agents/tool"
	"github.com/seed-ab2cfece/delta-agents/workflow"
	"github.com/seed-ab2cfece/delta-agents/workflowfile"
)

// localFlags say what the server finds that a workflow is run with here.
type localFlags struct {
	name        string
	binds, rw   []string
	env         []string
	network     bool
	unconfined  string
	distrust    bool
	changed     func(string) bool
	namesOfOurs []string
}

func (l *localFlags) add(c *cobra.Command) {
	fl := pflag.NewFlagSet("here", pflag.ContinueOnError)
	fl.StringVar(&l.name, "mcp", "tools", "what the server after -- is called: its tool read is the action NAME.read")
	fl.StringSliceVar(&l.binds, "bind", nil, "folders that the server may read")
	fl.StringSliceVar(&l.rw, "bind-rw", nil, "folders that the server may also write")
	fl.StringSliceVar(&l.env, "env", nil, "variables of this process that the server is given")
	fl.BoolVar(&l.network, "network", false, "let the server reach the network")
	fl.StringVar(&l.unconfined, "no-sandbox", "", "run the server without confining it, for the reason given here")
	fl.BoolVar(&l.distrust, "distrust", false, "take no word of the server for what its tools do: all are irreversible")
	fl.VisitAll(func(f *pflag.Flag) { l.namesOfOurs = append(l.namesOfOurs, f.Name) })
	c.Flags().AddFlagSet(fl)
	l.changed = func(name string) bool { return c.Flags().Changed(name) }
}

// given reports whether any of them was given.
func (l *localFlags) given() bool { return slices.ContainsFunc(l.namesOfOurs, l.changed) }

// box is where the server runs.
func (l *localFlags) box(log *slog.Logger) (*sandbox.Sandbox, error) {
	cfg := sandbox.Config{Network: l.network, Inherit: l.env, None: l.unconfined, Log: log}
	for _, dirs := range []struct {
		all      []string
		writable bool
	}{{l.binds, false}, {l.rw, true}} {
		for _, dir := range dirs.all {
			at, err := filepath.Abs(dir)
			if err != nil {
				return nil, err
			}
			cfg.Binds = append(cfg.Binds, sandbox.Bind{Source: at, Writable: dirs.writable})
		}
	}
	return sandbox.New(cfg)
}

// here is an engine whose actions are the tools of a server that this process started.
type here struct {
	engine *delta.Engine
	agent  *delta.Agent
	def    *workflow.Definition
	held   bool // its state outlasts the process
	close  func(context.Context) error
}

// runHere runs a workflow by the tools of a server.
func runHere(c *cobra.Command, f *runFlags) (err error) {
	ctx := c.Context()
	defs, err := workflowfile.LoadAll(f.files...)
	if err != nil {
		return err
	}
	if err := onlyTools(defs); err != nil {
		return err
	}
	if defs, err = owned(ctx, defs); err != nil {
		return err
	}
	input, err := document(c, f.input)
	if err != nil {
		return err
	}
	h, err := f.open(ctx, defs, c.ErrOrStderr())
	if err != nil {
		return err
	}
	defer func() {
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err = errors.Join(err, h.close(bound))
	}()
	me, err := h.engine.Authenticate(ctx, nil)
	if err != nil {
		return err
	}
	g := f.goalOf(h.def, "")
	g.Agent = h.agent
	if len(g.Approvers) == 0 {
		g.Approvers = []string{me.String()}
	}
	run, err := h.engine.StartWorkflow(ctx, h.def, g, input)
	if err != nil {
		return err
	}
	return h.drive(c, &follower{c: c, f: f, engine: h.engine, me: me, run: run, ask: newAsker(c, f), local: true})
}

// owned makes whoever runs workflows here one of those who own them: they could as well write so in the files.
func owned(ctx context.Context, defs []*workflow.Definition) (out []*workflow.Definition, err error) {
	me, err := osUser(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, d := range defs {
		spec := d.Spec()
		if !slices.Contains(spec.Owners, me.Name) {
			spec.Owners = append(spec.Owners, me.Name)
		}
		if d, err = workflow.Compile(spec); err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// drive works on the instance until it rests. What would be lost with the process, and waits, is undone.
func (h *here) drive(c *cobra.Command, w *follower) error {
	work, stop := context.WithCancel(context.WithoutCancel(c.Context()))
	done := make(chan error, 1)
	go func() { done <- h.engine.Work(work) }()
	defer func() {
		stop()
		<-done
	}()
	r, err := w.follow(c.Context())
	if h.held || err == nil && over(&r) {
		if err != nil {
			return fmt.Errorf("%s stays in the store as it is: %w", w.run.ID(), err)
		}
		return w.end(&r)
	}
	why := cmp.Or(err, fmt.Errorf("it waits: %s; nobody here can end that, and without --store its state ends with this process", waitsOf(&r)))
	return errors.Join(why, w.undo(context.WithoutCancel(c.Context())))
}

// undone is how long undoing what an instance did may take.
const undone = time.Minute

// undo ends an instance that cannot go on, and waits until what it did is undone.
func (w *follower) undo(ctx context.Context) error {
	err := w.run.Cancel(ctx, w.me, delta.CancelMode{}, "nobody can go on with it")
	if tree, lookErr := w.run.Tree(ctx); err != nil && lookErr == nil && tree.State.Status.Terminal() {
		return fmt.Errorf("meanwhile it has ended as %s", tree.State.Status)
	} else if err != nil {
		return fmt.Errorf("and it could not be undone: %w", err)
	}
	bound, cancel := context.WithTimeout(ctx, undone)
	defer cancel()
	tick := time.NewTicker(w.f.every)
	defer tick.Stop()
	for {
		tree, err := w.run.Tree(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("and nobody knows what was undone: %w", err)
		case tree.Rests():
			return left(&tree.State)
		}
		select {
		case <-tick.C:
		case <-bound.Done():
			return fmt.Errorf("and undoing what it did took longer than %v", undone)
		}
	}
}

// left names what was not undone.
func left(s *workflow.State) error {
	var names []string
	for _, d := range append(slices.Clone(s.Deeds), s.Left...) {
		names = append(names, strings.TrimSpace(d.Step+" "+d.Action))
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("not undone: %s", strings.Join(names, ", "))
}

// onlyTools names what a workflow wants that only programs have.
func onlyTools(defs []*workflow.Definition) error {
	var faults []error
	for _, d := range defs {
		spec := d.Spec()
		lack := func(where, what, name string) {
			if name != "" {
				faults = append(faults, fmt.Errorf("workflow %q: %s wants the %s %q, which only a program can have", d.Name(), where, what, name))
			}
		}
		guard := func(where string, g *workflow.Guard) {
			if g != nil {
				lack(where, "guard", g.Name)
			}
		}
		for _, p := range spec.Phases {
			guard(fmt.Sprintf("phase %q", p.Name), p.Guard)
			for i := range p.Steps {
				s := &p.Steps[i]
				where := fmt.Sprintf("step %q", s.Name)
				guard(where, s.Guard)
				lack(where, "planner", s.Planner)
				lack(where, "verifier", s.Verifier)
				for _, r := range s.Ladder {
					lack(where, "planner", r.Planner)
				}
			}
		}
	}
	if err := workflow.Family(defs...); err != nil && len(defs) == 1 {
		faults = append(faults, fmt.Errorf("%w: give their files too", err))
	}
	return errors.Join(faults...)
}

// open starts the server and makes an engine of its tools.
func (f *runFlags) open(ctx context.Context, defs []*workflow.Definition, stderr io.Writer) (h *here, err error) {
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	h = &here{def: defs[0]}
	var closers []func(context.Context) error
	h.close = func(ctx context.Context) error {
		var faults []error
		for _, end := range slices.Backward(closers) {
			faults = append(faults, end(ctx))
		}
		return errors.Join(faults...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close(context.WithoutCancel(ctx)))
		}
	}()
	tools := tool.NewRegistry()
	imported, client, err := f.server(ctx, tools, log)
	if err != nil {
		return h, err
	}
	closers = append(closers, func(context.Context) error { return client.Close() })
	if h.agent, err = f.agentOf(defs, &imported); err != nil {
		return h, err
	}
	ring, err := f.store.ring()
	if err != nil {
		return h, err
	}
	cfg := delta.Config{
		Keys: ring, Authenticator: delta.VoucherFunc(osUser), Operators: readOffice(f.store.operators).operators, Tools: tools, Log: log, Poll: f.every,
		Workflows: delta.Workflows{Definitions: append(slices.Clone(defs[1:]), defs[0])},
	}
	if cmp.Or(f.store.c.URL, os.Getenv("DELTA_STORE")) != "" {
		s, err := f.store.openStore(ctx)
		if err != nil {
			return h, err
		}
		cfg.Store, h.held = s, true
		closers = append(closers, func(context.Context) error { return s.Close() })
	} else {
		s := memory.New(memory.Config{})
		cfg.Store = s
		closers = append(closers, func(context.Context) error { return s.Close() })
	}
	if h.engine, err = delta.New(cfg); err != nil {
		return h, err
	}
	closers = append(closers, h.engine.Close)
	return h, h.engine.Register(h.agent)
}

// server starts the server and imports its tools.
func (f *runFlags) server(ctx context.Context, tools *tool.Registry, log *slog.Logger) (out mcp.Imported, client *mcp.Client, err error) {
	box, err := f.local.box(log)
	if err != nil {
		return out, nil, err
	}
	if r := box.Probe(ctx); !r.OK() {
		return out, nil, fmt.Errorf("the server cannot be confined here: %s; or give --no-sandbox with a reason, which confines nothing", r.Err)
	}
	path, err := exec.LookPath(f.command[0])
	if err != nil {
		return out, nil, fmt.Errorf("the server: %w", err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return out, nil, fmt.Errorf("the server: %w", err)
	}
	client, err = mcp.Open(mcp.Config{Name: f.local.name, Server: mcp.Stdio(box, path, f.command[1:]...), Distrust: f.local.distrust, Shape: careful, Log: log})
	if err != nil {
		return out, nil, err
	}
	if out, err = mcp.Actions(ctx, client, tools); err != nil {
		return out, nil, errors.Join(err, client.Close())
	}
	return out, client, nil
}

// careful has somebody asked before what nothing undoes.
func careful(i mcp.Info, b delta.Builder[action.Input, action.Output]) delta.Builder[action.Input, action.Output] {
	if i.Class.Effect == action.Irreversible {
		return b.RequireApproval()
	}
	return b
}

// agentOf is an agent that may use the tools that the workflows name, and no other.
func (f *runFlags) agentOf(defs []*workflow.Definition, imported *mcp.Imported) (*delta.Agent, error) {
	has, known := map[string]delta.Definition{}, []string{}
	for i, t := range imported.Tools {
		has[t.Action] = imported.Actions[i]
		known = append(known, t.Action)
	}
	b := delta.NewAgent(cmp.Or(f.agent, "deltactl")).Role("runs a workflow by the tools of a server")
	var faults []error
	granted := map[string]bool{}
	for _, d := range defs {
		for step, name := range d.Calls() {
			switch a := has[name]; {
			case a == nil:
				faults = append(faults, fmt.Errorf("workflow %q: step %q calls %q, which the server does not have", d.Name(), step, name))
			case !granted[name]:
				granted[name] = true
				b = b.Grant(a)
			}
		}
	}
	if len(faults) > 0 {
		for _, s := range imported.Skipped {
			faults = append(faults, fmt.Errorf("the tool %q was not imported: %s", s.Name, s.Why))
		}
		return nil, errors.Join(append(faults, fmt.Errorf("the server has: %s", cmp.Or(strings.Join(known, ", "), "nothing that can be used")))...)
	}
	return b.Build()
}

// lineOf is a value as one line of JSON.
func lineOf(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

func printLine(out io.Writer, v any) error {
	line, err := lineOf(v)
	if err == nil {
		_, err = fmt.Fprintln(out, line)
	}
	return err
}

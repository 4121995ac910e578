package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
	"github.com/seed-ab2cfece/delta-agents/workflow"
	"github.com/seed-ab2cfece/delta-agents/workflowfile"
)

const workflowRunHelp = `Run starts an instance and follows it until it ends or waits for somebody. deltactl has no
actions of its own; there are two ways to have some.

With a store, the workers on it do the work: the programs that have the actions and call
Engine.Work. The workflow is a FILE, which has to be exactly what a worker holds, or the
NAME of one that ran before. Where no live worker holds it, it says what is missing:
another version, actions, nested workflows. The input is held to the workflow's schema and
its secrets are sealed before anything is written; you stand as its requester. --detach
prints the id and leaves it to the workers.

With a command after --, the workflow is run here, by the tools of that server of the Model
Context Protocol, which is started in a sandbox: its action NAME.TOOL is the tool TOOL of
the server, where --mcp gives NAME. Further files are the workflows that it runs. It can
have no planners, verifiers and named guards, which only programs have. You are one of its
owners, and asked before a tool does what is risky. Its state is in the store, where one is given, else
gone with the process: then what waits for somebody who is not at the terminal is undone.

On a terminal you are asked what its HUMAN steps ask, where you are whom they name, and
a bar shows how far it is; in a pipe nothing is said but how it ended.

JSON: a line of what list prints of an instance, each time something changes.

Exit codes: 0 it completed, or was started with --detach; 1 it failed, was cancelled, or
the time is up; 4 no worker could do it; 8 it waits for a person or other rules.`

// runFlags say what is started, and how it is followed.
type runFlags struct {
	store                    storeFlags
	agent, input, id, goal   string
	approvers                []string
	threshold                float64
	deadline, timeout, every time.Duration
	detach, quiet            bool
	local                    localFlags
	files                    []string // the workflow, then those it runs
	command                  []string // of the server, nil where workers have the actions
}

func newWorkflowRun() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use: "run FILE|NAME [FILE...] [-- COMMAND ARG...]", Short: "Start a workflow and follow it", Long: workflowRunHelp + storeHelp,
		Example: "  deltactl workflow run ship --input '{\"id\": \"p1\"}'\n  deltactl workflow run ship.yaml --agent dock --detach --input @parcel.json\n" +
			"  deltactl workflow run tidy.yaml --mcp files --bind-rw /srv/data -- /usr/lib/mcp/files /srv/data",
		Args: cobra.MinimumNArgs(1),
		PreRunE: func(c *cobra.Command, args []string) error {
			f.files = args
			if at := c.ArgsLenAtDash(); at >= 0 {
				f.files, f.command = args[:at], args[at:]
			}
			return f.check()
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if f.command != nil {
				return runHere(c, f)
			}
			return onDesk(&f.store, func(c *cobra.Command, d *desk, _ []string) error { return d.run(c, f) })(c, nil)
		},
	}
	f.store.add(c)
	fl := c.Flags()
	fl.StringVar(&f.agent, "agent", "", "the agent that works on it; default: the one whose workers hold the workflow")
	fl.StringVar(&f.input, "input", "{}", "the input: a JSON document, @FILE, or - for the standard input")
	fl.StringVar(&f.id, "id", "", "a name for the instance, so that starting it again finds it taken")
	fl.StringVar(&f.goal, "goal", "", "what it is for, in words")
	fl.StringSliceVar(&f.approvers, "approver", nil, "who may approve its calls; you are its requester and never do")
	fl.Float64Var(&f.threshold, "threshold", 0, "the risk from which on a call waits for an approval (4)")
	fl.DurationVar(&f.deadline, "deadline", 0, "after which it is ended")
	fl.BoolVar(&f.detach, "detach", false, "print its id and do not follow it")
	fl.BoolVar(&f.quiet, "no-ask", false, "do not ask here what it asks")
	fl.DurationVar(&f.timeout, "timeout", time.Hour, "how long to follow it at most; it goes on")
	fl.DurationVar(&f.every, "every", 500*time.Millisecond, "how often to look")
	f.local.add(c)
	return c
}

func (f *runFlags) check() error {
	switch {
	case len(f.files) == 0:
		return usageError{errors.New("which workflow? name it, or its file")}
	case f.command != nil && len(f.command) == 0:
		return usageError{errors.New("which server? write its command after --")}
	case f.command == nil && len(f.files) > 1:
		return usageError{errors.New("workers have the workflows that it runs: give one file, or a command after --")}
	case f.command == nil && f.local.given():
		return usageError{errors.New("--mcp, --bind, --bind-rw, --network and --no-sandbox are about a command after --")}
	case f.command != nil && f.detach:
		return usageError{errors.New("what is run here is followed: --detach goes with workers on a store")}
	case f.timeout <= 0 || f.every < 10*time.Millisecond:
		return usageError{fmt.Errorf("--timeout is %v and --every %v, want more than 0, and 10ms or more", f.timeout, f.every)}
	case f.deadline < 0:
		return usageError{fmt.Errorf("--deadline is %v, want a positive time", f.deadline)}
	}
	return nil
}

// goalOf is the goal of what is started.
func (f *runFlags) goalOf(d *workflow.Definition, requester string) delta.Goal {
	g := delta.Goal{ID: f.id, Text: f.goal, Approvers: f.approvers, Threshold: f.threshold, Requester: requester}
	if g.Text == "" {
		g.Text = "run workflow " + d.Name()
	}
	if f.deadline > 0 {
		g.Deadline = time.Now().Add(f.deadline)
	}
	return g
}

// run starts an instance for the workers on the store.
func (d *desk) run(c *cobra.Command, f *runFlags) error {
	ctx := c.Context()
	me, err := d.me(ctx)
	if err != nil {
		return err
	}
	input, err := document(c, f.input)
	if err != nil {
		return err
	}
	agent, def, err := d.pick(ctx, f)
	if err != nil {
		return err
	}
	i, err := d.engine.StartWorkflowFor(ctx, agent, def, f.goalOf(def, me.String()), input)
	if err != nil {
		return unheldHere(f.taken(agent, err))
	}
	if f.detach {
		if f.store.json {
			return printLine(c.OutOrStdout(), map[string]string{"id": i.ID()})
		}
		_, err := fmt.Fprintln(c.OutOrStdout(), i.ID())
		return err
	}
	w := &follower{c: c, f: f, engine: d.engine, me: me, run: i, ask: newAsker(c, f)}
	r, err := w.follow(ctx)
	if err != nil {
		return fmt.Errorf("%s goes on without you, see deltactl workflow wait %s: %w", i.ID(), i.ID(), err)
	}
	return w.end(&r)
}

// taken says of an id that it is taken in words of who gave it.
func (f *runFlags) taken(agent string, err error) error {
	var used *action.Failure
	if f.id != "" && errors.As(err, &used) && used.Code == action.InFlight {
		return coded{exitRefused, fmt.Errorf("%s~%s is there already: deltactl workflow wait %[1]s~%[2]s follows it; or give another --id", agent, f.id)}
	}
	return err
}

// unheldHere gives a workflow that no worker holds its exit code.
func unheldHere(err error) error {
	var nobody *delta.NoWorkerError
	var used *action.Failure
	switch {
	case errors.As(err, &nobody):
		return coded{exitRefused, err}
	case errors.As(err, &used):
		return coded{exitRefused, err}
	}
	return err
}

// pick finds the workflow and the agent whose workers hold it.
func (d *desk) pick(ctx context.Context, f *runFlags) (agent string, def *workflow.Definition, err error) {
	name := f.files[0]
	if _, statErr := os.Stat(name); statErr == nil || strings.ContainsAny(name, `./\`) {
		if def, err = workflowfile.Load(name); err != nil {
			return "", nil, err
		}
		name = def.Name()
	}
	if f.agent != "" {
		if def == nil {
			def, err = d.engine.DefinitionOf(ctx, f.agent, name)
		}
		return f.agent, def, unheldHere(err)
	}
	var held, without []string
	err = d.agents(ctx, "", func(agent string) (bool, error) {
		live, err := d.engine.Workers(ctx, agent)
		holds := slices.ContainsFunc(live, func(w delta.Worker) bool {
			return slices.ContainsFunc(w.Workflows, func(x delta.WorkerWorkflow) bool {
				return def == nil && x.Name == name || def != nil && x.Digest == def.Digest()
			})
		})
		if holds {
			held = append(held, agent)
		} else if len(live) > 0 {
			without = append(without, agent)
		}
		return true, err
	})
	switch {
	case err != nil:
		return "", nil, err
	case len(held) > 1:
		return "", nil, usageError{fmt.Errorf("the workers of agents %s hold workflow %q: say which with --agent", strings.Join(held, ", "), name)}
	case len(held) == 1 && def == nil:
		def, err = d.engine.DefinitionOf(ctx, held[0], name)
		return held[0], def, err
	case len(held) == 1:
		return held[0], def, nil
	case def != nil && len(without) == 1: // it says what its workers lack
		return without[0], def, nil
	case def != nil && len(without) > 0:
		return "", nil, coded{exitRefused, fmt.Errorf("no live worker holds workflow %q %s (%.12s) as the file has it: workers are there of agents %s; --agent says what those of one lack",
			name, def.Version(), def.Digest(), strings.Join(without, ", "))}
	case len(without) > 0:
		return "", nil, coded{exitRefused, fmt.Errorf("no live worker holds a workflow %q: workers are there of agents %s", name, strings.Join(without, ", "))}
	}
	return "", nil, coded{exitRefused, fmt.Errorf("nobody works on this store now who could run workflow %q: start the program that has its actions, with Engine.Work; or, where its actions are tools of an MCP server, give the server's command after --", name)}
}

// follower looks at an instance until it rests.
type follower struct {
	c      *cobra.Command
	f      *runFlags
	engine *delta.Engine
	me     delta.Identity
	run    *delta.Instance
	ask    *asker // nil where nobody is asked here
	bar    *table.Bar
	shown  int
	said   string          // the line that was printed last
	passed map[string]bool // waits that are left to others, or are over as soon as somebody looks
	told   map[string]bool // of these, those that were ended here
	local  bool            // the calls are made here: whoever sits here may approve them
}

// errElapsed says that nobody follows any more.
var errElapsed = errors.New("it neither ended nor waits for somebody in the time that --timeout gives")

func (w *follower) follow(ctx context.Context) (r instanceRow, err error) {
	bound, cancel := context.WithTimeoutCause(ctx, w.f.timeout, errElapsed)
	defer cancel()
	tick := time.NewTicker(w.f.every)
	defer tick.Stop()
	defer func() {
		if w.bar != nil {
			w.bar.Done()
		}
	}()
	w.passed, w.told = map[string]bool{}, map[string]bool{}
	for {
		t, err := w.run.Task().Standing(ctx) // first: a task that has ended has nothing to add to its instance
		if err != nil {
			return r, err
		}
		tree, err := w.run.Tree(ctx)
		if err != nil {
			return r, err
		}
		r = newInstanceRow(t, &tree)
		if err := w.show(&r); err != nil {
			return r, err
		}
		asked, err := w.answer(bound, &tree)
		switch {
		case err != nil:
			return r, err
		case asked:
			continue
		case over(&r) || tree.Rests() && !w.goesOn(&tree):
			return r, nil
		}
		select {
		case <-tick.C:
		case <-bound.Done():
			return r, context.Cause(bound)
		}
	}
}

// show tells how far it is: a line of JSON, or on a terminal a bar.
func (w *follower) show(r *instanceRow) error {
	if w.f.store.json {
		line, err := lineOf(r)
		if err != nil || line == w.said {
			return err
		}
		w.said = line
		_, err = fmt.Fprintln(w.c.OutOrStdout(), line)
		return err
	}
	if w.bar == nil && r.Steps > 0 {
		w.bar = table.Progress(w.c.ErrOrStderr(), int64(r.Steps))
	}
	if w.bar != nil {
		w.bar.Add(int64(r.Ended - w.shown))
		w.shown = r.Ended
	}
	return nil
}

// end says how it ended.
func (w *follower) end(r *instanceRow) (err error) {
	if w.f.store.json { // its last line was printed
		err = endedBadly(r)
	} else {
		err = printAwaited(w.c, &w.f.store, r)
	}
	if err == nil && !over(r) {
		err = coded{exitWaiting, fmt.Errorf("%s waits: %s; see deltactl workflow show %s", r.ID, waitsOf(r), r.ID)}
	}
	return err
}

func waitsOf(r *instanceRow) string {
	if s, ok := r.waiting().(string); ok && s != "" {
		return s
	}
	return "it is paused"
}

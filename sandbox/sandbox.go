package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/tool"
)

// Sandbox runs tools. It is immutable but for what it has found out about the machine, and safe for concurrent use. It
// holds nothing open between calls.
type Sandbox struct {
	cfg Config
	log *slog.Logger

	folders groupFolders

	mu     sync.Mutex
	found  *wrapper       // bubblewrap, once it was found
	waived map[Limit]bool // logged already
}

// New checks a configuration. Whether the machine can do what it says is seen when a tool is to run, or by [Sandbox.Probe].
func New(cfg Config) (*Sandbox, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(os.Geteuid() == 0); err != nil {
		return nil, err
	}
	s := &Sandbox{cfg: cfg, log: cfg.Log, folders: kernelFolders, waived: map[Limit]bool{}}
	if cfg.None != "" {
		s.log.Warn("tools run without a sandbox", "reason", cfg.None)
	}
	return s, nil
}

// Command is a program in a sandbox, with its arguments. It is immutable.
type Command struct {
	box  *Sandbox
	path string
	args []string
}

// Command returns a program to be run in the sandbox: an absolute path as tools find it, or a name on their PATH.
func (s *Sandbox) Command(path string, args ...string) *Command {
	return &Command{box: s, path: path, args: slices.Clone(args)}
}

// String names the program.
func (c *Command) String() string { return c.path }

// Run runs the program once, with input on its standard input, and returns when nothing of it is left. An error is one made
// by action.Unstarted around a [*ProvisionError] where nothing has run, an [*ExitError], [ErrTime], [ErrOutput], or why
// ctx ended. The result is there with every error of a program that ran.
func (c *Command) Run(ctx context.Context, input []byte) (Result, error) {
	limit := c.box.cfg.Limits.Time
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrTime)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := &limited{most: c.box.cfg.Limits.Output, over: func() { stop(ErrOutput) }}
	last := &tail{most: tailKept}
	began := time.Now()
	p, err := c.box.start(ctx, spec{path: c.path, args: c.args, in: input, out: out, err: last, cpu: c.box.cfg.Limits.CPU})
	if err != nil {
		return Result{}, err
	}
	err = p.wait(ctx)
	res := Result{Stderr: last.bytes(), Took: time.Since(began)}
	res.Stdout, _ = out.bytes()
	var exit *ExitError
	if errors.As(err, &exit) {
		exit.Stderr = words(res.Stderr)
	}
	return res, err
}

// Invoke runs the program for a call of a tool: the input of the call on its standard input, and what it writes is the
// output; nothing is null. It is a tool.Func. Where the program was ended before it ended by itself, nobody knows what it
// has done: unless the effect may be repeated the error is made by action.Unknown.
func (c *Command) Invoke(ctx context.Context, call tool.Call) (json.RawMessage, error) {
	return c.do(ctx, call.Input, call.Repeatable)
}

func (c *Command) do(ctx context.Context, input []byte, repeatable bool) (json.RawMessage, error) {
	res, err := c.Run(ctx, input)
	switch {
	case err == nil:
		return json.RawMessage(orNull(res.Stdout)), nil
	case action.IsUnstarted(err) || repeatable || !doubtful(err):
		return nil, err
	}
	return nil, action.Unknown(err)
}

func orNull(b []byte) []byte {
	if len(b) == 0 {
		return []byte("null")
	}
	return b
}

// Do is Invoke as the function of an action: delta.DefineRaw("charge-back", schema, command.Do).
func (c *Command) Do(ctx *delta.Context, in action.Input) mo.Result[action.Output] {
	out, err := c.do(ctx, []byte(in.Text()), ctx.Repeatable())
	if err != nil {
		return mo.Err[action.Output](err)
	}
	return mo.Ok(action.Output(out))
}

// Tool is the program as a tool of a contract, to be registered. It is not healthy where its sandbox cannot be made ready.
func (c *Command) Tool(contract tool.Contract) tool.Tool {
	return tool.Tool{Contract: contract, Invoke: c.Invoke, Health: c.box.Check}
}

// Launch starts a program that goes on running, such as a server that speaks over its standard input and output, and
// returns both. What it writes to standard error goes to stderr, which may be nil. Limits of time and output do not apply,
// and one of processor time only where it was given. Close closes its input, gives it a moment to end by itself, and ends
// all that is left; so does the end of ctx, at once.
func (s *Sandbox) Launch(ctx context.Context, stderr io.Writer, path string, args ...string) (io.ReadWriteCloser, error) {
	cpu := s.cfg.Limits.CPU
	if cpu == s.cfg.Limits.Time { // a default, or as good as one
		cpu = -1
	}
	return s.launch(ctx, spec{path: path, args: args, err: stderr, cpu: cpu, pipes: true})
}

// Check reports why tools cannot be run on this machine now, nil where they can. It starts none.
func (s *Sandbox) Check(context.Context) error {
	if s.cfg.None != "" {
		return nil
	}
	w, err := s.wrapper()
	if err != nil {
		return err
	}
	if _, err := s.plan(w); err != nil {
		return err
	}
	for _, b := range s.cfg.Binds {
		if _, err := resolved(b); err != nil {
			return err
		}
	}
	return nil
}

// resolved follows the links of a bind's source, which may lead to what is not handed out.
func resolved(b Bind) (string, error) {
	real, err := filepath.EvalSymlinks(b.Source)
	if err != nil {
		return "", unready(fmt.Sprintf("the folder %q cannot be bound", b.Source), "create it, or take it off Binds", err)
	}
	if err := guarded(real); err != nil {
		return "", unready(fmt.Sprintf("the folder %q cannot be bound", b.Source), "", err)
	}
	return real, nil
}

// environment is what a tool gets.
func (s *Sandbox) environment() []string {
	env := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}
	for _, name := range s.cfg.Inherit {
		if v, set := os.LookupEnv(name); set {
			env[name] = v
		}
	}
	for name, v := range s.cfg.Env {
		env[name] = v
	}
	out := make([]string, 0, len(env))
	for name, v := range env {
		out = append(out, name+"="+v)
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

// waive reports whether a limit that cannot be enforced may be done without, and logs that it is.
func (s *Sandbox) waive(l Limit, why string) bool {
	if !slices.Contains(s.cfg.Waive, l) {
		return false
	}
	s.mu.Lock()
	first := !s.waived[l]
	s.waived[l] = true
	s.mu.Unlock()
	if first {
		s.log.Warn("a limit of the sandbox is waived: this machine cannot enforce it", "limit", string(l), "why", why)
	} else {
		s.log.Debug("a limit of the sandbox is waived", "limit", string(l))
	}
	return true
}

package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// spec is a program to be run.
type spec struct {
	path     string
	args     []string
	in       []byte
	out, err io.Writer
	cpu      time.Duration
	pipes    bool // it is spoken to instead
}

// process is a program that runs, and bubblewrap around it.
type process struct {
	box  *Sandbox
	cmd  *exec.Cmd
	last *tail // of standard error, bubblewrap's own words included

	status  *os.File // what bubblewrap says
	lines   *bufio.Reader
	block   *os.File // the program starts once something is written
	mine    []*os.File
	theirs  []*os.File // closed once it has started
	groups  []string
	sources []string // of the binds, links followed

	stdin  io.WriteCloser
	stdout io.ReadCloser

	mu    sync.Mutex
	inner int // the sandbox's first process, as this machine numbers it; 0 while unknown
	watch handle
	done  chan struct{} // closed once the program is gone: the thread that started it may go
}

// Bounds of what is waited for.
const (
	settingUp = 10 * time.Second // for a sandbox to be made
	goingAway = 10 * time.Second // for what was killed to be gone
	lastWords = 2 * time.Second  // for a program that was told to end to end by itself
)

func unstarted(err error) error { return action.Unstarted(err) }

// start makes a sandbox ready and lets the program run in it.
func (s *Sandbox) start(ctx context.Context, sp spec) (*process, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, unstarted(err)
	}
	if s.cfg.None != "" {
		return s.startBare(sp)
	}
	w, err := s.wrapper()
	if err != nil {
		return nil, err
	}
	plan, err := s.plan(w)
	if err != nil {
		return nil, err
	}
	p := &process{box: s, last: &tail{most: tailKept}, done: make(chan struct{})}
	if err := p.prepare(w, sp); err != nil {
		p.discard()
		return nil, err
	}
	stop := context.AfterFunc(ctx, p.kill)
	err = p.makeReady(w, plan, sp)
	if err == nil && !stop() {
		err = unstarted(context.Cause(ctx))
	}
	if err == nil {
		if _, werr := p.block.Write([]byte{1}); werr != nil {
			err = unready("bubblewrap cannot make the sandbox", "", werr)
		}
	}
	if err != nil {
		stop()
		return nil, p.abort(ctx, err)
	}
	_ = p.block.Close()
	return p, nil
}

// prepare opens what the process needs.
func (p *process) prepare(w *wrapper, sp spec) error {
	s := p.box
	var mine, extra [filterFD - argsFD + 1]*os.File
	for i := range mine {
		r, wr, err := os.Pipe()
		if err != nil {
			return unready("no pipe can be made", "", err)
		}
		if i == statusFD-argsFD {
			mine[i], extra[i] = r, wr
		} else {
			mine[i], extra[i] = wr, r
		}
		p.mine, p.theirs = append(p.mine, mine[i]), append(p.theirs, extra[i])
	}
	calls := mine[filterFD-argsFD]
	if _, err := calls.Write(filter()); err != nil { // a pipe holds it
		return unready("no pipe can be filled", "", err)
	}
	_ = calls.Close()
	p.status, p.block = mine[statusFD-argsFD], mine[blockFD-argsFD]
	p.lines = bufio.NewReaderSize(p.status, 4096)
	for _, b := range s.cfg.Binds {
		real, err := resolved(b)
		if err != nil {
			return err
		}
		p.sources = append(p.sources, real)
	}
	p.cmd = &exec.Cmd{
		Path: w.path, Args: append([]string{"bwrap", "--args", fmt.Sprint(argsFD), "--", sp.path}, sp.args...),
		Env: []string{}, Dir: "/", ExtraFiles: extra[:], WaitDelay: goingAway,
	}
	if err := p.speak(sp); err != nil {
		return err
	}
	if err := p.closeOthers(); err != nil {
		return err
	}
	return isolate(p.cmd, s.cfg.User, s.cfg.Group)
}

// maxInherited bounds the numbers of files that are closed before a program starts: there is an entry for each number below.
const maxInherited = 1 << 14

// closeOthers has every file closed in the process, before it executes anything, that it was not given here. This process
// keeps them open, and as they are.
func (p *process) closeOthers() error {
	highest, err := inherited()
	if err != nil {
		return unready("the files that a tool would inherit cannot be listed", "mount /proc", err)
	}
	if highest > maxInherited {
		return unready(fmt.Sprintf("a tool would inherit the file that this process has open as number %d", highest),
			"close it before tools are run, or have it closed on exec", nil)
	}
	for firstExtra := 3; firstExtra+len(p.cmd.ExtraFiles) <= highest; {
		p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, nil) // a number that is closed
	}
	return nil
}

// speak connects the standard streams.
func (p *process) speak(sp spec) error {
	p.cmd.Stderr = io.Writer(p.last)
	if sp.err != nil {
		p.cmd.Stderr = io.MultiWriter(p.last, sp.err)
	}
	if !sp.pipes {
		p.cmd.Stdin, p.cmd.Stdout = strings.NewReader(string(sp.in)), sp.out
		return nil
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		return unready("no pipe can be made", "", err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		_, _ = inR.Close(), inW.Close()
		return unready("no pipe can be made", "", err)
	}
	p.cmd.Stdin, p.cmd.Stdout, p.stdin, p.stdout = inR, outW, inW, outR
	p.theirs = append(p.theirs, inR, outW)
	return nil
}

// run starts the process. The kernel ends it with the thread that started it, so that thread is kept until it is gone.
func (p *process) run() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			<-p.done
		}
	}()
	err := <-started
	for _, f := range p.theirs {
		_ = f.Close()
	}
	p.theirs = nil
	return err
}

// makeReady starts bubblewrap, which makes the sandbox and waits, and applies the limits.
func (p *process) makeReady(w *wrapper, plan *plan, sp spec) error {
	if err := p.run(); err != nil {
		p.cmd.Process = nil
		return unready("bubblewrap cannot be started", "", err)
	}
	args := p.mine[0]
	defer func() { _ = args.Close() }()
	var err error
	if p.groups, err = plan.enter(p.cmd.Process.Pid); err != nil { // it reads its arguments before it starts anything
		return unready("the process cannot be put into its control group", "", err)
	}
	deadline := time.Now().Add(settingUp)
	_ = args.SetWriteDeadline(deadline)
	if _, err := args.Write(joined(p.box.arguments(w, p.sources))); err != nil {
		return unready("bubblewrap does not take its arguments", "", err)
	}
	_ = args.Close()
	_ = p.status.SetReadDeadline(deadline)
	if err := p.hear(); err != nil {
		return unready("bubblewrap cannot make the sandbox", "", err)
	}
	rs := plan.rlimits
	for i := range rs {
		if rs[i].name == CPU {
			rs[i].value = seconds(sp.cpu)
		}
	}
	return p.limit(rs)
}

// hear reads the first process of the sandbox from what bubblewrap says.
func (p *process) hear() error {
	line, err := p.lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	var said struct {
		Pid int `json:"child-pid"`
	}
	if err := json.Unmarshal(line, &said); err != nil || said.Pid <= 0 {
		return fmt.Errorf("it says %q", action.CutTo(string(line), 100))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inner = said.Pid
	p.watch, err = hold(said.Pid)
	return err
}

// kill ends everything. The first process of a sandbox takes all others with it.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd.Process != nil {
		_ = p.cmd.Process.Kill() // before the other: what was killed must not be reported as an end of its own
	}
	p.watch.kill()
}

// discard closes all that is open of a process that never was.
func (p *process) discard() {
	for _, f := range append(p.mine, p.theirs...) {
		_ = f.Close()
	}
	for _, c := range []io.Closer{p.stdin, p.stdout} {
		if c != nil {
			_ = c.Close()
		}
	}
}

// abort ends a sandbox that could not be made ready. Bubblewrap may have said why.
func (p *process) abort(ctx context.Context, err error) error {
	if p.cmd.Process != nil {
		p.kill()
		_ = p.cmd.Wait()
	}
	close(p.done)
	gone := p.buried()
	p.discard()
	if cause := context.Cause(ctx); cause != nil {
		err = unstarted(cause)
	}
	var why *ProvisionError
	if errors.As(err, &why) && why.Limit == "" {
		if said := words(p.last.bytes()); strings.Contains(said, "bwrap:") {
			why.Why += ": " + said
			if why.Do == "" && p.cmd.SysProcAttr.Credential != nil {
				why.Do = "tools run under ids of their own, which must be able to reach and read what is bound; or choose Config.User"
			}
		}
	}
	return errors.Join(err, gone)
}

// buried waits until nothing is left, and removes the control groups.
func (p *process) buried() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.watch.gone(goingAway)
	p.watch.release()
	p.watch = handle{}
	for _, g := range p.groups {
		if gerr := p.box.folders.removeGroup(g); gerr != nil {
			p.box.log.Warn("a control group is left behind", "group", g, "error", gerr)
		}
	}
	return err
}

// wait waits until the program, and all that it started, is gone; the end of ctx ends it.
func (p *process) wait(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.kill)
	werr := p.cmd.Wait()
	stop()
	close(p.done)
	if err := p.buried(); err != nil {
		p.discard()
		return err
	}
	code, ended := p.verdict(werr)
	p.discard()
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, ErrOutput):
		return cause
	case ended && code == 0:
		return nil
	case ended && (cause == nil || p.status != nil): // bubblewrap reports no end that we gave
		return &ExitError{Code: code}
	case cause != nil:
		return cause
	}
	var exit *exec.ExitError
	if errors.As(werr, &exit) && exit.ExitCode() > 0 { // bubblewrap itself gave up
		return unready("the program cannot be run", "", errors.New(words(p.last.bytes())))
	}
	return fmt.Errorf("sandbox: bubblewrap was ended from outside: %w", werr)
}

// verdict is the exit code; ended is false where the program did not end by itself, or was never run: bubblewrap reports
// codes of programs that it could execute.
func (p *process) verdict(werr error) (code int, ended bool) {
	if p.status == nil { // no sandbox
		var exit *exec.ExitError
		switch {
		case werr == nil || errors.Is(werr, exec.ErrWaitDelay):
			return 0, true
		case errors.As(werr, &exit):
			return bareCode(exit), true
		}
		return 0, false
	}
	_ = p.status.SetReadDeadline(time.Now().Add(time.Second))
	for {
		line, err := p.lines.ReadBytes('\n')
		var said struct {
			Code *int `json:"exit-code"`
		}
		if json.Unmarshal(line, &said) == nil && said.Code != nil {
			return *said.Code, true
		}
		if err != nil {
			return 0, false
		}
	}
}

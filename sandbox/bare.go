package sandbox

import (
	"os/exec"
)

// startBare runs a program without a sandbox.
func (s *Sandbox) startBare(sp spec) (*process, error) {
	s.log.Warn("a tool runs without a sandbox", "program", sp.path, "reason", s.cfg.None)
	p := &process{box: s, last: &tail{most: tailKept}, done: make(chan struct{})}
	path, err := exec.LookPath(sp.path)
	if err != nil {
		return nil, unready("the program cannot be run", "", err)
	}
	p.cmd = &exec.Cmd{Path: path, Args: append([]string{sp.path}, sp.args...), Env: s.environment(), Dir: s.cfg.Dir, WaitDelay: lastWords}
	if err := p.speak(sp); err != nil {
		return nil, err
	}
	if err := p.closeOthers(); err != nil {
		p.discard()
		return nil, err
	}
	group(p.cmd)
	if err := p.run(); err != nil {
		p.discard()
		return nil, unready("the program cannot be run", "", err)
	}
	p.watch = holdGroup(p.cmd.Process.Pid)
	return p, nil
}

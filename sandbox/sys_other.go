//go:build !linux

package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"time"
)

const (
	rlimitAS = iota
	rlimitCPU
	rlimitNProc
	rlimitFSize
	rlimitNoFile
)

var errLinux = errors.New("sandbox: tools are confined on Linux alone")

func isolate(*exec.Cmd, uint32, uint32) error {
	return unready("tools are confined on Linux alone", "", nil)
}

func filter() []byte { return nil }

// inherited is not known: nothing runs here but without a sandbox.
func inherited() (int, error) { return 2, nil }

func group(*exec.Cmd) {}

func rlimitsFail() string { return "it is not Linux" }

func (p *process) limit([]rlimit) error { return errLinux }

// handle is a hold on a process.
type handle struct{ proc *os.Process }

func hold(int) (handle, error) { return handle{}, errLinux }

func holdGroup(pid int) handle {
	proc, _ := os.FindProcess(pid) // never fails where there are pids
	return handle{proc}
}

func (h handle) kill() {
	if h.proc != nil {
		_ = h.proc.Kill()
	}
}

func (h handle) gone(time.Duration) error { return nil }

func (h handle) release() {}

func bareCode(e *exec.ExitError) int { return e.ExitCode() }

package sandbox

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	rlimitAS     = unix.RLIMIT_AS
	rlimitCPU    = unix.RLIMIT_CPU
	rlimitNProc  = unix.RLIMIT_NPROC
	rlimitFSize  = unix.RLIMIT_FSIZE
	rlimitNoFile = unix.RLIMIT_NOFILE
)

// isolate says whom a process runs as. Root's processes are given ids that nothing else has: root is not bound by the
// limit on processes, and owns too much.
func isolate(cmd *exec.Cmd, user, group uint32) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's interrupt is not meant for it
	if os.Geteuid() != 0 {
		return nil
	}
	if user == 0 {
		var b [4]byte
		_, _ = rand.Read(b[:])                             // never fails
		user = 1<<30 | binary.LittleEndian.Uint32(b[:])>>8 // 16 million ids from 2^30 on
		group = orElse(group, user)
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: orElse(group, user), Groups: []uint32{}}
	return nil
}

// inherited is the highest number of a file that a program started by this process would find open, 2 where it is but the
// standard streams. What Go opens is closed by the kernel; what this process was started with is not: sockets of a service
// manager, pipes of a supervisor, redirections of a shell.
func inherited() (highest int, err error) {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0, err
	}
	defer func() { _ = dir.Close() }() // it was only read
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0, err
	}
	highest = 2
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= highest {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			highest = fd
		}
	}
	return highest, nil
}

func group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// rlimitsFail says why limits of processes cannot be set, "" where they can.
func rlimitsFail() string {
	if os.Geteuid() != 0 {
		return ""
	}
	if _, err := exec.LookPath("prlimit"); err != nil {
		return "there is no program prlimit, which sets them: install util-linux"
	}
	return ""
}

// limit holds the first process of the sandbox, and so all of its children, to limits. It must be the same user to do so
// without the right to change everybody's.
func (p *process) limit(rs []rlimit) error {
	var own []rlimit
	for _, r := range rs {
		if r.value < 1<<62 {
			own = append(own, r)
		}
	}
	if len(own) == 0 {
		return nil
	}
	if cred := p.cmd.SysProcAttr.Credential; cred != nil {
		cmd := exec.Command("prlimit", flags(p.inner, own)...)
		cmd.SysProcAttr, cmd.Env, cmd.WaitDelay = &syscall.SysProcAttr{Credential: cred}, []string{}, time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			return unready("the limits cannot be set: "+words(out), "", err)
		}
		return nil
	}
	for _, r := range own {
		bound := unix.Rlimit{Cur: r.value, Max: r.value}
		var now unix.Rlimit
		if err := unix.Prlimit(p.inner, r.res, nil, &now); err == nil && now.Max < r.value {
			bound = unix.Rlimit{Cur: now.Max, Max: now.Max} // this process is held to less already
		}
		if err := unix.Prlimit(p.inner, r.res, &bound, nil); err != nil {
			return unstarted(unenforced(r.name, err.Error()))
		}
	}
	return nil
}

// handle is a hold on a process, which no other process can take the place of.
type handle struct {
	fd    int // of the process, 0 for none
	group int // of processes, 0 for none
}

func hold(pid int) (handle, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return handle{}, nil // it is gone already
	}
	if err != nil {
		return handle{}, fmt.Errorf("the sandbox cannot be watched: %w", err)
	}
	return handle{fd: fd}, nil
}

func holdGroup(pid int) handle { return handle{group: pid} }

func (h handle) kill() {
	if h.fd > 0 {
		_ = unix.PidfdSendSignal(h.fd, unix.SIGKILL, nil, 0)
	}
	if h.group > 0 {
		_ = unix.Kill(-h.group, unix.SIGKILL)
	}
}

// gone waits until the process is no more: the first one of a sandbox is not before all others are.
func (h handle) gone(most time.Duration) error {
	h.kill()
	if h.fd == 0 {
		return nil
	}
	for end := time.Now().Add(most); ; {
		left := time.Until(end)
		if left <= 0 {
			return errors.New("sandbox: processes of the tool are still there after they were killed")
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("sandbox: the end of the tool cannot be seen: %w", err)
		}
		if n > 0 {
			return nil
		}
	}
}

func (h handle) release() {
	if h.fd > 0 {
		_ = unix.Close(h.fd)
	}
}

// bareCode is the code that bubblewrap would report.
func bareCode(e *exec.ExitError) int {
	if st, ok := e.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return 128 + int(st.Signal())
	}
	return e.ExitCode()
}

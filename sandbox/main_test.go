package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/seed-ab2cfece/delta-agents/sandbox"
)

// The test binary is a tool too: what a shell cannot do, it does where this variable says so.
const role = "DELTA_TEST_TOOL"

func TestMain(m *testing.M) {
	if as := os.Getenv(role); as != "" {
		os.Exit(hostile(as))
	}
	goleak.VerifyTestMain(m)
}

// hostile tries what no tool should, and says on standard output what came of it.
func hostile(as string) int {
	verb, arg, _ := strings.Cut(as, " ")
	said, err := "", error(nil)
	switch verb {
	case "dial":
		network, addr, _ := strings.Cut(arg, "|")
		var c net.Conn
		if c, err = net.DialTimeout(network, addr, time.Second); err == nil {
			_ = c.Close()
		}
	case "raw":
		_, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_ICMP)
	case "mount":
		err = syscall.Mount("none", "/tmp", "tmpfs", 0, "")
	case "ptrace":
		err = syscall.PtraceAttach(os.Getppid() + 1)
	case "keyring":
		_, err = unix.KeyctlInt(unix.KEYCTL_GET_KEYRING_ID, unix.KEY_SPEC_SESSION_KEYRING, 0, 0, 0)
	case "orphan": // to live on when its parent dies
		err = unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0)
	case "unshare":
		err = unix.Unshare(unix.CLONE_NEWNS)
	case "fds":
		var names []os.DirEntry
		names, err = os.ReadDir("/proc/self/fd")
		for _, n := range names {
			to, _ := os.Readlink("/proc/self/fd/" + n.Name())
			said += n.Name() + "=" + to + " "
		}
	case "modes":
		said = modes(arg)
	case "daemon": // two forks and a session of its own
		cmd := exec.Command("/bin/sh", "-c", `setsid sh -c 'trap "" TERM HUP; while :; do date +%s%N > /out/beat; sleep 0.05; done' & while ! [ -e /out/beat ]; do sleep 0.05; done`)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		err = cmd.Run()
	}
	if err != nil {
		said = "refused: " + err.Error()
	}
	fmt.Printf("%q\n", said)
	return 0
}

// modes tries every call that gives a file its mode, on files below dir, and says which gave one more than it may have, and
// which refused what is harmless.
func modes(dir string) (said string) {
	n := 0
	path := func() string { n++; return fmt.Sprintf("%s/%d", dir, n) }
	raw := func(call, a, b, c, d uintptr) error {
		if _, _, no := unix.Syscall6(call, a, b, c, d, 0, 0); no != 0 {
			return no
		}
		return nil
	}
	text := func(s string) uintptr {
		p, _ := unix.BytePtrFromString(s)
		return uintptr(unsafe.Pointer(p))
	}
	made := func() string {
		p := path()
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			said += "write: " + err.Error() + " "
		}
		return p
	}
	at := unix.AT_FDCWD
	here := uintptr(at)
	calls := map[string]func(uintptr) error{
		"fchmod": func(m uintptr) error {
			f, err := os.Open(made())
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			return raw(unix.SYS_FCHMOD, f.Fd(), m, 0, 0)
		},
		"fchmodat":        func(m uintptr) error { return raw(unix.SYS_FCHMODAT, here, text(made()), m, 0) },
		"fchmodat2":       func(m uintptr) error { return raw(unix.SYS_FCHMODAT2, here, text(made()), m, 0) },
		"mknodat":         func(m uintptr) error { return raw(unix.SYS_MKNODAT, here, text(path()), unix.S_IFREG|m, 0) },
		"mkdirat":         func(m uintptr) error { return raw(unix.SYS_MKDIRAT, here, text(path()), m, 0) },
		"openat":          func(m uintptr) error { return raw(unix.SYS_OPENAT, here, text(path()), unix.O_CREAT|unix.O_RDWR, m) },
		"openat, unnamed": func(m uintptr) error { return raw(unix.SYS_OPENAT, here, text(dir), unix.O_TMPFILE|unix.O_RDWR, m) },
	}
	if runtime.GOARCH == "amd64" { // by its numbers: others have none of these
		calls["open"] = func(m uintptr) error { return raw(2, text(path()), unix.O_CREAT|unix.O_RDWR, m, 0) }
		calls["mkdir"] = func(m uintptr) error { return raw(83, text(path()), m, 0, 0) }
		calls["creat"] = func(m uintptr) error { return raw(85, text(path()), m, 0, 0) }
		calls["chmod"] = func(m uintptr) error { return raw(90, text(made()), m, 0, 0) }
		calls["mknod"] = func(m uintptr) error { return raw(133, text(path()), unix.S_IFREG|m, 0, 0) }
	}
	for name, call := range calls {
		for _, m := range []uintptr{0o4755, 0o2755, 0o6000} {
			if err := call(m); !errors.Is(err, unix.EPERM) {
				said += fmt.Sprintf("%s %o: %v ", name, m, err)
			}
		}
		err := call(0o1755)
		older := name == "fchmodat2" && errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) // a kernel, or a file system
		if err != nil && !older {
			said += fmt.Sprintf("%s 1755: %v ", name, err)
		}
	}
	if err := raw(unix.SYS_OPENAT, here, text(made()), unix.O_RDONLY, 0o7777); err != nil { // nothing is made
		said += fmt.Sprintf("openat of what is there: %v ", err)
	}
	if _, err := unix.Openat2(unix.AT_FDCWD, path(), &unix.OpenHow{Flags: unix.O_CREAT | unix.O_RDWR, Mode: 0o4755}); !errors.Is(err, unix.ENOSYS) {
		said += fmt.Sprintf("openat2: %v ", err)
	}
	return said
}

// self is the test binary as a tool with a role.
func self(t *testing.T, as string, c sandbox.Config) *sandbox.Command {
	t.Helper()
	c.Binds = append(c.Binds, sandbox.Bind{Source: program(t), Target: "/tool"})
	c.Env = map[string]string{role: as}
	c.Limits.Memory = -1 // the race detector reserves more than there is
	return box(t, c).Command("/tool")
}

// box makes a sandbox, where there can be one: a CI must be able to.
func box(t *testing.T, c sandbox.Config) *sandbox.Sandbox {
	t.Helper()
	if why := usable(); why != "" && c.None == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("no tool can be confined here: " + why)
		}
		t.Skip("no tool can be confined here: " + why)
	}
	s, err := sandbox.New(c)
	require.NoError(t, err)
	return s
}

// usable says why no tool can be confined here.
var usable = sync.OnceValue(func() string {
	s, err := sandbox.New(sandbox.Config{})
	if err != nil {
		return err.Error()
	}
	return s.Probe(context.Background()).Err
})

// program is the test binary where everybody can run it.
func program(t *testing.T) string {
	t.Helper()
	me, err := os.Executable()
	require.NoError(t, err)
	at := filepath.Join(folder(t), "tool")
	if os.Link(me, at) != nil { // another file system
		require.NoError(t, exec.Command("cp", me, at).Run())
	}
	return at
}

// folder makes a folder that tools may write to, whoever they are.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	require.NoError(t, os.Chmod(dir, 0o777))
	return dir
}

// runnable reports whether an example can show a tool.
func runnable() bool { return usable() == "" || os.Getenv("CI") != "" }

package sandbox_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/sandbox"
)

// sh runs a script in a sandbox.
func sh(t *testing.T, c sandbox.Config, script string) (string, error) {
	t.Helper()
	res, err := box(t, c).Command("/bin/sh", "-c", script).Run(context.Background(), nil)
	return string(res.Stdout) + string(res.Stderr), err
}

func TestReadsNoSecret(t *testing.T) {
	t.Setenv("DELTA_TEST_SECRET", "hunter2")
	dir := folder(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("hunter2"), 0o644))
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	for name, script := range map[string]string{
		"an environment that was not given": "env",
		"that of other processes":           "cat /proc/[0-9]*/environ | tr '\\0' '\\n'",
		"a file of somebody else":           "cat " + dir + "/secret",
		"the passwords":                     "cat /etc/shadow && echo hunter2",
		"a home":                            "ls " + home + " && echo hunter2",
		"anything below home":               "ls /home/* /root/* && echo hunter2",
		"another root":                      "ls /proc/1/root" + dir + " && echo hunter2",
		"the processes of others":           "test $(ls -d /proc/[0-9]* | wc -l) -lt 9 || echo hunter2",
		"the memory of the machine":         "head -c 1 /dev/mem && echo hunter2",
		"devices":                           "ls /dev/vda /dev/sda /dev/kmsg 2>/dev/null && echo hunter2",
	} {
		t.Run(name, func(t *testing.T) {
			out, _ := sh(t, sandbox.Config{}, script)
			assert.NotContains(t, out, "hunter2")
		})
	}
}

func TestWritesNothingOutside(t *testing.T) {
	dir := folder(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kept"), []byte("as it was"), 0o666))
	for name, script := range map[string]string{
		"the root":           "echo x > /x",
		"programs":           "echo x > /usr/bin/true",
		"what is bound":      "echo x > /in/kept",
		"new files there":    "echo x > /in/new",
		"its mode":           "chmod 777 /in/kept",
		"devices":            "echo x > /dev/new",
		"settings":           "echo x > /proc/sys/kernel/hostname",
		"mounting over it":   "mount -t tmpfs none /usr",
		"making it writable": "mount -o remount,rw /",
		"a user of its own":  "unshare -Ur true",
	} {
		t.Run(name, func(t *testing.T) {
			out, err := sh(t, sandbox.Config{Binds: []sandbox.Bind{{Source: dir, Target: "/in"}}}, script)
			var exit *sandbox.ExitError
			require.ErrorAs(t, err, &exit, out)
		})
	}
	kept, err := os.ReadFile(filepath.Join(dir, "kept"))
	require.NoError(t, err)
	assert.Equal(t, "as it was", string(kept))
	assert.NoFileExists(t, filepath.Join(dir, "new"))
	assert.NoFileExists(t, "/x")
}

func TestWritesWhereItMay(t *testing.T) {
	dir := folder(t)
	out, err := sh(t, sandbox.Config{Binds: []sandbox.Bind{{Source: dir, Target: "/out", Writable: true}}}, "echo made > /out/new && echo mine > /tmp/x && cat /tmp/x && pwd")
	require.NoError(t, err, out)
	assert.Equal(t, "mine\n/tmp\n", out)
	made, err := os.ReadFile(filepath.Join(dir, "new"))
	require.NoError(t, err)
	assert.Equal(t, "made\n", string(made))
	assert.NoFileExists(t, "/tmp/x", "its /tmp is its own")
}

func TestOpensNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	abstract, err := net.Listen("unix", "@delta-sandbox-test")
	require.NoError(t, err)
	defer func() { _ = abstract.Close() }()
	for _, as := range []string{"dial tcp|" + l.Addr().String(), "dial unix|@delta-sandbox-test", "dial udp|192.0.2.1:9", "dial tcp|[::1]:1", "raw"} {
		t.Run(as, func(t *testing.T) {
			res, err := self(t, as, sandbox.Config{}).Run(context.Background(), nil)
			require.NoError(t, err, string(res.Stderr))
			assert.Contains(t, string(res.Stdout), "refused: ")
		})
	}
	res, err := self(t, "dial tcp|"+l.Addr().String(), sandbox.Config{Network: true}).Run(context.Background(), nil)
	require.NoError(t, err)
	assert.Equal(t, "\"\"\n", string(res.Stdout), "granted")
}

// What the sandbox is made with stays with it: an open folder of the machine would lead out.
func TestInheritsNoFile(t *testing.T) {
	dir := folder(t)
	res, err := self(t, "fds", sandbox.Config{Binds: []sandbox.Bind{{Source: dir}}}).Run(context.Background(), nil)
	require.NoError(t, err, string(res.Stderr))
	for _, f := range strings.Fields(strings.Trim(string(res.Stdout), "\"\n")) {
		_, to, _ := strings.Cut(f, "=")
		assert.Regexp(t, `^(|pipe:\[|anon_inode:|/dev/null$|/proc/\d+/fd$)`, to, f)
	}
	assert.NotContains(t, string(res.Stdout), "7=pipe", "no pipe but its own three")
}

// What this process was started with, or opened to be inherited by others, is not for tools: whatever its number.
func TestInheritsNothingOfTheProcess(t *testing.T) {
	dir := folder(t)
	secret, err := os.Create(filepath.Join(dir, "secret"))
	require.NoError(t, err)
	defer func() { _ = secret.Close() }()
	for _, from := range []int{3, 9, 77, 1000} {
		for _, of := range []string{dir, secret.Name()} {
			f, err := unix.Open(of, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			require.NoError(t, err)
			fd, err := unix.FcntlInt(uintptr(f), unix.F_DUPFD, from) // it is inherited
			require.NoError(t, err)
			require.NoError(t, unix.Close(f))
			defer func() { assert.NoError(t, unix.Close(fd), "it stays open here") }()
		}
	}
	const script = `for p in self 1 $$; do for f in /proc/$p/fd/*; do echo "$f=$(readlink $f)"; done; done`
	t.Run("of a call", func(t *testing.T) {
		out, err := sh(t, sandbox.Config{}, script)
		require.NoError(t, err, out)
		assert.NotContains(t, out, dir)
	})
	t.Run("of what is launched", func(t *testing.T) {
		p, err := box(t, sandbox.Config{}).Launch(context.Background(), nil, "/bin/sh", "-c", script)
		require.NoError(t, err)
		out, err := io.ReadAll(p)
		require.NoError(t, err)
		require.NoError(t, p.Close())
		assert.Contains(t, string(out), "/proc/1/fd/0=pipe")
		assert.NotContains(t, string(out), dir)
	})
	t.Run("without a sandbox", func(t *testing.T) {
		out, err := sh(t, sandbox.Config{None: "a test"}, strings.Replace(script, "self 1 ", "", 1))
		require.NoError(t, err, out)
		assert.NotContains(t, out, dir)
	})
}

// A file whose number is beyond reason is refused, not handed on.
func TestInheritsNoFarNumber(t *testing.T) {
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, 20000)
	if err != nil {
		t.Skipf("this process may not have so many files open: %v", err)
	}
	defer func() { _ = unix.Close(fd) }()
	_, err = sh(t, sandbox.Config{}, "true")
	require.ErrorContains(t, err, "number 20000")
	assert.True(t, action.IsUnstarted(err))
}

// A program that runs under its owner's identity would outlast the tool that left it.
func TestLeavesNoPrivilegedProgram(t *testing.T) {
	dir := folder(t)
	c := sandbox.Config{Binds: []sandbox.Bind{{Source: dir, Target: "/out", Writable: true}}}
	for _, at := range []string{"/out", "/tmp"} {
		res, err := self(t, "modes "+at, c).Run(context.Background(), nil)
		require.NoError(t, err, string(res.Stderr))
		assert.Equal(t, "\"\"\n", string(res.Stdout))
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.NotEmpty(t, left)
	for _, f := range left {
		info, err := f.Info()
		require.NoError(t, err)
		assert.Zero(t, info.Mode()&(os.ModeSetuid|os.ModeSetgid), f.Name())
	}
}

func TestReachesIntoNothing(t *testing.T) {
	for _, as := range []string{"mount", "ptrace", "keyring", "orphan", "unshare"} {
		t.Run(as, func(t *testing.T) {
			res, err := self(t, as, sandbox.Config{}).Run(context.Background(), nil)
			require.NoError(t, err, string(res.Stderr))
			assert.Contains(t, string(res.Stdout), "refused: operation not permitted")
		})
	}
}

func TestForksNotWithoutEnd(t *testing.T) {
	c := sandbox.Config{Limits: sandbox.Limits{Pids: 20, Time: 5 * time.Second}}
	out, err := sh(t, c, "i=0; while [ $i -lt 17 ]; do sleep 5 & i=$((i+1)); done; ls -d /proc/[0-9]* | wc -l; kill -9 -1")
	require.NoError(t, err, out)
	assert.NotContains(t, out, "fork", "seventeen, the shell and two more are few enough")
	began := time.Now()
	out, err = sh(t, c, "bomb() { bomb | bomb & }; bomb; sleep 0.2; echo still here")
	_ = err // dash gives up where it cannot fork
	assert.Contains(t, strings.ToLower(out), "fork")
	assert.Less(t, time.Since(began), 10*time.Second)
}

func TestFillsNoDisk(t *testing.T) {
	c := sandbox.Config{Limits: sandbox.Limits{Tmp: 1 << 20, FileSize: 300 << 10}}
	for name, script := range map[string]string{
		"its folder":    "for i in 1 2 3 4 5 6; do head -c 250000 /dev/zero > /tmp/$i || exit 3; done",
		"shared memory": "for i in 1 2 3 4 5 6; do head -c 250000 /dev/zero > /dev/shm/$i || exit 3; done",
		"one file":      "head -c 400000 /dev/zero > /tmp/big || exit 3",
	} {
		t.Run(name, func(t *testing.T) {
			out, err := sh(t, c, script)
			var exit *sandbox.ExitError
			require.ErrorAs(t, err, &exit, out)
		})
	}
}

func TestTakesNotAllMemory(t *testing.T) {
	c := sandbox.Config{Limits: sandbox.Limits{Memory: 64 << 20}}
	out, err := sh(t, c, "head -c 100000000 /dev/zero | tail -c 100000000 | wc -c")
	assert.NotEqual(t, "100000000\n", out, "%v", err)
	out, err = sh(t, c, "echo fits")
	require.NoError(t, err)
	assert.Equal(t, "fits\n", out)
}

func TestOutlivesNotItsCall(t *testing.T) {
	quick := sandbox.Limits{Time: 2 * time.Second}
	beat := func(t *testing.T, run func(sandbox.Config)) {
		dir := folder(t)
		run(sandbox.Config{Binds: []sandbox.Bind{{Source: dir, Target: "/out", Writable: true}}})
		last, err := os.ReadFile(filepath.Join(dir, "beat"))
		require.NoError(t, err, "it was alive")
		time.Sleep(200 * time.Millisecond)
		now, err := os.ReadFile(filepath.Join(dir, "beat"))
		require.NoError(t, err)
		assert.Equal(t, string(last), string(now), "it is no more")
	}
	t.Run("after two forks, in a session of its own", func(t *testing.T) {
		beat(t, func(c sandbox.Config) {
			res, err := self(t, "daemon", c).Run(context.Background(), nil)
			require.NoError(t, err, string(res.Stderr))
		})
	})
	t.Run("deaf to signals, when the time is up", func(t *testing.T) {
		beat(t, func(c sandbox.Config) {
			c.Limits = quick
			_, err := sh(t, c, `trap "" TERM INT HUP QUIT; setsid sh -c 'while :; do date +%s%N > /out/beat; sleep 0.05; done' & while :; do sleep 1; done`)
			require.ErrorIs(t, err, sandbox.ErrTime)
		})
	})
	t.Run("when the caller goes away", func(t *testing.T) {
		beat(t, func(c sandbox.Config) {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			_, err := box(t, c).Command("/bin/sh", "-c", `while :; do date +%s%N > /out/beat; sleep 0.05; done`).Run(ctx, nil)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
}

func TestWritesNotWithoutEnd(t *testing.T) {
	c := sandbox.Config{Limits: sandbox.Limits{Output: 1000, Time: 20 * time.Second}}
	began := time.Now()
	res, err := box(t, c).Command("/bin/sh", "-c", "yes").Run(context.Background(), nil)
	require.ErrorIs(t, err, sandbox.ErrOutput)
	assert.Len(t, res.Stdout, 1000)
	assert.Less(t, time.Since(began), 10*time.Second)
	res, err = box(t, c).Command("/bin/sh", "-c", "yes noise | head -c 3000000 >&2; echo ok").Run(context.Background(), nil)
	require.NoError(t, err, "noise is no output")
	assert.Len(t, res.Stderr, 16<<10)
	assert.Equal(t, "ok\n", string(res.Stdout))
}

package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/sandbox"
	"github.com/seed-ab2cfece/delta-agents/tool"
)

func TestUnsoundConfigurationsAreRefused(t *testing.T) {
	bind := func(source, target string) sandbox.Config {
		return sandbox.Config{Binds: []sandbox.Bind{{Source: source, Target: target}}}
	}
	for name, c := range map[string]struct {
		cfg  sandbox.Config
		says string
	}{
		"the whole machine":          {bind("/", ""), "as a whole"},
		"all homes":                  {bind("/home", ""), "as a whole"},
		"a home":                     {bind("/home/ana", ""), "whole home"},
		"the home of root":           {bind("/root/x", ""), "nothing below /root"},
		"settings":                   {bind("/etc/shadow", ""), "nothing below /etc"},
		"a socket of the machine":    {bind("/run/docker.sock", ""), "nothing below /run"},
		"what is above a home":       {bind("/var", ""), "as a whole"},
		"a relative folder":          {bind("srv", ""), "not an absolute path"},
		"a detour":                   {bind("/srv/../root", ""), "shortest form"},
		"over the sandbox's own":     {bind("/srv", "/proc"), "sandbox's own"},
		"secrets as system":          {sandbox.Config{System: []string{"/etc"}}, "what no tool is shown"},
		"no variable":                {sandbox.Config{Env: map[string]string{"A=B": ""}}, "is no variable"},
		"no variable to inherit":     {sandbox.Config{Inherit: []string{""}}, "is no variable"},
		"a limit nobody knows":       {sandbox.Config{Waive: []sandbox.Limit{"fun"}}, "no limit that can be waived"},
		"a limit that always is":     {sandbox.Config{Waive: []sandbox.Limit{sandbox.Time}}, "no limit that can be waived"},
		"time without end":           {sandbox.Config{Limits: sandbox.Limits{Time: -1}}, "cannot be unlimited"},
		"output without end":         {sandbox.Config{Limits: sandbox.Limits{Output: -1}}, "Output is -1"},
		"too few files to make it":   {sandbox.Config{Limits: sandbox.Limits{OpenFiles: 3}}, "OpenFiles is 3"},
		"no sandbox, and no reason":  {sandbox.Config{None: " \u200b"}, "give a reason"},
		"a relative place to begin":  {sandbox.Config{Dir: "tmp"}, "Dir:"},
		"a relative folder of group": {sandbox.Config{Cgroups: []string{"x"}}, "Cgroups[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sandbox.New(c.cfg)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// TestNothingRanWhereItCannotBeMadeReady: each of these is NOT_STARTED, and names the way out.
func TestNothingRanWhereItCannotBeMadeReady(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  sandbox.Config
		path string
		says []string
	}{
		"no bubblewrap":       {sandbox.Config{Bubblewrap: "bwrap-that-is-not-there"}, "/bin/true", []string{"no bubblewrap", "install it"}},
		"not bubblewrap":      {sandbox.Config{Bubblewrap: "/bin/true"}, "/bin/true", []string{"too old", "install"}},
		"nothing to bind":     {sandbox.Config{Binds: []sandbox.Bind{{Source: "/srv/not/there"}}}, "/bin/true", []string{"cannot be bound", "create it"}},
		"no such program":     {sandbox.Config{}, "/bin/not-there", []string{"cannot be run", "/bin/not-there"}},
		"no place to begin":   {sandbox.Config{Dir: "/not/there"}, "/bin/true", []string{"cannot", "/not/there"}},
		"no group to be made": {sandbox.Config{Cgroups: []string{"/not/there"}}, "/bin/true", []string{"control group", "delegate"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := box(t, c.cfg).Command(c.path).Run(context.Background(), nil)
			require.Error(t, err)
			assert.True(t, action.IsUnstarted(err), "%v", err)
			var why *sandbox.ProvisionError
			require.ErrorAs(t, err, &why)
			for _, s := range c.says {
				assert.Contains(t, err.Error(), s)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := box(t, sandbox.Config{}).Command("/bin/true").Run(ctx, nil)
	assert.True(t, action.IsUnstarted(err), "cancelled before: %v", err)
	require.ErrorIs(t, err, context.Canceled)
}

// TestALinkLeadsNowhereElse: what is bound is looked at again once its links were followed.
func TestALinkLeadsNowhereElse(t *testing.T) {
	at := filepath.Join(folder(t), "link")
	require.NoError(t, os.Symlink("/etc", at))
	_, err := box(t, sandbox.Config{Binds: []sandbox.Bind{{Source: at}}}).Command("/bin/true").Run(context.Background(), nil)
	require.ErrorContains(t, err, "/etc")
	assert.True(t, action.IsUnstarted(err))
}

// TestALimitIsEnforcedOrWaivedByName: without the program that sets limits, root can enforce none.
func TestALimitIsEnforcedOrWaivedByName(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("who is not root sets limits without help")
	}
	box(t, sandbox.Config{})
	at, err := exec.LookPath("bwrap")
	require.NoError(t, err)
	t.Setenv("PATH", "/nowhere")
	var log bytes.Buffer
	c := sandbox.Config{Bubblewrap: at, Log: slog.New(slog.NewTextHandler(&log, nil))}
	_, err = box2(t, c).Command("/bin/true").Run(context.Background(), nil)
	var why *sandbox.ProvisionError
	require.ErrorAs(t, err, &why)
	assert.Equal(t, sandbox.Memory, why.Limit)
	assert.Contains(t, err.Error(), "util-linux")
	assert.Contains(t, err.Error(), `Config.Waive "memory"`)
	c.Waive = []sandbox.Limit{sandbox.Memory, sandbox.CPU, sandbox.Pids, sandbox.FileSize}
	_, err = box2(t, c).Command("/bin/true").Run(context.Background(), nil)
	require.ErrorAs(t, err, &why)
	assert.Equal(t, sandbox.OpenFiles, why.Limit, "each by its own name")
	c.Waive = append(c.Waive, sandbox.OpenFiles)
	log.Reset()
	s := box2(t, c)
	for range 2 {
		_, err = s.Command("/bin/true").Run(context.Background(), nil)
		require.NoError(t, err)
	}
	assert.Equal(t, 5, strings.Count(log.String(), "level=WARN"), log.String())
	r := s.Probe(context.Background())
	assert.True(t, r.OK(), r.String())
	assert.Contains(t, r.String(), "pids: waived: ")
}

// box2 is box where the PATH leads nowhere.
func box2(t *testing.T, c sandbox.Config) *sandbox.Sandbox {
	t.Helper()
	s, err := sandbox.New(c)
	require.NoError(t, err)
	return s
}

func TestJSONInJSONOut(t *testing.T) {
	s := box(t, sandbox.Config{Env: map[string]string{"GREETING": "hello"}})
	in := tool.Call{Input: json.RawMessage(`{"q":"a"}`)}
	out, err := s.Command("cat").Invoke(context.Background(), in)
	require.NoError(t, err)
	assert.JSONEq(t, `{"q":"a"}`, string(out))
	out, err = s.Command("true").Invoke(context.Background(), in)
	require.NoError(t, err)
	assert.Equal(t, "null", string(out), "nothing is null")
	out, err = s.Command("sh", "-c", `printf '"%s %s"' "$GREETING" "$HOME"`).Invoke(context.Background(), in)
	require.NoError(t, err)
	assert.Equal(t, `"hello /tmp"`, string(out))
	out, err = s.Command("sh", "-c", `exec <&-; echo '[1]'`).Invoke(context.Background(), tool.Call{Input: bytes.Repeat([]byte(" "), 1<<20)})
	require.NoError(t, err, "it need not read its input")
	assert.Equal(t, "[1]\n", string(out))
}

// TestI09_WhatWasEndedIsUnknown: unless the effect may be repeated.
func TestI09_WhatWasEndedIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		doubt  bool
		says   string
	}{
		"says no":            {`echo "no such $(tr -d '{}' ) card" >&2; exit 3`, false, "code 3: no such"},
		"ended by a signal":  {`ulimit -f 0; yes > /tmp/x`, true, "signal 25"},
		"took too long":      {`sleep 9`, true, "too long"},
		"wrote without end":  {`yes`, true, "too much"},
		"a child is killed":  {`sh -c 'kill -KILL $$'; exit $?`, true, "signal 9"},
		"cannot be executed": {`exec /not/there`, false, "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			limits := sandbox.Limits{Time: 20 * time.Second, Output: 1000}
			if c.says == "too long" {
				limits.Time = 500 * time.Millisecond
			}
			s := box(t, sandbox.Config{Limits: limits})
			for _, repeatable := range []bool{true, false} {
				_, err := s.Command("sh", "-c", c.script).Invoke(context.Background(), tool.Call{Input: json.RawMessage(`{}`), Repeatable: repeatable})
				require.ErrorContains(t, err, c.says)
				assert.Equal(t, c.doubt && !repeatable, action.IsUnknown(err), "%v", err)
				assert.False(t, action.IsUnstarted(err))
			}
		})
	}
}

const questionSchema = `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}`

// TestAsToolAndAsFunction: the same program both ways, through all gates.
func TestAsToolAndAsFunction(t *testing.T) {
	s := box(t, sandbox.Config{})
	contract := tool.Contract{ID: "echo", Description: "says it again", Input: json.RawMessage(questionSchema), Output: json.RawMessage(questionSchema)}
	r := tool.NewRegistry()
	require.NoError(t, r.Register(s.Command("cat").Tool(contract)))
	e, err := delta.New(delta.Config{Tools: r})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close(context.Background())) }()
	agent := delta.NewAgent("asker").Grant(
		delta.DefineTool("ask", contract).Risk(1).MustBuild(),
		delta.DefineRaw("say", []byte(questionSchema), s.Command("cat").Do).Describe("says it").Risk(1).MustBuild(),
		delta.DefineRaw("lost", []byte(questionSchema), s.Command("/not/there").Do).Describe("is not there").Risk(1).MustBuild(),
		delta.DefineRaw("slow", []byte(questionSchema), s.Command("sleep", "9").Do).Describe("sleeps").Risk(1).Timeout(300*time.Millisecond).MustBuild(),
	).MustBuild()
	task, err := e.Start(context.Background(), delta.Goal{Agent: agent, Text: "x", Threshold: 5})
	require.NoError(t, err)
	do := func(name string) action.Outcome {
		o, err := task.Do(context.Background(), delta.Call{Action: name, Input: json.RawMessage(`{"q":"a"}`)}).Get()
		require.NoError(t, err)
		return o
	}
	for _, name := range []string{"ask", "say"} {
		o := do(name)
		require.True(t, o.OK(), "%v", o.Failure)
		assert.JSONEq(t, `{"q":"a"}`, string(o.Output))
	}
	lost := do("lost")
	assert.Equal(t, action.NotStarted, lost.Code)
	assert.NotContains(t, lost.Failure.ForPlanner().Error(), "bwrap")
	assert.Contains(t, lost.Failure.Explain(), "/not/there")
	assert.Equal(t, action.StartedUnknown, do("slow").Code, "it ran, and was ended")
}

func TestLaunchSpeaksBothWays(t *testing.T) {
	var noise bytes.Buffer
	p, err := box(t, sandbox.Config{}).Launch(context.Background(), &noise, "sh", "-c", `echo started >&2; while read line; do echo "heard $line"; done; echo bye`)
	require.NoError(t, err)
	r := bufio.NewReader(p)
	for _, word := range []string{"one", "two"} {
		_, err = p.Write([]byte(word + "\n"))
		require.NoError(t, err)
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, "heard "+word+"\n", line)
	}
	require.NoError(t, p.Close())
	require.NoError(t, p.Close(), "again")
	assert.Equal(t, "started\n", noise.String())
}

func TestLaunchedIsEnded(t *testing.T) {
	dir := folder(t)
	c := sandbox.Config{Binds: []sandbox.Bind{{Source: dir, Target: "/out", Writable: true}}}
	ctx, cancel := context.WithCancel(context.Background())
	p, err := box(t, c).Launch(ctx, nil, "sh", "-c", `trap "" TERM HUP; while :; do date +%s%N > /out/beat; sleep 0.05; done`)
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(dir, "beat")); return err == nil }, 5*time.Second, 10*time.Millisecond)
	cancel()
	_, err = p.Read(make([]byte, 1))
	require.Error(t, err, "its output ends with it")
	_ = p.Close()
	last, err := os.ReadFile(filepath.Join(dir, "beat"))
	require.NoError(t, err)
	time.Sleep(150 * time.Millisecond)
	now, err := os.ReadFile(filepath.Join(dir, "beat"))
	require.NoError(t, err)
	assert.Equal(t, string(last), string(now))
}

func TestNoneIsLogged(t *testing.T) {
	var log bytes.Buffer
	s := box(t, sandbox.Config{None: "the host is a throwaway container", Log: slog.New(slog.NewTextHandler(&log, nil)), Limits: sandbox.Limits{Time: time.Second, Output: 100}})
	t.Setenv("DELTA_TEST_SECRET", "hunter2")
	res, err := s.Command("/bin/sh", "-c", "echo $DELTA_TEST_SECRET; pwd").Run(context.Background(), nil)
	require.NoError(t, err)
	assert.Equal(t, "\n/tmp\n", string(res.Stdout), "the environment is chosen all the same")
	assert.Equal(t, 2, strings.Count(log.String(), "level=WARN"), log.String())
	assert.Contains(t, log.String(), "throwaway")
	_, err = s.Command("/bin/sh", "-c", "sleep 9 & sleep 9").Run(context.Background(), nil)
	require.ErrorIs(t, err, sandbox.ErrTime)
	_, err = s.Command("/bin/sh", "-c", "exit 4").Run(context.Background(), nil)
	var exit *sandbox.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 4, exit.Code)
	_, err = s.Command("/not/there").Run(context.Background(), nil)
	assert.True(t, action.IsUnstarted(err))
	assert.True(t, s.Probe(context.Background()).OK())
}

func TestProbeSaysWhatIsEnforced(t *testing.T) {
	r := box(t, sandbox.Config{}).Probe(context.Background())
	require.True(t, r.OK(), r.String())
	assert.Contains(t, r.String(), "memory: resource limit of each process")
	assert.Contains(t, r.String(), "tmp: size of the file system")
	r = box(t, sandbox.Config{Bubblewrap: "bwrap-that-is-not-there"}).Probe(context.Background())
	assert.False(t, r.OK())
	assert.Contains(t, r.String(), "install it")
}

// TestControlGroup: where a group can be made, processes are counted in it.
func TestControlGroup(t *testing.T) {
	const folder = "/sys/fs/cgroup/pids"
	if syscall.Access(folder, 2) != nil || os.Mkdir(folder+"/delta-test", 0o755) != nil {
		t.Skip("there is no control group of version 1 that counts processes here, or it is not writable")
	}
	require.NoError(t, os.Remove(folder+"/delta-test"))
	s := box(t, sandbox.Config{Cgroups: []string{folder}, Limits: sandbox.Limits{Pids: 10}})
	assert.Contains(t, s.Probe(context.Background()).String(), "pids: control group in "+folder)
	res, err := s.Command("/bin/sh", "-c", "i=0; while [ $i -lt 6 ]; do sleep 5 & i=$((i+1)); done; echo enough; cat /proc/self/cgroup | grep pids").Run(context.Background(), nil)
	require.NoError(t, err, string(res.Stderr))
	assert.Contains(t, string(res.Stdout), "enough")
	res, _ = s.Command("/bin/sh", "-c", "i=0; while [ $i -lt 20 ]; do sleep 5 & i=$((i+1)); done").Run(context.Background(), nil)
	assert.Contains(t, string(res.Stderr), "fork")
	left, err := filepath.Glob(folder + "/delta-*")
	require.NoError(t, err)
	assert.Empty(t, left, "they are removed")
}

// TestControlGroupOfVersion2: where controllers of version 2 are delegated, memory and processes are counted in one group.
func TestControlGroupOfVersion2(t *testing.T) {
	var folder string
	for _, at := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		has, err := os.ReadFile(at + "/cgroup.subtree_control")
		if err == nil && strings.Contains(string(has), "memory") && strings.Contains(string(has), "pids") {
			folder = at
		}
	}
	if folder == "" || os.Mkdir(folder+"/delta-test", 0o755) != nil {
		t.Skip("no control group of version 2 with the controllers memory and pids is delegated here; see TestControlGroupsByTheirFiles")
	}
	require.NoError(t, os.Remove(folder+"/delta-test"))
	s := box(t, sandbox.Config{Cgroups: []string{folder}, Limits: sandbox.Limits{Pids: 10, Memory: 64 << 20}})
	report := s.Probe(context.Background()).String()
	assert.Contains(t, report, "pids: control group in "+folder)
	assert.Contains(t, report, "memory: control group in "+folder)
	res, _ := s.Command("/bin/sh", "-c", "i=0; while [ $i -lt 20 ]; do sleep 5 & i=$((i+1)); done").Run(context.Background(), nil)
	assert.Contains(t, string(res.Stderr), "fork")
	_, err := s.Command("/bin/sh", "-c", "head -c 200000000 /dev/zero | tail -c 190000000 > /dev/null").Run(context.Background(), nil)
	require.Error(t, err, "what takes more memory than the group has is ended")
	left, err := filepath.Glob(folder + "/delta-*")
	require.NoError(t, err)
	assert.Empty(t, left, "they are removed")
}

// TestWithoutBeingRoot runs what matters as somebody who is not.
func TestWithoutBeingRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("all of these tests are")
	}
	box(t, sandbox.Config{})
	at := program(t)
	cmd := exec.Command(at, "-test.run", "^(TestWritesWhereItMay|TestForksNotWithoutEnd|TestFillsNoDisk|TestOutlivesNotItsCall|TestReachesIntoNothing|TestInherits.*|TestLeavesNoPrivilegedProgram|TestLaunch.*)$", "-test.count=1")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "TMPDIR="+folder(t), "HOME=/nonexistent")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, Groups: []uint32{}}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.NotContains(t, string(out), "no tests to run")
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	assert.Equal(t, "the tool was ended by signal 9", (&sandbox.ExitError{Code: 137}).Error())
	assert.Equal(t, "the tool ended with exit code 2: no", (&sandbox.ExitError{Code: 2, Stderr: "no"}).Error())
}

// TestManyAtOnce: calls share nothing, and none waits for another's pipes.
func TestManyAtOnce(t *testing.T) {
	c := box(t, sandbox.Config{}).Command("sh", "-c", `read x; echo "$x" > /tmp/x; sleep 0.1; cat /tmp/x`)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			res, err := c.Run(context.Background(), fmt.Appendf(nil, "%d\n", i))
			assert.NoError(t, err, string(res.Stderr))
			assert.Equal(t, fmt.Sprintf("%d\n", i), string(res.Stdout))
		})
	}
	all.Wait()
}

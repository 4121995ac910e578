package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Config says what tools find in a sandbox. Its zero value is a sandbox with the defaults named here.
type Config struct {
	// Bubblewrap is the program bwrap, a path or a name on the PATH. Default "bwrap".
	Bubblewrap string
	// System are the folders and files of the system that tools may read; what does not exist is left out. Default
	// [DefaultSystem]. Links are made as links.
	System []string
	// Binds are what tools find besides.
	Binds []Bind
	// Env is the environment of tools, and all of it but for what Inherit names. PATH is set where it is not given.
	Env map[string]string
	// Inherit names variables of this process that tools get too, as they are at the call. One that is not set is left out.
	Inherit []string
	// Dir is where tools start. Default "/tmp", which is theirs and empty.
	Dir string
	// Network gives tools the network of this machine, all of it, and what it takes to resolve names. Default: they have
	// none, not even the machine's own loopback.
	Network bool
	// Limits bound what tools use.
	Limits Limits
	// Waive names limits that tools may run without where this machine cannot enforce them. Each use is logged.
	Waive []Limit
	// Cgroups are folders of control groups that were delegated to this process, such as those that systemd makes for
	// Delegate=yes: for each call a group is made below each, and removed. Version 2, or one for each controller of
	// version 1. Empty: memory and processes are bounded by resource limits.
	Cgroups []string
	// User and Group are the ids that tools run under where this process runs as root; 0: ids of their own for each call,
	// high ones that nothing belongs to. They must be able to reach what is bound, and write what is bound writable. Where this process is not root,
	// tools run under its own ids and both must be 0.
	User, Group uint32
	// None runs tools without a sandbox, for the reason given here: with all that this process can reach, under no limit
	// but of time and output, and what they leave behind goes on running where it leaves its process group. It is logged
	// when the sandbox is made and at each call. Default: "", a sandbox.
	None string
	// Log receives waivers and what cannot be returned. Default: slog.Default.
	Log *slog.Logger
}

// Bind is a folder or file of the machine that tools find.
type Bind struct {
	// Source is an absolute path. Links are followed when a call starts. Never the root, a home as a whole, or anything of
	// /etc, /root, /proc, /sys, /dev and /run, where secrets and sockets are; a folder of settings can be listed in System.
	Source string
	// Target is the absolute path at which tools find it. Default: Source.
	Target string
	// Writable lets tools change it.
	Writable bool
}

// DefaultSystem is what the programs of a system need in order to run, and none of its settings.
func DefaultSystem() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache", "/etc/alternatives"}
}

// forNetwork is what programs need to find hosts and to check who they are.
var forNetwork = []string{"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl/certs", "/etc/pki/tls/certs"}

// Limit names a limit of a sandbox.
type Limit string

// The limits.
const (
	Memory    Limit = "memory"
	CPU       Limit = "cpu"
	Pids      Limit = "pids"
	FileSize  Limit = "file-size"
	OpenFiles Limit = "open-files"
	Tmp       Limit = "tmp"
	Time      Limit = "time"   // always enforced
	Output    Limit = "output" // always enforced
)

// waivable are the limits that a machine may not be able to enforce.
var waivable = []Limit{Memory, CPU, Pids, FileSize, OpenFiles, Tmp}

// Limits bound one call. 0 is the default, a negative number no limit.
type Limits struct {
	// Memory in bytes: of all processes together in a control group, else the address space of each. Default 2 GiB; a
	// program in Go needs 1 GiB of address space to start.
	Memory int64
	// CPU is processor time of each process, in whole seconds, rounded up. Default: Time. What is launched has none unless
	// one is given.
	CPU time.Duration
	// Pids is how many processes and threads there may be at once. Default 64.
	Pids int
	// FileSize is the largest file that may be written, in bytes. Default 64 MiB.
	FileSize int64
	// OpenFiles is how many files a process may have open. Default 256.
	OpenFiles int
	// Tmp is the size of /tmp, and of /dev/shm, in bytes. It is memory of the machine. Default 64 MiB.
	Tmp int64
	// Time is how long a call may take. Default 1 minute; it cannot be unlimited. What is launched has none.
	Time time.Duration
	// Output is how much a call may write to its standard output, in bytes; more ends it. Default 1 MiB, at most 64 MiB.
	// Of standard error the last 16 KiB are kept, whatever is written.
	Output int64
}

// maxOutput is the most output that is held in memory.
const maxOutput = 64 << 20

// WithDefaults returns the limits with every default filled in.
func (l Limits) WithDefaults() Limits {
	l.Memory = orElse(l.Memory, 2<<30)
	l.Pids = orElse(l.Pids, 64)
	l.FileSize = orElse(l.FileSize, 64<<20)
	l.OpenFiles = orElse(l.OpenFiles, 256)
	l.Tmp = orElse(l.Tmp, 64<<20)
	l.Time = orElse(l.Time, time.Minute)
	l.Output = orElse(l.Output, 1<<20)
	l.CPU = orElse(l.CPU, l.Time)
	return l
}

func orElse[T comparable](v, otherwise T) T {
	var none T
	if v == none {
		return otherwise
	}
	return v
}

// WithDefaults returns the configuration with every default filled in.
func (c Config) WithDefaults() Config {
	c.Bubblewrap = orElse(c.Bubblewrap, "bwrap")
	c.Dir = orElse(c.Dir, "/tmp")
	c.Limits = c.Limits.WithDefaults()
	if c.System == nil {
		c.System = DefaultSystem()
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Binds, c.System, c.Waive, c.Inherit, c.Cgroups = slices.Clone(c.Binds), slices.Clone(c.System), slices.Clone(c.Waive), slices.Clone(c.Inherit), slices.Clone(c.Cgroups)
	c.Env = maps.Clone(c.Env)
	return c
}

// validate returns every fault, each with its field.
func (c Config) validate(root bool) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("sandbox: "+format, args...)) }
	for i, b := range c.Binds {
		if err := b.check(); err != nil {
			fault("Binds[%d]: %w", i, err)
		}
	}
	for i, p := range c.System {
		if err := cmp.Or(absolute(p), secret(p)); err != nil {
			fault("System[%d]: %w", i, err)
		}
	}
	for i, p := range c.Cgroups {
		if err := absolute(p); err != nil {
			fault("Cgroups[%d]: %w", i, err)
		}
	}
	if err := absolute(c.Dir); err != nil {
		fault("Dir: %w", err)
	}
	for name, v := range c.Env {
		if !variable(name) || strings.ContainsRune(v, 0) {
			fault("Env: %q is no variable", action.CutTo(name, 64))
		}
	}
	for _, name := range c.Inherit {
		if !variable(name) {
			fault("Inherit: %q is no variable", action.CutTo(name, 64))
		}
	}
	for _, l := range c.Waive {
		if !slices.Contains(waivable, l) {
			fault("Waive: %q is no limit that can be waived; want one of %v", l, waivable)
		}
	}
	if !root && (c.User != 0 || c.Group != 0) {
		fault("User and Group can be chosen by root alone: leave them 0")
	}
	if c.None != "" && action.Blank(c.None) {
		fault("None: give a reason that can be read")
	}
	faults = append(faults, c.Limits.check()...)
	if n := 16 + len(c.Binds); c.Limits.OpenFiles > 0 && c.Limits.OpenFiles < n {
		fault("Limits.OpenFiles is %d, want at least %d to make the sandbox", c.Limits.OpenFiles, n)
	}
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) }) // Env is a map
	return errors.Join(faults...)
}

func (l Limits) check() (faults []error) {
	if l.Time <= 0 {
		faults = append(faults, errors.New("sandbox: Limits.Time cannot be unlimited: a tool that never returns holds its call for ever"))
	}
	if l.Output <= 0 || l.Output > maxOutput {
		faults = append(faults, fmt.Errorf("sandbox: Limits.Output is %d bytes, want 1 to %d: it is held in memory", l.Output, maxOutput))
	}
	return faults
}

func variable(name string) bool { return name != "" && !strings.ContainsAny(name, "=\x00") }

// absolute reports why a path cannot be used.
func absolute(p string) error {
	switch {
	case !filepath.IsAbs(p):
		return fmt.Errorf("%q is not an absolute path", action.CutTo(p, 200))
	case filepath.Clean(p) != p:
		return fmt.Errorf("%q is not in its shortest form, %q", action.CutTo(p, 200), action.CutTo(filepath.Clean(p), 200))
	case strings.ContainsRune(p, 0):
		return fmt.Errorf("%q holds a zero byte", action.CutTo(p, 200))
	}
	return nil
}

func (b Bind) check() error {
	if err := absolute(b.Source); err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if err := guarded(b.Source); err != nil {
		return err
	}
	if b.Target == "" {
		return nil
	}
	if err := absolute(b.Target); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if slices.Contains(own, b.Target) {
		return fmt.Errorf("target: %q is the sandbox's own", b.Target)
	}
	return nil
}

// own are the places that a sandbox makes itself.
var own = []string{"/", "/proc", "/dev", "/dev/shm", "/tmp"}

// whole are folders that nobody means to hand out as a whole: they hold the secrets and the sockets of the machine.
var whole = []string{"/", "/etc", "/root", "/home", "/proc", "/sys", "/dev", "/run", "/var", "/var/run", "/boot", "/tmp"}

// guarded refuses sources that would hand out more than anybody chose.
func guarded(p string) error {
	for _, w := range whole {
		if p == w || strings.HasPrefix(w, p+"/") {
			return fmt.Errorf("source: %q is not handed out as a whole: bind the folders in it that the tool needs", p)
		}
	}
	for _, w := range []string{"/proc", "/sys", "/dev", "/run", "/etc", "/root"} {
		if strings.HasPrefix(p, w+"/") {
			return fmt.Errorf("source: nothing below %s is handed out", w)
		}
	}
	if strings.HasPrefix(p, "/home/") && strings.Count(p, "/") == 2 {
		return fmt.Errorf("source: %q is a whole home: bind the folders in it that the tool needs", p)
	}
	return nil
}

// secrets are places that no tool is shown.
var secrets = []string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh", "/etc/ssl/private", "/root", "/home", "/proc", "/sys", "/dev", "/run"}

func secret(p string) error {
	for _, w := range secrets {
		if p == w || strings.HasPrefix(p, w+"/") || strings.HasPrefix(w, p+"/") || p == "/" {
			return fmt.Errorf("%q holds what no tool is shown: name the folders and files in it that tools need", p)
		}
	}
	return nil
}

package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// wrapper is bubblewrap as it was found.
type wrapper struct {
	path    string
	version string
	options string // its help, which names the options that it knows
}

func (w *wrapper) knows(option string) bool { return strings.Contains(w.options, option+" ") }

// asking bounds what bubblewrap is asked about itself.
const asking = 5 * time.Second

// wrapper finds bubblewrap; once found it is not looked for again.
func (s *Sandbox) wrapper() (*wrapper, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found != nil {
		return s.found, nil
	}
	path, err := exec.LookPath(s.cfg.Bubblewrap)
	if err != nil {
		return nil, unready(fmt.Sprintf("there is no bubblewrap (%q)", s.cfg.Bubblewrap),
			"install it: the package is called bubblewrap on Debian, Ubuntu, Fedora, Arch and Alpine", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), asking)
	defer cancel()
	help, err := exec.CommandContext(ctx, path, "--help").CombinedOutput()
	if err != nil {
		return nil, unready(fmt.Sprintf("%q does not say what it can do", path), "", err)
	}
	version, _ := exec.CommandContext(ctx, path, "--version").Output() // for people
	w := &wrapper{path: path, version: strings.TrimSpace(string(version)), options: string(help) + " "}
	for _, o := range []string{"--args", "--json-status-fd", "--block-fd", "--die-with-parent", "--new-session", "--clearenv", "--as-pid-1", "--seccomp"} {
		if !w.knows(o) {
			return nil, unready(fmt.Sprintf("%s (%q) is too old: it does not know %s", w.version, path, o), "install bubblewrap 0.5 or later", nil)
		}
	}
	s.found = w
	return w, nil
}

// File descriptors of bubblewrap.
const (
	argsFD = 3 + iota
	statusFD
	blockFD
	filterFD
)

// inside is who a tool is in its own eyes.
const inside = "1000"

// arguments are what bubblewrap is told, but for the program.
func (s *Sandbox) arguments(w *wrapper, sources []string) []string {
	args := []string{"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"}
	add := func(more ...string) { args = append(args, more...) }
	if !s.cfg.Network {
		add("--unshare-net")
	}
	if w.knows("--disable-userns") {
		add("--disable-userns")
	}
	// The tool is the first process of its own: with it everything that it started goes, and there is nothing else in there
	// for it to reach into.
	add("--as-pid-1", "--die-with-parent", "--new-session", "--uid", inside, "--gid", inside, "--hostname", "sandbox", "--clearenv")
	for _, e := range s.environment() {
		name, v, _ := strings.Cut(e, "=")
		add("--setenv", name, v)
	}
	for _, p := range s.system() {
		add(p...)
	}
	add("--proc", "/proc", "--dev", "/dev")
	for _, p := range []string{"/dev/shm", "/tmp"} {
		if s.cfg.Limits.Tmp >= 0 && w.knows("--size") {
			add("--size", strconv.FormatInt(s.cfg.Limits.Tmp, 10))
		}
		add("--tmpfs", p)
	}
	for i, b := range s.cfg.Binds {
		option := "--ro-bind"
		if b.Writable {
			option = "--bind"
		}
		add(option, sources[i], orElse(b.Target, b.Source))
	}
	add("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", s.cfg.Dir)
	add("--json-status-fd", strconv.Itoa(statusFD), "--block-fd", strconv.Itoa(blockFD))
	if len(filter()) > 0 {
		add("--seccomp", strconv.Itoa(filterFD))
	}
	return args
}

// system are the places of the system that exist, links as links.
func (s *Sandbox) system() (out [][]string) {
	places := s.cfg.System
	if s.cfg.Network {
		places = append(places[:len(places):len(places)], forNetwork...)
	}
	for _, p := range places {
		info, err := os.Lstat(p)
		if err != nil {
			continue
		}
		if info.Mode()&os.ModeSymlink == 0 {
			out = append(out, []string{"--ro-bind", p, p})
			continue
		}
		to, err := os.Readlink(p)
		if real, rerr := filepath.EvalSymlinks(p); rerr == nil && strings.HasPrefix(p, "/etc/") {
			out = append(out, []string{"--ro-bind", real, p}) // where it leads to is not there
		} else if err == nil {
			out = append(out, []string{"--symlink", to, p})
		}
	}
	return out
}

// joined is how bubblewrap reads arguments from a pipe.
func joined(args []string) []byte {
	var b bytes.Buffer
	for _, a := range args {
		b.WriteString(a)
		b.WriteByte(0)
	}
	return b.Bytes()
}

package sandbox

import (
	"fmt"
	"math"
	"time"
)

// rlimit is a limit that the kernel holds each process to.
type rlimit struct {
	name  Limit
	res   int    // as the kernel numbers it
	flag  string // as the program prlimit calls it
	value uint64
}

// plan is how the limits of a sandbox are enforced on this machine.
type plan struct {
	how     map[Limit]string // for people; a limit that is waived has "waived: …"
	rlimits []rlimit
	groups  []grouping
	folders groupFolders
}

// plan finds out how each limit can be enforced, or which cannot.
func (s *Sandbox) plan(w *wrapper) (*plan, error) {
	l := s.cfg.Limits
	p := &plan{how: map[Limit]string{Time: "the call is ended", Output: "the call is ended"}, folders: s.folders}
	var err error
	if p.groups, err = s.groupings(p); err != nil {
		return nil, err
	}
	bounds := []rlimit{
		{Memory, rlimitAS, "--as", above(l.Memory)},
		{CPU, rlimitCPU, "--cpu", seconds(l.CPU)},
		{Pids, rlimitNProc, "--nproc", above(int64(l.Pids))},
		{FileSize, rlimitFSize, "--fsize", above(l.FileSize)},
		{OpenFiles, rlimitNoFile, "--nofile", above(int64(l.OpenFiles))},
	}
	var why string
	for _, r := range bounds {
		switch {
		case r.value >= math.MaxInt64:
			p.how[r.name] = "unlimited"
			continue
		case p.how[r.name] != "":
			continue
		}
		if why == "" {
			why = rlimitsFail()
		}
		if why == "" || why == possible {
			why = possible
			p.rlimits = append(p.rlimits, r)
			p.how[r.name] = "resource limit of each process"
			if r.name == Pids {
				p.how[r.name] = "resource limit of the sandbox's user"
			}
		} else if err := s.unless(p, r.name, why); err != nil {
			return nil, err
		}
	}
	if l.Tmp < 0 {
		p.how[Tmp] = "unlimited"
	} else if p.how[Tmp] = "size of the file system"; !w.knows("--size") {
		if err := s.unless(p, Tmp, w.version+" cannot bound the size of a private folder"); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// possible is said of limits that can be enforced.
const possible = "possible"

// unless is an error unless the limit is waived.
func (s *Sandbox) unless(p *plan, l Limit, why string) error {
	if s.waive(l, why) {
		p.how[l] = "waived: " + why
		return nil
	}
	return unstarted(unenforced(l, why))
}

func above(n int64) uint64 {
	if n < 0 {
		return math.MaxInt64
	}
	return uint64(n)
}

func seconds(d time.Duration) uint64 {
	if d < 0 {
		return math.MaxInt64
	}
	return uint64((d + time.Second - 1) / time.Second)
}

// flags are the limits as the program prlimit takes them.
func flags(pid int, rs []rlimit) []string {
	args := []string{"--pid", fmt.Sprint(pid)}
	for _, r := range rs {
		args = append(args, fmt.Sprintf("%s=%d", r.flag, r.value))
	}
	return args
}

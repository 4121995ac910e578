package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"
)

// A control group is known by the files in it: those of version 1 have one controller each, those of version 2 all that
// were delegated.
var (
	memoryFiles = []string{"memory.max", "memory.limit_in_bytes"}
	swapFiles   = []string{"memory.swap.max"} // else what is too much is merely swapped out
	pidsFiles   = []string{"pids.max"}
)

// grouping is what a folder of control groups enforces.
type grouping struct {
	folder string
	writes []setting
}

type setting struct{ file, value string }

// groupFolders makes and removes the folders of control groups, as the kernel does: a new one has its files in it already, and one is
// removed with them.
type groupFolders struct {
	mkdir func(dir string, mode os.FileMode) error
	rmdir func(dir string) error
}

var kernelFolders = groupFolders{os.Mkdir, os.Remove}

// groups counts those that were made, for their names.
var groups atomic.Int64

// newGroup makes a group below a folder.
func (f *groupFolders) newGroup(folder string) (string, error) {
	dir := filepath.Join(folder, fmt.Sprintf("delta-%d-%d", os.Getpid(), groups.Add(1)))
	return dir, f.mkdir(dir, 0o755)
}

// groupings finds out what the configured folders enforce, by a group of each that is removed again.
func (s *Sandbox) groupings(p *plan) (out []grouping, err error) {
	for _, folder := range s.cfg.Cgroups {
		dir, err := s.folders.newGroup(folder)
		if err != nil {
			return nil, unready(fmt.Sprintf("no control group can be made in %q", folder), "delegate it to this process, or take it off Cgroups", err)
		}
		g := grouping{folder: folder}
		take := func(l Limit, n int64, files []string) {
			for _, f := range files {
				if _, err := os.Stat(filepath.Join(dir, f)); err == nil && n >= 0 && p.how[l] == "" {
					g.writes = append(g.writes, setting{f, strconv.FormatInt(n, 10)})
					p.how[l] = "control group in " + folder
				}
			}
		}
		take(Memory, s.cfg.Limits.Memory, memoryFiles)
		if _, err := os.Stat(filepath.Join(dir, swapFiles[0])); err == nil && p.how[Memory] != "" {
			g.writes = append(g.writes, setting{swapFiles[0], "0"})
		}
		take(Pids, withOwn(s.cfg.Limits.Pids), pidsFiles)
		if err := s.folders.removeGroup(dir); err != nil {
			return nil, unready("a control group that was made cannot be removed", "", err)
		}
		if len(g.writes) > 0 {
			out = append(out, g)
		}
	}
	return out, nil
}

// withOwn counts bubblewrap itself.
func withOwn(pids int) int64 {
	if pids < 0 {
		return -1
	}
	return int64(pids) + 1
}

// enter makes the groups of a call and puts a process into them; what it starts is in them too.
func (p *plan) enter(pid int) (dirs []string, err error) {
	for _, g := range p.groups {
		dir, err := p.folders.newGroup(g.folder)
		if err != nil {
			return dirs, err
		}
		dirs = append(dirs, dir)
		for _, w := range append(g.writes[:len(g.writes):len(g.writes)], setting{"cgroup.procs", strconv.Itoa(pid)}) {
			if err := os.WriteFile(filepath.Join(dir, w.file), []byte(w.value), 0o644); err != nil {
				return dirs, err
			}
		}
	}
	return dirs, nil
}

// removals bound how long a group is tried to be removed: its processes are gone, but the kernel may not have noticed yet.
const removals = 50

func (f *groupFolders) removeGroup(dir string) (err error) {
	for range removals {
		if err = f.rmdir(dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

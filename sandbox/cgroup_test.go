package sandbox

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeGroups are folders of control groups in which new ones have the files of a controller at once.
func fakeGroups(files map[string][]string) groupFolders {
	return groupFolders{
		mkdir: func(dir string, mode os.FileMode) error {
			if err := os.Mkdir(dir, mode); err != nil {
				return err
			}
			for _, f := range append([]string{"cgroup.procs"}, files[filepath.Dir(dir)]...) {
				if err := os.WriteFile(filepath.Join(dir, f), []byte("max\n"), 0o600); err != nil {
					return err
				}
			}
			return nil
		},
		rmdir: os.RemoveAll,
	}
}

// written is what a group was told.
func written(t *testing.T, dir string) map[string]string {
	out := map[string]string{}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		out[f.Name()] = string(text)
	}
	return out
}

// What control groups enforce is decided by the files that a new group has, and written into the group of each call; what none of
// them enforces is left to the limits of processes.
func TestControlGroupsByTheirFiles(t *testing.T) {
	for name, c := range map[string]struct {
		files  [][]string // of each configured folder
		limits Limits
		want   []map[string]string // what the groups of a call are told
		how    map[Limit]string    // the folder that enforces a limit, by its number; "" where none does
	}{
		"version 2": {
			[][]string{{"memory.max", "memory.swap.max", "pids.max", "cpu.max"}}, Limits{Memory: 1 << 28, Pids: 10},
			[]map[string]string{{"memory.max": "268435456", "memory.swap.max": "0", "pids.max": "11", "cpu.max": "max\n", "cgroup.procs": "4711"}},
			map[Limit]string{Memory: "0", Pids: "0"},
		},
		"version 2 without the memory controller": {
			[][]string{{"pids.max"}}, Limits{Memory: 1 << 28, Pids: 10},
			[]map[string]string{{"pids.max": "11", "cgroup.procs": "4711"}}, map[Limit]string{Memory: "", Pids: "0"},
		},
		"version 2 without swap": {
			[][]string{{"memory.max", "pids.max"}}, Limits{Memory: 1 << 28, Pids: -1},
			[]map[string]string{{"memory.max": "268435456", "pids.max": "max\n", "cgroup.procs": "4711"}}, map[Limit]string{Memory: "0", Pids: ""},
		},
		"nothing was delegated": {
			[][]string{{}}, Limits{Memory: 1 << 28, Pids: 10}, nil, map[Limit]string{Memory: "", Pids: ""},
		},
		"version 1, a folder for each": {
			[][]string{{"memory.limit_in_bytes"}, {"pids.max"}}, Limits{Memory: 1 << 28, Pids: 10},
			[]map[string]string{{"memory.limit_in_bytes": "268435456", "cgroup.procs": "4711"}, {"pids.max": "11", "cgroup.procs": "4711"}},
			map[Limit]string{Memory: "0", Pids: "1"},
		},
		"the first that enforces it": {
			[][]string{{"memory.max", "pids.max"}, {"pids.max"}}, Limits{Memory: 1 << 28, Pids: 10},
			[]map[string]string{{"memory.max": "268435456", "pids.max": "11", "cgroup.procs": "4711"}}, map[Limit]string{Memory: "0", Pids: "0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			files, cfg := map[string][]string{}, Config{Limits: c.limits, Log: slog.New(slog.DiscardHandler)}
			for _, f := range c.files {
				dir := t.TempDir()
				files[dir], cfg.Cgroups = f, append(cfg.Cgroups, dir)
			}
			s, err := New(cfg)
			require.NoError(t, err)
			s.folders = fakeGroups(files)
			s.cfg.Limits.Tmp = -1 // of bubblewrap, which would bound it, nothing is known here
			p, err := s.plan(&wrapper{})
			require.NoError(t, err)
			for l, at := range c.how {
				if at == "" {
					assert.NotContains(t, p.how[l], "control group", l)
					continue
				}
				assert.Equal(t, "control group in "+cfg.Cgroups[at[0]-'0'], p.how[l], l)
				for _, r := range p.rlimits {
					assert.NotEqual(t, l, r.name, "one enforces it")
				}
			}
			dirs, err := p.enter(4711)
			require.NoError(t, err)
			require.Len(t, dirs, len(c.want))
			for i, dir := range dirs {
				assert.Equal(t, c.want[i], written(t, dir))
				require.NoError(t, s.folders.removeGroup(dir))
			}
			for _, dir := range cfg.Cgroups {
				left, err := os.ReadDir(dir)
				require.NoError(t, err)
				assert.Empty(t, left, "what was tried and what was used is gone")
			}
		})
	}
}

// A group that does not take what it is told is known to whoever has to remove it.
func TestAControlGroupThatRefuses(t *testing.T) {
	dir := t.TempDir()
	s, err := New(Config{Cgroups: []string{dir}, Limits: Limits{Pids: 10, Tmp: -1}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	s.folders = fakeGroups(map[string][]string{dir: {"pids.max"}})
	p, err := s.plan(&wrapper{})
	require.NoError(t, err)
	p.folders.mkdir = func(dir string, mode os.FileMode) error {
		return errors.Join(os.Mkdir(dir, mode), os.Mkdir(filepath.Join(dir, "pids.max"), mode))
	}
	dirs, err := p.enter(1)
	require.Error(t, err)
	require.Len(t, dirs, 1, "it was made")
	require.NoError(t, s.folders.removeGroup(dirs[0]))
}

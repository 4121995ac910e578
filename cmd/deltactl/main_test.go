package main

import (
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"deltactl": main, "dockhand": dockhand, "notes": notes})
}

// The scripts in testdata say what a user sees: output, exit codes, and what is not printed.
func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	var server *redistest.Server
	if _, err := exec.LookPath("redis-server"); err == nil || os.Getenv("CI") != "" {
		server = redistest.Start(t)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Condition: func(cond string) (bool, error) {
			return cond == "redis" && server != nil || cond == "root" && os.Getuid() == 0, nil
		},
		Setup: func(e *testscript.Env) error {
			if server != nil {
				storeEnv(e, server)
			}
			e.Setenv("EXAMPLES", examples)
			e.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector otherwise holds every process for a second
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"gzip": compress, "exits": exits, "fill": fill, "fund": fund, "unlist": unlist, "nowhere": nowhere, "expire": expire, "spoil": spoil, "ship": ship, "nest": nest, "tune": tune, "long": long, "anew": anew, "drop": drop, "present": present, "sandboxed": sandboxed},
	})
}

// compress is "gzip FILE TO".
func compress(ts *testscript.TestScript, _ bool, args []string) {
	in, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer in.Close()
	out, err := os.Create(ts.MkAbs(args[1]))
	ts.Check(err)
	z := gzip.NewWriter(out)
	_, err = io.Copy(z, in)
	ts.Check(err)
	ts.Check(z.Close())
	ts.Check(out.Close())
}

// exits is "exits CODE ARGS...": it runs deltactl and wants that exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("deltactl", args[1:]...)
	code := "0"
	if e, ok := err.(interface{ ExitCode() int }); ok {
		code = string(rune('0' + e.ExitCode()))
	} else {
		ts.Check(err)
	}
	if code != args[0] {
		ts.Fatalf("deltactl exits with %s, want %s", code, args[0])
	}
}

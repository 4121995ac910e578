package archtest

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const fakeModule = "example.com/house"

// tree builds a small repository out of path → content, every file of it tracked.
func tree(files map[string]string) Tree {
	fsys := fstest.MapFS{}
	t := Tree{FS: fsys, Module: fakeModule}
	for p, src := range files {
		fsys[p] = &fstest.MapFile{Data: []byte(src)}
		t.Tracked = append(t.Tracked, p)
	}
	return t
}

// pkg is a documented Go file with the imports given, all of them blank.
func pkg(name string, imports ...string) string {
	var b strings.Builder
	b.WriteString("// Package " + name + " is a fixture.\npackage " + name + "\n")
	for _, i := range imports {
		b.WriteString("import _ \"" + i + "\"\n")
	}
	return b.String()
}

func house(folder string) string { return fakeModule + "/" + folder }

// TestRules feeds each rule a tree that breaks it and one, close by, that does not.
func TestRules(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  []string // parts of the findings, one each in order; none means clean
	}{
		// Layers.
		{"words may import words", map[string]string{"action/a.go": pkg("action"), "txn/a.go": pkg("txn", house("action"))}, nil},
		{"words import no kernel", map[string]string{"action/a.go": pkg("action", house("risk"))}, []string{"action/a.go:3: layers: action (words) must not import risk (kernel)"}},
		{"a kernel imports words", map[string]string{"risk/a.go": pkg("risk", house("action"))}, nil},
		{"kernels never meet", map[string]string{"risk/a.go": pkg("risk", house("budget"))}, []string{"risk (kernel) must not import budget (kernel)"}},
		{"a kernel keeps its own subfolders", map[string]string{"schema/a.go": pkg("schema", house("schema/edge")), "schema/edge/a.go": pkg("edge")}, nil},
		{"a subfolder is held like its kernel", map[string]string{"schema/edge/a.go": pkg("edge", house("risk"))}, []string{"schema (kernel) must not import risk (kernel)"}},
		{"the engine composes kernels", map[string]string{"internal/engine/a.go": pkg("engine", house("risk"), house("txn"))}, nil},
		{"the engine knows no port", map[string]string{"internal/engine/a.go": pkg("engine", house("memory"))}, []string{"must not import memory (port)"}},
		{"a kernel knows no engine", map[string]string{"risk/a.go": pkg("risk", house("internal/engine"))}, []string{"must not import internal/engine (engine)"}},
		{"a port knows no engine", map[string]string{"memory/a.go": pkg("memory", house("internal/engine"))}, []string{"must not import internal/engine (engine)"}},
		{"ports never meet", map[string]string{"memory/a.go": pkg("memory", house("hooks"))}, []string{"memory (port) must not import hooks (port)"}},
		{"a suite belongs to its port", map[string]string{"memory/memorytest/a.go": pkg("memorytest", house("memory"), house("txn"))}, nil},
		{"the shell sees all below", map[string]string{"delta/a.go": pkg("delta", house("internal/engine"), house("hooks"), house("risk"))}, nil},
		{"the shell sees no edge", map[string]string{"delta/a.go": pkg("delta", house("planner"))}, []string{"must not import planner (edge)"}},
		{"an edge uses the shell", map[string]string{"planner/a.go": pkg("planner", house("delta"))}, nil},
		{"an edge reaches no engine", map[string]string{"mcp/a.go": pkg("mcp", house("internal/engine"))}, []string{"must not import internal/engine (engine)"}},
		{"edges never meet", map[string]string{"mcp/a.go": pkg("mcp", house("sandbox"))}, []string{"must not import sandbox (edge)"}},
		{"the program uses everything", map[string]string{"cmd/x/a.go": pkg("main", house("mcp"), house("internal/table"), house("internal/engine"))}, nil},
		{"the library prints no tables", map[string]string{"delta/a.go": pkg("delta", house("internal/table"))}, []string{"must not import internal/table (helper)"}},
		{"the library needs no test helpers", map[string]string{"delta/a.go": pkg("delta", house("deltatest"))}, []string{"must not import deltatest (support)"}},
		{"tests may compose what they test", map[string]string{"risk/a.go": pkg("risk"), "risk/a_test.go": pkg("risk_test", house("budget"))}, nil},
		{"an unknown folder has no place", map[string]string{"util/a.go": pkg("util")}, []string{"util: layers: the folder is not in the import table"}},
		{"internal is no place of its own", map[string]string{"internal/misc/a.go": pkg("misc")}, []string{"internal/misc: layers"}},
		{"importing the unknown is refused too", map[string]string{"cmd/x/a.go": pkg("main", house("util"))}, []string{"must not import util (not in the table)"}},
		{"a like-named folder is another", map[string]string{"riskier/a.go": pkg("riskier")}, []string{"riskier: layers"}},
		{"a nested module is another house", map[string]string{"extra/go.mod": "module example.com/extra\n", "extra/a.go": pkg("extra")}, nil},
		{"testdata is not built", map[string]string{"risk/testdata/a.go": "not Go"}, nil},

		// Third-party modules.
		{"gonum stands behind risk", map[string]string{"risk/a.go": pkg("risk", "gonum.org/v1/gonum/mat")}, nil},
		{"and nowhere else", map[string]string{"budget/a.go": pkg("budget", "gonum.org/v1/gonum/mat")}, []string{"modules: budget must not use gonum.org/v1/gonum/mat"}},
		{"plots stay out of the kernel", map[string]string{"risk/a.go": pkg("risk", "gonum.org/v1/plot")}, []string{"must not use gonum.org/v1/plot"}},
		{"a major version is another module", map[string]string{"schema/a.go": pkg("schema", "github.com/santhosh-tekuri/jsonschema/v5")}, []string{"must not use"}},
		{"redis is behind its store", map[string]string{"memory/redisstore/a.go": pkg("redisstore", "github.com/redis/go-redis/v9")}, nil},
		{"not behind the port", map[string]string{"memory/a.go": pkg("memory", "github.com/redis/go-redis/v9")}, []string{"memory must not use github.com/redis"}},
		{"an unlisted module is refused", map[string]string{"cmd/x/a.go": pkg("main", "example.org/new")}, []string{"must not use example.org/new"}},
		{"words use the standard library only", map[string]string{"action/a.go": pkg("action", "github.com/samber/mo")}, []string{"action must not use github.com/samber/mo"}},
		{"test libraries in tests", map[string]string{"risk/a.go": pkg("risk"), "risk/a_test.go": pkg("risk", "github.com/stretchr/testify/require", "pgregory.net/rapid")}, nil},
		{"test libraries in suites", map[string]string{"memory/memorytest/a.go": pkg("memorytest", "github.com/stretchr/testify/require")}, nil},
		{"no test library in a shipped file", map[string]string{"delta/a.go": pkg("delta", "github.com/stretchr/testify/require")}, []string{"delta must not use github.com/stretchr/testify/require"}},
		{"an oracle only where it judges", map[string]string{"risk/a.go": pkg("risk"), "risk/a_test.go": pkg("risk", "github.com/go-json-experiment/json/jsontext")}, []string{"must not use github.com/go-json-experiment"}},
		{"an oracle is not shipped", map[string]string{"schema/a.go": pkg("schema", "github.com/go-json-experiment/json/jsontext")}, []string{"must not use github.com/go-json-experiment"}},

		// Package comments.
		{"no package comment", map[string]string{"risk/a.go": "package risk\n"}, []string{"risk: package doc: package risk has 0 package comments"}},
		{"two package comments", map[string]string{"risk/a.go": pkg("risk"), "risk/b.go": pkg("risk")}, []string{"found in risk/a.go, risk/b.go"}},
		{"a package comment that does not say so", map[string]string{"risk/a.go": "// Risk is big.\npackage risk\n"}, []string{`must begin with "Package risk "`}},
		{"a package of tests needs none", map[string]string{"bench/a_test.go": "package bench\n"}, nil},

		// Exported names.
		{"an exported func without comment", map[string]string{"risk/a.go": pkg("risk") + "func F() {}\nfunc g() {}\n"}, []string{"risk/a.go:3: doc: F is exported"}},
		{"methods of exported types only", map[string]string{"risk/a.go": pkg("risk") + "type t[T any] struct{}\nfunc (*t[T]) F() {}\n// T is.\ntype T[A, B any] struct{}\nfunc (T[A, B]) F() {}\nfunc (T[A, B]) String() string { return \"\" }\n"}, []string{"risk/a.go:7: doc: F"}},
		{"a group's comment serves its members", map[string]string{"risk/a.go": pkg("risk") + "// All of them.\nconst (\n\tA = 1\n\tB = 2\n)\nconst (\n\tC = 1 // is one\n\tD = 2\n)\n"}, []string{"risk/a.go:10: doc: D"}},
		{"an exported type without comment", map[string]string{"risk/a.go": pkg("risk") + "type T int\n"}, []string{"doc: T is exported"}},

		// Length and text.
		{"a file at the limit", map[string]string{"risk/a.go": pkg("risk") + strings.Repeat("\n", maxLines-2)}, nil},
		{"a file over it", map[string]string{"risk/a.go": pkg("risk") + strings.Repeat("\n", maxLines-1)}, []string{"risk/a.go: length: 451 lines"}},
		{"tests may be long", map[string]string{"risk/a.go": pkg("risk"), "risk/a_test.go": "package risk\n" + strings.Repeat("\n", maxLines)}, nil},
		{"nobody reads what is generated", map[string]string{"risk/a.go": "// Code generated by x. DO NOT EDIT.\n\n" + pkg("risk") + strings.Repeat("\n", maxLines)}, nil},
		{"a long README", map[string]string{"README.md": strings.Repeat("x\n", maxReadmeLines+1)}, []string{"README.md: length: 151 lines"}},
		{"a short README", map[string]string{"README.md": strings.Repeat("x\n", maxReadmeLines)}, nil},
		{"an absolute path", map[string]string{"doc/a.md": "x\nsee /" + "work/main\n"}, []string{`doc/a.md:2: text: "/` + `work/" refers to an absolute path`}},
		{"part of a longer word is fine", map[string]string{"doc/a.md": "doc/network/x, homework/x\n"}, nil},
		{"a folder outside", map[string]string{"doc/a.md": "../" + "shared/x\n"}, []string{"outside the repository"}},
		{"a test may look for data outside", map[string]string{"bench/a_test.go": "package bench // ../" + "shared\n", "Makefile": "X=../" + "shared\n"}, nil},
		{"an absent document", map[string]string{"doc/a.md": "as DES" + "IGN says\n"}, []string{"a document that is not in the repository"}},
		{"a binary file is not read", map[string]string{"doc/a.png": "\x00/" + "work/"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found, err := Check(tree(tt.files))
			require.NoError(t, err)
			require.Len(t, found, len(tt.want), "%v", found)
			for i, want := range tt.want {
				assert.Contains(t, found[i].String(), want)
			}
		})
	}
}

// TestPurity breaks the ban on clock, randomness, environment, context and logger in each layer it holds for.
func TestPurity(t *testing.T) {
	impure := []struct{ imports, body, want string }{
		{`"time"`, "var x = time.Now()", "time.Now"},
		{`"time"`, "var x = time.Since", "time.Since"},
		{`"time"`, "func f(d time.Time) any { return time.Until(d) }", "time.Until"},
		{`"time"`, "var x = time.After(1)", "time.After"},
		{`"time"`, "var x = time.Tick(1)", "time.Tick"},
		{`"time"`, "func f() { time.Sleep(1) }", "time.Sleep"},
		{`"time"`, "var x = time.NewTimer(1)", "time.NewTimer"},
		{`"time"`, "var x = time.NewTicker(1)", "time.NewTicker"},
		{`"time"`, "var x = time.AfterFunc(1, nil)", "time.AfterFunc"},
		{`"time"`, "var x = time.Local", "time.Local"},
		{`clock "time"`, "var x = clock.Now()", "clock.Now"},
		{`. "time"`, "var x = Now()", "with a dot"},
		{`"math/rand"`, "var x = rand.Int()", "math/rand"},
		{`"math/rand/v2"`, "var x = rand.Int()", "math/rand/v2"},
		{`"crypto/rand"`, "var x = rand.Reader", "crypto/rand"},
		{`"hash/maphash"`, "var x maphash.Hash", "hash/maphash"},
		{`"os"`, `var x = os.Getenv("X")`, "import os"},
		{`"os/exec"`, "var x exec.Cmd", "import os/exec"},
		{`"log"`, "func f() { log.Print() }", "import log"},
		{`"log/slog"`, "func f() { slog.Info(``) }", "import log/slog"},
		{`"context"`, "var x context.Context", "import context"},
		{`"fmt"`, "func f() { fmt.Println() }", "fmt.Println"},
		{`"net"`, "var x, _ = net.Dial(``, ``)", "net.Dial"},
	}
	for _, dir := range []string{"action", "txn", "risk", "schema/deep/inside", "internal/engine"} {
		for _, tt := range impure {
			src := "// Package p is a fixture.\npackage p\nimport " + tt.imports + "\n" + tt.body + "\n"
			found, err := Check(tree(map[string]string{dir + "/a.go": src}))
			require.NoError(t, err)
			require.Len(t, found, 1, "%s in %s: %v", tt.body, dir, found)
			assert.Contains(t, found[0].String(), tt.want)
			assert.Equal(t, "purity", found[0].Rule)
		}
	}

	clean := map[string]string{
		"the values of time are pure":         `package p; import "time"; var d = time.Second; func f(t time.Time) time.Time { return t.Add(d).UTC() }`,
		"a method may be called like that":    `package p; import "time"; type c struct{}; func (c) Now() time.Time { return time.Time{} }; var x = c{}.Now()`,
		"another package's Now is its own":    `package p; import time "fmt"; var x = time.Sprint(1)`,
		"errors and formatting are pure":      `package p; import "fmt"; var err = fmt.Errorf("x")`,
		"addresses are pure, sockets are not": `package p; import "net"; var x = net.ParseIP("::1")`,
	}
	for name, src := range clean {
		t.Run(name, func(t *testing.T) {
			found, err := Check(tree(map[string]string{"risk/a.go": "// Package p is a fixture.\n" + src + "\n"}))
			require.NoError(t, err)
			assert.Empty(t, found)
		})
	}

	t.Run("the shell has the clock, tests too", func(t *testing.T) {
		src := "// Package p is a fixture.\npackage p\nimport \"time\"\nvar x = time.Now()\n"
		found, err := Check(tree(map[string]string{"delta/a.go": src, "risk/a.go": pkg("risk"), "risk/a_test.go": src}))
		require.NoError(t, err)
		assert.Empty(t, found)
	})
}

// TestUnreadableTree: what cannot be judged is an error, never a pass.
func TestUnreadableTree(t *testing.T) {
	_, err := Check(tree(map[string]string{"risk/a.go": "not Go"}))
	require.ErrorContains(t, err, "risk/a.go")

	missing := tree(nil)
	missing.Tracked = []string{"gone.md"}
	_, err = Check(missing)
	require.ErrorContains(t, err, "gone.md")
}

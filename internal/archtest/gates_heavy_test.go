//go:build heavy

package archtest

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// clean is a module that passes every gate.
var clean = map[string]string{
	"go.mod":   "module example.com/house\n\ngo 1.26.0\n",
	"a/doc.go": "// Package a is a fixture.\npackage a\n",
	"a/a.go":   "package a\n\n// Twice doubles.\nfunc Twice(n int) int { return 2 * n }\n",
	"a/a_test.go": `package a

import "testing"

func TestTwice(t *testing.T) {
	if Twice(2) != 4 {
		t.Fatal("not twice")
	}
}
` + "\nfunc " + `FuzzTwice(f *testing.F) {
	f.Fuzz(func(t *testing.T, n int) {
		if Twice(n) != n+n {
			t.Fatal("not twice")
		}
	})
}
`,
	"a/heavy_test.go": "//go:build heavy\n\npackage a\n\nimport \"testing\"\n\nfunc TestHeavy(t *testing.T) { TestTwice(t) }\n",
}

// mo stands in for the library, so that the fixture needs no network.
var mo = map[string]string{
	"go.mod":    "module example.com/house\n\ngo 1.26.0\n\nrequire github.com/samber/mo v1.16.0\n\nreplace github.com/samber/mo => ./mo\n",
	"mo/go.mod": "module github.com/samber/mo\n\ngo 1.26.0\n",
	"mo/mo.go":  "// Package mo is a fixture.\npackage mo\n\n// Result holds.\ntype Result[T any] struct{ V T }\n",
}

// inside is a module within the module.
var inside = map[string]string{
	"inside/go.mod": "module example.com/house/inside\n\ngo 1.26.0\n",
	"inside/a.go":   "// Package inside is a fixture.\npackage inside\n",
}

// aptGet stands in for the package manager: what it installs is a compiler by another name.
const aptGet = `#!/bin/sh
set -e
[ "$1" = install ] || exit 0
printf '#!/bin/sh\nexec gcc "$@"\n' >"${0%/*}/latecc"
chmod +x "${0%/*}/latecc"
`

// lateGo stands in for a go command whose fuzzing ends with the lines given.
func lateGo(lines string) string {
	return `#!/bin/sh
case "$*" in
*" -fuzz "*) ;;
*) PATH=${PATH#*:} exec go "$@" ;;
esac
echo 'fuzz: elapsed: 1s, execs: 80543 (9463/sec), new interesting: 16 (total: 157)
--- FAIL: FuzzTwice (1.87s)
` + lines + `
FAIL
exit status 1
FAIL	example.com/house/a	1.884s'
exit 1
`
}

// TestGatesCanFail runs the Makefile's verbs on a clean module and on modules with one fault each. A gate that passes
// the faulty one guards nothing.
func TestGatesCanFail(t *testing.T) {
	lint := filepath.Join(t.TempDir(), "deltalint")
	out, err := exec.Command("go", "build", "-o", lint, "../lint/cmd/deltalint").CombinedOutput()
	require.NoError(t, err, "%s", out)
	lint = "DELTALINT=" + lint

	tests := []struct {
		name  string
		args  []string // of make
		files map[string]string
		env   []string
		want  string // part of what a failing gate prints; "" where it must pass
	}{
		{"clean: lint", []string{"lint-format", "lint-vet", "lint-own", "lint-static", "lint-modules", lint}, nil, nil, ""},
		{"clean: test", []string{"test"}, nil, nil, ""},
		{"clean: heavy and fuzz", []string{"test-heavy", "FUZZED=a", "FUZZTIME=1s"}, nil, nil, ""},

		{"unformatted", []string{"lint-format"}, map[string]string{"a/b.go": "package a\nvar   x = 1\n"}, nil, "a/b.go"},
		{"vet", []string{"lint-vet"}, map[string]string{"a/b.go": "package a\n\nimport \"fmt\"\n\nvar _ = fmt.Sprintf(\"%d\", \"x\")\n"}, nil, "wrong type"},
		{"vet sees heavy tests", []string{"lint-vet"}, map[string]string{"a/b_test.go": "//go:build heavy\n\npackage a\n\nimport \"fmt\"\n\nvar _ = fmt.Sprintf(\"%d\", \"x\")\n"}, nil, "wrong type"},
		{"a named result", []string{"lint-own", lint}, merged(mo, "a/b.go", "package a\n\nimport \"github.com/samber/mo\"\n\n// F is.\nfunc F() (r mo.Result[int]) { return }\n"), nil, "named mo.Result"},
		{"a zero result in a heavy test", []string{"lint-own", lint}, merged(mo, "a/b_test.go", "//go:build heavy\n\npackage a\n\nimport \"github.com/samber/mo\"\n\nvar r mo.Result[int]\n"), nil, "declared without a value"},
		{"staticcheck", []string{"lint-static"}, map[string]string{"a/b.go": "package a\n\nfunc unused() {}\n"}, nil, "U1000"},
		{"untidy", []string{"lint-modules"}, mo, nil, "samber/mo"},
		{"an untidy module inside", []string{"lint-modules"}, merged(inside, "inside/go.mod", "module example.com/house/inside\n\ngo 1.26.0\n\nrequire example.com/house v0.0.0\n\nreplace example.com/house => ..\n"), nil, "of 1 modules inside this one, 1 failed"},
		{"a failing test of a module inside", []string{"test-modules"}, merged(inside, "inside/b_test.go", "package inside\n\nimport \"testing\"\n\nfunc TestNo(t *testing.T) { t.Fatal(\"no\") }\n"), nil, "TestNo"},
		{"vet of a module inside", []string{"test-modules"}, merged(inside, "inside/b.go", "package inside\n\nfunc f() { for { }; f() }\n"), nil, "unreachable code"},
		{"clean: a module inside", []string{"test-modules", "lint-modules"}, inside, nil, ""},
		{"a failing test", []string{"test"}, map[string]string{"a/b_test.go": "package a\n\nimport \"testing\"\n\nfunc TestNo(t *testing.T) { t.Fatal(\"no\") }\n"}, nil, "TestNo"},
		{"a data race", []string{"test"}, map[string]string{"a/b_test.go": `package a

import "testing"

func TestRace(t *testing.T) {
	n, done := 0, make(chan bool)
	go func() { n++; done <- true }()
	n++
	<-done
}
`}, nil, "DATA RACE"},
		{"no C compiler and not root", []string{"deps"}, map[string]string{"bin/id": "#!/bin/sh\necho 1000\n"}, []string{"CC=false"}, "the race detector needs a C compiler"},
		{"no C compiler, but root", []string{"deps"}, map[string]string{"bin/id": "#!/bin/sh\necho 0\n", "bin/apt-get": aptGet}, []string{"CC=latecc"}, ""},
		{"a failing heavy test", []string{"test-heavy"}, map[string]string{"a/b_test.go": "//go:build heavy\n\npackage a\n\nimport \"testing\"\n\nfunc TestNo(t *testing.T) { t.Fatal(\"no\") }\n"}, nil, "TestNo"},
		{"no heavy test", []string{"test-heavy"}, map[string]string{"a/heavy_test.go": ""}, nil, "no test carries the build tag heavy"},
		{"no fuzz target at all", []string{"fuzz", "FUZZED="}, map[string]string{"a/a_test.go": "package a\n", "a/heavy_test.go": ""}, nil, "no fuzz target found"},
		{"no fuzz target where one must be", []string{"fuzz", "FUZZED=b"}, map[string]string{"b/b.go": "// Package b is a fixture.\npackage b\n"}, nil, "b must have a fuzz target"},
		{"a fuzz target nobody runs", []string{"fuzz", "FUZZED=a"}, map[string]string{"a/b_test.go": "//go:build never\n\npackage a\n\nimport \"testing\"\n\nfunc FuzzNever(f *testing.F) {}\n"}, nil, "does not list it"},
		{"a fuzz target that fails", []string{"fuzz", "FUZZED=a"}, map[string]string{"a/a.go": "package a\n\n// Twice does not.\nfunc Twice(n int) int {\n\treturn 0\n}\n"}, nil, "FuzzTwice FAILED"},
		{"the go command's own deadline", []string{"fuzz", "FUZZED=a"}, map[string]string{"bin/go": lateGo("    context deadline exceeded")}, nil, ""},
		{"a deadline beside a failing input", []string{"fuzz", "FUZZED=a"}, map[string]string{"bin/go": lateGo("    context deadline exceeded\n    Failing input written to testdata/fuzz/FuzzTwice/1")}, nil, "FuzzTwice FAILED"},
		{"a deadline of the target's own", []string{"fuzz", "FUZZED=a"}, map[string]string{"bin/go": lateGo("    --- FAIL: FuzzTwice (0.00s)\n        a_test.go:13: context deadline exceeded")}, nil, "FuzzTwice FAILED"},
		{"tests that do not compile", []string{"fuzz", "FUZZED=a"}, map[string]string{"a/b_test.go": "package a\n\nvar x int = \"\"\n"}, nil, "do not compile"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := runMake(t, tt.args, tt.files, tt.env)
			if tt.want == "" {
				require.NoError(t, err, out)
				return
			}
			require.Error(t, err, out)
			assert.Contains(t, out, tt.want)
		})
	}
}

func merged(base map[string]string, p, src string) map[string]string {
	m := maps.Clone(base)
	m[p] = src
	return m
}

// runMake lays the clean module with the files given over it, an empty one removing what it names, and runs make there
// with the Makefile and the scripts of this repository.
func runMake(t *testing.T, args []string, files map[string]string, env []string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "scripts"), os.DirFS("../../scripts")))
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	all := maps.Clone(clean)
	maps.Copy(all, files)
	all["Makefile"] = string(makefile)
	for p, src := range all {
		if src == "" {
			continue
		}
		at := filepath.Join(dir, p)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		require.NoError(t, os.WriteFile(at, []byte(src), 0o755))
	}

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "make", args...)
	cmd.Dir = dir
	// The outer make's flags and build tags are its own.
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=", "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

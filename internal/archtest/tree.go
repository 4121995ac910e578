package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"sort"
	"strings"
)

// Tree is a repository to be judged: its files, and the names of those that users get.
type Tree struct {
	FS      fs.FS
	Module  string   // the module path, such as example.com/mod
	Tracked []string // slash-separated paths of the files under version control, for the rules about text
}

// Finding is one breach of a rule.
type Finding struct {
	Place string // a file, a file:line, or a folder
	Rule  string // the rule's short name
	Text  string // what is wrong and the way out
}

func (f Finding) String() string { return fmt.Sprintf("%s: %s: %s", f.Place, f.Rule, f.Text) }

// Check applies every rule and returns the findings in the order of their places.
func Check(t Tree) ([]Finding, error) {
	files, err := t.goFiles()
	if err != nil {
		return nil, err
	}
	var all []Finding
	for _, rule := range []func([]goFile) []Finding{checkLayers, checkThirdParty, checkPurity, checkPackageDocs, checkExportedDocs, checkLength} {
		all = append(all, rule(files)...)
	}
	text, err := checkText(t)
	if err != nil {
		return nil, err
	}
	all = append(all, text...)
	sort.SliceStable(all, func(i, j int) bool { return all[i].Place < all[j].Place })
	return all, nil
}

// goFile is one parsed Go file of the module.
type goFile struct {
	path   string // slash-separated, from the root of the repository
	dir    string // its folder, "." for the root
	module string
	test   bool
	lines  int
	fset   *token.FileSet
	ast    *ast.File
}

func (f goFile) at(p token.Pos) string { return fmt.Sprintf("%s:%d", f.path, f.fset.Position(p).Line) }

// imports calls fn for every import of the file: with the folder where it is of this module, else with "".
func (f goFile) imports(fn func(spec *ast.ImportSpec, importPath, dir string)) {
	for _, spec := range f.ast.Imports {
		p := strings.Trim(spec.Path.Value, "`\"")
		switch dir, inside := strings.CutPrefix(p, f.module+"/"); {
		case p == f.module:
			fn(spec, p, ".")
		case inside:
			fn(spec, p, dir)
		default:
			fn(spec, p, "")
		}
	}
}

// goFiles parses every Go file of the module, in the order of their paths. What the go tool skips is skipped: folders
// named testdata or vendor, or beginning with a dot or underscore, and nested modules.
func (t Tree) goFiles() ([]goFile, error) {
	var files []goFile
	err := fs.WalkDir(t.FS, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return t.skip(p)
		}
		if path.Ext(p) != ".go" || strings.HasPrefix(path.Base(p), ".") || strings.HasPrefix(path.Base(p), "_") {
			return nil
		}
		f, err := t.parse(p)
		if err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

func (t Tree) skip(dir string) error {
	if dir == "." {
		return nil
	}
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := fs.Stat(t.FS, path.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func (t Tree) parse(p string) (goFile, error) {
	src, err := fs.ReadFile(t.FS, p)
	if err != nil {
		return goFile{}, err
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return goFile{}, err
	}
	return goFile{
		path: p, dir: path.Dir(p), module: t.Module, test: strings.HasSuffix(p, "_test.go"),
		lines: lineCount(src), fset: fset, ast: parsed,
	}, nil
}

func lineCount(src []byte) int {
	n := strings.Count(string(src), "\n")
	if len(src) > 0 && src[len(src)-1] != '\n' {
		n++
	}
	return n
}

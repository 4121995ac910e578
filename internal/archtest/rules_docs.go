package archtest

import (
	"fmt"
	"go/ast"
	"sort"
	"strings"
)

// checkPackageDocs wants exactly one package comment per package: two are shown one after the other in an order nobody
// chose, none leaves the reader to guess.
func checkPackageDocs(files []goFile) []Finding {
	type seen struct {
		name  string
		files []string
	}
	packages := map[string]*seen{}
	var found []Finding
	for _, f := range files {
		if f.test {
			continue
		}
		p := packages[f.dir]
		if p == nil {
			p = &seen{name: f.ast.Name.Name}
			packages[f.dir] = p
		}
		text := f.ast.Doc.Text()
		if text == "" {
			continue
		}
		p.files = append(p.files, f.path)
		if want := "Package " + p.name + " "; p.name != "main" && !strings.HasPrefix(text, want) {
			found = append(found, Finding{f.path, "package doc", fmt.Sprintf("the package comment must begin with %q", want)})
		}
	}
	for dir, p := range packages {
		if len(p.files) != 1 {
			sort.Strings(p.files)
			found = append(found, Finding{dir, "package doc", fmt.Sprintf("package %s has %d package comments, want one, in doc.go; found in %s", p.name, len(p.files), orNone(p.files))})
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].String() < found[j].String() })
	return found
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "no file"
	}
	return strings.Join(list, ", ")
}

// checkExportedDocs wants a comment on every exported name at the top level of a library package. A group's comment
// serves its members.
func checkExportedDocs(files []goFile) []Finding {
	var found []Finding
	for _, f := range files {
		if f.test || f.ast.Name.Name == "main" {
			continue
		}
		report := func(n ast.Node, name string) {
			found = append(found, Finding{f.at(n.Pos()), "doc", name + " is exported and has no comment: say what it means, its units, range and errors"})
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Doc.Text() == "" && d.Name.IsExported() && exportedReceiver(d) && !wellKnown[d.Name.Name] {
					report(d, d.Name.Name)
				}
			case *ast.GenDecl:
				undocumented(d, report)
			}
		}
	}
	return found
}

// wellKnown methods mean what the standard library says they mean.
var wellKnown = map[string]bool{
	"String": true, "Error": true, "Unwrap": true, "Len": true, "Less": true, "Swap": true,
	"MarshalJSON": true, "UnmarshalJSON": true, "MarshalText": true, "UnmarshalText": true,
}

func undocumented(d *ast.GenDecl, report func(ast.Node, string)) {
	if d.Doc.Text() != "" {
		return
	}
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc.Text() == "" && s.Comment.Text() == "" {
				report(s, s.Name.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && s.Doc.Text() == "" && s.Comment.Text() == "" {
					report(s, name.Name)
				}
			}
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

package zeroresult

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

const moPath = "github.com/samber/mo"

// Analyzer reports zero and named values of mo.Result.
var Analyzer = &analysis.Analyzer{
	Name: "zeroresult",
	Doc:  "report zero and named values of mo.Result, whose zero value is Ok",
	URL:  "https://pkg.go.dev/github.com/seed-ab2cfece/delta-agents/internal/lint/zeroresult",
	Run:  run,
}

func run(pass *analysis.Pass) (any, error) {
	for _, file := range pass.Files {
		c := checker{pass: pass, allowed: allowances(pass, file)}
		ast.Inspect(file, func(n ast.Node) bool {
			c.visit(n)
			return true
		})
	}
	return nil, nil
}

type checker struct {
	pass    *analysis.Pass
	allowed map[int]bool // lines on which a zero result is meant
}

func (c checker) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.FuncType:
		c.signature(n)
	case *ast.CompositeLit:
		if len(n.Elts) == 0 && c.isResult(n) {
			c.report(n, "a literal mo.Result is Ok with a zero value: use mo.Ok or mo.Err")
		}
	case *ast.ValueSpec:
		if n.Type != nil && len(n.Values) == 0 && c.isResult(n.Type) {
			c.report(n, "a mo.Result declared without a value is Ok: assign mo.Ok or mo.Err where it is declared")
		}
	case *ast.CallExpr:
		if c.isNew(n) && c.isResult(n.Args[0]) {
			c.report(n, "new gives a mo.Result that is Ok: use mo.Ok or mo.Err")
		}
	}
}

// signature reports named results; the blank name counts, since a bare return yields it all the same.
func (c checker) signature(f *ast.FuncType) {
	if f.Results == nil {
		return
	}
	for _, field := range f.Results.List {
		if len(field.Names) > 0 && c.isResult(field.Type) {
			c.report(field, "a named mo.Result is Ok until it is assigned: leave the result unnamed")
		}
	}
}

func (c checker) isNew(call *ast.CallExpr) bool {
	id, ok := call.Fun.(*ast.Ident)
	if !ok || len(call.Args) != 1 {
		return false
	}
	b, ok := c.pass.TypesInfo.Uses[id].(*types.Builtin)
	return ok && b.Name() == "new" && c.pass.TypesInfo.Types[call.Args[0]].IsType()
}

func (c checker) isResult(e ast.Expr) bool {
	named, ok := types.Unalias(c.pass.TypesInfo.TypeOf(e)).(*types.Named)
	if !ok {
		return false
	}
	o := named.Obj()
	return o.Name() == "Result" && o.Pkg() != nil && o.Pkg().Path() == moPath
}

func (c checker) report(n ast.Node, text string) {
	if !c.allowed[c.pass.Fset.Position(n.Pos()).Line] {
		c.pass.ReportRangef(n, "%s", text)
	}
}

// allowances gives the lines that a comment with a reason exempts: its own and the next. A comment without a reason
// exempts nothing.
func allowances(pass *analysis.Pass, file *ast.File) map[int]bool {
	lines := map[int]bool{}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			reason, ok := strings.CutPrefix(comment.Text, "//zeroresult:allow ")
			if ok && strings.TrimSpace(reason) != "" {
				line := pass.Fset.Position(comment.Pos()).Line
				lines[line], lines[line+1] = true, true
			}
		}
	}
	return lines
}

package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// impureImports are not for the decision core, subpackages included. What they would bring comes in as a value.
var impureImports = map[string]string{
	"context":      "cancellation and deadlines belong to the shell",
	"os":           "the environment, files and processes belong to the shell",
	"io/ioutil":    "files belong to the shell",
	"syscall":      "the system belongs to the shell",
	"net/http":     "the network belongs to the edges",
	"log":          "the core returns what happened, the shell tells",
	"expvar":       "the core returns what happened, the shell tells",
	"math/rand":    "randomness comes in as a value",
	"math/rand/v2": "randomness comes in as a value",
	"crypto/rand":  "randomness comes in as a value",
	"hash/maphash": "its seed is random: the same input must give the same bytes",
}

// impureNames are the exported names of otherwise pure packages that read a clock, the machine's settings or standard
// output. A mention is enough: `now := time.Now` is as impure as the call.
var impureNames = map[string][]string{
	"time": {"Now", "Since", "Until", "After", "AfterFunc", "Tick", "Sleep", "NewTimer", "NewTicker", "Timer", "Ticker", "Local", "LoadLocation"},
	"fmt":  {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	"net":  {"Dial", "DialTimeout", "Listen", "ListenPacket", "LookupAddr", "LookupHost", "LookupIP", "Interfaces", "InterfaceAddrs"},
}

// checkPurity keeps the shipped files of words, kernels and engine free of clock, randomness, context, environment and
// logger. There is no exception by path. Names are resolved by import, not by type, so renaming an import does not help.
func checkPurity(files []goFile) []Finding {
	var found []Finding
	for _, f := range files {
		_, l, ok := place(f.dir)
		if !ok || f.test || (l != words && l != kernel && l != engine) {
			continue
		}
		found = append(found, f.impureImports()...)
		found = append(found, f.impureNames()...)
	}
	return found
}

func (f goFile) impureImports() []Finding {
	var found []Finding
	f.imports(func(spec *ast.ImportSpec, p, _ string) {
		for at := p; at != "."; at = parent(at) {
			if why, banned := impureImports[at]; banned {
				found = append(found, Finding{f.at(spec.Pos()), "purity", fmt.Sprintf("%s must not import %s: %s", f.dir, p, why)})
				return
			}
		}
		if _, partly := impureNames[p]; partly && spec.Name != nil && spec.Name.Name == "." {
			found = append(found, Finding{f.at(spec.Pos()), "purity", fmt.Sprintf("%s must not import %s with a dot, which hides what is read from it", f.dir, p)})
		}
	})
	return found
}

func (f goFile) impureNames() []Finding {
	banned := map[string][]string{} // by the name the file gives the package
	f.imports(func(spec *ast.ImportSpec, p, _ string) {
		if names, ok := impureNames[p]; ok {
			banned[localName(spec, p)] = names
		}
	})
	var found []Finding
	ast.Inspect(f.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		id, ok := sel.X.(*ast.Ident)
		if ok && slices.Contains(banned[id.Name], sel.Sel.Name) {
			found = append(found, Finding{f.at(sel.Pos()), "purity", fmt.Sprintf("%s must not use %s.%s: take the value as an argument", f.dir, id.Name, sel.Sel.Name)})
		}
		return true
	})
	return found
}

func localName(spec *ast.ImportSpec, p string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return p[strings.LastIndexByte(p, '/')+1:]
}

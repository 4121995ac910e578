package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// layer is a storey of the house. A package belongs to the layer of the longest folder in the table that holds it.
type layer string

const (
	words   layer = "words"
	kernel  layer = "kernel"
	engine  layer = "engine"
	port    layer = "port"
	shell   layer = "shell"
	edge    layer = "edge"
	form    layer = "form"    // what several edges read or write, of ours nothing else
	helper  layer = "helper"  // of the programs and of tests, not of the library
	ground  layer = "ground"  // of the shell and the ports: what runs code of others stands on it
	tooling layer = "tooling" // of this repository
	program layer = "program"
	support layer = "support"
)

// folders is the whole of the top level: a package under none of these is refused until it is given a place.
var folders = map[string]layer{
	"action": words, "txn": words,

	"schema": kernel, "risk": kernel, "budget": kernel, "statespace": kernel, "approval": kernel, "policy": kernel,
	"ledger": kernel, "workflow": kernel,

	"internal/engine": engine,

	"memory": port, "hooks": port, "keys": port, "skills": port, "tool": port,

	"delta": shell,

	"planner": edge, "mcp": edge, "sandbox": edge, "telemetry": edge, "audit": edge, "notify": edge, "trace": edge, "policyfile": edge, "workflowfile": edge, "web": edge,

	"internal/course": ground,

	"internal/table": helper, "internal/cputime": helper,

	"internal/yamljson": form,

	"internal/archtest": tooling, "internal/readme": tooling, "internal/lint": tooling, "internal/redistest": tooling,

	"cmd": program,

	// The root holds no package of its own, at most tests of the README.
	".": support, "deltatest": support, "conformance": support, "examples": support, "bench": support,
}

// mayImport says which layers a layer's shipped files may import, besides packages of their own folder in the table and,
// for words, each other. The programs and the support folders may import anything.
var mayImport = map[layer][]layer{
	words:   {words},
	kernel:  {words},
	engine:  {words, kernel},
	port:    {words, kernel, ground},
	shell:   {words, kernel, engine, port, ground},
	edge:    {words, kernel, port, shell, form},
	form:    {},
	helper:  {},
	ground:  {},
	tooling: {},
	program: {words, kernel, engine, port, shell, edge, form, helper, program, support},
	support: {words, kernel, engine, port, shell, edge, form, helper, program, support},
}

// place finds the folder of the table that holds dir, and its layer.
func place(dir string) (folder string, l layer, ok bool) {
	for at := dir; ; {
		if l, ok := folders[at]; ok && (at != "." || dir == ".") {
			return at, l, true
		}
		i := strings.LastIndexByte(at, '/')
		if i < 0 {
			return "", "", false
		}
		at = at[:i]
	}
}

// checkLayers holds the import table. Tests may import whatever the compiler lets them: an oracle or a whole engine.
func checkLayers(files []goFile) []Finding {
	var found []Finding
	unknown := map[string]bool{}
	for _, f := range files {
		folder, from, ok := place(f.dir)
		if !ok {
			if !unknown[f.dir] {
				unknown[f.dir] = true
				found = append(found, Finding{f.dir, "layers", "the folder is not in the import table: give it a layer in internal/archtest/layers.go"})
			}
			continue
		}
		if f.test {
			continue
		}
		f.imports(func(spec *ast.ImportSpec, _, dir string) {
			if dir == "" {
				return
			}
			target, to, ok := place(dir)
			if ok && (target == folder || slices.Contains(mayImport[from], to)) {
				return
			}
			found = append(found, Finding{f.at(spec.Pos()), "layers", fmt.Sprintf(
				"%s (%s) must not import %s (%s): pass what it needs as a value of action/, or let a higher layer compose the two", folder, from, dir, orUnknown(to))})
		})
	}
	return found
}

func orUnknown(l layer) layer {
	if l == "" {
		return "not in the table"
	}
	return l
}

package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// modules says which folders may use which third-party module in the files they ship. A module that is not listed is
// refused: adding one is a decision, and this is where it is written down.
var modules = map[string][]string{
	"gonum.org/v1/gonum": {"risk", "bench/risk"},
	"gonum.org/v1/plot":  {"bench/risk/plots"}, // large: whoever draws imports that package, and only programs draw

	"github.com/invopop/jsonschema":                            {"schema"},
	"github.com/pb33f/ordered-map/v2":                          {"schema"}, // the properties of an invopop schema
	"github.com/xeipuuv/gojsonschema":                          {"schema"},
	"github.com/santhosh-tekuri/jsonschema/v6":                 {"schema"},
	"golang.org/x/text":                                        {"schema"},
	"github.com/cedar-policy/cedar-go":                         {"policy"},
	"github.com/go-json-experiment/json":                       {"policy"}, // cedar-go brings it; strict about names given twice
	"golang.org/x/mod":                                         {"ledger"},
	"github.com/redis/go-redis/v9":                             {"memory/redisstore", "internal/redistest", "audit/redis", "conformance", "bench"},
	"github.com/samber/mo":                                     aboveEngine,
	"golang.org/x/sync":                                        {"delta"},
	"golang.org/x/time":                                        {"delta"},
	"github.com/cenkalti/backoff/v5":                           {"delta", "notify"},
	"github.com/standard-webhooks/standard-webhooks/libraries": {"notify"},
	"github.com/sony/gobreaker/v2":                             {"delta", "memory/redisstore"},
	"github.com/modelcontextprotocol/go-sdk":                   {"mcp", "cmd", "examples", "bench"},
	"go.opentelemetry.io/otel":                                 {"telemetry", "audit/otlp", "cmd", "examples"}, // the API
	"go.opentelemetry.io/otel/sdk":                             {"telemetry/prometheus", "audit/otlp", "cmd", "examples"},
	"go.opentelemetry.io/otel/exporters":                       {"telemetry/prometheus", "cmd", "examples"},
	"github.com/prometheus/client_golang":                      {"telemetry/prometheus", "cmd", "examples"},
	"github.com/DeRuina/timberjack":                            {"audit/file"},
	"github.com/landlock-lsm/go-landlock":                      {"sandbox"},
	"golang.org/x/sys":                                         {"sandbox"}, // limits and ends of processes
	"github.com/spf13/cobra":                                   {"cmd"},
	"charm.land/bubbletea/v2":                                  {"cmd"}, // draws what is watched on a terminal
	"github.com/spf13/pflag":                                   {"cmd"},
	"go.yaml.in/yaml/v3":                                       {"skills", "policyfile", "workflowfile", "cmd", "examples", "internal/yamljson"},
	"go.yaml.in/yaml/v4":                                       {"cmd", "examples"},
	"golang.org/x/term":                                        {"internal/table", "cmd", "examples"},
	"github.com/rivo/uniseg":                                   {"internal/table"},
	"github.com/schollz/progressbar/v3":                        {"internal/table"},
	"modernc.org/sqlite":                                       {"examples"},
	"golang.org/x/tools":                                       {"internal/lint"},
	"github.com/stretchr/testify":                              suites,
	"pgregory.net/rapid":                                       suites,
	"go.uber.org/goleak":                                       suites,
}

// aboveEngine may speak mo.Result, which is what the public face returns.
var aboveEngine = []string{"delta", "planner", "mcp", "sandbox", "telemetry", "web", "cmd", "deltatest", "conformance", "examples", "bench"}

// suites are the packages made to be used in tests. Everywhere else a test library in a shipped file would end up in
// users' binaries.
var suites = []string{"memory/memorytest", "conformance", "deltatest", "planner/chat/chattest"}

// inTests are further modules that the tests of a folder may use: oracles and stand-ins.
var inTests = map[string][]string{
	"github.com/stretchr/testify":            anywhere,
	"pgregory.net/rapid":                     anywhere,
	"go.uber.org/goleak":                     anywhere,
	"github.com/samber/mo":                   anywhere,
	"github.com/go-json-experiment/json":     {"schema"}, // judges the strict edge
	"github.com/alicebob/miniredis/v2":       {"memory/redisstore", "internal/redistest", "conformance", "bench"},
	"github.com/rogpeppe/go-internal":        {"cmd"}, // testscript
	"github.com/chromedp/chromedp":           {"web"},
	"golang.org/x/tools":                     {"internal/lint"},
	"github.com/google/go-cmp":               anywhere,
	"github.com/redis/go-redis/v9":           {"memory", "conformance", "bench", "audit", "cmd"},
	"go.opentelemetry.io/otel/sdk":           {"telemetry", "audit/otlp"},
	"modernc.org/sqlite":                     {"examples"},
	"github.com/modelcontextprotocol/go-sdk": {"mcp", "cmd"},
}

var anywhere = []string{"*"}

// checkThirdParty holds the two tables above.
func checkThirdParty(files []goFile) []Finding {
	var found []Finding
	for _, f := range files {
		f.imports(func(spec *ast.ImportSpec, p, dir string) {
			if dir != "" || standard(p) || f.mayUse(p) {
				return
			}
			found = append(found, Finding{f.at(spec.Pos()), "modules", fmt.Sprintf(
				"%s must not use %s: keep it behind the folder it belongs to, or list it in internal/archtest/rules_modules.go", f.dir, p)})
		})
	}
	return found
}

// standard tells the standard library by the first element of the path, which has no dot there.
func standard(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return !strings.Contains(first, ".")
}

func (f goFile) mayUse(p string) bool {
	return allows(modules, p, f.dir) || f.test && allows(inTests, p, f.dir)
}

func allows(table map[string][]string, p, dir string) bool {
	for at := p; at != "."; at = parent(at) {
		if where, ok := table[at]; ok {
			return slices.ContainsFunc(where, func(folder string) bool { return folder == "*" || within(dir, folder) })
		}
	}
	return false
}

func within(dir, folder string) bool { return dir == folder || strings.HasPrefix(dir, folder+"/") }

// parent cuts the last element of a slash-separated path; of a single one it is ".".
func parent(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return "."
}

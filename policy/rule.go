package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// rule is one policy, with what is known of it before any request.
type rule struct {
	name    string
	reason  string // what its author says of it
	policy  *cedar.Policy
	permits bool

	principals, actions, resources []key // where its scope looks; one of each suffices
	reads                          reads // which parts of the context its conditions look at
}

// reads is a set of parts of the context.
type reads uint16

const (
	readsInput reads = 1 << iota
	readsRisk
	readsTrust
	readsEffect
	readsVersion
	readsLeft
	readsProvenance
	readsTenant
	readsNow
	readsWhole // the context as one value
)

var contextParts = map[types.String]reads{
	"input": readsInput, "risk": readsRisk, "trust": readsTrust, "effect": readsEffect, "version": readsVersion, "left": readsLeft,
	"provenance": readsProvenance, "tenant": readsTenant, "now": readsNow,
}

func newRule(name string, p *cedar.Policy) *rule {
	r := &rule{name: name, reason: string(p.Annotations()["reason"]), policy: p, permits: p.Effect() == cedar.Permit}
	a := r.ast()
	r.principals, r.actions, r.resources = keys(a.Principal), keys(a.Action), keys(a.Resource)
	r.walk(func(n ast.IsNode) { r.reads |= readBy(n) })
	if r.reads&readsWhole == 0 && r.bare() {
		r.reads |= readsWhole
	}
	return r
}

func (r *rule) ast() *ast.Policy { return (*ast.Policy)(r.policy.AST()) }

// String is the name of the policy, with what its author says of it.
func (r *rule) String() string {
	if r.reason == "" {
		return r.name
	}
	return r.name + " (" + r.reason + ")"
}

// walk visits every node of the conditions.
func (r *rule) walk(visit func(ast.IsNode)) {
	for _, c := range r.ast().Conditions {
		ast.Inspect(ast.NewNode(c.Body), func(n ast.IsNode) bool {
			visit(n)
			return true
		})
	}
}

// field returns the name of the part of the context that a node reads, where it reads one.
func field(n ast.IsNode) (types.String, bool) {
	switch n := n.(type) {
	case ast.NodeTypeAccess:
		return n.Value, isContext(n.Arg)
	case ast.NodeTypeHas:
		return n.Value, isContext(n.Arg)
	}
	return "", false
}

func isContext(n ast.IsNode) bool {
	v, ok := n.(ast.NodeTypeVariable)
	return ok && v.Name == "context"
}

func readBy(n ast.IsNode) reads {
	name, ok := field(n)
	if !ok {
		return 0
	}
	return contextParts[name]
}

// bare reports whether the context is used other than by its parts.
func (r *rule) bare() bool {
	uses, fields := 0, 0
	r.walk(func(n ast.IsNode) {
		if isContext(n) {
			uses++
		}
		if _, ok := field(n); ok {
			fields++
		}
	})
	return uses != fields
}

// lint finds what Cedar would accept and what can never be meant: a part of the context that does not exist makes every
// evaluation fail, or, asked for with has, silently says no.
func (r *rule) lint() error {
	var faults []error
	r.walk(func(n ast.IsNode) {
		if name, ok := field(n); ok && contextParts[name] == 0 {
			faults = append(faults, fmt.Errorf("the context has no %q; it has input, risk, trust, effect, version, left, provenance, tenant and now", name))
		}
	})
	return errors.Join(faults...)
}

// warning says what is probably not meant.
func (r *rule) warning() string {
	switch {
	case r.permits && r.reads&(readsProvenance|readsWhole) != 0:
		return "it permits by what the planner says of itself (context.provenance), which proves nothing"
	case r.permits && len(r.ast().Conditions) == 0 && anything(r.principals) && anything(r.actions):
		return "it permits every agent every action"
	}
	return ""
}

func anything(ks []key) bool { return slices.Contains(ks, key{}) }

const (
	maxPolicyText = 4 << 20 // bytes of one file
	maxNesting    = 64      // brackets in brackets
	maxChain      = 2_000   // operators between two semicolons that the parser, or what evaluates, nests
)

// checkText bounds what nests: a parser that recurses over what somebody wrote ends the program where it is deep enough.
func checkText(text []byte) error {
	if len(text) > maxPolicyText {
		return fmt.Errorf("it is larger than %d bytes", maxPolicyText)
	}
	if !utf8.Valid(text) {
		return errors.New("it is not UTF-8")
	}
	depth, chain, line := 0, 0, 1
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\n':
			line++
		case '"':
			i, line = skipString(text, i, line)
		case '/':
			if i+1 < len(text) && text[i+1] == '/' {
				i = skipComment(text, i)
			}
		case '(', '[', '{':
			if depth++; depth > maxNesting {
				return fmt.Errorf("line %d: it is nested deeper than %d", line, maxNesting)
			}
		case ')', ']', '}':
			depth--
		case ';':
			chain = 0
		case '!', '-', '&', '|', '+', '*', '.':
			chain++
		case 'i':
			if i+2 < len(text) && text[i+1] == 'f' && strings.ContainsRune(" \t\r\n(", rune(text[i+2])) {
				chain++
			}
		}
		if chain > maxChain {
			return fmt.Errorf("line %d: more than %d operators in one policy: split it", line, maxChain)
		}
	}
	return nil
}

func skipString(text []byte, i, line int) (int, int) {
	for i++; i < len(text) && text[i] != '"'; i++ {
		switch text[i] {
		case '\\':
			i++
		case '\n':
			line++
		}
	}
	return i, line
}

// skipComment returns the place before the end of the line.
func skipComment(text []byte, i int) int {
	for i+1 < len(text) && text[i+1] != '\n' {
		i++
	}
	return i
}

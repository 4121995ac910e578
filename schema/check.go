package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxFaults = 20        // faults listed of one document
	maxSteps  = 5_000_000 // schemas applied to values of one document, some twenty for each value of a full one
)

// fault is one reason why a document does not satisfy a schema.
type fault struct {
	place string // JSON pointer into the document
	text  string
}

// judge is a validator. Faults come in a stable order; none means that the document satisfies the schema.
type judge interface {
	judge(tree any) []fault
}

// checker applies compiled schemas to one document. Every check is exact and linear in the document but for the branches
// of the schema, which steps bound.
type checker struct {
	path   []step
	quiet  int // above zero inside a branch whose faults are not shown
	faults []fault
	more   int
	steps  int
	limit  int // of steps
}

// errOutOfSteps is how a check that takes too long comes back to run at once. A verdict of false would not do: below a not it
// is consent.
var errOutOfSteps = errors.New("out of steps")

// run applies a schema to a whole document; done is false where it ran out of steps and there is no verdict.
func (c *checker) run(n *node, v any) (ok, done bool) {
	defer func() {
		if r := recover(); r == errOutOfSteps {
			ok, done = false, false
		} else if r != nil {
			panic(r) // the judge makes a refusal of it
		}
	}()
	return c.check(n, v), true
}

// muted reports whether the next fault will not be shown, so that nobody needs to word it.
func (c *checker) muted() bool { return c.quiet > 0 || len(c.faults) >= maxFaults }

func (c *checker) fail(format string, args ...any) bool {
	switch {
	case c.quiet > 0:
	case len(c.faults) == maxFaults:
		c.more++
	default:
		c.faults = append(c.faults, fault{placeOf(c.path), fmt.Sprintf(format, args...)})
	}
	return false
}

func placeOf(path []step) string {
	p := parser{path: path}
	return p.fault(0, "").pointer
}

func (c *checker) push(s step) { c.path = append(c.path, s) }
func (c *checker) pop()        { c.path = c.path[:len(c.path)-1] }

// tries applies a schema without showing its faults.
func (c *checker) tries(n *node, v any) bool {
	c.quiet++
	ok := c.check(n, v)
	c.quiet--
	return ok
}

func (c *checker) check(n *node, v any) bool {
	c.steps++
	if c.steps > c.limit {
		panic(errOutOfSteps)
	}
	if n.never {
		return c.fail("no value is allowed here")
	}
	if n.ref != nil && !c.check(n.ref, v) {
		return false
	}
	if !n.types.accepts(v) {
		if c.muted() {
			return c.fail("")
		}
		return c.fail("want %s, got %s", strings.Join(n.types.list(), " or "), typeOf(v).list()[0])
	}
	ok := true
	if n.enum != nil && !n.enum[canonicalText(v)] {
		ok = c.fail("%s", c.notAllowed(n.enumTexts))
	}
	switch v := v.(type) {
	case string:
		ok = c.text(n, v) && ok
	case json.Number:
		ok = c.number(n, v) && ok
	case []any:
		ok = c.array(n, v) && ok
	case map[string]any:
		ok = c.object(n, v) && ok
	}
	return c.branches(n, v) && ok
}

func (c *checker) notAllowed(enum []string) string {
	switch {
	case c.muted():
		return ""
	case len(enum) == 0:
		return "no value is allowed here"
	case len(enum) == 1:
		return "want " + clip(enum[0], maxShown)
	}
	shown := make([]string, 0, 10)
	for _, e := range enum[:min(len(enum), 10)] {
		shown = append(shown, clip(e, maxShown))
	}
	if len(enum) > 10 {
		shown = append(shown, "…")
	}
	return "want one of " + strings.Join(shown, ", ")
}

func (c *checker) text(n *node, s string) bool {
	ok := true
	if n.minLength != nil || n.maxLength != nil {
		size := utf8.RuneCountInString(s)
		if n.minLength != nil && size < *n.minLength {
			ok = c.fail("want at least %d characters, got %d", *n.minLength, size)
		}
		if n.maxLength != nil && size > *n.maxLength {
			ok = c.fail("want at most %d characters, got %d", *n.maxLength, size)
		}
	}
	if n.pattern != nil && !n.pattern.MatchString(s) {
		ok = c.fail("does not match the pattern %s", clip(n.pattern.String(), maxShown))
	}
	return c.format(n, s) && ok
}

func (c *checker) format(n *node, v any) bool {
	if n.formatName == "" || formats[n.formatName].holds(v) {
		return true
	}
	if fault := formats[n.formatName].fault; fault != "" {
		return c.fail("%s", fault)
	}
	return c.fail("is not a valid %s", n.formatName)
}

func (c *checker) number(n *node, v json.Number) bool {
	if n.minimum == nil && n.maximum == nil && n.above == nil && n.below == nil && n.multipleOf == nil {
		return c.format(n, v)
	}
	r, ok := rat(v), true
	if n.minimum != nil && r.Cmp(n.minimum.rat) < 0 {
		ok = c.fail("want at least %s", n.minimum.text)
	}
	if n.maximum != nil && r.Cmp(n.maximum.rat) > 0 {
		ok = c.fail("want at most %s", n.maximum.text)
	}
	if n.above != nil && r.Cmp(n.above.rat) <= 0 {
		ok = c.fail("want more than %s", n.above.text)
	}
	if n.below != nil && r.Cmp(n.below.rat) >= 0 {
		ok = c.fail("want less than %s", n.below.text)
	}
	if n.multipleOf != nil && !r.Quo(r, n.multipleOf.rat).IsInt() {
		ok = c.fail("want a multiple of %s", n.multipleOf.text)
	}
	return c.format(n, v) && ok
}

func (c *checker) array(n *node, list []any) bool {
	ok := true
	if n.minItems != nil && len(list) < *n.minItems {
		ok = c.fail("want at least %d elements, got %d", *n.minItems, len(list))
	}
	if n.maxItems != nil && len(list) > *n.maxItems {
		ok = c.fail("want at most %d elements, got %d", *n.maxItems, len(list))
	}
	for i, v := range list {
		s := n.items
		switch {
		case i < len(n.tuple):
			s = n.tuple[i]
		case n.tuple != nil:
			s = n.rest
		}
		if s == nil {
			break
		}
		c.push(step{index: i})
		ok = c.check(s, v) && ok
		c.pop()
	}
	if n.unique {
		ok = c.distinct(list) && ok
	}
	if n.contains != nil && !c.anyElement(n.contains, list) {
		ok = c.fail("no element is as the schema says one must be")
	}
	return ok
}

// anyElement tries all of them, as the other judges may: steps are counted for them too.
func (c *checker) anyElement(n *node, list []any) bool {
	found := false
	for _, v := range list {
		found = c.tries(n, v) || found
	}
	return found
}

// distinct compares canonical texts, so it is linear and exact; the first repetition is enough.
func (c *checker) distinct(list []any) bool {
	first := make(map[string]int, len(list))
	for i, v := range list {
		text := canonicalText(v)
		if j, dup := first[text]; dup {
			return c.fail("elements %d and %d are equal, want all different", j, i)
		}
		first[text] = i
	}
	return true
}

func (c *checker) object(n *node, m map[string]any) bool {
	ok := true
	if n.minProperties != nil && len(m) < *n.minProperties {
		ok = c.fail("want at least %d members, got %d", *n.minProperties, len(m))
	}
	if n.maxProperties != nil && len(m) > *n.maxProperties {
		ok = c.fail("want at most %d members, got %d", *n.maxProperties, len(m))
	}
	for _, name := range n.required {
		if _, have := m[name]; !have {
			ok = c.memberFail(name, "is required") && ok
		}
	}
	if n.additional != nil || len(n.patterns) > 0 || n.propertyNames != nil {
		for _, name := range sortedNames(m) {
			ok = c.member(n, name, m[name]) && ok
		}
		return ok
	}
	for _, name := range n.names {
		if v, have := m[name]; have {
			ok = c.at(n.props[name], name, v) && ok
		}
	}
	return ok
}

func (c *checker) at(n *node, name string, v any) bool {
	c.push(step{name: name, named: true})
	defer c.pop()
	return c.check(n, v)
}

func (c *checker) memberFail(name, format string, args ...any) bool {
	c.push(step{name: name, named: true})
	defer c.pop()
	return c.fail(format, args...)
}

func (c *checker) member(n *node, name string, v any) bool {
	ok, known := true, false
	if n.propertyNames != nil && !c.tries(n.propertyNames, name) {
		ok = c.memberFail(name, "the name is not allowed")
	}
	if p := n.props[name]; p != nil {
		known, ok = true, c.at(p, name, v) && ok
	}
	for _, p := range n.patterns {
		if p.re.MatchString(name) {
			known, ok = true, c.at(p.node, name, v) && ok
		}
	}
	switch {
	case known || n.additional == nil:
		return ok
	case n.additional.never:
		return c.memberFail(name, "%s", c.unknownMember(n.names, name))
	}
	return c.at(n.additional, name, v) && ok
}

func (c *checker) unknownMember(known []string, name string) string {
	if c.muted() {
		return ""
	}
	if hint := didYouMean(name, known); hint != "" {
		return "is not a known property" + hint
	}
	if len(known) == 0 || len(known) > 20 {
		return "is not a known property"
	}
	return "is not a known property; known are " + strings.Join(known, ", ")
}

func (c *checker) branches(n *node, v any) bool {
	ok := true
	for _, b := range n.allOf {
		ok = c.check(b, v) && ok
	}
	if n.anyOf != nil && c.matches(n.anyOf, v) == 0 {
		ok = c.noBranch(n.anyOf, v)
	}
	if n.oneOf != nil {
		switch k := c.matches(n.oneOf, v); {
		case k == 0:
			ok = c.noBranch(n.oneOf, v)
		case k > 1:
			ok = c.fail("matches %d alternatives, want exactly one", k)
		}
	}
	if n.not != nil && c.tries(n.not, v) {
		ok = c.fail("is what the schema says it must not be")
	}
	if n.ifs != nil {
		branch := n.els
		if c.tries(n.ifs, v) {
			branch = n.then
		}
		ok = (branch == nil || c.check(branch, v)) && ok
	}
	if m, isObject := v.(map[string]any); isObject {
		ok = c.dependents(n, m) && ok
	}
	return ok
}

func (c *checker) matches(branches []*node, v any) int {
	k := 0
	for _, b := range branches {
		if c.tries(b, v) {
			k++
		}
	}
	return k
}

// noBranch says why no alternative holds: where one alone is for values of this type, its faults are the reason.
func (c *checker) noBranch(branches []*node, v any) bool {
	var fitting []*node
	for _, b := range branches {
		if b.mayHold(v) {
			fitting = append(fitting, b)
		}
	}
	if len(fitting) == 1 && c.quiet == 0 {
		return c.check(fitting[0], v) && false
	}
	return c.fail("matches none of %s alternatives", strconv.Itoa(len(branches)))
}

// mayHold reports whether the type of v is one that n, what it refers to and what it is made of accept.
func (n *node) mayHold(v any) bool {
	if n.never || !n.types.accepts(v) || n.ref != nil && !n.ref.mayHold(v) {
		return false
	}
	return !slices.ContainsFunc(n.allOf, func(m *node) bool { return !m.mayHold(v) })
}

func (c *checker) dependents(n *node, m map[string]any) bool {
	ok := true
	for _, d := range n.dependencies {
		if _, have := m[d.name]; !have {
			continue
		}
		for _, need := range d.needs {
			if _, have := m[need]; !have {
				ok = c.memberFail(need, "is required where %s is present", quote(d.name))
			}
		}
		if d.node != nil {
			ok = c.check(d.node, m) && ok
		}
	}
	return ok
}

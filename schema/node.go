package schema

import (
	"encoding/json"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// node is one compiled schema. Schemas of our own declarations are checked by it (see checker); of foreign ones only the
// structure is used: which members are known, of which type, which are secret.
type node struct {
	raw   map[string]any // nil for a boolean schema
	never bool           // the schema false

	// Structure.
	ref                          *node
	allOf, anyOf, oneOf          []*node
	not, ifs, then, els          *node
	props                        map[string]*node
	names                        []string // of props, in order
	folded                       map[string]string
	patterns                     []patternNode
	additional                   *node
	items                        *node
	tuple                        []*node
	rest                         *node // what follows a tuple
	contains, propertyNames      *node
	dependencies                 []dependency
	here                         []*node // this and all that apply to the same value, each once
	secret                       bool
	types                        typeSet
	required                     []string
	enum                         map[string]bool // canonical texts
	enumTexts                    []string
	minimum, maximum             *bound
	above, below                 *bound // exclusive
	multipleOf                   *bound
	minLength, maxLength         *int
	minItems, maxItems           *int
	minProperties, maxProperties *int
	unique                       bool
	pattern                      *regexp.Regexp
	formatName                   string
	fast                         *rules // for the pass
}

type patternNode struct {
	re   *regexp.Regexp
	node *node
}

type dependency struct {
	name  string
	needs []string
	node  *node
}

type bound struct {
	rat  *big.Rat
	text string
}

// typeSet is a set of JSON types; the empty set stands for all of them.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeInteger
	typeNumber
	typeString
	typeArray
	typeObject
)

var typeNames = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

func typeNamed(name string) typeSet {
	if i := slices.Index(typeNames, name); i >= 0 {
		return 1 << i
	}
	return 0
}

func (t typeSet) list() []string {
	var names []string
	for i, name := range typeNames {
		if t&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// typeOf returns the type of a value, the narrower one for a whole number.
func typeOf(v any) typeSet {
	switch v := v.(type) {
	case nil:
		return typeNull
	case bool:
		return typeBoolean
	case json.Number:
		if isInteger(v) {
			return typeInteger
		}
		return typeNumber
	case string:
		return typeString
	case []any:
		return typeArray
	}
	return typeObject
}

func (t typeSet) accepts(v any) bool {
	have := typeOf(v)
	return t == 0 || t&have != 0 || have == typeInteger && t&typeNumber != 0
}

// compiler turns a schema's tree into nodes, one per place, so that a $ref is a pointer and recursion is a cycle.
type compiler struct {
	root  any
	nodes map[string]*node
	order []*node
}

func compile(root any) *node {
	c := compiler{root: root, nodes: map[string]*node{}}
	n := c.at("", root)
	for _, m := range c.order {
		m.here = closure(m)
	}
	return n
}

// at compiles the schema at a place. Values of the wrong type are skipped: lint has refused them where it matters.
func (c *compiler) at(place string, v any) *node {
	if n, ok := c.nodes[place]; ok {
		return n
	}
	n := &node{}
	c.nodes[place] = n
	c.order = append(c.order, n)
	switch v := v.(type) {
	case bool:
		n.never = !v
	case map[string]any:
		n.raw = v
		c.structure(n, place)
		c.assertions(n)
	}
	return n
}

func (c *compiler) child(n *node, place, keyword string) *node {
	v, ok := n.raw[keyword]
	if !ok || !isSchema(v) {
		return nil
	}
	return c.at(place+"/"+keyword, v)
}

func (c *compiler) list(n *node, place, keyword string) []*node {
	list, _ := n.raw[keyword].([]any)
	var out []*node
	for i, v := range list {
		out = append(out, c.at(place+"/"+keyword+"/"+strconv.Itoa(i), v))
	}
	return out
}

func (c *compiler) members(n *node, place, keyword string, each func(name string, n *node)) {
	m, _ := n.raw[keyword].(map[string]any)
	for _, name := range sortedNames(m) {
		if isSchema(m[name]) {
			each(name, c.at(place+"/"+keyword+"/"+pointerToken(name), m[name]))
		}
	}
}

func isSchema(v any) bool {
	switch v.(type) {
	case bool, map[string]any:
		return true
	}
	return false
}

func (c *compiler) structure(n *node, place string) {
	if ref, ok := n.raw["$ref"].(string); ok {
		if target, ok := refPlace(ref); ok {
			if v, ok := lookup(c.root, target); ok {
				n.ref = c.at(target, v)
			}
		}
	}
	n.allOf, n.anyOf, n.oneOf = c.list(n, place, "allOf"), c.list(n, place, "anyOf"), c.list(n, place, "oneOf")
	n.not, n.ifs = c.child(n, place, "not"), c.child(n, place, "if")
	n.then, n.els = c.child(n, place, "then"), c.child(n, place, "else")
	n.additional, n.propertyNames = c.child(n, place, "additionalProperties"), c.child(n, place, "propertyNames")
	n.contains = c.child(n, place, "contains")
	n.props, n.folded = map[string]*node{}, map[string]string{}
	c.members(n, place, "properties", func(name string, p *node) {
		n.props[name], n.folded[fold(name)] = p, name
		n.names = append(n.names, name)
	})
	c.members(n, place, "patternProperties", func(name string, p *node) {
		if re, err := regexp.Compile(name); err == nil {
			n.patterns = append(n.patterns, patternNode{re, p})
		}
	})
	c.arrays(n, place)
	for _, keyword := range []string{"dependencies", "dependentSchemas"} {
		c.members(n, place, keyword, func(name string, d *node) {
			n.dependencies = append(n.dependencies, dependency{name: name, node: d})
		})
	}
	deps, _ := n.raw["dependencies"].(map[string]any)
	for _, name := range sortedNames(deps) {
		if list, ok := deps[name].([]any); ok {
			n.dependencies = append(n.dependencies, dependency{name: name, needs: texts(list)})
		}
	}
}

func (c *compiler) arrays(n *node, place string) {
	if _, ok := n.raw["items"].([]any); ok { // up to draft 2019-09
		n.tuple, n.rest = c.list(n, place, "items"), c.child(n, place, "additionalItems")
		return
	}
	n.items = c.child(n, place, "items")
	if n.tuple = c.list(n, place, "prefixItems"); n.tuple != nil {
		n.rest, n.items = n.items, nil
	}
}

func (c *compiler) assertions(n *node) {
	switch t := n.raw["type"].(type) {
	case string:
		n.types = typeNamed(t)
	case []any:
		for _, name := range texts(t) {
			n.types |= typeNamed(name)
		}
	}
	if list, ok := n.raw["enum"].([]any); ok {
		n.setEnum(list)
	}
	if v, ok := n.raw["const"]; ok {
		// Both together are both; a const that the enum lacks leaves nothing.
		if n.enum == nil || n.enum[canonicalText(v)] {
			n.setEnum([]any{v})
		} else {
			n.setEnum(nil)
		}
	}
	n.minimum, n.maximum = limit(n.raw["minimum"]), limit(n.raw["maximum"])
	n.above, n.below = limit(n.raw["exclusiveMinimum"]), limit(n.raw["exclusiveMaximum"])
	n.multipleOf = limit(n.raw["multipleOf"])
	n.minLength, n.maxLength = count(n.raw["minLength"]), count(n.raw["maxLength"])
	n.minItems, n.maxItems = count(n.raw["minItems"]), count(n.raw["maxItems"])
	n.minProperties, n.maxProperties = count(n.raw["minProperties"]), count(n.raw["maxProperties"])
	n.unique, _ = n.raw["uniqueItems"].(bool)
	n.secret, _ = n.raw["writeOnly"].(bool)
	n.formatName, _ = n.raw["format"].(string)
	if s, ok := n.raw["pattern"].(string); ok {
		n.pattern, _ = regexp.Compile(s)
	}
	if list, ok := n.raw["required"].([]any); ok {
		n.required = texts(list)
	}
}

func (n *node) setEnum(values []any) {
	n.enum, n.enumTexts = map[string]bool{}, nil
	for _, v := range values {
		text := canonicalText(v)
		n.enum[text] = true
		n.enumTexts = append(n.enumTexts, text)
	}
}

func limit(v any) *bound {
	if n, ok := v.(json.Number); ok {
		return &bound{rat(n), string(n)}
	}
	return nil
}

func count(v any) *int {
	n, ok := v.(json.Number)
	if !ok {
		return nil
	}
	i, err := strconv.Atoi(string(n))
	if err != nil {
		return nil
	}
	return &i
}

func texts(list []any) []string {
	var out []string
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// closure lists the schemas that may say something about the same value, n first.
func closure(n *node) []*node {
	seen := map[*node]bool{}
	var out []*node
	var add func(*node)
	add = func(n *node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		out = append(out, n)
		add(n.ref)
		for _, list := range [][]*node{n.allOf, n.anyOf, n.oneOf} {
			for _, m := range list {
				add(m)
			}
		}
		add(n.ifs)
		add(n.then)
		add(n.els)
		for _, d := range n.dependencies {
			add(d.node)
		}
	}
	add(n)
	return out
}

// member returns the schemas for a member of an object to which the given schemas apply.
func member(here []*node, name string) []*node {
	var out []*node
	for _, n := range here {
		known := false
		if p := n.props[name]; p != nil {
			out, known = append(out, p.here...), true
		}
		for _, p := range n.patterns {
			if p.re.MatchString(name) {
				out, known = append(out, p.node.here...), true
			}
		}
		if !known && n.additional != nil {
			out = append(out, n.additional.here...)
		}
	}
	return distinct(out)
}

// element returns the schemas for the i-th element of an array to which the given schemas apply.
func element(here []*node, i int) []*node {
	var out []*node
	for _, n := range here {
		switch {
		case i < len(n.tuple):
			out = append(out, n.tuple[i].here...)
		case n.tuple != nil && n.rest != nil:
			out = append(out, n.rest.here...)
		case n.tuple == nil && n.items != nil:
			out = append(out, n.items.here...)
		}
	}
	return distinct(out)
}

func distinct(list []*node) []*node {
	if len(list) < 2 {
		return list
	}
	var out []*node
	for _, n := range list {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// refPlace returns the place that a local reference points to: "#/a/b" is "/a/b", "#" the root.
func refPlace(ref string) (string, bool) {
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok || fragment != "" && fragment[0] != '/' {
		return "", false
	}
	place, err := url.PathUnescape(fragment)
	if err != nil {
		return "", false
	}
	// One spelling per place, whatever was escaped without need.
	tokens := strings.Split(place, "/")
	for i, t := range tokens {
		tokens[i] = pointerToken(unescapePointer(t))
	}
	return strings.Join(tokens, "/"), true
}

// lookup follows a JSON pointer.
func lookup(v any, place string) (any, bool) {
	if place == "" {
		return v, true
	}
	for _, token := range strings.Split(place[1:], "/") {
		switch t := v.(type) {
		case map[string]any:
			child, ok := t[unescapePointer(token)]
			if !ok {
				return nil, false
			}
			v = child
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(t) || strconv.Itoa(i) != token {
				return nil, false
			}
			v = t[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// fold maps names that differ only in case, as Unicode and encoding/json see it, to one text.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}

package explain

import (
	"encoding/json"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/schema"
)

// side is one field of one action's input.
type side struct{ action, field string }

// inputs returns the input schema of every action: the one given, or one made of the fields that needs bind on. A bound
// field has the type that some action's own schema gives to it or to what it is bound to, else it is text. A schema that
// is given and wrong is left to the builder, which says so.
func inputs(actions []declared) map[string][]byte {
	given := map[string]*schema.Schema{}
	own := map[string]bool{}
	for _, a := range actions {
		if a.input != nil {
			own[a.name] = true
			if s, err := schema.Declared(a.input); err == nil {
				given[a.name] = s
			}
		}
	}
	kinds := spread(pairs(actions), given)
	out := map[string][]byte{}
	for _, a := range actions {
		if own[a.name] {
			out[a.name] = a.input
			continue
		}
		out[a.name] = generate(a, actions, kinds)
	}
	return out
}

// pairs lists the fields that are bound to each other, input to input.
func pairs(actions []declared) (out [][2]side) {
	for _, a := range actions {
		for _, n := range a.needs {
			for _, b := range n.binds {
				for _, on := range b.on {
					if b.output == "" && n.workflow == "" {
						out = append(out, [2]side{{a.name, on}, {n.action, b.theirs(on)}})
					}
				}
			}
		}
	}
	return out
}

func (b *bind) theirs(on string) string {
	if b.other != "" {
		return b.other
	}
	return on
}

// spread passes known types on to the fields bound to them, until nothing changes.
func spread(bound [][2]side, given map[string]*schema.Schema) map[side]schema.Kind {
	kinds := map[side]schema.Kind{}
	for _, p := range bound {
		for _, s := range p {
			if g := given[s.action]; g != nil {
				if k, err := g.Kind(s.field); err == nil && k != schema.AnyKind {
					kinds[s] = k
				}
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, p := range bound {
			for i := range p {
				if k := kinds[p[i]]; k != "" && kinds[p[1-i]] == "" {
					kinds[p[1-i]], changed = k, true
				}
			}
		}
	}
	return kinds
}

// generate makes a schema of the fields that the action binds on, which are required, and of those that others bind to.
// Other fields may be there.
func generate(a declared, actions []declared, kinds map[side]schema.Kind) []byte {
	root := object{}
	add := func(field string, required bool) {
		root.add(strings.Split(field, "."), kinds[side{a.name, field}], required)
	}
	for _, n := range a.needs {
		for _, b := range n.binds {
			for _, on := range b.on {
				add(on, true)
			}
		}
	}
	for _, p := range pairs(actions) {
		if p[1].action == a.name {
			add(p[1].field, false)
		}
	}
	raw, _ := json.Marshal(root.schema()) // strings, maps and slices
	return raw
}

// object is a schema under construction.
type object struct {
	names  []string // in the order in which they were added
	fields map[string]*property
}

type property struct {
	kind     schema.Kind
	required bool
	object   object
	element  *property // of a list
}

func (o *object) add(path []string, k schema.Kind, required bool) {
	if o.fields == nil {
		o.fields = map[string]*property{}
	}
	p := o.fields[path[0]]
	if p == nil {
		p = &property{}
		o.fields[path[0]] = p
		o.names = append(o.names, path[0])
	}
	p.required = p.required || required
	p.add(path[1:], k, required)
}

func (p *property) add(rest []string, k schema.Kind, required bool) {
	switch {
	case len(rest) == 0:
		p.kind = k
	case rest[0] == "*":
		if p.element == nil {
			p.element = &property{}
		}
		p.element.add(rest[1:], k, required)
	default:
		p.object.add(rest, k, required)
	}
}

func (o *object) schema() map[string]any {
	out := map[string]any{"type": "object"}
	properties, required := map[string]any{}, []string{}
	for _, name := range o.names {
		properties[name] = o.fields[name].schema()
		if o.fields[name].required {
			required = append(required, name)
		}
	}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func (p *property) schema() map[string]any {
	switch {
	case p.element != nil:
		return map[string]any{"type": "array", "items": p.element.schema()}
	case p.object.fields != nil:
		return p.object.schema()
	case p.kind == "":
		return map[string]any{"type": "string"}
	}
	if kinds := strings.Split(string(p.kind), "|"); len(kinds) > 1 {
		return map[string]any{"type": kinds}
	}
	return map[string]any{"type": p.kind}
}

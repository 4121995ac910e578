package chat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// finishing is the tool that ends a run.
var finishing = Tool{
	Name:        finishTool,
	Description: "End your work: the goal is reached, or it cannot be. Call it alone, after the results of your other calls.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"verdict":{"enum":["reached","not_reached","waiting"],"description":"reached: the goal is; not_reached: it is not and you can do no more, ` +
		`which ends the task; waiting: a person has to decide before anybody can go on"},` +
		`"why":{"type":"string","description":"what was done, or what stands in the way"}},` +
		`"required":["verdict","why"],"additionalProperties":false}`),
}

// toolsOf makes tool definitions of an offer: at most as many as the provider takes, what runs now before what a person
// has to approve, and then in the order of their names, whatever order the offer has. The planner's own come first. It returns how many were left out.
func toolsOf(o action.Offer, n *names, most int, own ...Tool) (tools []Tool, left int) {
	offered := slices.Clone(o.Actions)
	slices.SortStableFunc(offered, func(a, b action.Offered) int { return cmp.Compare(a.Name, b.Name) })
	list := make([]string, len(offered))
	for i, a := range offered {
		list[i] = a.Name
	}
	n.add(list)
	if most -= len(own); len(offered) > most {
		slices.SortStableFunc(offered, func(a, b action.Offered) int {
			return cmp.Compare(gatedLast(a), gatedLast(b))
		})
		left = len(offered) - most
		offered = offered[:most]
		slices.SortStableFunc(offered, func(a, b action.Offered) int { return cmp.Compare(a.Name, b.Name) })
	}
	tools = append(make([]Tool, 0, len(offered)+len(own)), own...)
	for _, a := range offered {
		tools = append(tools, toolOf(a, n))
	}
	return tools, left
}

func gatedLast(a action.Offered) int {
	if a.Status == action.Legal {
		return 0
	}
	return 1
}

// toolOf describes one action. Nothing in it moves while the offer stays: estimates and risks do, and are left out.
func toolOf(a action.Offered, n *names) Tool {
	schema, rest := adapt(a.Schema)
	lines := []string{a.Description}
	if w := n.of(a.Name); w != a.Name {
		lines = append(lines, "This is the action "+a.Name+".")
	}
	if a.Status == action.Gated {
		line := "A person has to approve each call first."
		if a.Why != "" {
			line += " Why: " + a.Why
		}
		lines = append(lines, line)
	}
	if rest != "" {
		lines = append(lines, "The input must also satisfy this JSON Schema: "+rest)
	}
	return Tool{Name: n.of(a.Name), Description: strings.TrimSpace(strings.Join(lines, "\n")), Schema: schema}
}

// notAtRoot are the keywords that providers refuse at the root of a tool's schema.
var notAtRoot = []string{"$ref", "oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else"}

// adapt makes of a schema one that providers take: an object, without a reference or alternatives at its root. What they
// do not take is returned as text for the description; the engine checks against the schema itself in any case.
func adapt(raw json.RawMessage) (schema json.RawMessage, rest string) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var root map[string]any
	if err := d.Decode(&root); err != nil || root == nil {
		return json.RawMessage(`{"type":"object"}`), string(raw)
	}
	out := maps.Clone(root)
	delete(out, "$schema")
	delete(out, "$id")
	for range 8 { // a reference to a reference; longer chains are left to the engine
		if !follow(out) {
			break
		}
	}
	taken := map[string]any{}
	for _, k := range notAtRoot {
		if v, ok := out[k]; ok {
			taken[k] = v
			delete(out, k)
		}
	}
	if out["type"] != "object" {
		out["type"] = "object"
	}
	if _, ok := out["properties"].(map[string]any); !ok {
		out["properties"] = map[string]any{} // some servers fail without
	}
	if len(taken) > 0 {
		rest = encode(taken)
	}
	return json.RawMessage(encode(out)), rest
}

// follow replaces a reference at the root to one of its own definitions by what it refers to.
func follow(root map[string]any) bool {
	ref, ok := root["$ref"].(string)
	if !ok {
		return false
	}
	for _, place := range []string{"$defs", "definitions"} {
		name, ok := strings.CutPrefix(ref, "#/"+place+"/")
		defs, _ := root[place].(map[string]any)
		if target, is := defs[name].(map[string]any); ok && is {
			delete(root, "$ref")
			maps.Copy(root, target)
			return true
		}
	}
	return false
}

// encode writes a value that was decoded from JSON, members in the order of their names.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "{}" // it was decoded from JSON
	}
	return strings.TrimSpace(b.String())
}

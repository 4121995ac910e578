package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/schema"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"
)

// ActionType declares an action to the rules: where actions are declared, every policy is checked against them, and one
// that names an unknown action or field, or compares what cannot be compared, does not compile.
type ActionType struct {
	// Tool executes the action where a request does not say; "" is a tool of the action's own name.
	Tool string `json:"tool"`
	// Source is the data source that the action reads: the resource in place of the tool.
	Source string `json:"source"`
	// Groups are the names under which policies may name the action together with others: action in Action::"payments".
	Groups []string `json:"groups"`
	// Input is the JSON schema of the input. Empty: nothing is declared, and a policy may not look into it. Fields whose
	// type Cedar does not have (a choice of types, any value) are left out, and a policy may not look at those.
	Input json.RawMessage `json:"input"`
}

// The entity types.
const (
	typeAgent   types.EntityType = "Agent"
	typeTeam    types.EntityType = "Team"
	typeAction  types.EntityType = "Action"
	typeTool    types.EntityType = "Tool"
	typeSource  types.EntityType = "Source"
	typeToolset types.EntityType = "Toolset"
)

// preamble declares what is the same for every action.
const preamble = `entity Team;
entity Agent in [Team];
entity Toolset;
entity Tool in [Toolset];
entity Source in [Toolset];
type Risk = { declared: Long, effective: decimal };
type Left = { tokens?: Long, duration?: Long, calls?: Long, bytes?: Long, money?: Long, currency?: String };
type Provenance = { goal?: String, decision?: String, planStep?: String, reason?: String };
`

// cedarSchema writes the schema of the actions.
func cedarSchema(actions map[string]ActionType) (text string, shapes map[string]*shape, err error) {
	var b strings.Builder
	b.WriteString(preamble)
	groups := map[string]bool{}
	for name, a := range actions {
		for _, g := range a.Groups {
			if _, taken := actions[g]; taken {
				return "", nil, fmt.Errorf("action %q: %q is an action and cannot be a group too", name, g)
			}
			groups[g] = true
		}
	}
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		fmt.Fprintf(&b, "action %s;\n", quote(g))
	}
	shapes = map[string]*shape{}
	for _, name := range slices.Sorted(maps.Keys(actions)) {
		a := actions[name]
		input, s, err := inputType(a.Input)
		if err != nil {
			return "", nil, fmt.Errorf("action %q: input: %w", name, err)
		}
		shapes[name] = s
		fmt.Fprintf(&b, "action %s", quote(name))
		for i, g := range a.Groups {
			b.WriteString(map[bool]string{true: " in [", false: ", "}[i == 0] + quote(g))
		}
		if len(a.Groups) > 0 {
			b.WriteString("]")
		}
		fmt.Fprintf(&b, " appliesTo { principal: [Agent], resource: [Tool, Source], context: { input: %s, risk: Risk, trust: decimal,"+
			" effect: String, version?: String, left: Left, provenance: Provenance, tenant?: String, now: datetime } };\n", input)
	}
	return b.String(), shapes, nil
}

// quote writes a name as Cedar text.
func quote(s string) string { return string(types.String(s).MarshalCedar()) }

// validator compiles the schema of the actions.
func validator(text string) (*validate.Validator, error) {
	var s schema.Schema
	if err := s.UnmarshalCedar([]byte(text)); err != nil {
		return nil, err
	}
	r, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	return validate.New(r), nil
}

// jsonSchema is what counts of a JSON schema here.
type jsonSchema struct {
	Ref        string                     `json:"$ref"`
	Type       any                        `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Items      json.RawMessage            `json:"items"`
	Defs       map[string]json.RawMessage `json:"$defs"`
	Old        map[string]json.RawMessage `json:"definitions"`
}

// inputType translates the schema of an input into the text of a Cedar record type.
func inputType(text json.RawMessage) (string, *shape, error) {
	if len(text) == 0 {
		return "{}", nil, nil
	}
	var root jsonSchema
	if err := json.Unmarshal(text, &root); err != nil {
		return "", nil, fmt.Errorf("it is not a JSON schema: %w", err)
	}
	t := typing{defs: map[string]json.RawMessage{}}
	for name, d := range root.Defs {
		t.defs["#/$defs/"+name] = d
	}
	for name, d := range root.Old {
		t.defs["#/definitions/"+name] = d
	}
	out, s, _, err := t.of(text, 0)
	switch {
	case err != nil:
		return "", nil, err
	case s == nil || s.fields == nil:
		return "", nil, fmt.Errorf("it is not an object with properties")
	}
	return out, s, nil
}

// typing translates one schema; size bounds what references multiply.
type typing struct {
	defs map[string]json.RawMessage
	size int
}

const (
	maxTyping = 32     // depth
	maxTypes  = 10_000 // types in one input
)

// of returns the Cedar type of a schema, "" where there is none, and whether null is allowed beside it.
func (t *typing) of(text json.RawMessage, depth int) (cedar string, s *shape, null bool, err error) {
	var j jsonSchema
	if t.size++; depth > maxTyping || t.size > maxTypes || json.Unmarshal(text, &j) != nil {
		return "", nil, false, nil // recursive, boolean, or not for rules to look at
	}
	if j.Ref != "" {
		d, ok := t.defs[j.Ref]
		if !ok {
			return "", nil, false, fmt.Errorf("it refers to %q, which is not in its $defs", j.Ref)
		}
		return t.of(d, depth+1)
	}
	name, null := typeName(j.Type)
	switch {
	case name == "string":
		return "String", nil, null, nil
	case name == "boolean":
		return "Bool", nil, null, nil
	case name == "integer":
		return "Long", nil, null, nil
	case name == "number":
		return "decimal", &shape{number: true}, null, nil
	case name == "array" && len(j.Items) > 0:
		item, s, _, err := t.of(j.Items, depth+1)
		if err != nil || item == "" {
			return "", nil, null, err
		}
		return "Set<" + item + ">", &shape{items: s}, null, nil
	case name == "object":
		cedar, s, err = t.record(&j, depth)
		return cedar, s, null, err
	}
	return "", nil, null, nil
}

func (t *typing) record(j *jsonSchema, depth int) (string, *shape, error) {
	s := &shape{fields: map[string]*shape{}}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(j.Properties)) {
		cedar, field, null, err := t.of(j.Properties[name], depth+1)
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", name, err)
		}
		if field != nil {
			s.fields[name] = field
		}
		if cedar == "" {
			continue
		}
		optional := "?"
		if slices.Contains(j.Required, name) && !null {
			optional = ""
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quote(name) + optional + ": " + cedar)
	}
	if b.Len() == 0 {
		return "{}", s, nil
	}
	return "{ " + b.String() + " }", s, nil
}

// typeName reads "type": a name, or a name beside null.
func typeName(v any) (name string, null bool) {
	switch v := v.(type) {
	case string:
		return v, false
	case []any:
		for _, e := range v {
			switch s, _ := e.(string); {
			case s == "null":
				null = true
			case name != "":
				return "", null
			default:
				name = s
			}
		}
	}
	return name, null
}

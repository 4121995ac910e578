package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// File is a file of Cedar policies.
type File struct {
	Name string // for messages and reasons
	Text []byte
}

// Sources are what a bundle is compiled from. The zero value permits nobody anything.
type Sources struct {
	// Label begins the version, so that people recognise it.
	Label string
	// Policies are in Cedar. A policy is named by its annotation @id, else by file and line; what its annotation @reason says
	// is given with its name where it decides.
	Policies []File
	// Grants permit beside the policies.
	Grants []Grant
	// Actions declare what policies are checked against. Nil: they are only parsed.
	Actions map[string]ActionType
	// Teams and Toolsets are groups of agents and of tools or data sources, for scopes like principal in Team::"night".
	Teams    map[string][]string
	Toolsets map[string][]string
	// Autonomy is the level of each agent; those that are absent may act.
	Autonomy map[string]Autonomy
}

// Bundle is a compiled set of rules and a [Policy]: what a policy or a grant permits and none forbids. Any policy that
// cannot be evaluated denies, be it one that permits or one that forbids. It is immutable and safe for concurrent use.
type Bundle struct {
	version  string
	rules    []*rule
	named    map[string]*rule
	index    index
	entities types.EntityMap
	parents  map[types.EntityUID][]types.EntityUID // and their parents, of what has any
	actions  map[string]ActionType
	shapes   map[string]*shape
	autonomy map[string]Autonomy
	schema   string
	warnings []string
}

// Compile checks the sources and compiles them. The error names every fault with its file, line or grant.
func (s Sources) Compile() (*Bundle, error) {
	b := &Bundle{
		actions: maps.Clone(s.Actions), autonomy: maps.Clone(s.Autonomy),
		entities: types.EntityMap{}, parents: map[types.EntityUID][]types.EntityUID{},
	}
	faults := s.checkNames()
	var err error
	if b.schema, b.shapes, err = cedarSchema(s.Actions); err != nil {
		faults = append(faults, err)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	b.family(typeTeam, s.Teams, typeAgent)
	b.family(typeToolset, s.Toolsets, typeTool, typeSource)
	for name, a := range s.Actions {
		for _, g := range a.Groups {
			b.parent(entity(typeAction, name), entity(typeAction, g))
		}
	}
	if err := errors.Join(b.addPolicies(s.Policies), b.addGrants(s.Grants), b.unique()); err != nil {
		return nil, err
	}
	if err := b.check(s.Actions != nil); err != nil {
		return nil, err
	}
	b.index = newIndex(b.rules)
	b.version = s.version()
	return b, nil
}

// MustCompile is Compile for sources in package variables: it panics on a fault.
func (s Sources) MustCompile() *Bundle {
	b, err := s.Compile()
	if err != nil {
		panic(err)
	}
	return b
}

// checkNames looks at the names of everything but policies.
func (s *Sources) checkNames() (faults []error) {
	check := func(what, name string) {
		if err := action.CheckName(name); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", what, err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Actions)) {
		check("actions", name)
		a := s.Actions[name]
		for _, g := range a.Groups {
			check("groups of action "+name, g)
		}
		if a.Tool != "" && a.Source != "" {
			faults = append(faults, fmt.Errorf("action %q has a tool and a source: a call has one resource", name))
		}
	}
	for _, groups := range []map[string][]string{s.Teams, s.Toolsets} {
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			check("groups", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Autonomy)) {
		check("autonomy", name)
		if a := s.Autonomy[name]; !a.Valid() {
			faults = append(faults, fmt.Errorf("autonomy of %s: %s is no level", name, a))
		}
	}
	if len(s.Label) > action.MaxName {
		faults = append(faults, fmt.Errorf("the label is %d bytes long, at most %d are allowed", len(s.Label), action.MaxName))
	}
	return faults
}

// family declares the members of groups; a group of tools may hold sources too.
func (b *Bundle) family(group types.EntityType, groups map[string][]string, members ...types.EntityType) {
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		for _, m := range groups[name] {
			for _, t := range members {
				b.parent(entity(t, m), entity(group, name))
			}
		}
	}
}

func (b *Bundle) parent(child, parent types.EntityUID) {
	if slices.Contains(b.parents[child], parent) {
		return
	}
	b.parents[child] = append(b.parents[child], parent)
	b.entities[child] = types.Entity{UID: child, Parents: types.NewEntityUIDSet(b.parents[child]...)}
}

func entity(t types.EntityType, id string) types.EntityUID {
	return types.NewEntityUID(t, types.String(id))
}

func (b *Bundle) addPolicies(files []File) error {
	var faults []error
	for _, f := range files {
		list, err := parse(f.Name, f.Text)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", f.Name, err))
			continue
		}
		line := 0 // of the last one without a name
		for _, p := range list {
			name, at := string(p.Annotations()["id"]), p.Position()
			switch {
			case name != "":
			case at.Line == line:
				name = fmt.Sprintf("%s:%d:%d", f.Name, at.Line, at.Column)
			default:
				name, line = fmt.Sprintf("%s:%d", f.Name, at.Line), at.Line
			}
			b.rules = append(b.rules, newRule(name, p))
		}
	}
	return errors.Join(faults...)
}

func (b *Bundle) addGrants(grants []Grant) error {
	var faults []error
	for i, g := range grants {
		if g.Name == "" {
			g.Name = fmt.Sprintf("grant %d", i+1)
		}
		list, err := g.policies()
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", g.Name, err))
			continue
		}
		for j, p := range list {
			r := newRule(g.Name, p)
			if len(list) > 1 {
				r.name += " of " + g.Tools[j]
			}
			b.rules = append(b.rules, r)
		}
	}
	return errors.Join(faults...)
}

// unique wants a name of its own for every policy: reasons name them.
func (b *Bundle) unique() error {
	var faults []error
	b.named = map[string]*rule{}
	for _, r := range b.rules {
		if b.named[r.name] != nil {
			faults = append(faults, fmt.Errorf("two policies are named %q: give every policy an @id, and every grant a name, of its own", r.name))
		}
		b.named[r.name] = r
	}
	return errors.Join(faults...)
}

// check validates every policy against the schema, where there is one.
func (b *Bundle) check(declared bool) error {
	v, err := validator(b.schema)
	if err != nil {
		return fmt.Errorf("declarations of actions: %w", err)
	}
	var faults []error
	for _, r := range b.rules {
		if err := r.lint(); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", r.name, err))
			continue
		}
		if declared {
			if err := v.Policy(r.name, r.ast()); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", r.name, err))
			}
		}
		if w := r.warning(); w != "" {
			b.warnings = append(b.warnings, r.name+": "+w)
		}
	}
	return errors.Join(faults...)
}

// version names the content: of the same sources it is the same everywhere, and of others another.
func (s *Sources) version() string {
	h := sha256.New()
	e := json.NewEncoder(h) // maps in the order of their keys
	for _, part := range []any{s.Policies, s.Grants, s.Actions, s.Teams, s.Toolsets, s.Autonomy} {
		_ = e.Encode(part) // writing to a hash cannot fail, and the parts have been checked
	}
	v := "policy-" + hex.EncodeToString(h.Sum(nil)[:8])
	if s.Label != "" {
		return s.Label + "@" + v
	}
	return v
}

// Version names the content of the bundle: it is recorded with every decision.
func (b *Bundle) Version() string { return b.version }

// Len returns how many policies there are, those of grants included.
func (b *Bundle) Len() int { return len(b.rules) }

// Warnings says, policy by policy, what is allowed and probably not meant.
func (b *Bundle) Warnings() []string { return slices.Clone(b.warnings) }

// Schema returns the Cedar schema that policies are checked against, for editors and other tools.
func (b *Bundle) Schema() string { return b.schema }

// Actions returns the names of the declared actions, sorted.
func (b *Bundle) Actions() []string { return slices.Sorted(maps.Keys(b.actions)) }

// Declared returns how an action is declared, and whether it is. The caller changes nothing in it.
func (b *Bundle) Declared(name string) (ActionType, bool) {
	a, ok := b.actions[name]
	return a, ok
}

// Agents returns the names of all agents that policies, grants, teams or levels of autonomy name, sorted.
func (b *Bundle) Agents() []string {
	names := map[string]bool{}
	for a := range b.autonomy {
		names[a] = true
	}
	for uid := range b.parents {
		if uid.Type == typeAgent {
			names[string(uid.ID)] = true
		}
	}
	for _, r := range b.rules {
		for _, k := range r.principals {
			if k.uid.Type == typeAgent {
				names[string(k.uid.ID)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// parse reads Cedar text. Depth and size are bounded before the parser, which recurses, sees it.
func parse(name string, text []byte) (list cedar.PolicyList, err error) {
	defer func() {
		if v := recover(); v != nil {
			list, err = nil, fmt.Errorf("the parser failed: %s", action.TextOf(v))
		}
	}()
	if err := checkText(text); err != nil {
		return nil, err
	}
	return cedar.NewPolicyListFromBytes(name, text)
}

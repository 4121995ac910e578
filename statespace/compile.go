package statespace

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Graph is the compiled declaration of an agent's actions. It does not change.
type Graph struct {
	nodes      []Node // the actions, and after them the workflows that any of them needs
	actions    int
	index      map[string]int // of the actions
	flows      map[string]int // of the workflows, by what their keys begin with
	needs      [][]need
	sets       []fieldSet
	byKey      map[string]int // field sets by their key
	setsOf     [][]int        // field sets that an Ok of the action writes, in the order of their keys
	dependents [][]int        // actions with a need on the action, in declaration order
	rank       []int          // position in one topological order, prerequisites first
	across     bool           // some need is answered by earlier tasks too
	hash       Hash
}

// need is a Need with everything resolved. Its binds stand in the order of the field set.
type need struct {
	Need
	prereq int
	set    int
	mine   []string
	segs   [][]string // of mine
	within int64      // µs
}

// fieldSet is a combination of an action's fields that somebody binds on; the empty one stands for the action as such.
type fieldSet struct {
	key      string
	name     string // what its keys begin with: the action's name, see [Lasting]
	fields   []field
	texts    []string // of the fields
	hashed   bool
	root     *branch
	watchers []int32 // actions that need it, once per need
}

// Compile checks and compiles an agent's actions; others are the names of actions that exist but that the agent does not
// hold. The error joins every fault found, in the order of the declaration, cycles last.
func Compile(nodes []Node, others ...string) (*Graph, error) {
	g := &Graph{index: make(map[string]int, len(nodes)), flows: map[string]int{}, byKey: map[string]int{}}
	faults := g.declare(nodes)
	for i := range g.actions {
		faults = append(faults, g.resolve(i, others)...)
	}
	order, cycles := g.sort()
	for _, c := range cycles {
		faults = append(faults, fmt.Errorf("prerequisites form a cycle: %s", strings.Join(c, " → ")))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	for pos, i := range order {
		g.rank[i] = pos
	}
	g.finish()
	return g, nil
}

// declare copies the nodes, so that the caller's slices may change afterwards.
func (g *Graph) declare(nodes []Node) (faults []error) {
	for _, n := range nodes {
		if err := action.CheckName(n.Name); err != nil {
			faults = append(faults, fmt.Errorf("action: %w", err))
		}
		if _, dup := g.index[n.Name]; dup {
			faults = append(faults, fmt.Errorf("action %s is declared twice", n.Name))
			continue
		}
		if err := n.Cost.Check(); err != nil {
			faults = append(faults, fmt.Errorf("action %s: %w", n.Name, err))
		}
		for _, p := range n.Secret {
			if err := checkPath(p); err != nil {
				faults = append(faults, fmt.Errorf("action %s: secret: %w", n.Name, err))
			}
		}
		n.Needs, n.Secret = slices.Clone(n.Needs), slices.Clone(n.Secret)
		g.index[n.Name] = len(g.nodes)
		g.nodes = append(g.nodes, n)
	}
	n := len(g.nodes)
	g.actions = n
	g.needs, g.setsOf, g.dependents, g.rank = make([][]need, n), make([][]int, n), make([][]int, n), make([]int, n)
	return faults
}

// resolve compiles the needs of one action.
func (g *Graph) resolve(i int, others []string) (faults []error) {
	n := g.nodes[i]
	seen := map[string]bool{}
	for _, nd := range n.Needs {
		fault := func(err error) {
			faults = append(faults, fmt.Errorf("action %s needs %s: %w", n.Name, nd.what(), err))
		}
		for _, err := range checkNeed(nd) {
			fault(err)
		}
		if id := identity(nd); seen[id] {
			fault(errors.New("declared twice; keep one"))
		} else {
			seen[id] = true
		}
		p, held := g.index[nd.Action]
		switch {
		case nd.Workflow:
			g.needs[i] = append(g.needs[i], g.bind(nd, g.flow(nd), &n))
		case nd.Action == n.Name:
			fault(errors.New("an action cannot need itself"))
		case held:
			g.needs[i] = append(g.needs[i], g.bind(nd, p, &n))
		case slices.Contains(others, nd.Action):
			fault(errors.New("the agent does not hold it; add it to the agent's actions"))
		default:
			fault(unknown(nd.Action, g.Names(), others))
		}
	}
	return faults
}

func checkNeed(nd Need) (faults []error) {
	if nd.Within < 0 {
		faults = append(faults, fmt.Errorf("within %s is negative", nd.Within))
	}
	if nd.Within > 0 && nd.Within < time.Microsecond {
		faults = append(faults, fmt.Errorf("within %s is less than a microsecond", nd.Within))
	}
	if nd.Across && nd.Within == 0 {
		faults = append(faults, errors.New("across tasks, but without an age from which on it does not count any more"))
	}
	if nd.Across && nd.Consumed {
		faults = append(faults, errors.New("across tasks and consumed: what is used up is of one task"))
	}
	faults = append(faults, nd.checkWorkflow()...)
	mine, theirs := map[string]bool{}, map[string]bool{}
	for _, b := range nd.Bind {
		if err := checkPath(b.Mine); err != nil {
			faults = append(faults, fmt.Errorf("bound field: %w", err))
		} else if slices.Contains(strings.Split(b.Mine, "."), every) {
			faults = append(faults, fmt.Errorf("bound field %q: only the prerequisite's path may hold %q", b.Mine, every))
		}
		if err := checkPath(b.Theirs); err != nil {
			faults = append(faults, fmt.Errorf("prerequisite's field: %w", err))
		}
		text := fieldText(b.Theirs, b.Output)
		if mine[b.Mine] || theirs[text] {
			faults = append(faults, fmt.Errorf("binds %s to %s, but one of them is bound already", b.Mine, text))
		}
		mine[b.Mine], theirs[text] = true, true
	}
	return faults
}

// identity is equal for needs that ask for the same fact.
func identity(nd Need) string {
	binds := make([]string, len(nd.Bind))
	for i, b := range nd.Bind {
		binds[i] = quote(b.Mine) + quote(fieldText(b.Theirs, b.Output))
	}
	slices.Sort(binds)
	return nd.source() + "@" + strings.Join(binds, ",")
}

// bind resolves a need of n on action p, and notes the field set.
func (g *Graph) bind(nd Need, p int, n *Node) need {
	binds := slices.Clone(nd.Bind)
	slices.SortFunc(binds, func(a, b Bind) int {
		return strings.Compare(fieldText(a.Theirs, a.Output), fieldText(b.Theirs, b.Output))
	})
	nd.Bind = binds
	g.across = g.across || nd.Across
	c := need{Need: nd, prereq: p, within: nd.Within.Microseconds()}
	var fields []field
	for _, b := range binds {
		fields = append(fields, newField(b.Theirs, b.Output))
		c.mine = append(c.mine, b.Mine)
		c.segs = append(c.segs, strings.Split(b.Mine, "."))
	}
	c.set = g.fieldSet(p, fields, lastingFor(nd))
	s := &g.sets[c.set]
	for k := range fields {
		// Either side may know that the value is secret, and both write the same key.
		s.hashed = s.hashed || isSecret(n, c.segs[k]) || isSecret(&g.nodes[p], fields[k].segs)
	}
	return c
}

// fieldSet finds or notes a field set of an action. Facts that outlast their tasks are kept apart from those that do not, and
// from those that last for another time: none of them answers a need that did not ask for it.
func (g *Graph) fieldSet(p int, fields []field, prefix string) int {
	texts := make([]string, len(fields))
	for i, f := range fields {
		texts[i] = f.text
	}
	name := prefix + g.nodes[p].Name
	key := setKey(name, texts)
	if id, ok := g.byKey[key]; ok {
		return id
	}
	id := len(g.sets)
	g.byKey[key] = id
	g.sets = append(g.sets, fieldSet{key: key, name: name, fields: fields, texts: texts, root: newBranch(fields)})
	g.setsOf[p] = append(g.setsOf[p], id)
	return id
}

func isSecret(n *Node, segs []string) bool {
	return slices.ContainsFunc(n.Secret, func(p string) bool { return overlaps(strings.Split(p, "."), segs) })
}

// finish derives the lists that point from prerequisites to dependents.
func (g *Graph) finish() {
	for i, needs := range g.needs {
		for _, n := range needs {
			g.sets[n.set].watchers = append(g.sets[n.set].watchers, int32(i))
			if d := g.dependents[n.prereq]; len(d) == 0 || d[len(d)-1] != i {
				g.dependents[n.prereq] = append(d, i)
			}
		}
	}
	for _, ids := range g.setsOf {
		slices.SortFunc(ids, func(a, b int) int { return strings.Compare(g.sets[a].key, g.sets[b].key) })
	}
}

// Names returns the actions in declaration order.
func (g *Graph) Names() []string {
	out := make([]string, g.actions)
	for i := range out {
		out[i] = g.nodes[i].Name
	}
	return out
}

// Has reports whether the agent holds the action.
func (g *Graph) Has(name string) bool { _, ok := g.index[name]; return ok }

// Timed reports whether the action has a need that a fact may be too old for.
func (g *Graph) Timed(name string) bool {
	i, ok := g.index[name]
	return ok && slices.ContainsFunc(g.needs[i], func(n need) bool { return n.within > 0 })
}

// Dependents returns the actions that have a need on the named one, in declaration order.
func (g *Graph) Dependents(name string) []string {
	i, ok := g.index[name]
	if !ok {
		return nil
	}
	return g.names(g.dependents[i])
}

func (g *Graph) names(ids []int) []string {
	var out []string
	for _, i := range ids {
		out = append(out, g.nodes[i].Name)
	}
	return out
}

// find returns the index of an action or an error that says it is not there, without a suggestion: the name may come
// from a planner, which must not learn of others.
func (g *Graph) find(name string) (int, error) {
	if i, ok := g.index[name]; ok {
		return i, nil
	}
	return 0, fmt.Errorf("action %.*s: %w", action.MaxName, name, ErrUnknown)
}

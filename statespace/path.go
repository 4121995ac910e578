package statespace

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// MaxPath is the most steps of a path.
const MaxPath = 1000

// Step is one action of a path, or a workflow that has to complete: what that costs is not known here.
type Step struct {
	Action   string
	Workflow bool
	Version  string      // of the workflow, "" for any
	Cost     action.Cost // expected
}

// Path is a sequence of actions that would make an action legal.
type Path struct {
	Action string // the action to reach; not among the steps
	Steps  []Step
	Cost   action.Cost // of the steps
	Weight float64     // of the steps, as the caller weighs costs

	// Boundary names the steps whose output decides how it goes on: no later than there, ask again. Empty where the path
	// is known to its end.
	Boundary []string
	// Beyond names the actions that would follow a boundary.
	Beyond []string
}

// String returns a line such as "confirm-order → charge → ship-order".
func (p Path) String() string {
	var b strings.Builder
	for _, s := range p.Steps {
		b.WriteString(whatIs(s.Action, s.Workflow, s.Version) + " → ")
	}
	if len(p.Boundary) == 0 {
		return b.String() + p.Action
	}
	fmt.Fprintf(&b, "? (%s first; then towards %s)", strings.Join(p.Boundary, ", "), p.Action)
	return b.String()
}

// Weigh makes one number of a cost, so that paths can be compared: a token, a micro-unit of money, a millisecond and a
// KiB weigh the same, and a call as much as a thousand of them.
func Weigh(c action.Cost) float64 {
	return float64(c.Tokens) + float64(c.Money) + float64(c.Duration.Milliseconds()) + float64(c.Bytes)/1024 + 1000*float64(c.Calls)
}

// Path returns the cheapest sequence of actions that would make the action legal at store time now (µs), by the expected
// costs as weigh sees them (nil: [Weigh]); the empty one for a legal action.
//
// Every need names one action, so what has to run is the union of the unmet prerequisites, each counted once, and only
// the order is free: prerequisites first, then those that use nothing up, the cheaper, the first declared. Where a step
// uses up a fact that a later one needs too, it is established again; which order repeats the least is chosen step by
// step, so that such a path always works but may repeat more than the best one would. All binds are taken to be about
// the same values.
//
// The path stops at epistemic boundaries: a step whose need binds on the output of an action that Fetches is not known
// before that ran, and neither is what follows it. Errors: an unknown action, more than MaxPath steps, costs that do not
// add up (overflow, two currencies).
func (g *Graph) Path(name string, s *Set, now int64, weigh func(action.Cost) float64) (Path, error) {
	target, err := g.find(name)
	if err != nil {
		return Path{}, err
	}
	if weigh == nil {
		weigh = Weigh
	}
	p := planner{g: g, set: s, now: now, weigh: weigh, state: map[int]bool{}}
	for _, i := range p.order(p.missing(target)) {
		if !p.provides(i) {
			p.run(i)
		}
	}
	p.ensure(target)
	if p.full {
		return Path{}, fmt.Errorf("path to %s takes more than %d steps", name, MaxPath)
	}
	return p.path(target)
}

// planner plays a sequence of actions forward.
type planner struct {
	g     *Graph
	set   *Set
	now   int64
	weigh func(action.Cost) float64
	state map[int]bool // by field set: established or used up by a step; absent: as in the set
	steps []int
	full  bool
}

func (p *planner) met(n *need) bool {
	if held, played := p.state[n.set]; played {
		return held
	}
	return p.set.met(n, p.now)
}

// missing returns the actions that have to run before the target, each once, in declaration order.
func (p *planner) missing(target int) []int {
	seen := map[int]bool{target: true}
	var out []int
	for stack := []int{target}; len(stack) > 0; {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for k := range p.g.needs[i] {
			n := &p.g.needs[i][k]
			if !p.met(n) && !seen[n.prereq] {
				seen[n.prereq] = true
				out, stack = append(out, n.prereq), append(stack, n.prereq)
			}
		}
	}
	slices.Sort(out)
	return out
}

// order sorts actions topologically; among those that are free, see [Graph.Path].
func (p *planner) order(todo []int) []int {
	waits, in := map[int]int{}, map[int]bool{}
	for _, i := range todo {
		in[i] = true
	}
	q := &queue{}
	for _, i := range todo {
		for _, n := range p.g.needs[i] {
			if in[n.prereq] {
				waits[i]++
			}
		}
		if waits[i] == 0 {
			heap.Push(q, p.candidate(i))
		}
	}
	var out []int
	for q.Len() > 0 {
		i := heap.Pop(q).(candidate).index
		out = append(out, i)
		for _, d := range p.g.dependents[i] {
			for _, n := range p.g.needs[d] {
				if in[d] && n.prereq == i {
					if waits[d]--; waits[d] == 0 {
						heap.Push(q, p.candidate(d))
					}
				}
			}
		}
	}
	return out
}

func (p *planner) candidate(i int) candidate {
	consumes := slices.ContainsFunc(p.g.needs[i], func(n need) bool { return n.Consumed })
	return candidate{index: i, consumes: consumes, weight: p.weigh(p.g.nodes[i].Cost)}
}

// provides reports whether a step has established what the action establishes, and nothing has used it up.
func (p *planner) provides(i int) bool {
	return !slices.ContainsFunc(p.g.setsOf[i], func(id int) bool { return !p.state[id] })
}

// run plays one action, after what it needs.
func (p *planner) run(i int) {
	p.ensure(i)
	if p.full = p.full || len(p.steps) == MaxPath; p.full {
		return
	}
	p.steps = append(p.steps, i)
	for _, n := range p.g.needs[i] {
		if n.Consumed {
			p.state[n.set] = false
		}
	}
	for _, id := range p.g.setsOf[i] {
		p.state[id] = true
	}
}

// ensure establishes what an action needs. Later actions of the topological order go first: what an earlier one uses up
// on the way can only belong to actions before it, so nothing that was established here is lost again.
func (p *planner) ensure(i int) {
	needs := make([]*need, len(p.g.needs[i]))
	for k := range needs {
		needs[k] = &p.g.needs[i][k]
	}
	slices.SortStableFunc(needs, func(a, b *need) int { return cmp.Compare(p.g.rank[b.prereq], p.g.rank[a.prereq]) })
	for _, n := range needs {
		if p.full {
			return
		}
		if !p.met(n) {
			p.run(n.prereq)
		}
	}
}

// path cuts the steps at the epistemic boundaries and adds up what is left.
func (p *planner) path(target int) (Path, error) {
	out := Path{Action: p.g.nodes[target].Name}
	ran, beyond, edge := map[int]bool{}, map[int]bool{}, map[int]bool{}
	var err error
	for _, i := range p.steps {
		node := &p.g.nodes[i]
		if beyond[i] || p.hidden(i, ran, beyond, edge) {
			if !beyond[i] {
				out.Beyond = append(out.Beyond, node.Name)
			}
			beyond[i] = true
			continue
		}
		ran[i] = true
		out.Steps = append(out.Steps, p.g.step(i))
		out.Weight += p.weigh(node.Cost)
		if err == nil {
			if out.Cost, err = out.Cost.Add(node.Cost); err != nil {
				err = fmt.Errorf("path to %s: %s: %w", out.Action, node.Name, err)
			}
		}
	}
	p.hidden(target, ran, beyond, edge)
	for _, s := range out.Steps {
		if !s.Workflow && edge[p.g.index[s.Action]] && !slices.Contains(out.Boundary, s.Action) {
			out.Boundary = append(out.Boundary, s.Action)
		}
	}
	return out, err
}

// hidden reports whether an action rests on something that a step has yet to find out; edge collects those steps.
func (p *planner) hidden(i int, ran, beyond, edge map[int]bool) bool {
	hidden := false
	for k := range p.g.needs[i] {
		n := &p.g.needs[i][k]
		if p.set.met(n, p.now) {
			continue // there are values already
		}
		output := slices.ContainsFunc(n.Bind, func(b Bind) bool { return b.Output })
		if output && ran[n.prereq] && p.g.nodes[n.prereq].Fetches {
			edge[n.prereq], hidden = true, true
		}
		hidden = hidden || beyond[n.prereq]
	}
	return hidden
}

type candidate struct {
	index    int
	consumes bool
	weight   float64
}

func (c candidate) before(d candidate) bool {
	if c.consumes != d.consumes {
		return d.consumes
	}
	if c.weight != d.weight {
		return c.weight < d.weight
	}
	return c.index < d.index
}

type queue []candidate

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].before(q[j]) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(candidate)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

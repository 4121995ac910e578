package statespace

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// flowMark begins what the keys of facts about workflows begin with. No name holds it: an action may be called as a workflow is.
const flowMark = "workflow:"

// flowName is what keys begin with that say that a workflow completed, in any version or in the one.
func flowName(name, version string) string {
	if version == "" {
		return flowMark + name
	}
	return flowMark + name + ":" + version
}

// source is what the keys of the facts begin with that answer the need, but for how long they last.
func (nd *Need) source() string {
	if nd.Workflow {
		return flowName(nd.Action, nd.Version)
	}
	return nd.Action
}

func (nd *Need) what() string { return whatIs(nd.Action, nd.Workflow, nd.Version) }

// whatIs names an action or a workflow for people.
func whatIs(name string, flow bool, version string) string {
	switch {
	case !flow:
		return name
	case version == "":
		return "workflow " + name
	}
	return "workflow " + name + " in version " + version
}

func (nd *Need) checkWorkflow() (faults []error) {
	if !nd.Workflow {
		if nd.Version != "" {
			faults = append(faults, errors.New("only of a workflow a version can be asked for"))
		}
		return faults
	}
	if err := action.CheckName(nd.Action); err != nil {
		faults = append(faults, fmt.Errorf("workflow: %w", err))
	}
	if nd.Version != "" {
		if err := action.CheckName(nd.Version); err != nil {
			faults = append(faults, fmt.Errorf("version: %w", err))
		}
	}
	return faults
}

// flow finds or notes the workflow that a need names.
func (g *Graph) flow(nd Need) int {
	name := nd.source()
	if i, ok := g.flows[name]; ok {
		return i
	}
	i := len(g.nodes)
	g.flows[name] = i
	g.nodes = append(g.nodes, Node{Name: name})
	g.needs, g.setsOf, g.dependents, g.rank = append(g.needs, nil), append(g.setsOf, nil), append(g.dependents, nil), append(g.rank, 0)
	return i
}

// step is the step of a path that an action or a workflow is.
func (g *Graph) step(i int) Step {
	n := &g.nodes[i]
	if i < g.actions {
		return Step{Action: n.Name, Cost: n.Cost}
	}
	name, version, _ := strings.Cut(strings.TrimPrefix(n.Name, flowMark), ":")
	return Step{Action: name, Workflow: true, Version: version}
}

// Follows reports whether any action needs a workflow of that name, in whatever version; "" stands for any workflow.
func (g *Graph) Follows(workflow string) bool {
	if workflow == "" {
		return len(g.flows) > 0
	}
	if _, ok := g.flows[flowName(workflow, "")]; ok {
		return true
	}
	for name := range g.flows {
		if strings.HasPrefix(name, flowName(workflow, "")+":") {
			return true
		}
	}
	return false
}

// FlowFacts returns what a workflow establishes that completed in that version, with this input and output, as [Graph.Facts]
// does of an action: of a workflow that nobody needs, nothing. There may be twice [MaxFacts] keys: of any version, and of this one.
func (g *Graph) FlowFacts(workflow, version string, input, output any) (out Facts, err error) {
	for _, name := range slices.Compact([]string{flowName(workflow, ""), flowName(workflow, version)}) {
		i, ok := g.flows[name]
		if !ok {
			continue
		}
		f, err := g.factsOf(i, input, output)
		if err != nil {
			return Facts{}, err
		}
		out.Keys, out.Dropped = append(out.Keys, f.Keys...), append(out.Dropped, f.Dropped...)
		for k, v := range f.Bulk {
			if out.Bulk == nil {
				out.Bulk = map[string][]string{}
			}
			out.Bulk[k] = v
		}
	}
	slices.Sort(out.Keys)
	return out, nil
}

// name is what the key of the fact begins with.
func (f *Fact) name() string {
	nd := Need{Action: f.Action, Workflow: f.Workflow, Version: f.Version}
	return lasting(f.Lasts) + nd.source()
}

// named takes apart what a key begins with, but for how long it lasts.
func (f *Fact) named(text string) error {
	flow, is := strings.CutPrefix(text, flowMark)
	if !is {
		return action.CheckName(text)
	}
	name, version, has := strings.Cut(flow, ":")
	f.Action, f.Workflow, f.Version = name, true, version
	if err := action.CheckName(name); err != nil || !has {
		return err
	}
	return action.CheckName(version)
}

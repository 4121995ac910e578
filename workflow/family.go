package workflow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// FamilyFault is what is wrong between workflows, found in the error of [Family].
type FamilyFault struct {
	Workflow string // in which it is
	Step     string // the step that runs another one, "" where it is of the whole
	Child    string // the workflow that the step runs; it need not be there
	// Way is how workflows run each other in a circle, the first one again at its end; nil where they do not.
	Way  []string
	text string
}

// Error says what is wrong.
func (f *FamilyFault) Error() string { return f.text }

// Family checks definitions that run each other as they will be run together: that each child is there, that none runs itself
// through others, and that what a step gives to its child can be what the child is started with. The error joins a
// [FamilyFault] for every fault.
func Family(defs ...*Definition) error {
	byName := map[string]*Definition{}
	var faults []error
	for _, d := range defs {
		if byName[d.spec.Name] != nil {
			faults = append(faults, &FamilyFault{Workflow: d.spec.Name, text: fmt.Sprintf("workflow %q is there twice", d.spec.Name)})
		}
		byName[d.spec.Name] = d
	}
	seen := map[string]bool{}
	for _, d := range defs {
		faults = append(faults, d.fits(byName)...)
		if way := runsItself(d.spec.Name, byName); way != nil && !seen[d.spec.Name] {
			for _, name := range way {
				seen[name] = true
			}
			faults = append(faults, &FamilyFault{Workflow: d.spec.Name, Way: way, text: "workflows run each other: " + strings.Join(way, " → ")})
		}
	}
	return errors.Join(faults...)
}

// fits holds the steps that run children against what those are started with.
func (d *Definition) fits(family map[string]*Definition) (faults []error) {
	own := *d // its warnings stay as they are
	c := &checker{d: &own, unsure: make([]bool, len(d.nodes))}
	for i := range d.nodes {
		n := &d.nodes[i]
		if n.Type != SubSOP {
			continue
		}
		what := fmt.Sprintf("workflow %q: step %q", d.spec.Name, n.Name)
		child := family[n.Workflow]
		if c.faults = nil; child == nil {
			c.fault("%s runs workflow %q, which there is not", what, n.Workflow)
		} else {
			c.sources(what, i, n.Map, child.spec.Input, false)
		}
		for _, f := range c.faults {
			faults = append(faults, &FamilyFault{Workflow: d.spec.Name, Step: n.Name, Child: n.Workflow, text: f.Error()})
		}
	}
	return faults
}

// runsItself is a shortest way from a workflow through its children back to it, nil where there is none.
func runsItself(name string, family map[string]*Definition) []string {
	from := map[string]string{}
	for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
		at := family[queue[0]]
		if at == nil {
			continue
		}
		for _, child := range at.Children() {
			if child == name {
				way := []string{name}
				for v := queue[0]; v != name; v = from[v] {
					way = append(way, v)
				}
				way = append(way, name)
				slices.Reverse(way)
				return way
			}
			if _, seen := from[child]; !seen {
				from[child] = queue[0]
				queue = append(queue, child)
			}
		}
	}
	return nil
}

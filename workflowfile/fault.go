package workflowfile

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// hurt is a part of a workflow of which something could not be read: what is said of that then is no news.
type hurt struct {
	what, name string   // step, phase or workflow
	keys       []string // "" is all
}

func (r *reader) hurts(what, name string, keys []string) {
	if len(keys) > 0 {
		r.hurt = append(r.hurt, hurt{what, name, keys})
	}
}

// echoes are words of faults that follow from a key whose value was not read, in the part that it is a key of.
var echoes = map[string][]string{
	"": {""}, "name": {""}, "type": {""}, "version": {"version of"}, "owners": {"nobody"}, "steps": {"has no steps"}, "phases": {"has no steps"},
	"needs": {"need"}, "guard": {"guard"}, "map": {" map"}, "input": {"input contract"}, "output": {"output contract", "verifies its proposal"},
	"limits": {"limits"}, "hitl": {"intake", "nobody", "who is asked"}, "ladder": {"ladder"}, "backoff": {"backoff"}, "planner": {"planner"},
	"verifier": {"verifies"}, "action": {"action"}, "effect": {"effect"}, "undo": {"undo"}, "workflow": {"workflow", "phase "}, "breaker": {"breaker"},
	"supervision": {"supervision"},
}

// felt are the keys of a step that are felt in other steps, whose faults then name it.
var felt = []string{"", "name", "type", "needs", "output", "hitl"}

// follows reports whether a fault of a workflow follows from one of its text.
func (r *reader) follows(fault string) bool {
	for _, h := range r.hurt {
		own := h.what == "workflow" && (!named.MatchString(fault) || strings.HasPrefix(fault, "phase "+strconv.Quote(h.name))) || strings.HasPrefix(fault, h.what+" "+strconv.Quote(h.name))
		for _, key := range h.keys {
			nameless := h.what == "step" && (key == "" || key == "name") || h.what != "step" && (key == "steps" || key == "phases" || key == "")
			switch {
			case nameless && (strings.Contains(fault, "which there is not") || strings.Contains(fault, "there is no step")):
				return true
			case h.what == "workflow" && key == "owners" && strings.Contains(fault, "nobody"):
				return true
			case h.what == "step" && !own && slices.Contains(felt, key) && strings.Contains(fault, strconv.Quote(h.name)):
				return true
			case own && slices.ContainsFunc(echoes[key], func(word string) bool { return strings.Contains(fault, word) }):
				return true
			}
		}
	}
	return false
}

// faultAt is a fault with the line of what it is about, 0 where it has none.
type faultAt struct {
	line int
	err  error
}

// all are the faults of the text, and those of the workflow that do not follow from them, in the order of their lines.
func (r *reader) all(spec *workflow.Spec, compiled error) error {
	var out []faultAt
	for _, err := range r.faults {
		line := 0
		if _, scanErr := fmt.Sscanf(err.Error(), "line %d:", &line); scanErr != nil {
			line = 0
		}
		out = append(out, faultAt{line, err})
	}
	for _, err := range append(each(compiled), schemas(spec)...) {
		if r.follows(err.Error()) {
			continue
		}
		line := r.line(err.Error())
		if line > 0 {
			err = fmt.Errorf("line %d: %w", line, err)
		}
		out = append(out, faultAt{line, err})
	}
	slices.SortStableFunc(out, func(a, b faultAt) int { return cmp.Compare(a.line, b.line) })
	var faults []error
	for _, f := range out {
		faults = append(faults, f.err)
	}
	return errors.Join(faults...)
}

// schemas compiles every contract, as the driver will. One that is no schema at all is named by what checks the workflow.
func schemas(s *workflow.Spec) (faults []error) {
	for _, c := range s.Contracts() {
		t := strings.TrimSpace(string(c.Schema))
		if t != "true" && t != "false" && !strings.HasPrefix(t, "{") {
			continue
		}
		if _, err := schema.Foreign(c.Schema); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", c.Of, err))
		}
	}
	return faults
}

// each are the errors that one joins.
func each(err error) []error {
	var all interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &all):
		return slices.Clone(all.Unwrap())
	}
	return []error{err}
}

var (
	named    = regexp.MustCompile(`^(step|phase) ("(?:[^"\\]|\\.)*")`)
	circling = regexp.MustCompile(`^steps need each other: (\S+) →`)
)

// line is that of the part of a workflow that a fault names first, 0 where it has none.
func (r *reader) line(fault string) int {
	if m := named.FindString(fault); m != "" {
		return r.lines[m]
	}
	if m := circling.FindStringSubmatch(fault); m != nil {
		return r.lines[fmt.Sprintf("step %q", m[1])]
	}
	for _, of := range [][2]string{{"the output of the workflow", "output"}, {"input: ", "input"}, {"workflow ", "workflow"}, {"version of ", "version"}} {
		if strings.HasPrefix(fault, of[0]) {
			return r.lines[of[1]]
		}
	}
	return 0
}

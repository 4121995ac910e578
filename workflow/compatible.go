package workflow

import (
	"errors"
	"fmt"
	"slices"
)

// Compatible reports whether an instance that runs by one definition may go on by another. It may where nothing of what has
// begun is different: the error names every step, and every phase, that is. What an instance has not come to yet may change.
func Compatible(was, is *Definition, s State) error {
	if s.Digest != was.digest || len(s.Steps) != len(was.nodes) {
		return fmt.Errorf("instance %s: %w", s.Instance, ErrOther)
	}
	if was.spec.Name != is.spec.Name {
		return incompatible{fmt.Errorf("instance %s is one of workflow %q, not of %q", s.Instance, was.spec.Name, is.spec.Name)}
	}
	if s.Status.Terminal() {
		return incompatible{fmt.Errorf("instance %s has ended: it is %s", s.Instance, s.Status)}
	}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	begun := begunPhases(s)
	for k := range begun {
		if k >= len(is.spec.Phases) || is.spec.Phases[k].Name != was.spec.Phases[k].Name {
			fault("phase %q has begun: it must stay the %d. one", was.spec.Phases[k].Name, k+1)
		}
	}
	for i, st := range s.Steps {
		if st.Stage == StagePending && st.Run == 0 {
			continue
		}
		to, there := is.at[st.Name]
		switch {
		case !there:
			fault("step %q has begun, and is not in version %s", st.Name, is.spec.Version)
		case is.nodes[to].digest != was.nodes[i].digest:
			fault("step %q has begun, and is another one in version %s", st.Name, is.spec.Version)
		case is.nodes[to].phase != was.nodes[i].phase:
			fault("step %q has begun, and is in another phase in version %s", st.Name, is.spec.Version)
		}
	}
	if !slices.Equal(was.spec.Owners, is.spec.Owners) {
		for _, w := range s.Waits() {
			if n := &was.nodes[was.at[w.Step]]; w.For == WaitIntake && (n.Hitl == nil || len(n.Hitl.Who) == 0) {
				fault("step %q asks the owners of the workflow, who are others in version %s", w.Step, is.spec.Version)
			}
		}
	}
	for i := range is.nodes {
		n := &is.nodes[i]
		if _, there := was.at[n.Name]; !there && n.phase < begun && s.Phases[n.phase].Stage != PhaseRunning {
			fault("step %q of version %s would never run: its phase has ended", n.Name, is.spec.Version)
		}
	}
	if len(faults) > 0 {
		return incompatible{errors.Join(faults...)}
	}
	return nil
}

// ErrIncompatible is found in the error of an instance that may not go on by another definition.
var ErrIncompatible = errors.New("the instance may not go on by that definition")

type incompatible struct{ error }

func (incompatible) Is(target error) bool { return target == ErrIncompatible }

// begunPhases is how many phases are not as if nothing had happened.
func begunPhases(s State) int {
	k := slices.IndexFunc(s.Phases, func(p PhaseState) bool { return p.Stage == PhasePending })
	if k < 0 {
		return len(s.Phases)
	}
	return k
}

// Migrate returns the state of an instance under another definition, where [Compatible] has nothing against it. What was
// commanded before is still answered as before.
func Migrate(was, is *Definition, s State) (State, error) {
	if err := Compatible(was, is, s); err != nil {
		return s, err
	}
	out := s.own()
	out.Version, out.Digest = is.spec.Version, is.digest
	out.Phases, out.Steps = nil, nil
	begun := begunPhases(s)
	for k, p := range is.spec.Phases {
		if k < begun {
			out.Phases = append(out.Phases, s.Phases[k])
		} else {
			out.Phases = append(out.Phases, PhaseState{Name: p.Name})
		}
	}
	for i := range is.nodes {
		name := is.nodes[i].Name
		if from, there := was.at[name]; there {
			out.Steps = append(out.Steps, s.Steps[from])
		} else {
			out.Steps = append(out.Steps, StepState{Name: name})
		}
	}
	return out, nil
}

// TakeOver is [Migrate] as a turn: what the other definition lets begin at once begins. Its trail opens with [FlowMigrated]. To
// replay the events of an instance is to call it where they say so; e is of kind [Migrated], with At, By and Text.
func (d *Definition) TakeOver(was *Definition, s State, e Event) (Turn, error) {
	to, err := Migrate(was, d, s)
	if err != nil {
		return Turn{}, err
	}
	m := &machine{d: d, s: to}
	m.s.At = max(m.s.At, e.At)
	m.note(-1, Entry{Kind: FlowMigrated, Digest: d.digest, By: e.By, Text: "from version " + was.spec.Version + " to " + d.spec.Version})
	m.advance()
	return m.turn(), nil
}

package workflowfile

import (
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// mark says how far a step of an instance has come. The zero value is a step of no instance.
type mark struct {
	kind markKind
	text string
}

type markKind int

const (
	markNone markKind = iota
	markPending
	markRuns
	markWaits
	markDone
	markFailed
	markSkipped
	markUndone
)

// signs stand before the stage, for who sees no colours.
var signs = map[markKind]string{markPending: "·", markRuns: "▶", markWaits: "◷", markDone: "✓", markFailed: "✗", markSkipped: "–", markUndone: "↶"}

var frames = map[markKind]string{
	markNone: `stroke="#555"`, markPending: `stroke="#aaa" stroke-dasharray="3 3"`, markRuns: `stroke="#1a56db" stroke-width="3"`,
	markWaits: `stroke="#c27803" stroke-width="3"`, markDone: `stroke="#057a55" stroke-width="2"`, markFailed: `stroke="#c81e1e" stroke-width="3"`,
	markSkipped: `stroke="#ccc"`, markUndone: `stroke="#555" stroke-dasharray="6 3"`,
}

// marksOf marks the steps of an instance; of one that has not begun all are pending.
func marksOf(s *workflow.State) map[string]mark {
	out := map[string]mark{"": {kind: markPending, text: "pending"}}
	for i := range s.Steps {
		x := &s.Steps[i]
		m := mark{markRuns, string(x.Stage)}
		switch x.Stage {
		case workflow.StagePending:
			m = out[""]
		case workflow.StageDone:
			m.kind = markDone
		case workflow.StageSkipped:
			m.kind = markSkipped
		case workflow.StageFailed:
			m.kind = markFailed
			if x.Failure != nil {
				m.text += ": " + string(x.Failure.Code)
			}
		case workflow.StageIntake, workflow.StageParent:
			m.kind = markWaits
		case workflow.StageParked:
			if m.kind = markWaits; x.Wait != nil {
				m.text = "waits: " + string(x.Wait.For)
			}
		}
		if x.Undone {
			m.kind, m.text = markUndone, m.text+", undone"
		}
		out[x.Name] = m
	}
	if u := s.Unwind; u != nil && u.Wait != nil {
		out[u.Wait.Step] = mark{markWaits, "undoing waits: " + string(u.Wait.For)}
	}
	return out
}

// marked adds the line of a mark; marks hold under "" what a step has that they do not name.
func marked(lines []string, marks map[string]mark, step string) ([]string, markKind) {
	if marks == nil {
		return lines, markNone
	}
	m, known := marks[step]
	if !known {
		m = marks[""]
	}
	return append(lines, signs[m.kind]+" "+m.text), m.kind
}

package workflow

import (
	"encoding/json"
	"slices"
	"unsafe"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Writer writes states of one instance, one after the other, as JSON, in the very bytes of [json.Marshal]. An instance keeps
// what all its steps gave, and an event changes a step or two: the others are copied as they were written last. The zero value
// is ready to use, also for states of another instance. It is not for several goroutines at once.
type Writer struct {
	steps written[StepState]
	deeds written[Deed]
	text  []byte // of the last state
}

// Write returns the state as JSON. What the state refers to must not be changed later: turns replace it.
func (w *Writer) Write(s *State) (string, error) {
	head, err := json.Marshal(stateHead{
		s.Format, s.Workflow, s.Version, s.Digest, s.Instance, s.Parent, s.Input, s.Status, s.Held, s.Above, s.Own, s.Begun, s.At, s.Phases,
	})
	if err != nil {
		return "", err
	}
	tail, err := json.Marshal(stateTail{
		s.Left, s.Unwind, s.Outstanding, s.Breakers, s.Issued, s.Cost, s.Used, s.Stop, s.Output, s.Failure, s.Tree,
	})
	if err != nil {
		return "", err
	}
	if w.text == nil { // an instance grows: most of it is there at once
		w.text = make([]byte, 0, len(head)+len(tail)+roomOfAStep*len(s.Steps))
	}
	b := append(w.text[:0], head[:len(head)-1]...)
	if b = append(b, `,"steps":`...); s.Steps == nil {
		b = append(b, "null"...)
	} else if b, err = w.steps.append(b, s.Steps); err != nil {
		return "", err
	}
	if len(s.Deeds) > 0 {
		if b, err = w.deeds.append(append(b, `,"deeds":`...), s.Deeds); err != nil {
			return "", err
		}
	}
	if len(tail) > len("{}") {
		tail[0] = ','
		b = append(b, tail...)
	} else {
		b = append(b, '}')
	}
	w.text = b
	return string(b), nil
}

// roomOfAStep is what a step usually takes, in bytes, once it has ended.
const roomOfAStep = 384

// stateHead is a State before its steps, and stateTail behind its deeds.
type stateHead struct {
	Format   int             `json:"format"`
	Workflow string          `json:"workflow"`
	Version  string          `json:"version"`
	Digest   string          `json:"digest"`
	Instance string          `json:"instance"`
	Parent   string          `json:"parent,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	Status   Status          `json:"status"`
	Held     bool            `json:"held,omitempty"`
	Above    bool            `json:"above,omitempty"`
	Own      bool            `json:"own,omitempty"`
	Begun    int64           `json:"begun"`
	At       int64           `json:"at"`
	Phases   []PhaseState    `json:"phases"`
}

type stateTail struct {
	Left        []Deed          `json:"left,omitempty"`
	Unwind      *Undoing        `json:"unwind,omitempty"`
	Outstanding []Command       `json:"outstanding,omitempty"`
	Breakers    []BreakerState  `json:"breakers,omitempty"`
	Issued      int             `json:"issued,omitempty"`
	Cost        action.Cost     `json:"cost,omitzero"`
	Used        action.Cost     `json:"used,omitzero"`
	Stop        *Stop           `json:"stop,omitempty"`
	Output      json.RawMessage `json:"output,omitempty"`
	Failure     *action.Failure `json:"failure,omitempty"`
	Tree        bool            `json:"tree,omitempty"`
}

// written are the elements of a list as they were written last.
type written[T any] struct {
	was  []T // as they were: what they refer to lives as long as they do, so that nothing else can be where it is
	text []json.RawMessage
}

// append writes a list.
func (w *written[T]) append(b []byte, list []T) ([]byte, error) {
	b = append(b, '[')
	if more := len(list) - cap(w.was); more > 0 {
		w.was, w.text = slices.Grow(w.was, len(list)-len(w.was)), slices.Grow(w.text, len(list)-len(w.text))
	}
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if i >= len(w.was) {
			w.was, w.text = append(w.was, list[i]), append(w.text, nil)
		}
		if w.text[i] == nil || !identical(&w.was[i], &list[i]) {
			text, err := json.Marshal(&list[i])
			if err != nil {
				w.text[i] = nil
				return nil, err
			}
			w.was[i], w.text[i] = list[i], text
		}
		b = append(b, w.text[i]...)
	}
	w.was, w.text = slices.Delete(w.was, len(list), len(w.was)), slices.Delete(w.text, len(list), len(w.text))
	return append(b, ']'), nil
}

// identical reports whether two values are the same bytes of memory: then they have the same content, and refer to the very
// same. Values that are not identical may be equal all the same.
func identical[T any](a, b *T) bool {
	n := unsafe.Sizeof(*a)
	return string(unsafe.Slice((*byte)(unsafe.Pointer(a)), n)) == string(unsafe.Slice((*byte)(unsafe.Pointer(b)), n))
}

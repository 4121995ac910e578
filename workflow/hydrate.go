package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Mapping makes a JSON object of what is known: each key is a dotted path in the object, each value where it comes from. The
// single key "." makes the whole document of one source.
//
// Sources are dotted paths, array elements by number:
//
//	input.…                 what the instance was started with
//	steps.NAME.output.…     the artifact of a step that is done
//	steps.NAME.failure.…    of one that failed: code, message
//	intake.…                what a person last gave to the step itself
//	instance                the id of the instance
//	call.input.…            of the call to undo (only in [Undo])
//	call.output.…
//
// Values are taken over byte for byte, white space apart: no number changes.
type Mapping map[string]Source

// Source is where a value comes from: a path, or a constant. Default stands in where the path leads nowhere, which without
// one is a failure of the step.
type Source struct {
	From    string          `json:"from,omitempty"`
	Const   json.RawMessage `json:"const,omitempty"`
	Default json.RawMessage `json:"default,omitempty"`
}

// wholeDocument is the path of a mapping that makes all of the document.
const wholeDocument = "."

// scope resolves the root of a path, and says how many segments that took.
type scope func(path []string) (doc json.RawMessage, taken int, ok bool)

var errNowhere = errors.New("leads nowhere")

// hydrate makes the document of a mapping. An empty mapping makes an empty object.
func (m Mapping) hydrate(known scope) (json.RawMessage, error) {
	if s, whole := m[wholeDocument]; whole {
		return s.value(wholeDocument, known)
	}
	root := &branch{}
	for _, path := range slices.Sorted(maps.Keys(m)) {
		v, err := m[path].value(path, known)
		if err != nil {
			return nil, err
		}
		if err := root.put(strings.Split(path, "."), v); err != nil {
			return nil, fmt.Errorf("map %q: %w", path, err)
		}
	}
	var b bytes.Buffer
	if err := root.write(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (s Source) value(path string, known scope) (json.RawMessage, error) {
	if s.From == "" {
		return s.Const, nil
	}
	v, err := lookup(s.From, known)
	switch {
	case err == nil:
		return v, nil
	case len(s.Default) > 0:
		return s.Default, nil
	}
	return nil, fmt.Errorf("map %q: %q %w", path, s.From, err)
}

// lookup follows a path.
func lookup(path string, known scope) (json.RawMessage, error) {
	segments := strings.Split(path, ".")
	doc, taken, ok := known(segments)
	if !ok || len(doc) == 0 {
		return nil, errNowhere
	}
	for _, seg := range segments[taken:] {
		if doc, ok = member(doc, seg); !ok {
			return nil, errNowhere
		}
	}
	return doc, nil
}

// member returns the bytes of one member, or element, of a document.
func member(doc json.RawMessage, name string) (json.RawMessage, bool) {
	switch doc = bytes.TrimLeft(doc, " \t\r\n"); {
	case len(doc) > 0 && doc[0] == '{':
		var all map[string]json.RawMessage
		if json.Unmarshal(doc, &all) != nil {
			return nil, false
		}
		v, ok := all[name]
		return v, ok
	case len(doc) > 0 && doc[0] == '[':
		i, err := strconv.Atoi(name)
		var all []json.RawMessage
		if err != nil || json.Unmarshal(doc, &all) != nil || i < 0 || i >= len(all) {
			return nil, false
		}
		return all[i], true
	}
	return nil, false
}

// branch is an object that is being made.
type branch struct {
	leaf     json.RawMessage
	children map[string]*branch
}

var errCollides = errors.New("it is given a value and members")

func (b *branch) put(path []string, v json.RawMessage) error {
	for _, seg := range path {
		if b.leaf != nil {
			return errCollides
		}
		if b.children == nil {
			b.children = map[string]*branch{}
		}
		next := b.children[seg]
		if next == nil {
			next = &branch{}
			b.children[seg] = next
		}
		b = next
	}
	if b.leaf != nil || b.children != nil {
		return errCollides
	}
	b.leaf = v
	return nil
}

func (b *branch) write(out *bytes.Buffer) error {
	if b.leaf != nil {
		return json.Compact(out, b.leaf)
	}
	out.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(b.children)) {
		if i > 0 {
			out.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		out.Write(key)
		out.WriteByte(':')
		if err := b.children[name].write(out); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

// scope is what the mappings of a step may refer to.
func (m *machine) scope(own *StepState) scope {
	return func(path []string) (json.RawMessage, int, bool) {
		switch path[0] {
		case "input":
			return m.s.Input, 1, true
		case "instance":
			text, err := json.Marshal(m.s.Instance)
			return text, 1, err == nil
		case "intake":
			if own == nil || len(own.Intakes) == 0 {
				return nil, 1, false
			}
			return own.Intakes[len(own.Intakes)-1].Data, 1, true
		case "steps":
			if len(path) < 3 {
				return nil, 0, false
			}
			doc, ok := m.ofStep(path[1], path[2])
			return doc, 3, ok
		}
		return nil, 0, false
	}
}

func (m *machine) ofStep(name, what string) (json.RawMessage, bool) {
	i, known := m.d.at[name]
	if !known {
		return nil, false
	}
	switch st := &m.s.Steps[i]; {
	case what == "output" && st.Stage == StageDone:
		return st.Output, true
	case what == "failure" && st.Stage == StageFailed && st.Failure != nil:
		text, err := json.Marshal(map[string]string{"code": string(st.Failure.Code), "message": st.Failure.Message})
		return text, err == nil
	}
	return nil, false
}

// scopeOf adds the call that is to be undone.
func (m *machine) scopeOf(d Deed) scope {
	rest := m.scope(&m.s.Steps[m.d.at[d.Step]])
	return func(path []string) (json.RawMessage, int, bool) {
		if path[0] != "call" {
			return rest(path)
		}
		switch {
		case len(path) > 1 && path[1] == "input":
			return d.Input, 2, true
		case len(path) > 1 && path[1] == "output":
			return d.Output, 2, true
		}
		return nil, 0, false
	}
}

// view is what guards see.
func (m *machine) view() json.RawMessage {
	root := &branch{children: map[string]*branch{"steps": {children: map[string]*branch{}}}}
	if len(m.s.Input) > 0 {
		root.children["input"] = &branch{leaf: m.s.Input}
	}
	for i := range m.s.Steps {
		if st := &m.s.Steps[i]; st.Stage == StageDone {
			root.children["steps"].children[st.Name] = &branch{children: map[string]*branch{"output": {leaf: st.Output}}}
		}
	}
	var b bytes.Buffer
	if root.write(&b) != nil { // a document that is none was given to Start
		return json.RawMessage("{}")
	}
	return b.Bytes()
}

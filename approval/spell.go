package approval

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// speller writes the names of one document for a person to read.
type speller struct {
	tree  any
	names *declared
	alike map[uintptr]map[string][]string // by object: what a name looks like → the first names that do
}

func newSpeller(tree any, names *declared) *speller {
	return &speller{tree: tree, names: names, alike: map[uintptr]map[string][]string{}}
}

// label spells a place, "" where it reads as its path does.
func (s *speller) label(at place) string {
	var b strings.Builder
	var marks []string
	here, n := s.tree, s.names
	for i, t := range at {
		if i > 0 {
			b.WriteByte('.')
		}
		if t.index {
			b.WriteString(t.name)
			k, _ := strconv.Atoi(t.name) // made from a number
			here, n = element(here, k), nil
			continue
		}
		b.WriteString(spelt(action.CutTo(t.name, MaxValue)))
		marks = append(marks, s.marks(here, n, t.name)...)
		here, n = member(here, t.name), n.member(t.name)
		if b.Len() > 2*MaxValue {
			break
		}
	}
	label := action.CutTo(b.String(), 2*MaxValue)
	if len(marks) > 0 {
		label += " [" + strings.Join(slices.Compact(marks), "; ") + "]"
	}
	if label == at.String() {
		return ""
	}
	return action.Visible(label)
}

// spelt is a name as it is read: quoted, unless it is a plain identifier.
func spelt(name string) string {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c == '$' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return strconv.Quote(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

// marks says what is to be noticed about a name in an object. What the schema names is as its author wanted it.
func (s *speller) marks(object any, n *declared, name string) (out []string) {
	if n.member(name) != nil {
		return nil
	}
	if a, b := action.MixedScripts(action.CutTo(name, looked)); b != "" {
		out = append(out, "mixes "+a+" and "+b+" letters")
	}
	look := lookOf(name)
	if look == "" {
		return out
	}
	for _, other := range s.looks(object, n)[look] {
		if other != name {
			return append(out, "reads like "+spelt(action.CutTo(other, MaxValue)))
		}
	}
	return out
}

// looked is how much of a name is looked at, in bytes: of longer ones no more is seen either.
const looked = 2 * MaxValue

func lookOf(name string) string { return action.Skeleton(action.CutTo(name, looked)) }

// looks returns the names in an object by what they look like, two of each, those that the schema has there first.
func (s *speller) looks(object any, n *declared) map[string][]string {
	m, ok := object.(map[string]any)
	if !ok {
		return nil
	}
	key := reflect.ValueOf(m).Pointer()
	looks := s.alike[key]
	if looks == nil {
		looks = make(map[string][]string, len(m))
		add := func(name string) {
			if l := lookOf(name); len(looks[l]) < 2 {
				looks[l] = append(looks[l], name)
			}
		}
		if n != nil {
			for _, name := range slices.Sorted(maps.Keys(n.below)) {
				add(name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(m)) {
			add(name)
		}
		s.alike[key] = looks
	}
	return looks
}

// Text returns an input in whole, line by line: its names as [Field.Name] spells them, its values in JSON, nothing invisible,
// secrets hidden.
func (l Look) Text(input json.RawMessage) ([]string, error) {
	tree, err := parse(input)
	if err != nil {
		return nil, err
	}
	names := declaredOf(l.Declared)
	p := printer{hide: patterns(l.Secrets), spell: newSpeller(tree, names)}
	p.value(nil, "", tree, names)
	return p.lines, nil
}

type printer struct {
	hide  patternList
	spell *speller
	lines []string
}

func (p *printer) line(depth int, head, text string) {
	p.lines = append(p.lines, strings.Repeat("  ", depth)+action.Visible(head+text))
}

func (p *printer) value(at place, head string, v any, n *declared) {
	if p.hide.cover(at) {
		p.line(len(at), head, secretValue)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			break
		}
		p.line(len(at), head, "{")
		for _, name := range slices.Sorted(maps.Keys(v)) {
			label := spelt(name)
			if marks := p.spell.marks(v, n, name); len(marks) > 0 {
				label += " [" + strings.Join(marks, "; ") + "]"
			}
			p.value(append(at, turn{name: name}), label+": ", v[name], n.member(name))
		}
		p.line(len(at), "", "}")
		return
	case []any:
		if len(v) == 0 {
			break
		}
		p.line(len(at), head, "[")
		for i, e := range v {
			index := strconv.Itoa(i)
			p.value(append(at, turn{index, true}), index+": ", e, nil)
		}
		p.line(len(at), "", "]")
		return
	}
	p.line(len(at), head, textOf(v))
}

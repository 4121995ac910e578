package approval

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Bounds on what a person is shown of one input at first sight; [Look.Text] is all of it.
const (
	MaxFields   = 40  // values, and differences, beside those that the schema names
	MaxDeclared = 256 // of those
	MaxValue    = 200 // bytes of one value, and of one path
)

// Look says how inputs of an action are shown.
//
// Whoever proposes a call may choose long lists, and names where the schema leaves them open. So what the schema names comes
// first and always: values that differ from the call approved last, then those that are declared, then the rest. Lists and
// free-form objects share what room is left, and of each that is not shown in whole it is said how many more values it has.
type Look struct {
	// Secrets are dotted paths, in which a star is any member or element: what is there is hidden, with the names of what is
	// below it.
	Secrets []string
	// Declared are the dotted paths of the members that the action's schema names, those of elements of lists apart. Beyond
	// MaxDeclared they count as named no more.
	Declared []string
}

// Field is one value of an input as it is shown: nothing in it is invisible (see [action.Visible]), a secret is hidden.
type Field struct {
	Path    string `json:"path"`              // dotted, indices included: "items.0.sku"; "" is the whole input
	Label   string `json:"label,omitempty"`   // for reading, where that is not Path: see Name
	Value   string `json:"value"`             // JSON
	Size    int    `json:"size,omitempty"`    // bytes of the whole value, where it is cut
	Secret  bool   `json:"secret,omitempty"`  // Value says nothing
	Changed bool   `json:"changed,omitempty"` // differs from the call approved last
}

// Name is the path as a person should read it: names that are no plain identifiers are quoted, and those that mix the letters
// of several scripts, or read like another name beside them, are marked.
func (f Field) Name() string { return nameOr(f.Label, f.Path) }

// Rest is what is not shown of a list, or of the members of an object that its schema does not name.
type Rest struct {
	Path   string `json:"path"` // of the list or the object
	Label  string `json:"label,omitempty"`
	More   int    `json:"more"`   // values
	Digest string `json:"digest"` // SHA-256, in hex, of the whole list or of all those members, secrets left out
}

// Name is as [Field.Name].
func (r Rest) Name() string { return nameOr(r.Label, r.Path) }

// Shown is what is shown of an input.
type Shown struct {
	Fields []Field
	Rest   []Rest
	More   int // values that are not among the fields
}

// Difference is one place in which two inputs differ, as it is shown. "" is a value that is not there.
type Difference struct {
	Path  string `json:"path"`
	Label string `json:"label,omitempty"`
	Was   string `json:"was,omitempty"`
	Now   string `json:"now,omitempty"`
	// Cut says that the values are too long to be shown: what is shown is where they differ.
	Cut *Cut `json:"cut,omitempty"`
}

// Cut is where two long values differ, in bytes of their JSON.
type Cut struct {
	At      int `json:"at"`   // as much they have in common at their beginning
	Tail    int `json:"tail"` // and at their end
	WasSize int `json:"was_size"`
	NowSize int `json:"now_size"`
}

// Name is as [Field.Name].
func (d Difference) Name() string { return nameOr(d.Label, d.Path) }

func nameOr(label, path string) string {
	if label != "" {
		return label
	}
	return path
}

// secretValue stands for what must not be shown.
const secretValue = "(secret)"

// Fields returns what is shown of an input in canonical form beside the one that was approved last, nil where there is none.
func (l Look) Fields(now, was json.RawMessage) (Shown, error) {
	a, b, err := parseBoth(was, now)
	if err != nil {
		return Shown{}, err
	}
	first := a == any(absent{})
	hide, names := patterns(l.Secrets), declaredOf(l.Declared)
	var c chooser
	w := &walker{whole: hide, pass: func(at place, was, now any, of *group) bool {
		if first {
			was = now
		}
		return c.pass(at, was, now, of)
	}}
	w.values(nil, a, b, names, nil)
	spell := newSpeller(b, names)
	var out Shown
	chosen, shown := c.choose(w.groups)
	for _, e := range chosen {
		text := textOf(e.now)
		f := Field{Path: e.at.String(), Label: spell.label(e.at), Value: shownValue(text), Secret: hide.cover(e.at), Changed: e.changed}
		switch {
		case f.Secret:
			f.Value = secretValue
		case len(text) > MaxValue:
			f.Size = len(text)
		}
		out.Fields = append(out.Fields, f)
	}
	for _, g := range w.groups {
		if more := g.total - shown[g]; more > 0 {
			out.Rest = append(out.Rest, Rest{Path: g.at.String(), Label: spell.label(g.at), More: more, Digest: g.digest(hide)})
		}
	}
	out.More = c.seq - len(out.Fields)
	return out, nil
}

// Differences returns where two inputs in canonical form differ, what the schema names first, and how many more places there
// are. That a secret differs is told, its values are not, nor in what of it they differ.
func (l Look) Differences(was, now json.RawMessage) (out []Difference, more int, err error) {
	a, b, err := parseBoth(was, now)
	if err != nil {
		return nil, 0, err
	}
	hide, names := patterns(l.Secrets), declaredOf(l.Declared)
	var c chooser
	w := &walker{whole: hide, pass: c.pass}
	w.differences(nil, a, b, names, nil)
	before, after := newSpeller(a, names), newSpeller(b, names)
	chosen, _ := c.choose(w.groups)
	for _, e := range chosen {
		d := Difference{Path: e.at.String(), Label: after.label(e.at)}
		if e.now == any(absent{}) {
			d.Label = before.label(e.at)
		}
		d.show(e.was, e.now, hide.touch(e.at))
		out = append(out, d)
	}
	return out, c.seq - len(out), nil
}

// show writes both values, or where they differ.
func (d *Difference) show(was, now any, secret bool) {
	text := func(v any) string {
		switch {
		case v == any(absent{}):
			return ""
		case secret:
			return secretValue
		}
		return textOf(v)
	}
	a, b := text(was), text(now)
	if a == "" || b == "" || len(a) <= MaxValue && len(b) <= MaxValue {
		d.Was, d.Now = shownValue(a), shownValue(b)
		return
	}
	c := &Cut{WasSize: len(a), NowSize: len(b)}
	short := min(len(a), len(b))
	for c.At < short && a[c.At] == b[c.At] {
		c.At++
	}
	for c.At > 0 && (!startsAt(a, c.At) || !startsAt(b, c.At)) {
		c.At--
	}
	for c.Tail < short-c.At && a[len(a)-1-c.Tail] == b[len(b)-1-c.Tail] {
		c.Tail++
	}
	for c.Tail > 0 && (!startsAt(a, len(a)-c.Tail) || !startsAt(b, len(b)-c.Tail)) {
		c.Tail--
	}
	d.Cut, d.Was, d.Now = c, window(a, c.At, len(a)-c.Tail), window(b, c.At, len(b)-c.Tail)
}

// startsAt reports whether a character begins there, or the text ends.
func startsAt(s string, i int) bool { return i >= len(s) || utf8.RuneStart(s[i]) }

// around is how much is shown before and behind what differs, in bytes.
const around = 40

// window is a text around what is from at to end in it: of what is long both ends, for the one that was changed to be noticed
// may stand before the one that matters.
func window(s string, at, end int) string {
	from, to := max(at-around, 0), min(end+around, len(s))
	for !startsAt(s, from) {
		from--
	}
	for !startsAt(s, to) {
		to++
	}
	head, tail := s[from:to], ""
	if len(head) > MaxValue {
		a, b := from+MaxValue/2, to-MaxValue/2
		for !startsAt(s, a) {
			a--
		}
		for !startsAt(s, b) {
			b++
		}
		head, tail = s[from:a], s[b:to]
	}
	out := action.Visible(head)
	if from > 0 {
		out = "…" + out
	}
	if tail != "" {
		out += fmt.Sprintf(" …(%d bytes)… ", to-from-len(head)-len(tail)) + action.Visible(tail)
	}
	if to < len(s) {
		out += "…"
	}
	return out
}

// DifferOnly reports the first place where two inputs in canonical form differ that none of the paths covers: a path
// covers what is at or below it, and a star in it is any member or element. Nil: they differ there only, or not at all.
func DifferOnly(a, b json.RawMessage, paths []string) error {
	was, now, err := parseBoth(a, b)
	if err != nil {
		return err
	}
	may, other, found := patterns(paths), "", false
	w := &walker{pass: func(at place, _, _ any, _ *group) bool {
		if may.cover(at) {
			return true
		}
		other, found = at.String(), true
		return false
	}}
	w.differences(nil, was, now, nil, nil)
	if found {
		return fmt.Errorf("they differ in %q, which is not among the fields that may differ", other)
	}
	return nil
}

func shownValue(text string) string {
	return action.CutTo(action.Visible(action.CutTo(text, MaxValue)), 4*MaxValue)
}

package approval

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// place is where a value stands in a document: the names and indices that lead to it. It is spelt only where it is shown:
// a document may hold a long name above very many values.
type place []turn

// turn is one step of the way to a value.
type turn struct {
	name  string
	index bool // in a list
}

var escape = strings.NewReplacer(`\`, `\\`, ".", `\.`, "*", `\*`)

// emptyName is how a member without a name is spelt: else its path would be that of what holds it. No escaped name is this.
const emptyName = `\e`

// String returns the dotted path, cut to MaxValue.
func (p place) String() string {
	var b strings.Builder
	for i, t := range p {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(cmp.Or(escape.Replace(action.CutTo(t.name, MaxValue)), emptyName))
		if b.Len() > MaxValue {
			break
		}
	}
	return action.CutTo(action.Visible(action.CutTo(b.String(), MaxValue)), 4*MaxValue)
}

// pattern is a dotted path, taken apart.
type pattern []step

type step struct {
	name string
	any  bool
}

type patternList []pattern

func patterns(paths []string) (out patternList) {
	for _, p := range paths {
		out = append(out, split(p))
	}
	return out
}

// split takes a dotted path apart: a backslash makes the dot or star behind it part of a name.
func split(path string) (out pattern) {
	if path == "" {
		return nil // the whole document
	}
	var name strings.Builder
	escaped, literal := false, false
	end := func() {
		s := name.String()
		out = append(out, step{name: s, any: s == "*" && !literal})
		name.Reset()
		literal = false
	}
	for _, r := range path {
		switch {
		case escaped:
			name.WriteRune(r)
			escaped, literal = false, true
		case r == '\\':
			escaped = true
		case r == '.':
			end()
		default:
			name.WriteRune(r)
		}
	}
	end()
	return out
}

// cover reports whether the place is at or below one of the patterns.
func (l patternList) cover(at place) bool {
	return slices.ContainsFunc(l, func(p pattern) bool { return len(p) <= len(at) && p.matches(at) })
}

// touch reports whether one of the patterns is at, below or above the place: what is shown of it would show the other.
func (l patternList) touch(at place) bool {
	return slices.ContainsFunc(l, func(p pattern) bool { return p.matches(at) })
}

// matches compares as far as both go.
func (p pattern) matches(at place) bool {
	for i := range min(len(p), len(at)) {
		if !p[i].any && p[i].name != at[i].name {
			return false
		}
	}
	return true
}

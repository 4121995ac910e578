package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"sort"
	"strconv"
)

// entry is a value of an input, or a place where two differ.
type entry struct {
	at       place
	was, now any
	changed  bool
	seq      int // in the order of the walk
}

// chosen holds the first MaxFields entries: those nearest to the root, then those that come first.
type chosen []entry

func nearer(a, b entry) bool {
	if len(a.at) != len(b.at) {
		return len(a.at) < len(b.at)
	}
	return a.seq < b.seq
}

// add keeps an entry, whose place may change later.
func (c *chosen) add(e entry) {
	l := *c
	if len(l) == MaxFields && !nearer(e, l[len(l)-1]) {
		return
	}
	e.at = slices.Clone(e.at)
	i := sort.Search(len(l), func(i int) bool { return nearer(e, l[i]) })
	if l = slices.Insert(l, i, e); len(l) > MaxFields {
		l = l[:MaxFields]
	}
	*c = l
}

// chooser picks what is shown. What the schema names comes always; what it leaves the number of open shares what room there
// is, so that no list and no free-form object keeps another one, or what is named, from being seen.
type chooser struct {
	named []entry // by the schema, at most MaxDeclared
	seq   int
}

// pass takes an entry from a walk.
func (c *chooser) pass(at place, was, now any, of *group) bool {
	e := entry{at: at, was: was, now: now, changed: !same(was, now), seq: c.seq}
	c.seq++
	switch {
	case of == nil && len(c.named) < MaxDeclared:
		e.at = slices.Clone(at)
		c.named = append(c.named, e)
	case of == nil: // no schema names so many: see Look.Declared
	default:
		of.total++
		if e.changed {
			of.changed.add(e)
		} else {
			of.others.add(e)
		}
	}
	return true
}

// choose returns what is shown: what changed first, then what is declared, then the rest, lists before what is free-form; and
// how much of each group that is.
func (c *chooser) choose(groups []*group) (out []entry, shown map[*group]int) {
	room := max(MaxFields-len(c.named), MaxFields/2)
	slices.SortStableFunc(groups, func(a, b *group) int { return rank(a) - rank(b) })
	shown = map[*group]int{}
	byClass := make([][]entry, 4)
	for _, e := range c.named {
		class := 2
		if e.changed {
			class = 0
		}
		byClass[class] = append(byClass[class], e)
	}
	for _, class := range []int{1, 3} {
		take := share(groups, class == 1, &room)
		for i, g := range groups {
			l := slices.Clone(g.of(class == 1)[:take[i]])
			slices.SortFunc(l, func(a, b entry) int { return a.seq - b.seq })
			byClass[class] = append(byClass[class], l...)
			shown[g] += take[i]
		}
	}
	return slices.Concat(byClass...), shown
}

func rank(g *group) int {
	if g.list {
		return 0
	}
	return 1
}

func (g *group) of(changed bool) chosen {
	if changed {
		return g.changed
	}
	return g.others
}

// share gives each group as much of the room as the others, as far as it needs it.
func share(groups []*group, changed bool, room *int) []int {
	take := make([]int, len(groups))
	for given := true; given; {
		given = false
		for i, g := range groups {
			if *room > 0 && take[i] < len(g.of(changed)) {
				take[i]++
				*room--
				given = true
			}
		}
	}
	return take
}

// digest names all that a group holds, secrets apart.
func (g *group) digest(hide patternList) string {
	tree := hidden(g.at, g.tree, hide)
	if m, ok := tree.(map[string]any); ok {
		maps.DeleteFunc(m, func(name string, _ any) bool { return g.named.member(name) != nil })
	}
	sum := sha256.Sum256([]byte(textOf(tree)))
	return hex.EncodeToString(sum[:])
}

// hidden returns a value with what is secret in it replaced.
func hidden(at place, v any, hide patternList) any {
	if hide.cover(at) {
		return secretValue
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			out[name] = hidden(append(at, turn{name: name}), e, hide)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = hidden(append(at, turn{strconv.Itoa(i), true}), e, hide)
		}
		return out
	}
	return v
}

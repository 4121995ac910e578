package statespace

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// MaxFacts is the most keys that one Ok writes; what is above it goes into bulk cells.
	MaxFacts = 256
	// MaxBulk is the most values of one bulk cell.
	MaxBulk = 1 << 16
)

// Facts is what one Ok establishes.
type Facts struct {
	Keys []string // sorted, at most MaxFacts

	// Bulk holds the field sets that have too many values for a key each: key of the set → sorted values, each equal to
	// the Value of the [Requirement] that it meets.
	Bulk map[string][]string

	// Dropped names the field sets with more than MaxBulk combinations, sorted. Nothing of them is established.
	Dropped []string
}

// Facts returns what an Ok of the action with this input and output establishes: one fact for each field set that anyone
// binds on and each combination of values found there. Where a field is absent or null there is no fact. Several "*"
// behind one prefix speak of the same element; others combine freely. Trees are of map[string]any, []any, string,
// json.Number in normal form, bool and nil; anything else is an error, as is an action unknown to the graph.
func (g *Graph) Facts(name string, input, output any) (Facts, error) {
	var out Facts
	i, err := g.find(name)
	if err != nil {
		return out, err
	}
	return g.factsOf(i, input, output)
}

// factsOf returns what the action or the workflow of that index establishes.
func (g *Graph) factsOf(i int, input, output any) (out Facts, err error) {
	found := make([]tuples, len(g.setsOf[i]))
	for k, id := range g.setsOf[i] {
		s := &g.sets[id]
		t, err := s.collect(input, output, &g.hash)
		if err == errTooMany {
			out.Dropped = append(out.Dropped, s.key)
			continue
		}
		if err != nil {
			return Facts{}, fmt.Errorf("facts %s: %w", s.key, err)
		}
		found[k] = t
	}
	for _, k := range overfull(found) {
		if out.Bulk == nil {
			out.Bulk = map[string][]string{}
		}
		out.Bulk[g.sets[g.setsOf[i][k]].key] = found[k].values
		found[k] = tuples{}
	}
	for _, t := range found {
		out.Keys = append(out.Keys, t.keys...)
	}
	slices.Sort(out.Keys)
	return out, nil
}

// overfull chooses the sets to keep in bulk: the largest first, until the rest fits.
func overfull(found []tuples) (bulk []int) {
	total := 0
	order := make([]int, len(found))
	for k, t := range found {
		order[k] = k
		total += len(t.keys)
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(found[b].keys) - len(found[a].keys) })
	for _, k := range order {
		if total <= MaxFacts {
			break
		}
		total -= len(found[k].keys)
		bulk = append(bulk, k)
	}
	return bulk
}

// tuples are the distinct values found for one field set.
type tuples struct{ keys, values []string }

// collect finds the values of a set in an input and an output.
func (s *fieldSet) collect(input, output any, by *Hash) (tuples, error) {
	rows, err := s.root.rows([2]any{input, output}, len(s.fields))
	if err != nil {
		return tuples{}, err
	}
	type pair struct{ value, key string }
	pairs := make([]pair, len(rows))
	for i, row := range rows {
		pairs[i].value, pairs[i].key = makeKey(s.name, s.texts, row, s.hashed, by)
	}
	slices.SortFunc(pairs, func(a, b pair) int { return strings.Compare(a.value, b.value) })
	pairs = slices.Compact(pairs)
	var t tuples
	for _, p := range pairs {
		t.keys, t.values = append(t.keys, p.key), append(t.values, p.value)
	}
	return t, nil
}

package memory

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
)

// MaxNotes is how many notes the in-process store keeps for one agent. Nothing is dropped silently: beyond it, Remember
// returns an error.
const MaxNotes = 10_000

// The usual constants of BM25: how soon repeated words stop counting, and how much long notes are discounted.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// memories are an agent's notes, by tenant: each is ranked by its own alone.
type memories struct {
	of map[string]*notes
	n  int
}

// notes is one agent's memory for a tenant with what its ranking needs.
type notes struct {
	list  []indexed
	has   map[string]int // word → number of notes with it
	words int            // length of all notes together
}

type indexed struct {
	Note
	count map[string]int
	words int
}

// Remember implements [Store].
func (s *InProcess) Remember(ctx context.Context, agent string, n Note) error {
	if agent == "" {
		return fmt.Errorf("remember: note without an agent")
	}
	a, err := s.lock(ctx, agent, true)
	if err != nil {
		return err
	}
	defer a.mu.Unlock()
	if a.notes.n >= MaxNotes {
		return fmt.Errorf("remember: agent %s has %d notes, the most this store keeps: use a store with more room", agent, MaxNotes)
	}
	n.At = time.UnixMicro(s.now()).UTC()
	if a.notes.of == nil {
		a.notes.of = map[string]*notes{}
	}
	own := a.notes.of[n.Tenant]
	if own == nil {
		own = &notes{}
		a.notes.of[n.Tenant] = own
	}
	own.add(n)
	a.notes.n++
	return nil
}

// Recall implements [Store]. Notes are ranked by BM25 over the words of kind and content; those without any word of the
// query are left out; of equal scores the newer comes first.
func (s *InProcess) Recall(ctx context.Context, agent, tenant, query string, limit int) ([]Note, error) {
	a, err := s.lock(ctx, agent, false)
	if err != nil {
		return nil, err
	}
	defer a.mu.Unlock()
	own := a.notes.of[tenant]
	switch {
	case own == nil:
		return nil, nil
	case query == "":
		return own.newest(limit), nil
	}
	return own.rank(query, limit), nil
}

// Rank returns up to limit of the notes, which stand in the order they were written in and are of one tenant, as [Store.Recall] does: the newest
// where the query is empty, else the most relevant. It is for stores that have no ranking of their own.
func Rank(all []Note, query string, limit int) []Note {
	var m notes
	for _, n := range all {
		m.add(n)
	}
	if query == "" {
		return m.newest(limit)
	}
	return m.rank(query, limit)
}

func (m *notes) add(n Note) {
	if m.has == nil {
		m.has = map[string]int{}
	}
	x := indexed{Note: n, count: map[string]int{}}
	for _, w := range words(n.Kind + " " + n.Content) {
		if x.count[w] == 0 {
			m.has[w]++
		}
		x.count[w]++
		x.words++
	}
	m.words += x.words
	m.list = append(m.list, x)
}

func (m *notes) newest(limit int) []Note {
	var out []Note
	for _, n := range slices.Backward(m.list) {
		if len(out) >= limit {
			break
		}
		out = append(out, n.Note)
	}
	return out
}

// rank scores each note d for the words w of the query, each counted once, by Robertson and Zaragoza, The Probabilistic
// Relevance Framework: BM25 and Beyond (2009), eq. 3.15:
//
//	Σw  ln(1 + (N − n + ½)/(n + ½)) · f·(k₁+1) / (f + k₁·(1 − b + b·|d|/avg))
//
// f is how often w stands in d, n in how many of the N notes it stands, |d| the length of d in words and avg the mean
// length. The 1 inside the logarithm keeps words that stand in more than half of the notes from counting against a note.
func (m *notes) rank(query string, limit int) []Note {
	q := words(query)
	slices.Sort(q)
	q = slices.Compact(q) // sorted: the same sum whatever the order of the words
	type scored struct {
		at    int
		score float64
	}
	var hits []scored
	total, avg := float64(len(m.list)), float64(m.words)/float64(max(1, len(m.list)))
	for i, d := range m.list {
		sum := 0.0
		for _, w := range q {
			f, n := float64(d.count[w]), float64(m.has[w])
			if f > 0 {
				sum += math.Log(1+(total-n+0.5)/(n+0.5)) * f * (bm25K1 + 1) / (f + bm25K1*(1-bm25B+bm25B*float64(d.words)/avg))
			}
		}
		if sum > 0 {
			hits = append(hits, scored{i, sum})
		}
	}
	slices.SortFunc(hits, func(x, y scored) int { return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(y.at, x.at)) })
	var out []Note
	for _, h := range hits[:max(0, min(limit, len(hits)))] {
		out = append(out, m.list[h.at].Note)
	}
	return out
}

func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

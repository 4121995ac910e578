package conformance

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// Run runs every variant of every case as a subtest, each on a subject of its own.
func Run(t *testing.T, open Open) {
	for _, c := range Cases() {
		t.Run(c.ID, func(t *testing.T) {
			for _, v := range c.Variants {
				t.Run(v.Name, func(t *testing.T) { report(t, try(open, c.ID, v)) })
			}
		})
	}
}

func report(t *testing.T, v Verdict) {
	for _, s := range v.Symptoms {
		t.Error(s)
	}
	if v.Skipped != "" {
		t.Skip(v.Skipped)
	}
}

// Check runs every variant of the cases and returns what each came to, in order.
func Check(open Open, cases []Case) []Verdict {
	var out []Verdict
	for _, c := range cases {
		for _, v := range c.Variants {
			out = append(out, try(open, c.ID, v))
		}
	}
	return out
}

// Table prints case → pass, fail or skip, a line each, with the first symptom of a failure.
func Table(w io.Writer, verdicts []Verdict) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "case\tverdict\tvariants\tguards, or the symptom")
	for _, c := range Cases() {
		if word, count, says := sum(c, verdicts); word != "" {
			fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", c.ID, word, count, says)
		}
	}
	return tab.Flush()
}

// sum puts the verdicts on the variants of a case together; "" where there are none.
func sum(c Case, verdicts []Verdict) (word, count, says string) {
	passed, all, skipped := 0, 0, 0
	for _, v := range verdicts {
		if v.Case != c.ID {
			continue
		}
		all++
		switch {
		case v.Passed():
			passed++
		case v.Skipped != "":
			skipped++
		case says == "":
			says = v.Variant + ": " + short(v.Symptoms[0])
		}
	}
	switch {
	case all == 0:
		return "", "", ""
	case says != "":
		word = "FAIL"
	case passed == 0:
		word, says = "skip", "the subject lacks what the case needs"
	default:
		word, says = "pass", c.Guards
	}
	count = fmt.Sprintf("%d/%d", passed, all)
	if skipped > 0 {
		count += fmt.Sprintf(" (%d skipped)", skipped)
	}
	return word, count, says
}

func short(s string) string {
	if r := []rune(s); len(r) > 160 {
		return string(r[:160]) + "…"
	}
	return s
}

// Failed returns the ids of the cases of which a variant failed, in order, each once.
func Failed(verdicts []Verdict) []string {
	var out []string
	for _, v := range verdicts {
		if len(v.Symptoms) > 0 {
			out = append(out, v.Case)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Document lists every case with what it guards, as Markdown.
func Document() string {
	var b strings.Builder
	b.WriteString("| case | seen elsewhere | must hold | variants |\n|---|---|---|---|\n")
	for _, c := range Cases() {
		names := make([]string, len(c.Variants))
		for i, v := range c.Variants {
			names[i] = v.Name
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.ID, c.Symptom, c.Guards, strings.Join(names, "; "))
	}
	return b.String()
}

func sorted(cs []Case) []Case {
	slices.SortStableFunc(cs, func(a, b Case) int { return cmp.Compare(a.ID, b.ID) })
	return cs
}

// merged puts the variants of one case together that stand in several files.
func merged(all []Case) (out []Case) {
	for _, c := range all {
		i := slices.IndexFunc(out, func(d Case) bool { return d.ID == c.ID })
		if i < 0 {
			out = append(out, c)
			continue
		}
		d := &out[i]
		d.Symptom, d.Guards = cmp.Or(d.Symptom, c.Symptom), cmp.Or(d.Guards, c.Guards)
		d.Variants = append(slices.Clip(d.Variants), c.Variants...)
	}
	return out
}

package policy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/eval"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// answer is what a policy says to every input, as far as it says the same.
type answer uint8

const (
	no    answer = iota // its condition holds for none
	maybe               // it depends
	yes                 // its condition holds for all
	fails               // it cannot be evaluated, whatever the input
)

// anyInput says whether some input could be permitted. The input and the planner's own words are unknown; the effective
// risk is one of few: as it is, or as a per-argument rule raises it. Refusing is exact; permitting is not: two conditions
// that exclude each other are not seen through, and the call decides.
func (b *Bundle) anyInput(d Decision, r *Request, q types.Request, rules []*rule) (Decision, error) {
	var first Decision
	var firstErr error
	for i, effective := range effectives(r) {
		at := *r
		at.Effective = effective
		q.Context = b.unknown(&at)
		got, err := b.possible(d, &at, q, rules)
		if err == nil && got.Permit {
			return got, nil
		}
		if i == 0 {
			first, firstErr = got, err
		}
	}
	return first, firstErr
}

// effectives returns the risks that a call may have, ascending.
func effectives(r *Request) []float64 {
	out := []float64{r.Effective}
	for _, level := range r.Raises {
		if x := float64(level); x > r.Effective && within(x, 1, 5) {
			out = append(out, x)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unknown is the context of a call whose input nobody has seen.
func (b *Bundle) unknown(r *Request) types.Record {
	known := *r
	known.Input, known.Provenance = nil, action.Provenance{}
	m := maps.Collect(b.context(&known, readsWhole).All())
	m["input"], m["provenance"] = eval.Variable("input"), eval.Variable("provenance")
	return types.NewRecord(m)
}

func (b *Bundle) possible(d Decision, r *Request, q types.Request, rules []*rule) (Decision, error) {
	env := eval.Env{Entities: b.entities, Principal: q.Principal, Action: q.Action, Resource: q.Resource, Context: q.Context}
	var v verdict
	for _, p := range rules {
		switch a, why := p.whatever(env); {
		case a == fails:
			v.fail(p, why)
		case p.permits && a != no:
			v.permits = append(v.permits, p)
		case !p.permits && a == yes:
			v.forbids = append(v.forbids, p)
		}
	}
	return v.decision(d, b, r)
}

// whatever evaluates as much as does not depend on the input.
func (r *rule) whatever(env eval.Env) (a answer, why string) {
	defer func() {
		if v := recover(); v != nil {
			a, why = fails, fmt.Sprintf("it panicked: %s", action.TextOf(v))
		}
	}()
	if r.reads&readsWhole != 0 { // the unknown would be compared as if it were a value
		if !inScope(env, r.ast()) {
			return no, ""
		}
		return maybe, ""
	}
	rest, keep := eval.PartialPolicy(env, r.ast())
	switch {
	case !keep:
		return no, ""
	case len(rest.Conditions) == 0:
		return yes, ""
	}
	if err, failed := eval.ToPartialError(rest.Conditions[0].Body); failed { // a later one may never be reached
		return fails, err.Error()
	}
	return maybe, ""
}

// inScope reports whether the scope alone lets the policy apply.
func inScope(env eval.Env, p *ast.Policy) bool {
	scope := *p
	scope.Conditions = nil
	_, keep := eval.PartialPolicy(env, &scope)
	return keep
}

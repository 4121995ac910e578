package policy

import (
	"fmt"

	"github.com/cedar-policy/cedar-go/x/exp/eval"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Finding is what one policy says to one request.
type Finding struct {
	Policy string `json:"policy"` // its name
	Effect string `json:"effect"` // permit or forbid
	// Says is "applies", "does not apply", "depends on the input" (of any input) or "fails".
	Says string `json:"says"`
	// Reason is why it fails; where it applies or may, what its author says of it.
	Reason string `json:"reason,omitempty"`
}

// Explain says of every policy whose scope may hold the request what it decides, in the order of their names. All others
// have nothing to do with the agent, the action or the resource. With AnyInput the effective risk is taken as it is.
func (b *Bundle) Explain(r Request) (out []Finding, err error) {
	defer func() {
		if v := recover(); v != nil {
			out, err = nil, fmt.Errorf("explain: it panicked: %s", action.TextOf(v))
		}
	}()
	q := b.request(&r)
	rules := sorted(b.indexed(q))
	if r.AnyInput {
		q.Context = b.unknown(&r)
	} else {
		q.Context = b.context(&r, readOf(rules))
	}
	for _, p := range rules {
		f := Finding{Policy: p.name, Effect: "forbid", Reason: p.reason}
		if p.permits {
			f.Effect = "permit"
		}
		if r.AnyInput {
			a, why := p.whatever(eval.Env{Entities: b.entities, Principal: q.Principal, Action: q.Action, Resource: q.Resource, Context: q.Context})
			f.Says = [...]string{"does not apply", "depends on the input", "applies", "fails"}[a]
			if a == fails {
				f.Reason = why
			}
		} else {
			f.say(b.evaluate(q, []*rule{p}))
		}
		if f.Says == "does not apply" {
			f.Reason = "" // it reads as if it did
		}
		out = append(out, f)
	}
	return out, nil
}

func (f *Finding) say(v verdict) {
	switch {
	case len(v.failures) > 0:
		f.Says, f.Reason = "fails", v.errors[v.failures[0]]
	case len(v.permits)+len(v.forbids) > 0:
		f.Says = "applies"
	default:
		f.Says = "does not apply"
	}
}

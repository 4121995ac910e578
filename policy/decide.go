package policy

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Decide evaluates the policies that the index finds.
func (b *Bundle) Decide(r Request) (Decision, error) { return b.decide(&r, b.indexed) }

// Linear returns the same policy without the index: it evaluates every policy for every request, as the library does by
// itself. It decides the same and is for comparison.
func (b *Bundle) Linear() Policy {
	return Func(func(r Request) (Decision, error) { return b.decide(&r, b.all) })
}

// finder returns the policies to evaluate.
type finder func(types.Request) []*rule

func (b *Bundle) all(types.Request) []*rule { return b.rules }

func (b *Bundle) indexed(q types.Request) []*rule {
	places := b.index.find(b.meets(q.Principal), b.meets(q.Action), b.meets(q.Resource))
	out := make([]*rule, len(places))
	for i, p := range places {
		out[i] = b.rules[p]
	}
	return out
}

func (b *Bundle) decide(r *Request, find finder) (Decision, error) {
	q := b.request(r)
	rules := find(q)
	d := Decision{Version: b.version, Ask: b.autonomy[r.Agent].Asks(r.Agent, r.Effect)}
	if r.AnyInput {
		return b.anyInput(d, r, q, rules)
	}
	q.Context = b.context(r, readOf(rules))
	v := b.evaluate(q, rules)
	return v.decision(d, b, r)
}

// verdict is what a set of policies says to one request.
type verdict struct {
	permits, forbids, failures []*rule
	errors                     map[*rule]string
}

// evaluate asks Cedar and keeps every answer: its own decision leaves out a forbid that fails, and its reasons come in the
// order of a map.
func (b *Bundle) evaluate(q types.Request, rules []*rule) (v verdict) {
	_, diag := cedar.Authorize(ruleSet(rules), b.entities, q)
	for _, e := range diag.Errors {
		v.fail(b.named[string(e.PolicyID)], e.Message)
	}
	for _, e := range diag.Reasons {
		v.decides(b.named[string(e.PolicyID)])
	}
	return v
}

// ruleSet makes policies a set that Cedar evaluates.
type ruleSet []*rule

// All implements [cedar.PolicyIterator].
func (s ruleSet) All() iter.Seq2[types.PolicyID, *cedar.Policy] {
	return func(yield func(types.PolicyID, *cedar.Policy) bool) {
		for _, r := range s {
			if !yield(types.PolicyID(r.name), r.policy) {
				return
			}
		}
	}
}

func (v *verdict) decides(r *rule) {
	if r.permits {
		v.permits = append(v.permits, r)
	} else {
		v.forbids = append(v.forbids, r)
	}
}

func (v *verdict) fail(r *rule, why string) {
	if v.errors == nil {
		v.errors = map[*rule]string{}
	}
	v.failures, v.errors[r] = append(v.failures, r), why
}

// decision is the answer: what cannot be evaluated denies, a forbid wins, and nothing is permitted by silence.
func (v *verdict) decision(d Decision, b *Bundle, r *Request) (Decision, error) {
	switch {
	case len(v.failures) > 0:
		var out []string
		for _, f := range sorted(v.failures) {
			out = append(out, fmt.Sprintf("%s cannot be evaluated: %s", f, v.errors[f]))
		}
		d.Forbid = true
		return d, fmt.Errorf("%s", strings.Join(out, "; "))
	case len(v.forbids) > 0:
		d.Forbid, d.Reason = true, "forbidden by "+names(v.forbids)
	case len(v.permits) > 0:
		d.Permit, d.Reason = true, "permitted by "+names(v.permits)
	default:
		d.Reason = fmt.Sprintf("no policy permits %s to call %s", r.Agent, r.Action)
		if r.AnyInput {
			d.Reason += ", whatever the input"
		}
	}
	return d, nil
}

// names lists policies in the order of their names.
func names(rules []*rule) string {
	var out []string
	for _, r := range sorted(rules) {
		out = append(out, r.String())
	}
	return strings.Join(out, ", ")
}

func sorted(rules []*rule) []*rule {
	return slices.SortedFunc(slices.Values(rules), func(a, b *rule) int { return cmp.Compare(a.name, b.name) })
}

func readOf(rules []*rule) (all reads) {
	for _, r := range rules {
		all |= r.reads
	}
	return all
}

// request translates who, what and on what.
func (b *Bundle) request(r *Request) types.Request {
	a := b.actions[r.Action]
	resource := entity(typeTool, cmp.Or(r.Tool, a.Tool, r.Action))
	if r.Tool == "" && a.Source != "" {
		resource = entity(typeSource, a.Source)
	}
	return types.Request{Principal: entity(typeAgent, r.Agent), Action: entity(typeAction, r.Action), Resource: resource}
}

// context translates the parts of the context that somebody reads: the rest costs nothing.
func (b *Bundle) context(r *Request, read reads) types.Record {
	m := make(types.RecordMap, len(contextParts))
	wants := func(part reads) bool { return read&(part|readsWhole) != 0 }
	if wants(readsInput) {
		input, ok := toCedar(r.Input, b.shapes[r.Action], 0)
		if !ok { // no input at all
			input = types.NewRecord(nil)
		}
		m["input"] = input
	}
	if wants(readsRisk) {
		m["risk"] = types.NewRecord(types.RecordMap{"declared": types.Long(r.Declared), "effective": upward(r.Effective)})
	}
	if wants(readsTrust) {
		m["trust"] = downward(r.Trust)
	}
	if wants(readsEffect) {
		m["effect"] = types.String(r.Effect.String())
	}
	if wants(readsVersion) {
		text(m, "version", r.Version)
	}
	if wants(readsLeft) {
		m["left"] = left(r.Left)
	}
	if wants(readsProvenance) {
		p := types.RecordMap{}
		text(p, "goal", r.Provenance.Goal)
		text(p, "decision", r.Provenance.Decision)
		text(p, "planStep", r.Provenance.PlanStep)
		text(p, "reason", r.Provenance.Reason)
		m["provenance"] = types.NewRecord(p)
	}
	if wants(readsTenant) {
		text(m, "tenant", r.Tenant)
	}
	if wants(readsNow) && r.Now != 0 {
		m["now"] = types.NewDatetimeFromMillis(r.Now / 1000)
	}
	return types.NewRecord(m)
}

// text sets an attribute that is absent where nothing is known.
func text(m types.RecordMap, name types.String, s string) {
	if s != "" {
		m[name] = types.String(s)
	}
}

// left translates what is left of a budget: durations in milliseconds, money in micro-units, axes without a limit absent.
func left(l action.Limit) types.Record {
	m := types.RecordMap{}
	for a, name := range map[action.Axis]types.String{
		action.Tokens: "tokens", action.Duration: "duration", action.Calls: "calls", action.Bytes: "bytes", action.Money: "money",
	} {
		n, ok := l.On(a).Get()
		if a == action.Duration {
			n /= 1_000_000
		}
		if ok {
			m[name] = types.Long(n)
		}
	}
	text(m, "currency", l.Currency)
	return types.NewRecord(m)
}

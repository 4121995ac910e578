package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// The writers below know these many fields of each struct. Where one has grown encoding/json writes it, correctly and
// slowly, and a test says so.
var eventsKnown, outcomesKnown = knows(Event{}, 57, Flow{}, 7, Row{}, 4, RiskShown{}, 10, PolicyShown{}, 2, Observed{}, 9, Change{}, 9, Claim{}, 3),
	knows(action.Outcome{}, 12)

func knows(structs ...any) bool {
	structs = append(structs, action.Cost{}, 6, action.Failure{}, 7, action.Provenance{}, 4)
	for i := 0; i < len(structs); i += 2 {
		if reflect.TypeOf(structs[i]).NumField() != structs[i+1] {
			return false
		}
	}
	return true
}

// AppendEvent appends the text that [Encode] returns to dst and returns the extended slice; on an error, which is one of
// Encode's, dst as it was. It allocates nothing where dst has room and the event holds no maps.
func AppendEvent(dst []byte, e *Event) ([]byte, error) { return appendTo(text{b: dst}, e) }

// AppendKnown is AppendEvent for a caller who has a part of the work behind it: who vouches that Input, Output and State are
// JSON without white space, as the strict edge and encoding/json leave it, and who may have the text of Risk, see
// [AppendRisk]; "" is not.
func AppendKnown(dst []byte, e *Event, risk string) ([]byte, error) {
	return appendTo(text{b: dst, vouched: true, shown: risk}, e)
}

// AppendRisk appends the text of r as it stands in an event to dst and returns the extended slice. False where
// encoding/json must write it.
func AppendRisk(dst []byte, r *RiskShown) ([]byte, bool) {
	w := text{b: dst}
	w.riskOf(r)
	return w.b, !w.odd && eventsKnown
}

func appendTo(w text, e *Event) ([]byte, error) {
	dst := w.b
	v := e.V
	if v == 0 {
		v = Version
	}
	if v == Version && e.Type.Valid() && eventsKnown {
		w.b = append(w.b, '{')
		w.event(e)
		if !w.odd {
			return append(w.b, '}'), nil
		}
	}
	s, err := encodeSlow(*e)
	if err != nil {
		return dst, err
	}
	return append(dst[:len(dst):cap(dst)], s...), nil
}

// event writes the members of an event, in groups of which a [Form] keeps those that are always the same.
func (w *text) event(e *Event) {
	w.head(e.Type)
	w.int("at", e.At)
	w.whose(e)
	w.str("intent", e.Intent)
	w.str("call", e.Call)
	w.what(e)
	w.str("digest", e.Digest)
	w.str("within", e.Within)
	w.fence(e)
	w.str("owner", e.Owner)
	w.holds(e)
	w.raw("input", e.Input)
	w.raw("output", e.Output)
	w.provenance(&e.Provenance)
	w.raw("state", e.State)
	w.str("value", e.Value)
	w.tells(e)
}

func (w *text) head(t Type) {
	w.b = append(w.b, `"v":1`...)
	w.must("type", string(t))
}

func (w *text) whose(e *Event) {
	w.str("agent", e.Agent)
	w.str("task", e.Task)
}

func (w *text) what(e *Event) {
	w.str("action", e.Action)
	w.str("version", e.Version)
	w.str("tool", e.Tool)
	w.str("repeats", e.Repeats)
}

func (w *text) fence(e *Event) {
	w.str("child", e.Child)
	w.str("tenant", e.Tenant)
	w.num("fence", e.Fence)
}

func (w *text) holds(e *Event) {
	w.num("attempt", int64(e.Attempt))
	w.str("code", string(e.Code))
	w.failure("failure", e.Failure)
	w.cost("reserved", &e.Reserved)
	w.cost("charged", &e.Charged)
	w.yes("overrun", e.Overrun)
	w.limit("priced", &e.Priced)
	w.list("facts", e.Facts)
	w.bulk(e.Bulk)
	w.claims(e.Claimed)
	w.yes("returned", e.Returned)
	w.list("pools", e.Pools)
	w.list("limits", e.Limits)
	w.yes("cascade", e.Cascade)
	w.row(e.Row)
	w.str("approval", e.Approval)
	w.str("approval_from", e.ApprovalFrom)
	w.str("approval_state", e.ApprovalState)
	w.str("escalation", e.Escalation)
	w.str("identity", e.Identity)
	w.str("reason", e.Reason)
	w.num("expires", e.Expires)
	w.risk(e.Risk)
	w.policy(e.Policy)
	w.waived(e.Waived)
}

func (w *text) tells(e *Event) {
	if e.Learned != nil {
		w.name("learned")
		w.observed(e.Learned)
	}
	w.num("from_seq", e.FromSeq)
	w.num("to_seq", e.ToSeq)
	w.outcomes(e.Outcomes)
	w.changes(e.Changes)
	w.str("sealed", e.Sealed)
	w.str("text", e.Text)
	w.str("verdict", string(e.Verdict))
	if e.Flow != nil {
		w.flow(e.Flow)
	}
	w.yes("wakes", e.Wakes)
}

func (w *text) flow(f *Flow) {
	w.name("flow")
	w.b = append(w.b, '{')
	w.str("phase", f.Phase)
	w.str("step", f.Step)
	w.str("kind", f.Kind)
	w.num("iteration", int64(f.Iteration))
	vouched := w.vouched
	w.vouched = false // nobody does for these
	w.raw("event", f.Event)
	w.raw("spec", f.Spec)
	w.vouched = vouched
	w.texts("sealed", f.Sealed)
	w.b = append(w.b, '}')
}

func (w *text) texts(name string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	w.name(name)
	w.b = append(w.b, '{')
	for i, k := range slices.Sorted(maps.Keys(m)) {
		w.odd = w.odd || !utf8.ValidString(k) // two names may become one
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.quote(k)
		w.b = append(w.b, ':')
		w.quote(m[k])
	}
	w.b = append(w.b, '}')
}

func (w *text) bulk(m map[string][]string) {
	if len(m) == 0 {
		return
	}
	w.name("bulk")
	w.b = append(w.b, '{')
	for i, k := range slices.Sorted(maps.Keys(m)) {
		w.odd = w.odd || !utf8.ValidString(k) || m[k] == nil // two names may become one
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.quote(k)
		w.b = append(w.b, ':')
		w.strings(m[k])
	}
	w.b = append(w.b, '}')
}

func (w *text) claims(cs []Claim) {
	if len(cs) == 0 {
		return
	}
	w.name("claimed")
	w.b = append(w.b, '[')
	for i := range cs {
		w.next(i)
		w.must("key", cs[i].Key)
		w.str("from", cs[i].From)
		w.must("to", cs[i].To)
		w.b = append(w.b, '}')
	}
	w.b = append(w.b, ']')
}

// next begins the i-th object of a list.
func (w *text) next(i int) {
	if i > 0 {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, '{')
}

func (w *text) limit(name string, l *action.Limit) {
	if *l == (action.Limit{}) {
		return
	}
	w.name(name)
	w.b = append(w.b, '{')
	for a := range action.AxisCount {
		if n, ok := l.On(a).Get(); ok {
			w.int(a.String(), n)
		}
	}
	w.str("currency", l.Currency)
	w.b = append(w.b, '}')
}

func (w *text) row(r *Row) {
	if r == nil {
		return
	}
	w.name("row")
	w.b = append(w.b, '{')
	w.num("failed", int64(r.Failed))
	w.num("denied", int64(r.Denied))
	w.num("risky", int64(r.Risky))
	w.num("asked", int64(r.Asked))
	w.b = append(w.b, '}')
}

func (w *text) risk(r *RiskShown) {
	if r == nil {
		return
	}
	w.name("risk")
	if w.shown != "" {
		w.b = append(w.b, w.shown...)
		return
	}
	w.riskOf(r)
}

func (w *text) riskOf(r *RiskShown) {
	w.b = append(w.b, '{')
	w.int("declared", int64(r.Declared))
	w.float("score", r.Score)
	w.real("floor", r.Floor)
	w.float("effective", r.Effective)
	w.float("p", r.P)
	w.real("lo", r.Lo)
	w.real("hi", r.Hi)
	w.int("n", r.N)
	w.str("rule", r.Rule)
	w.str("estimate", r.Estimate)
	w.b = append(w.b, '}')
}

func (w *text) policy(p *PolicyShown) {
	if p == nil {
		return
	}
	w.name("policy")
	w.b = append(w.b, '{')
	w.str("version", p.Version)
	w.str("reason", p.Reason)
	w.b = append(w.b, '}')
}

func (w *text) provenance(p *action.Provenance) {
	if p.IsZero() {
		return
	}
	w.name("provenance")
	w.b = append(w.b, '{')
	w.str("goal", p.Goal)
	w.str("decision", p.Decision)
	w.str("plan_step", p.PlanStep)
	w.str("reason", p.Reason)
	w.b = append(w.b, '}')
}

func (w *text) observed(o *Observed) {
	w.b = append(w.b, '{')
	w.num("seq", o.Seq)
	w.must("action", o.Action)
	w.num("declared", int64(o.Declared))
	w.list("tags", o.Tags)
	w.yes("err", o.Err)
	w.yes("violation", o.Violation)
	w.cost("cost", &o.Cost)
	w.num("at", o.At)
	w.yes("untimed", o.Untimed)
	w.b = append(w.b, '}')
}

func (w *text) outcomes(os []Observed) {
	if len(os) == 0 {
		return
	}
	w.name("outcomes")
	w.b = append(w.b, '[')
	for i := range os {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.observed(&os[i])
	}
	w.b = append(w.b, ']')
}

func (w *text) changes(cs []Change) {
	if len(cs) == 0 {
		return
	}
	w.name("changes")
	w.b = append(w.b, '[')
	for i := range cs {
		c := &cs[i]
		w.next(i)
		w.must("belief", c.Belief)
		w.real("was", c.Was)
		w.real("now", c.Now)
		w.num("level", int64(c.Level))
		w.real("p", c.P)
		w.real("lo", c.Lo)
		w.real("hi", c.Hi)
		w.num("n", c.N)
		w.str("reason", c.Reason)
		w.b = append(w.b, '}')
	}
	w.b = append(w.b, ']')
}

// AppendObserved appends an outcome that beliefs learn from, as JSON, to dst and returns the extended slice. Bytes that
// are not UTF-8 are written as U+FFFD.
func AppendObserved(dst []byte, o *Observed) []byte {
	if eventsKnown {
		w := text{b: dst}
		w.observed(o)
		return w.b
	}
	return appendSlow(dst, o)
}

// AppendOutcome appends an outcome as it is recorded, JSON without HTML escaping, to dst and returns the extended slice.
// Bytes that are not UTF-8, which a tool's words may hold, are written as U+FFFD, so that the outcome that is read back
// once is what its event holds. The output must be JSON.
func AppendOutcome(dst []byte, o *action.Outcome) []byte {
	if outcomesKnown {
		w := text{b: append(dst, '{')}
		w.must("intent", o.Intent)
		w.must("action", o.Action)
		w.must("code", string(o.Code))
		w.raw("output", o.Output)
		w.cost("cost", &o.Cost)
		w.yes("overrun", o.Overrun)
		w.num("attempts", int64(o.Attempts))
		w.failure("failure", o.Failure)
		w.waived(o.Waived)
		w.str("sealed", o.Sealed)
		if !w.odd {
			return append(w.b, '}')
		}
	}
	return appendSlow(dst, o)
}

// appendSlow is for what encoding/json must write: read once and written again, bytes that were not UTF-8 are U+FFFD.
func appendSlow[T any](dst []byte, from *T) []byte {
	v := new(T) // apart, so that what is written in the usual way need not be moved to the heap
	*v = *from
	s, err := writeAny(v)
	if err == nil && strings.Contains(s, `\ufffd`) {
		var clean T
		if json.Unmarshal([]byte(s), &clean) == nil {
			s, err = writeAny(&clean)
		}
	}
	if err != nil {
		return fmt.Appendf(dst, `{"error":%q}`, err) // not reached: plain fields, and JSON that was checked
	}
	return append(dst, s...)
}

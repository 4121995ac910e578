package engine

import "github.com/seed-ab2cfece/delta-agents/action"

// Preview passes a call through the gates as Decide does, writes nothing, and appends the event that a Decide would have
// had written first to dst: a begin, a request for an approval, or a refusal, also one that would only be counted. Calls made
// before under the same id are not looked at. It allocates nothing where the call would begin, needs no fact and dst has room.
func Preview(rules *Rules, agent *Agent, view *View, call *Call, dst []byte) ([]byte, *action.Failure) {
	r := newRound(rules, agent, view, call)
	defer r.done()
	f := r.pass()
	g := r.preview()
	switch {
	case f == nil:
		r.begun(g)
	case r.ask != nil:
		g.event = r.requested()
	default:
		g.event = r.refused(f, false)
		r.tally(&g.event)
	}
	if f != nil {
		return appendEvent(dst, &g.event), f
	}
	return appendShown(dst, &g.event, r.riskText(&g.event)), nil
}

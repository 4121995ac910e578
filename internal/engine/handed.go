package engine

import (
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
)

// maxHanded bounds how many calls of each kind a child is told of: its configuration carries them, and every worker reads it.
const maxHanded = 256

// handOn is what a task tells a child of its own calls, as of when the child is asked for: those that a person rejected, and
// those of unknown outcome. A child is a task of its own, with another digest for the same call; without being told it would
// ask the same person again, and repeat what may have happened. Calls are named by unknownKeys, whatever their version.
func (v *View) handOn(b *Bound) *action.Failure {
	v.Known(b)
	for _, list := range []*[]string{&b.Unsure, &b.Rejected} {
		slices.Sort(*list)
		if *list = slices.Compact(*list); len(*list) > maxHanded {
			return beyond("it would have to be told of %d calls that were rejected, or whose outcome is unknown, at most %d are; resolve them, or start another task", len(*list), maxHanded)
		}
	}
	return nil
}

// Known adds to a bound the calls of the task that a person rejected, and those of unknown outcome: for a child of it, and for
// one that takes its place.
func (v *View) Known(b *Bound) {
	for k, t := range v.Snap.Task.Tokens {
		if id, ok := strings.CutPrefix(k, tokenUnknown); ok && id != "" && t.State == unresolved {
			for _, key := range strings.Split(t.Val, "\n") {
				if strings.HasPrefix(key, countUnknown) {
					b.Unsure = append(b.Unsure, key)
				}
			}
		}
		if !strings.HasPrefix(k, tokenAsk) {
			continue
		}
		if state, q, err := readAsk(t); err == nil && state == approval.Rejected {
			b.Rejected = append(b.Rejected, unknownKeys(q.Action, string(q.Input), q.Value)...)
		}
	}
}

// handedDown reports a call that an ancestor of the task must not make again.
func (r *round) handedDown(of func(*Bound) []string) (agent string, is bool) {
	bounds := r.view.Task.Bounds
	if len(bounds) == 0 {
		return "", false
	}
	keys := unknownKeys(r.act.Name, r.call.shown().Text(), r.call.Intent.Value)
	for i := range bounds {
		if slices.ContainsFunc(of(&bounds[i]), func(have string) bool { return slices.Contains(keys, have) }) {
			return bounds[i].Agent, true
		}
	}
	return "", false
}

// unsureAbove refuses a call of which an ancestor did not know, when it delegated, whether it took effect.
func (r *round) unsureAbove() *action.Failure {
	agent, is := r.handedDown(func(b *Bound) []string { return b.Unsure })
	if !is {
		return nil
	}
	f := action.Fail(action.NotLegal, "it is not known whether an earlier call of %q with this input took effect; a person must resolve it", r.act.Name)
	return f.With(action.DetailReason, "agent "+agent+", for which it works, made it; once it is resolved, delegate again")
}

// rejectedAbove refuses a call that a person had rejected in an ancestor when it delegated.
func (r *round) rejectedAbove() *action.Failure {
	agent, is := r.handedDown(func(b *Bound) []string { return b.Rejected })
	if !is {
		return nil
	}
	f := action.Fail(action.ApprovalRejected, "a person rejected this call; do not ask again")
	return f.With(action.DetailReason, "it was proposed by agent "+agent+", for which it works")
}

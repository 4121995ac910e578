package engine

import (
	"bytes"
	"encoding/json"
	"maps"
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
	if err := v.Known(b); err != nil {
		return action.Fail(action.StoreUnavailable, "what is known of the children of this task cannot be read").Because(err)
	}
	for _, list := range []*[]string{&b.Unsure, &b.Rejected} {
		if *list = bounded(*list); len(*list) > maxHanded {
			return beyond("it would have to be told of calls of %d actions that were rejected, or whose outcome is unknown, at most %d are; resolve them, or start another task", len(*list), maxHanded)
		}
	}
	return nil
}

// Known adds to a bound the calls of the task that a person rejected, and those of unknown outcome, and what its children that have
// ended told of theirs: for a child of it, and for one that takes its place.
func (v *View) Known(b *Bound) error {
	all, err := v.Children()
	if err != nil {
		return err
	}
	for i := range all {
		b.Rejected, b.Unsure = append(b.Rejected, all[i].Rejected...), append(b.Unsure, all[i].Unsure...)
	}
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
	return nil
}

// handUp is what a task that has ended tells its parent of its own calls, and of those that its children told it of: the parent and
// the children after this one must neither ask the same person again nor repeat what may have happened. It is as of when the parent
// is told; where calls of unknown outcome are resolved later, it is told again.
func (v *View) handUp() (rejected, unsure []string, err error) {
	var b Bound
	err = v.Known(&b)
	return bounded(b.Rejected), bounded(b.Unsure), err
}

// bounded sorts keys and leaves each there once. Of more than are handed on it is said of which actions they are: none of their calls
// is made then, whatever its input.
func bounded(keys []string) []string {
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) <= maxHanded {
		return keys
	}
	for i, key := range keys {
		keys[i] = anyInput(actionOf(key))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// named are the keys under which the round's call may have been handed on.
func (r *round) named() []string {
	return append(unknownKeys(r.act.Name, r.call.shown().Text(), r.call.Intent.Value), anyInput(r.act.Name))
}

// anyInput is the key of calls of an action with any input.
func anyInput(name string) string { return countUnknown + name + "/*" }

// actionOf is the action of a key. Names may hold slashes, but no equals sign.
func actionOf(key string) string {
	key = strings.TrimPrefix(key, countUnknown)
	if name, _, of := strings.Cut(key, "/="); of {
		return name
	}
	return key[:max(0, strings.LastIndexByte(key, '/'))]
}

// unsureBelow counts the calls of unknown outcome in a child that has ended as if they were the task's own.
func (c *changes) unsureBelow(before, after json.RawMessage) {
	was, is := unsureIn(before), unsureIn(after)
	if len(was)+len(is) == 0 {
		return
	}
	by := map[string]int64{} // one clause for each counter
	for _, key := range was {
		by[key]--
		by[countUnsure+actionOf(key)]--
	}
	for _, key := range is {
		by[key]++
		by[countUnsure+actionOf(key)]++
	}
	for _, key := range slices.Sorted(maps.Keys(by)) {
		if by[key] != 0 {
			c.count(key, by[key])
		}
	}
}

// unsureIn reads the calls of unknown outcome from what a parent knows of a child.
func unsureIn(state json.RawMessage) []string {
	if !bytes.Contains(state, []byte(`"unsure"`)) {
		return nil
	}
	var c Child
	if json.Unmarshal(state, &c) != nil { // events are made by this package
		return nil
	}
	return c.Unsure
}

// unsureOf names the child of which a call of unknown outcome is known, "" where there is none.
func (v *View) unsureOf(key string) string {
	all, err := v.Children()
	if err != nil {
		return ""
	}
	for i := range all {
		if slices.Contains(all[i].Unsure, key) {
			return all[i].Name
		}
	}
	return ""
}

// rejectedBelow refuses a call that a person had rejected in a child that has ended.
func (r *round) rejectedBelow() *action.Failure {
	all, err := r.view.Children()
	if err != nil {
		return action.Fail(action.StoreUnavailable, "what is known of the children of this task cannot be read").Because(err)
	}
	if len(all) == 0 {
		return nil
	}
	keys := r.named()
	for i := range all {
		if slices.ContainsFunc(all[i].Rejected, func(have string) bool { return slices.Contains(keys, have) }) {
			f := action.Fail(action.ApprovalRejected, "a person rejected this call; do not ask again")
			return f.With(action.DetailReason, "it was proposed by the child "+all[i].Name)
		}
	}
	return nil
}

// handedDown reports a call that an ancestor of the task must not make again.
func (r *round) handedDown(of func(*Bound) []string) (agent string, is bool) {
	bounds := r.view.Task.Bounds
	if len(bounds) == 0 {
		return "", false
	}
	keys := r.named()
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

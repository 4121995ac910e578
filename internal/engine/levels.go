package engine

import (
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// levels knows which level cells a fold has to look at. Actions that never ran differ in what was declared only: those of
// one declaration have one score, and as long as that stays where no cell of theirs has to move, none of them is looked at.
type levels struct {
	agent *Agent
	ran   map[string]*levelled // actions of which something is known
	kinds []*kind
	of    map[string]*kind // the kinds by what was declared
}

// levelled is an action that ran, and the bounds its score may not leave without its cell being written.
type levelled struct {
	declared risk.Declaration
	bounds
}

// kind is all actions of one declared level and list of tags that never ran, by name.
type kind struct {
	declared risk.Declaration // of any of them
	members  []string
	bounds
}

// bounds are those of a score: from low, and less than high.
type bounds struct{ low, high float64 }

func (b bounds) holds(score float64) bool { return !(score < b.low || score >= b.high) }

// boundsOf returns how far the score of an action that did not run may go: it has left the step it was in by no more than
// the step below. A rise shows at once, and what its relatives take off or add by and by does not disturb every decision.
// The score of an action without a cell was that of its declaration.
func boundsOf(rules *Rules, d risk.Declaration, was string) bounds {
	old, err := strconv.ParseFloat(was, 64)
	if err != nil {
		old = math.Floor(learned(rules, risk.Belief{}, d)*levelSteps) / levelSteps
	}
	return bounds{old - 1./levelSteps, old + 1./levelSteps}
}

func kindOf(d risk.Declaration) string {
	return strconv.Itoa(d.Risk) + "\n" + strings.Join(d.Tags, "\n")
}

// newLevels looks at all cells of an agent once.
func newLevels(rules *Rules, agent *Agent, sp *txn.Space, b risk.Belief) *levels {
	l := &levels{agent: agent, ran: map[string]*levelled{}, of: map[string]*kind{}}
	for _, name := range slices.Sorted(maps.Keys(agent.Actions)) {
		d := agent.Actions[name].Declaration()
		if b.Knows(name) {
			l.ran[name] = &levelled{d, boundsOf(rules, d, sp.Cells[cellLevel+name].Val)}
			continue
		}
		k := l.of[kindOf(d)]
		if k == nil {
			k = &kind{declared: d}
			l.of[kindOf(d)], l.kinds = k, append(l.kinds, k)
		}
		k.members = append(k.members, name)
	}
	for _, k := range l.kinds {
		k.bound(rules, sp)
	}
	return l
}

// bound finds the bounds within which no cell of the kind has to move.
func (k *kind) bound(rules *Rules, sp *txn.Space) {
	none := boundsOf(rules, k.declared, "")
	k.bounds = bounds{math.Inf(-1), math.Inf(1)}
	for _, name := range k.members {
		b := none
		if c, has := sp.Cells[cellLevel+name]; has {
			b = boundsOf(rules, k.declared, c.Val)
		}
		k.low, k.high = max(k.low, b.low), min(k.high, b.high)
	}
}

// ranNow takes an action out of its kind.
func (l *levels) ranNow(name string) {
	a := l.agent.Actions[name]
	if a == nil || l.ran[name] != nil {
		return
	}
	d := a.Declaration()
	l.ran[name] = &levelled{declared: d}
	if k := l.of[kindOf(d)]; k != nil {
		if i := sort.SearchStrings(k.members, name); i < len(k.members) && k.members[i] == name {
			k.members = slices.Delete(k.members, i, i+1)
		}
	}
}

// moved returns the cells that a fold has to write, by action: those of the actions whose outcomes it folds, where the
// level is another one, and those of others that share so much with them that their score drifted away.
func (l *levels) moved(rules *Rules, sp *txn.Space, b risk.Belief, done map[string]risk.Declaration) map[string]string {
	out := map[string]string{}
	for name, d := range done {
		if level := levelText(learned(rules, b, d)); level != sp.Cells[cellLevel+name].Val {
			out[name] = level
		}
	}
	for name, a := range l.ran {
		if _, is := done[name]; is {
			continue
		}
		if score := learned(rules, b, a.declared); !a.holds(score) {
			l.drifted(out, sp, name, score)
		}
	}
	for _, k := range l.kinds {
		i := slices.IndexFunc(k.members, func(name string) bool { return !b.Knows(name) }) // those that ran now are known
		if i < 0 {
			continue
		}
		k.declared.Name = k.members[i]
		score := learned(rules, b, k.declared)
		if k.holds(score) {
			continue
		}
		n := len(out)
		for _, name := range k.members {
			if _, is := done[name]; !is && !boundsOf(rules, k.declared, sp.Cells[cellLevel+name].Val).holds(score) {
				l.drifted(out, sp, name, score)
			}
		}
		if len(out) == n { // who bounded the kind has run since
			k.bound(rules, sp)
		}
	}
	return out
}

func (l *levels) drifted(out map[string]string, sp *txn.Space, name string, score float64) {
	if level := levelText(score); level != sp.Cells[cellLevel+name].Val {
		out[name] = level
	}
}

// follow takes over what an accepted fold wrote; sp holds it.
func (l *levels) follow(rules *Rules, sp *txn.Space, outcomes []ledger.Observed, wrote map[string]string) {
	touched := map[*kind]bool{}
	for _, o := range outcomes {
		l.ranNow(o.Action)
		if a := l.ran[o.Action]; a != nil {
			a.bounds = boundsOf(rules, a.declared, sp.Cells[cellLevel+o.Action].Val)
		}
	}
	for name := range wrote {
		switch a, held := l.ran[name], l.agent.Actions[name]; {
		case a != nil:
			a.bounds = boundsOf(rules, a.declared, sp.Cells[cellLevel+name].Val)
		case held != nil:
			touched[l.of[kindOf(held.Declaration())]] = true
		}
	}
	for k := range touched {
		k.bound(rules, sp)
	}
}

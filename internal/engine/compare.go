package engine

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Difference is one place at which the state that a store holds is not the fold of its ledger.
type Difference struct {
	Place  string // what: "task cell budget", "agent belief"
	Stored string // as the store has it, "" for not at all
	Folded string // as it follows from the ledger
}

// CompareTask returns where the state of a task is not the fold of the task's ledger, in the order of places. What of the
// agent's state follows from one task's ledger alone is the task's share: it is not compared.
func CompareTask(folded txn.State, stored *txn.Snapshot) []Difference {
	cells := func(m map[string]txn.Cell) map[string]string {
		return texts(m, func(c txn.Cell) string { return c.Val })
	}
	counters := func(m map[string]int64) map[string]string {
		return texts(m, func(n int64) string {
			if n == 0 {
				return ""
			}
			return strconv.FormatInt(n, 10)
		})
	}
	tokens := func(m map[string]txn.Token) map[string]string {
		return texts(m, func(t txn.Token) string {
			if !t.Live(stored.Now) {
				return ""
			}
			return fmt.Sprintf("%s %q since %d until %d", t.State, t.Val, t.At, t.Exp)
		})
	}
	f, s := &folded.Task, &stored.Task
	have := cells(s.Cells)
	delete(have, cellKey) // no copy of a ledger must give a key away
	d := differ("task cell ", cells(f.Cells), have)
	d = append(d, differ("task counter ", counters(f.Counters), counters(s.Counters))...)
	return append(d, differ("task token ", tokens(f.Tokens), tokens(s.Tokens))...)
}

// LastingRecords returns the names of the cold cells that a task of this state must still have, in order: the ids of calls, and
// what is under way, waits, or is of unknown outcome. What ended may have gone.
func LastingRecords(folded txn.State) (keys []string) {
	cells := folded.Record.Cells
	for key := range cells {
		intent, is := strings.CutPrefix(key, cellIntent)
		_, ended := cells[cellOutcome+intent]
		open := !ended || folded.Task.Tokens[tokenUnknown+intent].State == unresolved
		if strings.HasPrefix(key, cellCall) || is && open {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// EndedIn reports whether a task of this state is over: then the store may keep no more of it than its ledger.
func EndedIn(folded txn.State) bool {
	var s TaskState
	return json.Unmarshal([]byte(folded.Task.Cells[cellTask].Val), &s) == nil && s.Status.Ended()
}

// ReadRecords is a transaction that only reads cold cells of a task.
func ReadRecords(agent, task string, keys []string) *txn.Txn {
	t := &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain}
	for _, key := range keys {
		t.Add(txn.Clause{Op: txn.Read, Scope: txn.Record, Key: key})
	}
	return t
}

// CompareRecords returns which of the cold cells are not there, or do not say which call an id was used for. A call whose
// record is gone could be made again.
func CompareRecords(folded txn.State, keys []string, stored map[string]txn.Cell) []Difference {
	want, have := map[string]string{}, map[string]string{}
	for _, key := range keys {
		c, there := stored[key]
		if want[key] = folded.Record.Cells[key].Val; there {
			have[key] = c.Val
		}
		if there && strings.HasPrefix(key, cellIntent) { // held as it was begun, or as an attempt left it
			have[key] = want[key]
		}
	}
	return differ("task record ", want, have)
}

// CompareFlow returns where the instance of a workflow is not what its events in the task's ledger come to.
func CompareFlow(records []txn.Stored, stored *FlowKnown) ([]Difference, error) {
	s, sealed, is, err := foldFlow(records)
	if err != nil {
		return nil, err
	}
	folded, have := map[string]string{}, map[string]string{}
	if is {
		folded["workflow"] = string(jsonText(s))
		maps.Copy(folded, sealed)
	}
	if stored.Ver > 0 {
		have["workflow"] = string(jsonText(stored.State))
		maps.Copy(have, stored.Sealed)
	}
	return differ("task ", folded, have), nil
}

// texts writes values as text, and leaves out those that are as good as absent.
func texts[V any](m map[string]V, text func(V) string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		if t := text(v); t != "" {
			out[k] = t
		}
	}
	return out
}

// CompareBeliefs returns where what is known of an agent is not the fold of the agent's own ledger. Outcomes that are not
// folded yet are in neither.
func CompareBeliefs(rules *Rules, agent *Agent, records []txn.Stored, stored *txn.Snapshot) ([]Difference, error) {
	b, err := FoldBeliefs(rules, agent, records)
	if err != nil {
		return nil, err
	}
	return compareBelief(rules, b, stored), nil
}

// Compare returns where what is known of the agent is not what was folded up to here.
func (f *BeliefFold) Compare(stored *txn.Snapshot) []Difference {
	return compareBelief(f.own, f.belief, stored)
}

func compareBelief(rules *Rules, b risk.Belief, stored *txn.Snapshot) []Difference {
	folded, have := map[string]string{}, map[string]string{}
	prior := rules.Model.Prior()
	if shared := b.Shared(); stored.Agent.Cells[cellTrust].Val != "" || !bytes.Equal(shared, prior.Shared()) {
		folded[cellTrust] = hex.EncodeToString(shared)
	}
	for _, name := range b.Names() {
		if block, there := b.Action(name); there {
			folded[cellBelief+name] = hex.EncodeToString(block)
		}
	}
	for name, c := range stored.Agent.Cells {
		if c.Val != "" && (name == cellTrust || strings.HasPrefix(name, cellBelief)) {
			have[name] = hex.EncodeToString([]byte(c.Val))
		}
	}
	return differ("agent ", folded, have)
}

func differ(place string, folded, stored map[string]string) []Difference {
	names := slices.Collect(maps.Keys(folded))
	for name := range stored {
		if _, there := folded[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []Difference
	for _, name := range names {
		if folded[name] != stored[name] {
			out = append(out, Difference{place + name, stored[name], folded[name]})
		}
	}
	return out
}

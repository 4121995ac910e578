package engine

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

const (
	countRefused = "refused"  // Task: refusals that were recorded one by one
	cellRefusals = "refusals" // Task: since when they are counted, store time, and how many there were before
)

// refusalStretch is for how long refusals are counted together, µs.
const refusalStretch = int64(3600 * 1_000_000)

// restShare is the share of the refusals of a task that runs which one that is paused or over records: there is less to learn.
const restShare = 10

// stretch returns since when the refusals of the task are counted, and how many there were before and are now.
func (v *View) stretch() (since, before, now int64) {
	now = v.Snap.Task.Counters[countRefused]
	a, b, _ := strings.Cut(v.Snap.Task.Cells[cellRefusals].Val, " ")
	since, _ = strconv.ParseInt(a, 10, 64) // what cannot be read is as good as nothing: counting begins anew
	before, _ = strconv.ParseInt(b, 10, 64)
	return since, before, now
}

// tally is how a refusal stands among those of its task: it marks its event, or says that none is written.
func (r *round) tally(e *ledger.Event) (muted bool) {
	most := r.rules.Refusals
	if most <= 0 || r.view.taskVer == 0 {
		return false
	}
	if r.view.Task.Status != Running {
		most = max(1, most/restShare)
	}
	since, before, n := r.view.stretch()
	if since == 0 || r.call.Now >= since+refusalStretch {
		since, before = max(1, r.call.Now), n
	}
	e.FromSeq, e.ToSeq = before, since
	return n-before >= int64(most)
}

// mutable reports whether the refusal is one that nothing rests on: it ends no call and no request, and brings no task before
// a person.
func (r *round) mutable(f *action.Failure, ends bool) bool {
	brings := tolls(f.Code) && r.view.Task.Status == Running && r.rules.Asks(&r.view.Task)
	return !ends && len(r.closing) == 0 && !brings
}

// refusedOnce counts a refusal that was recorded.
func (c *changes) refusedOnce(e *ledger.Event) {
	if e.ToSeq == 0 {
		return
	}
	c.add(txn.Clause{Op: txn.Count, Scope: txn.Task, Key: countRefused, N: 1, Min: txn.NoMin, Max: txn.NoMax, Soft: true})
	c.put(txn.Task, cellRefusals, strconv.FormatInt(e.ToSeq, 10)+" "+strconv.FormatInt(e.FromSeq, 10))
}

// Muted are refusals that were not recorded one by one, by their codes.
type Muted struct {
	Codes      map[action.Code]int64 `json:"codes"`
	Violations int64                 `json:"violations,omitempty"` // of rules that the planner could have known
}

// Note counts one more, of a call that a function made where within is not "".
func (m *Muted) Note(code action.Code, within string) {
	if m.Codes == nil {
		m.Codes = map[action.Code]int64{}
	}
	m.Codes[code]++
	if within == "" && code.Info().Violation {
		m.Violations++
	}
}

// Sum is how many they are.
func (m *Muted) Sum() (n int64) {
	for _, k := range m.Codes {
		n += k
	}
	return n
}

// Clone returns a copy that shares nothing.
func (m *Muted) Clone() Muted { return Muted{maps.Clone(m.Codes), m.Violations} }

// CountMuted records how many refusals of a task were not recorded one by one.
func CountMuted(agent, task string, m *Muted, who Who) *txn.Txn {
	e := ledger.Event{V: ledger.Version, Type: ledger.RefusalsCounted, At: who.At, Agent: agent, Task: task, Owner: who.Owner, ToSeq: m.Sum(), State: jsonText(m)}
	t := &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain}
	write(t, &e, nil)
	return t
}

func (c *changes) muted(e *ledger.Event) {
	var m Muted
	if json.Unmarshal(e.State, &m) == nil && m.Violations > 0 {
		c.add(txn.Clause{Op: txn.Count, Scope: txn.Agent, Key: countBreach, N: m.Violations, Min: txn.NoMin, Max: txn.NoMax})
	}
}

package txn

import (
	"fmt"
	"strings"
)

// Scope says where a key lives. All scopes of one agent lie on one shard.
type Scope byte

// The scopes.
const (
	Task   Scope = 'T' // hot state of the task; Load returns it
	Record Scope = 'R' // cold cells of the task, one per call or intent; only read by name
	Agent  Scope = 'A' // state of the agent, shared by its tasks; Load returns it
)

// Op is what a clause asks for.
type Op byte

// The operations. N, Min and Max are microseconds where they are times.
const (
	Expect  Op = 'V' // cell Key has version N; 0 is absent
	Count   Op = 'C' // counter Key is ≥ Min and, after += N, ≤ Max (and ≥ NoMin in any case). Soft: no condition, and the sum stays within NoMin and NoMax
	Have    Op = 'H' // token Key is in state From ("": absent or expired); N>0: set at most N ago; N<0: expired or not
	Take    Op = 'K' // as Have, then state := To, stamp, expiry and value kept; To "" removes it. Soft: skipped where it does not match
	Time    Op = 'W' // Min ≤ store time ≤ Max
	Put     Op = 'P' // cell Key := Val, version+1. Soft, of scope Record: it is of the task, not of the intent, and goes with it
	Set     Op = 'S' // token Key := state To with value Val, stamped with store time; N>0: expires N from now
	Queue   Op = 'Q' // queue Key of the agent gets member Val, due N from now (replaces)
	Unqueue Op = 'U' // queue Key of the agent loses member Val
	Event   Op = 'E' // append Val to the ledger of the scope (Task or Agent); the store assigns sequence and time
	Pend    Op = 'O' // append Val to the agent's pending outcomes; the store assigns the sequence
	Trim    Op = 'D' // drop pending outcomes up to and including sequence N
	Link    Op = 'L' // record N of the scope's ledger gets chain link Val, where it has none
	Expire  Op = 'X' // Task: the task is over. Record: intent Key is kept though it ended (N<0), or no longer so (N=0). See memory.Store
	Read    Op = '?' // nothing; the value comes with the reply
	Show    Op = 'R' // view Key of the agent gets the fields of Val, a line each, name and value in turn: for people who look into the store, read by no decision, and left out by stores that nobody can look into
)

// NoMax and NoMin are bounds that always hold: amounts stay below 2^53 in magnitude.
const (
	NoMax = int64(1)<<53 - 1
	NoMin = -NoMax
)

// Clause is one condition, write or append. Which fields count is said at its Op.
type Clause struct {
	Op       Op
	Scope    Scope
	Key      string
	From, To string
	Val      string
	N        int64
	Min, Max int64
	Soft     bool
}

// writes reports whether the clause changes the value of its key.
func (c *Clause) writes() bool {
	switch c.Op {
	case Put, Set, Take:
		return true
	case Count:
		return c.N != 0
	}
	return false
}

// Phase is what a transaction does to the lease of its intent.
type Phase byte

// The phases.
const (
	Plain    Phase = 'N' // no lease. Repeatable only through its own conditions
	Park     Phase = 'K' // the intent waits for a person; no lease yet
	Begin    Phase = 'B' // takes the lease: fence 1 of a new or parked intent, fence+1 of an expired one
	Renew    Phase = 'L' // prolongs a lease that nobody took over; Step > 0 makes its clauses repeatable
	Settle   Phase = 'X' // ends the intent; needs the current (fence, owner)
	Refuse   Phase = 'Z' // ends an intent that never began
	Takeover Phase = 'Y' // ends an intent whose lease expired, under fence+1
)

// Txn is one transaction of one agent and task.
type Txn struct {
	Agent, Task string // Task may be "" where no clause is of scope Task or Record
	Phase       Phase
	Intent      string // a Plain transaction may name one too: Fresh brings its lease
	Fence       int64
	Owner       string // who applies it: two workers that propose the same fence are told apart
	Step        int64  // Renew only
	TTL         int64  // Begin, Renew: lease length, µs
	Clauses     []Clause
}

// Add appends clauses.
func (t *Txn) Add(cs ...Clause) { t.Clauses = append(t.Clauses, cs...) }

// Names reports which of the three name spaces the clause's key lies in: all of them for a Read, none where Key names a
// queue or nothing.
func (c *Clause) Names() (cells, counters, tokens bool) {
	k := kindOf(c.Op)
	all := c.Op == Read
	return all || k == 'v', all || k == 'c', all || k == 'k'
}

// Check reports a transaction that no store may accept: an unknown op, scope or phase, a missing name, two writes to one
// key, an append to a scope without a ledger, a clause of a task without a task, a phase without an intent, an amount
// beyond NoMax, a member put into the queue that the store keeps by itself.
func (t *Txn) Check() error {
	if t.Agent == "" {
		return fmt.Errorf("transaction without an agent")
	}
	if strings.Contains(t.Task, "\n") || strings.Contains(t.Intent, "\n") {
		return fmt.Errorf("task %q and intent %q: a line break separates them in the queue of leases", t.Task, t.Intent)
	}
	if err := t.checkPhase(); err != nil {
		return err
	}
	for i := range t.Clauses {
		c := &t.Clauses[i]
		if err := c.check(t.Task); err != nil {
			return fmt.Errorf("clause %d (%c %s): %w", i, c.Op, c.Key, err)
		}
	}
	if j, i := t.twice(); i > 0 {
		return fmt.Errorf("clauses %d and %d both write %c %s", j, i, t.Clauses[i].Scope, t.Clauses[i].Key)
	}
	return nil
}

func (t *Txn) checkPhase() error {
	switch t.Phase {
	case Plain:
		return nil
	case Park, Begin, Renew, Settle, Refuse, Takeover:
	default:
		return fmt.Errorf("unknown phase %q", rune(t.Phase))
	}
	if t.Intent == "" || t.Task == "" || t.Fence < 1 || t.Owner == "" {
		return fmt.Errorf("phase %c needs task, intent, fence and owner", t.Phase)
	}
	if (t.Phase == Begin || t.Phase == Renew) && (t.TTL < 1 || t.TTL > NoMax) {
		return fmt.Errorf("phase %c needs a lease length of at least 1 µs, not %d", t.Phase, t.TTL)
	}
	if t.Step < 0 || t.Step > 0 && t.Phase != Renew {
		return fmt.Errorf("phase %c with step %d", t.Phase, t.Step)
	}
	return nil
}

func (c *Clause) check(task string) error {
	needsScope, needsKey := true, true
	switch c.Op {
	case Expect, Count, Have, Take, Put, Set, Read:
	case Event, Link:
		needsKey = false
		if c.Scope == Record {
			return fmt.Errorf("needs scope Task or Agent")
		}
		if c.Op == Link && (c.N < 1 || c.Val == "") {
			return fmt.Errorf("needs the number of a record and a link")
		}
	case Expire:
		needsKey = c.Scope == Record
		if c.Scope == Agent {
			return fmt.Errorf("needs scope Task or Record: an agent does not expire")
		}
	case Queue, Unqueue:
		needsScope = false
		if c.Key == Leases {
			return fmt.Errorf("the store keeps this queue by itself")
		}
	case Show:
		needsScope = false
		if n := strings.Count(c.Val, "\n"); n%2 == 0 {
			return fmt.Errorf("needs names and values in turn, a line each")
		}
	case Time, Pend, Trim:
		needsScope, needsKey = false, false
	default:
		return fmt.Errorf("unknown op")
	}
	switch {
	case needsKey && c.Key == "":
		return fmt.Errorf("needs a key")
	case needsScope && c.Scope != Task && c.Scope != Record && c.Scope != Agent:
		return fmt.Errorf("unknown scope %q", rune(c.Scope))
	case (c.Scope == Task || c.Scope == Record) && task == "" && needsScope:
		return fmt.Errorf("needs a task")
	case !within(c.N) || !within(c.Min) || !within(c.Max):
		return fmt.Errorf("a number beyond %d in magnitude", NoMax)
	}
	return nil
}

func within(n int64) bool { return NoMin <= n && n <= NoMax }

// kindOf tells cells, counters and tokens apart: they are separate name spaces.
func kindOf(o Op) byte {
	switch o {
	case Expect, Put:
		return 'v'
	case Count:
		return 'c'
	case Have, Take, Set:
		return 'k'
	}
	return 0
}

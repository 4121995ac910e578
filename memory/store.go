package memory

import (
	"context"
	"errors"
	"time"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// ErrClosed is returned by every method of a closed store.
var ErrClosed = errors.New("store is closed")

// Store is the contract. All methods may be called from many goroutines. An error means that it is not known whether the
// call took effect: repeating an Apply is always safe, because a transaction that was accepted answers its repeat with
// Replay (leased phases) or is refused by its own conditions (Plain). Slices and maps that are returned belong to the
// caller; those passed in are not kept.
type Store interface {
	// Apply checks the transaction against the lease of its intent and against its conditions, and applies it as a
	// whole or not at all. A refusal is a reply, not an error. A malformed transaction (Txn.Check) is an error and
	// changes nothing.
	//
	//	phase     needs                                                       leaves
	//	Park      no lease, fence 1                                           Parked
	//	Begin     no lease or Parked, fence 1; or an expired lease, fence+1   Begun until now+TTL
	//	Renew     Begun, same fence and owner, expired or not; Step 0 or +1   Begun until now+TTL
	//	Settle    Begun, same fence and owner, expired or not                 Ended
	//	Refuse    no lease or Parked, fence 1                                 Ended
	//	Takeover  an expired Begun lease, fence+1                             Ended
	//
	// A Renew with Step 0 is a heartbeat: it moves the end of the lease and is never itself a repeat.
	//
	// An intent's keys are its lease and the cells of scope Record that transactions naming it put last, not Soft. They are kept
	// while it is parked or runs, and after it ended for a time that the store's configuration says, counted from the
	// last such transaction. From then on they may go at any time, as if the intent had never been. An Expire clause with
	// N<0 keeps them until another one with N=0. A task that an Expire clause said is over goes as a whole some time after
	// the last transaction of it, unless one of its intents runs or is kept so: Load returns it empty under a new
	// revision, what would write to it is refused as by a lease, and its ledger stays readable and can be linked.
	// Ledgers, agents, queues and notes do not expire.
	//
	// A repeat (same phase, fence, owner, and step where it counts) of the transaction that left the lease as it is gets
	// its first answer with Replay set; of a Begin only while that lease is live.
	Apply(ctx context.Context, t *txn.Txn) (txn.Reply, error)

	// Load returns the spaces Task and Agent and the pending outcomes; Record is empty, cold cells are read by name
	// with Read clauses. Where have is given, is of the same agent and task, has no Gap, and the revision of a space did
	// not change, the snapshot may share have's maps of that space. A task never written to is empty, not an error.
	Load(ctx context.Context, agent, task string, have *txn.Snapshot) (*txn.Snapshot, error)

	// Records returns up to limit records of the ledger of a task, or of the agent itself where task is "", from
	// sequence number from (1 is the first) on, in order and without holes. Of a ledger whose beginning was dropped, see
	// [Cutter], the first one left is where it begins.
	Records(ctx context.Context, agent, task string, from int64, limit int) ([]txn.Stored, error)

	// Queued returns up to limit members of an agent's queue in order of (due, member), after the given one (zero: from
	// the start); with dueOnly those due by the store's clock. txn.Leases is kept by the store itself.
	Queued(ctx context.Context, agent, queue string, after txn.Queued, dueOnly bool, limit int) ([]txn.Queued, error)

	// Remember appends a note to the agent's memory and stamps it with the store's time; a note without an agent is an
	// error. A store that bounds its notes returns an error when full and drops none.
	Remember(ctx context.Context, agent string, n Note) error

	// Recall returns up to limit of the notes with that very Tenant, "" too, most relevant to the query, best first; an empty
	// query returns the newest. How many notes others have changes neither which are found nor their order.
	Recall(ctx context.Context, agent, tenant, query string, limit int) ([]Note, error)

	// Close releases what the store holds. Later calls return ErrClosed.
	Close() error
}

// Note is something an agent's function chose to remember.
type Note struct {
	Tenant  string // for whom the task worked
	Task    string
	Intent  string
	Kind    string
	Content string
	At      time.Time // by the store's clock
}

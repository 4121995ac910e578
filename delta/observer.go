package delta

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// Observer is told what this engine wrote into the ledgers: each event as it is recorded, with keyed digests in place of
// values that a schema marks as secret, once the store has accepted it and never before. Observers observe: they cannot hold up a call, nor change what becomes of it.
//
// Each observer has a goroutine of its own and is called from that alone, one record at a time: of one task in the order
// of its ledger, of several tasks in no particular order among them. What other processes write on the same store it is not
// told; read that with [Engine.Follow]. What it does not see either are writes to which the store gave no answer, and what
// its queue had no room for: both come as gaps. A process that dies takes the queue with it.
//
// An observer that panics is told the next record all the same; one that hangs loses what its queue has no room for.
type Observer interface {
	// Observe is told of one record. The context ends after the time that [Watch] gives, and when the engine is closed and
	// has no more patience.
	Observe(ctx context.Context, r Record)
	// Missed is told what was left out, before the record that follows it, so that it can be read from the ledger.
	Missed(ctx context.Context, g Gap)
}

// ObserverFunc makes an Observer of a function. It is not told of gaps; [Engine.Observers] counts them.
type ObserverFunc func(ctx context.Context, r Record)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, r Record) { f(ctx, r) }

// Missed does nothing.
func (f ObserverFunc) Missed(context.Context, Gap) {}

// Record is one event and its place in a ledger.
type Record struct {
	ledger.Event
	// Seq is its number in the ledger of its task, or of its agent where Task is "", from 1 on; 0 where the store did not
	// say.
	Seq int64
	// Stored is the store's time, µs since 1970.
	Stored int64
}

// TaskID returns the full id of the task, "" for an event of the agent alone.
func (r Record) TaskID() string {
	if r.Task == "" {
		return ""
	}
	return r.Agent + idSeparator + r.Task
}

// Gap is what an observer was not told.
type Gap struct {
	Agent, Task string // whose ledger: of the agent itself where Task is "", of several where both are
	From, To    int64  // the first and last number; 0 where that is not known
	Events      int64  // how many there are at least; 0: perhaps none, a write got no answer
}

// Watch is an observer and what it is told.
type Watch struct {
	Observer Observer
	// Name stands in [Engine.Observers] and in the log; "" is "observer 1", "observer 2", …
	Name string
	// Filter says which records it is told of; the zero value is all.
	Filter Filter
	// Queue bounds the records that wait for it. Default 1024.
	Queue int
	// Patience is how long it is given for one record before its context ends. Default 10 s.
	Patience time.Duration
}

// Filter selects records. What is empty selects all; all that is not must fit.
type Filter struct {
	Types   []ledger.Type
	Agents  []string // names
	Tasks   []string // full ids, "agent~task"
	Actions []string // names; events of no action do not fit then
}

// Fits reports whether the filter selects the event.
func (f Filter) Fits(e *ledger.Event) bool {
	return among(f.Types, e.Type) && among(f.Agents, e.Agent) && among(f.Actions, e.Action) &&
		(len(f.Tasks) == 0 || e.Task != "" && slices.Contains(f.Tasks, e.Agent+idSeparator+e.Task))
}

func among[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// maybe is Fits by what can be told of an event's text at a glance; it never leaves out what fits.
func (f Filter) maybe(agent, task, text string) bool {
	if !among(f.Agents, agent) || len(f.Tasks) > 0 && !slices.Contains(f.Tasks, agent+idSeparator+task) {
		return false
	}
	if len(f.Types) == 0 {
		return true
	}
	_, rest, ok := strings.Cut(text, `"type":"`) // of the canonical form: nothing but the version is before it
	name, _, end := strings.Cut(rest, `"`)
	return !ok || !end || slices.Contains(f.Types, ledger.Type(name))
}

// ObserverStats is how an observer fares.
type ObserverStats struct {
	Name    string
	Told    int64         // records it was given
	Dropped int64         // records that its queue had no room for, or that were left when the engine closed
	Panics  int64         // times it panicked, or ended its goroutine
	Overdue int64         // records that it did not return from in time
	Waiting int           // records in its queue
	Busy    time.Duration // how long it has been at the present record, 0 where it waits
}

// Observers returns how the configured observers fare, in their order.
func (e *Engine) Observers() []ObserverStats {
	if e.watch == nil {
		return nil
	}
	out := make([]ObserverStats, len(e.watch.all))
	for i, w := range e.watch.all {
		out[i] = w.stats()
	}
	return out
}

// check reports what is wrong with the configured observers.
func checkWatches(all []Watch) (faults []error) {
	for i, w := range all {
		where := fmt.Sprintf("config Observers[%d]", i)
		if w.Observer == nil {
			faults = append(faults, fmt.Errorf("%s has no Observer", where))
		}
		if w.Queue < 0 || w.Patience < 0 {
			faults = append(faults, fmt.Errorf("%s: queue %d or patience %v is negative", where, w.Queue, w.Patience))
		}
		for _, t := range w.Filter.Types {
			if !t.Valid() {
				faults = append(faults, fmt.Errorf("%s: there is no event type %q; ledger.Types lists them", where, t))
			}
		}
	}
	return faults
}

// Follow reads the records of a ledger from sequence number from (1 is the first) on, whichever process wrote them, and
// goes on with what comes until ctx ends, at the pace of [Config.Poll]. The id is that of a task, "agent~task", or an
// agent's name for the agent's own ledger. The last pair has the error that ended it, of ctx too; a loop that is left just
// ends. Observers are told sooner, but only what their own engine wrote.
// Nothing is hidden: the records are what the store holds, secrets included. What was dropped of an agent's own ledger, see
// [Engine.PruneOwn], is passed over.
func (e *Engine) Follow(ctx context.Context, id string, from int64) iter.Seq2[Record, error] {
	agent, task, _ := strings.Cut(id, idSeparator)
	return func(yield func(Record, error) bool) {
		next := max(from, 1)
		for {
			last, full, err := e.follow(ctx, agent, task, next, yield)
			if err != nil {
				yield(Record{}, fmt.Errorf("follow %s: %w", id, err))
				return
			}
			if last < 0 {
				return
			}
			if next = last + 1; full {
				continue
			}
			if !e.pause(ctx, nil) {
				cause := context.Cause(ctx)
				if cause == nil {
					cause = ErrClosed
				}
				yield(Record{}, fmt.Errorf("follow %s: %w", id, cause))
				return
			}
		}
	}
}

// follow reads one page; last is the number of its last record, -1 where nobody wants more.
func (e *Engine) follow(ctx context.Context, agent, task string, from int64, yield func(Record, error) bool) (last int64, full bool, err error) {
	if err := alive(ctx); err != nil {
		return 0, false, err
	}
	if agent == "" {
		return 0, false, errors.New("no id; give a task's, or an agent's name")
	}
	page, err := e.store.Records(ctx, agent, task, from, recordPage)
	if err != nil {
		return 0, false, err
	}
	last = from - 1
	for _, s := range page {
		ev, err := ledger.Decode(s.Val)
		if err != nil {
			return 0, false, fmt.Errorf("record %d: %w", s.Seq, err)
		}
		if !yield(Record{Event: ev, Seq: s.Seq, Stored: s.At}, nil) {
			return -1, false, nil
		}
		last = s.Seq
	}
	return last, len(page) == recordPage, nil
}

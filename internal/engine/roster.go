package engine

import (
	"encoding/json"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// QueueWorkers holds, of each agent, the workers that work for it now, due when they are taken for gone unless they say so again.
// A member is a [Worker] as JSON. No decision rests on it: it tells people who could take something up.
const QueueWorkers = "workers"

// Worker is what a worker says of itself to those who look into the store.
type Worker struct {
	ID        string       `json:"id"`
	Actions   []string     `json:"actions"`             // that it can execute, in the order of their names
	Workflows []WorkerFlow `json:"workflows,omitempty"` // that it goes on with, in the order in which they were configured
}

// WorkerFlow is a workflow that a worker holds.
type WorkerFlow struct {
	Workflow string `json:"workflow"`
	Version  string `json:"version"`
	Digest   string `json:"digest"`
	// Secret are the places in its input that are secret, segment by segment: whoever starts an instance for the worker hides
	// them.
	Secret [][]string `json:"secret,omitempty"`
	// Latest says that nested instances of that name run by it.
	Latest bool `json:"latest,omitempty"`
}

// Text is the worker as the queue holds it.
func (w *Worker) Text() (string, error) {
	text, err := json.Marshal(w)
	return string(text), err
}

// ReadWorker reads a member of the queue.
func ReadWorker(text string) (w Worker, err error) {
	if err = json.Unmarshal([]byte(text), &w); err != nil {
		err = fmt.Errorf("a worker cannot be read: %w", err)
	}
	return w, err
}

// Announce says that a worker is there for a time, in µs, in the place of those that are gone.
func Announce(agent, worker string, ttl int64, gone []string) *txn.Txn {
	t := &txn.Txn{Agent: agent, Phase: txn.Plain}
	for _, member := range gone {
		if member != worker {
			t.Add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueWorkers, Val: member})
		}
	}
	if ttl > 0 {
		t.Add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueWorkers, Val: worker, N: ttl})
	}
	return t
}

package redisstore

import (
	"sync"

	"github.com/seed-ab2cfece/delta-agents/memory"
)

// witness remembers how far this process saw each space come. A server that answers with less, to a question asked after
// that was seen, has lost acknowledged writes: it was restored, or a replica took over that had not received them.
type witness struct {
	mu  sync.Mutex
	rev map[space]int64
}

// gone is the revision of a task that was over and has expired.
const gone = int64(1) << 52

// space is a task, or the agent itself where task is "".
type space struct{ agent, task string }

// witnessed bounds how many spaces are remembered; beyond it all are forgotten, and a loss before the next reply of a
// space goes unnoticed.
const witnessed = 1 << 16

// seen is what was known of a task and its agent when a question was asked.
type seen struct{ task, agent int64 }

func (w *witness) ask(agent, task string) seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := seen{agent: w.rev[space{agent, ""}]}
	if task != "" {
		s.task = w.rev[space{agent, task}]
	}
	return s
}

// told compares an answer with what was known when it was asked for. A loss is reported once: what is left counts from
// then on.
func (w *witness) told(agent, task string, before seen, taskRev, agentRev int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	lost := &memory.LostError{Agent: agent}
	if task != "" && taskRev < before.task {
		lost.Task, lost.Had, lost.Has = task, before.task, taskRev
		w.rev[space{agent, task}] = taskRev
	}
	if agentRev < before.agent {
		lost.Task, lost.Had, lost.Has = "", before.agent, agentRev
		w.rev[space{agent, ""}] = agentRev
	}
	if lost.Had > 0 {
		return lost
	}
	if len(w.rev) > witnessed {
		w.rev = nil
	}
	if w.rev == nil {
		w.rev = map[space]int64{}
	}
	w.raise(space{agent, ""}, agentRev)
	if task != "" {
		w.raise(space{agent, task}, taskRev)
	}
	return nil
}

func (w *witness) raise(s space, rev int64) {
	switch {
	case rev == gone:
		delete(w.rev, s)
	case rev > w.rev[s]:
		w.rev[s] = rev
	}
}

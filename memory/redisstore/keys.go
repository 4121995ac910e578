package redisstore

import (
	"strings"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// keys names what the store holds of one agent. All of them carry the agent in braces, which puts them on one slot of a
// cluster: a transaction is one script on one server.
type keys struct{ base string }

func (s *Store) keys(agent string) keys {
	return keys{s.prefix + "{" + escape(agent) + "}"}
}

// escape keeps a name from closing the braces, or from reading like the parts of a key.
func escape(name string) string {
	if !strings.ContainsAny(name, "%{}:") {
		return name
	}
	return escapes.Replace(name)
}

func unescape(name string) string { return unescapes.Replace(name) }

var (
	escapes   = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D", ":", "%3A")
	unescapes = strings.NewReplacer("%25", "%", "%7B", "{", "%7D", "}", "%3A", ":")
)

func (k keys) agent() string              { return k.base + ":agent" }
func (k keys) pending() string            { return k.base + ":pending" }
func (k keys) pruned() string             { return k.base + ":pruned" }
func (k keys) notes() string              { return k.base + ":notes" }
func (k keys) view(name string) string    { return k.base + ":" + escape(name) }
func (k keys) queue(name string) string   { return k.base + ":queue:" + escape(name) }
func (k keys) task(task string) string    { return k.base + ":task:" + escape(task) }
func (k keys) records(task string) string { return k.base + ":records:" + escape(task) }
func (k keys) ends(task string) string    { return k.base + ":ends:" + escape(task) }

// ledger, links and odd name the ledger of a task, or of the agent where task is "": its records, their chain links side
// by side in 64 bytes each, and links of another length.
func (k keys) ledger(task string) string { return k.book(":ledger", task) }
func (k keys) links(task string) string  { return k.book(":links", task) }
func (k keys) odd(task string) string    { return k.book(":oddlinks", task) }

func (k keys) book(kind, task string) string {
	if task == "" {
		return k.base + kind
	}
	return k.base + kind + ":" + escape(task)
}

// taskKeys are the keys that transactions of a task use, put together once.
type taskKeys struct {
	keys
	task, records, agent, leases, ends, ledger, pending, links, odd string
	agentLedger, agentLinks, agentOdd                               string
}

// book remembers the keys of tasks that are written to.
type book struct {
	mu    sync.RWMutex
	tasks map[space]*taskKeys
}

// booked bounds how many tasks' keys are remembered; beyond it all are forgotten.
const booked = 1 << 12

func (s *Store) taskKeys(agent, task string) *taskKeys {
	b, of := &s.book, space{agent, task}
	b.mu.RLock()
	k := b.tasks[of]
	b.mu.RUnlock()
	if k != nil {
		return k
	}
	n := s.keys(agent)
	k = &taskKeys{
		keys: n, task: n.task(task), records: n.records(task), agent: n.agent(), leases: n.queue(txn.Leases), ends: n.ends(task),
		ledger: n.ledger(task), pending: n.pending(), links: n.links(task), odd: n.odd(task),
		agentLedger: n.ledger(""), agentLinks: n.links(""), agentOdd: n.odd(""),
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tasks == nil || len(b.tasks) >= booked {
		b.tasks = map[space]*taskKeys{}
	}
	b.tasks[of] = k
	return k
}

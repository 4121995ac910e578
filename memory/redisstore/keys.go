package redisstore

import "strings"

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
func (k keys) ends() string               { return k.base + ":ends" }
func (k keys) pruned() string             { return k.base + ":pruned" }
func (k keys) notes() string              { return k.base + ":notes" }
func (k keys) view(name string) string    { return k.base + ":" + escape(name) }
func (k keys) queue(name string) string   { return k.base + ":queue:" + escape(name) }
func (k keys) task(task string) string    { return k.base + ":task:" + escape(task) }
func (k keys) records(task string) string { return k.base + ":records:" + escape(task) }

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

package statespace

import (
	"strconv"
	"strings"
	"time"
)

// lastingMark stands around the age in the keys of facts that outlast their tasks. No name of an action holds it.
const lastingMark = "^"

// Lasting takes apart the key of a fact that outlasts its task, see [Need]: how old it may get. False for the key of any
// other fact.
func Lasting(key string) (time.Duration, bool) {
	d, _, ok := cutLasting(key)
	return d, ok
}

// Across reports whether any action has a need that an Ok of an earlier task answers.
func (g *Graph) Across() bool { return g.across }

// lastingFor is what the keys of the facts begin with that answer a need.
func lastingFor(nd Need) string {
	if !nd.Across {
		return ""
	}
	return lasting(nd.Within)
}

func lasting(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return lastingMark + strconv.FormatInt(d.Microseconds(), 10) + lastingMark
}

func cutLasting(key string) (d time.Duration, rest string, ok bool) {
	after, ok := strings.CutPrefix(key, lastingMark)
	if !ok {
		return 0, key, false
	}
	age, rest, ok := strings.Cut(after, lastingMark)
	µs, err := strconv.ParseInt(age, 10, 64)
	if !ok || err != nil || µs <= 0 || µs > int64(1<<63-1)/1000 || strconv.FormatInt(µs, 10) != age {
		return 0, key, false
	}
	return time.Duration(µs) * time.Microsecond, rest, true
}

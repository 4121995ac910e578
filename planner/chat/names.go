package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Tools that are the planner's own. No action gets the name of one.
const (
	finishTool = "finish"     // ends the run
	skillTool  = "read_skill" // reads what the task's skills say
)

// maxWire is the longest tool name that every provider takes.
const maxWire = 64

// names maps action names to names that providers take, and back. It only grows, so that a name keeps its meaning through
// a conversation.
type names struct {
	wire   map[string]string // by action
	action map[string]string // by wire name
}

func newNames() *names {
	return &names{wire: map[string]string{}, action: map[string]string{}}
}

// add gives every action that has none a wire name. Those that need no change come first, so that no made-up name takes
// one of theirs.
func (n *names) add(actions []string) {
	for _, plain := range []bool{true, false} {
		for _, a := range actions {
			if isPlain := plainName(a); isPlain == plain {
				n.of(a)
			}
		}
	}
}

// of returns the wire name of an action, made up where its own is not taken: what is not allowed becomes '_', and a piece
// of the name's hash is added, as long as it has to be.
func (n *names) of(action string) string {
	if w, ok := n.wire[action]; ok {
		return w
	}
	w := action
	if !plainName(action) || n.action[w] != "" {
		w = n.made(action)
	}
	n.wire[action], n.action[w] = w, action
	return w
}

func (n *names) made(action string) string {
	sum := sha256.Sum256([]byte(action))
	hash := hex.EncodeToString(sum[:])
	for size := 8; size < maxWire; size += 4 {
		w := clean(action, maxWire-1-size) + "-" + hash[:size]
		if n.action[w] == "" {
			return w
		}
	}
	return hash // no piece was free: 64 hexadecimal digits
}

// actionOf returns the action that a model means. A name that was never offered stays as it is: the engine does not know
// it either, and says so.
func (n *names) actionOf(wire string) string {
	if a, ok := n.action[wire]; ok {
		return a
	}
	return wire
}

// echo returns a name with which a call may stand in a prompt, whatever the model called.
func (n *names) echo(wire string) string {
	if plainName(wire) || own(wire) {
		return wire
	}
	if w, ok := n.wire[wire]; ok {
		return w
	}
	return clean(wire+"_", maxWire)
}

func own(wire string) bool { return wire == finishTool || wire == skillTool }

func plainName(s string) bool { return s != "" && !own(s) && clean(s, maxWire) == s }

// clean replaces what is not allowed, and cuts.
func clean(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), most)]
}

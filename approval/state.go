package approval

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// State is where a request stands. The zero value is a request that was never made.
type State string

// The states.
const (
	None     State = ""         // never asked
	Pending  State = "pending"  // a person has been asked
	Approved State = "approved" // consent stands, unused
	Rejected State = "rejected" // a person said no; terminal
	Expired  State = "expired"  // nobody answered, or the consent was not used, in time; terminal
	Consumed State = "consumed" // an intent began under it; terminal but for that intent's return
	Revoked  State = "revoked"  // withdrawn before it was used; terminal
)

// Event is what happens to a request.
type Event string

// The events.
const (
	Ask     Event = "ask"
	Approve Event = "approve"
	Reject  Event = "reject"
	Revoke  Event = "revoke"
	Expire  Event = "expire"
	Consume Event = "consume"
	Return  Event = "return" // of a consent by the intent that consumed it and never started
)

// States returns every state in the order of their declaration.
func States() []State {
	return []State{None, Pending, Approved, Rejected, Expired, Consumed, Revoked}
}

// Events returns every event in the order of their declaration.
func Events() []Event { return []Event{Ask, Approve, Reject, Revoke, Expire, Consume, Return} }

var next = map[State]map[Event]State{
	None:     {Ask: Pending},
	Pending:  {Approve: Approved, Reject: Rejected, Revoke: Revoked, Expire: Expired},
	Approved: {Consume: Consumed, Revoke: Revoked, Expire: Expired},
	Consumed: {Return: Approved},
}

// TransitionError is an event that a state does not allow: a second decision, a use without consent.
type TransitionError struct {
	State State
	Event Event
}

// Error names both.
func (e *TransitionError) Error() string {
	if e.State == None {
		return fmt.Sprintf("approval was never asked for: cannot %s it", e.Event)
	}
	return fmt.Sprintf("approval is %s: cannot %s it", e.State, e.Event)
}

// Next returns the state after the event. Where the state does not allow it, the state stays and the error is a
// *TransitionError. That a return comes from the right intent is for [GiveBack] to check.
func Next(s State, e Event) (State, error) {
	if to, ok := next[s][e]; ok {
		return to, nil
	}
	return s, &TransitionError{s, e}
}

// Terminal reports whether no event but a return leads out of the state.
func (s State) Terminal() bool {
	return s == Rejected || s == Expired || s == Consumed || s == Revoked
}

// Valid reports whether s is one of the states, None included.
func (s State) Valid() bool { return slices.Contains(States(), s) }

// AskAgain reports whether the same call may be put to a person as a new request: never after a rejection in the same
// task, and not while an earlier request still stands.
func (s State) AskAgain() bool { return s != Rejected && s != Pending && s != Approved }

// At returns the state as it is at store time now (µs) for a request that expires then (0: never): a request that waits,
// for an answer or for use, has expired at the very moment given.
func (s State) At(expires, now int64) State {
	if (s == Pending || s == Approved) && expires != 0 && expires <= now {
		return Expired
	}
	return s
}

// Mark writes a state for the state field of a token: "pending:ID", "consumed:ID:INTENT". A condition on the mark is a
// condition on the very request, so an answer never lands on another one. The id holds no colon; intent counts for
// Consumed only.
func Mark(s State, id, intent string) string {
	if s == Consumed {
		return string(s) + ":" + id + ":" + intent
	}
	return string(s) + ":" + id
}

// ErrMark is returned for a text that is not a mark.
var ErrMark = errors.New("not an approval mark")

// ParseMark reads what Mark wrote. The empty text is None: no token, never asked.
func ParseMark(text string) (s State, id, intent string, err error) {
	if text == "" {
		return None, "", "", nil
	}
	state, rest, _ := strings.Cut(text, ":")
	s, id = State(state), rest
	if s == Consumed {
		id, intent, _ = strings.Cut(rest, ":")
	}
	if s == None || !s.Valid() || id == "" || strings.Contains(id, ":") || (s == Consumed) != (intent != "") {
		return None, "", "", fmt.Errorf("%w: %q", ErrMark, text)
	}
	return s, id, intent, nil
}

// GiveBack returns the mark after the intent that consumed a consent returns it unused.
func GiveBack(mark, intent string) (string, error) {
	s, id, by, err := ParseMark(mark)
	if err != nil {
		return "", err
	}
	to, err := Next(s, Return)
	if err != nil {
		return "", err
	}
	if by != intent {
		return "", fmt.Errorf("approval %s was consumed by intent %s: intent %s cannot return it", id, by, intent)
	}
	return Mark(to, id, ""), nil
}

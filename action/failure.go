package action

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Failure is the one error type: every outcome that is not OK carries one, and it travels unchanged from the gate that
// gave it to the planner, the ledger and the caller.
type Failure struct {
	Code      Code              `json:"code"`
	Layer     Layer             `json:"layer"`
	Message   string            `json:"message"` // safe for a planner: names nothing hidden from it
	Executed  Executed          `json:"executed"`
	Retryable bool              `json:"retryable"`
	Details   map[string]string `json:"details,omitempty"` // for operators; planners see only some of it
	cause     error
}

// Keys of Failure.Details.
const (
	DetailApproval = "approval" // the id of the approval asked for or decided
	DetailField    = "field"    // JSON pointer into the input
	DetailReason   = "reason"   // the words of a person or a policy
	DetailUnmet    = "unmet"    // the facts that are missing, for operators
	DetailRule     = "rule"     // the rule that gave the code
	DetailIntent   = "intent"   // the intent that stands in the way
	DetailChanged  = "changed"  // what changed since the epoch the call quoted
	DetailAxis     = "axis"     // the budget axis
	DetailAfter    = "after"    // how long to wait before the call may be made again, as time.Duration writes it
	DetailWhose    = "whose"    // of a reason: [WhoseAnybodys] where neither a person nor a policy gave it
	DetailSaid     = "said"     // what a panic or a hook said, for operators: it may hold anything
)

// WhoseAnybodys is said of a reason that a function, a planner or a program may have worded: no model is to follow it.
const WhoseAnybodys = "anybody's"

// plannerSees are the details that are passed on to a planner.
var plannerSees = []string{DetailApproval, DetailField, DetailReason, DetailWhose, DetailChanged, DetailAxis, DetailAfter}

// Fail returns a failure with everything the code implies filled in. The message is cut to [MaxText].
func Fail(code Code, format string, args ...any) *Failure {
	i := code.Info()
	return &Failure{Code: code, Layer: i.Layer, Message: Cut(fmt.Sprintf(format, args...)), Executed: i.Executed, Retryable: i.Retryable}
}

// With returns a copy of f with one detail added, cut to [MaxText]; an empty value adds nothing.
func (f *Failure) With(key, value string) *Failure {
	if value == "" {
		return f
	}
	c := *f
	c.Details = maps.Clone(f.Details)
	if c.Details == nil {
		c.Details = map[string]string{}
	}
	c.Details[key] = Cut(value)
	return &c
}

// Quoting is With of a reason in anybody's words, and says that it is.
func (f *Failure) Quoting(reason string) *Failure {
	if reason == "" {
		return f
	}
	return f.With(DetailReason, reason).With(DetailWhose, WhoseAnybodys)
}

// Because returns a copy of f whose cause is err, contained: see [Contain].
func (f *Failure) Because(err error) *Failure {
	c := *f
	c.cause = Contain(err)
	return &c
}

// Error names the code, what happened, and the words of whoever decided.
func (f *Failure) Error() string {
	if f == nil { // a function's typed nil, returned as an error
		return "a nil Failure"
	}
	s := string(f.Code)
	if f.Message != "" {
		s += ": " + f.Message
	}
	if reason := f.Details[DetailReason]; reason != "" {
		s += " (" + reason + ")"
	}
	return s
}

// Unwrap returns what the failure was made from, if anything.
func (f *Failure) Unwrap() error {
	if f == nil {
		return nil
	}
	return f.cause
}

// Is reports whether target is a Failure of the same code, so that errors.Is(err, &Failure{Code: Denied}) works.
func (f *Failure) Is(target error) bool {
	t, ok := target.(*Failure)
	return ok && t != nil && f != nil && t.Code == f.Code
}

// Approval returns the id of the approval that the failure is about, or "".
func (f *Failure) Approval() string { return f.Details[DetailApproval] }

// ForPlanner returns the failure as a planner may see it.
func (f *Failure) ForPlanner() *Failure {
	c := *f
	c.Details, c.cause = nil, nil
	for _, k := range plannerSees {
		if v, ok := f.Details[k]; ok {
			if c.Details == nil {
				c.Details = map[string]string{}
			}
			c.Details[k] = v
		}
	}
	return &c
}

// Explain returns the failure with every detail, for operators.
func (f *Failure) Explain() string {
	var b strings.Builder
	b.WriteString(f.Error())
	for _, k := range slices.Sorted(maps.Keys(f.Details)) {
		if k != DetailReason && k != DetailWhose { // said by Error
			fmt.Fprintf(&b, "; %s: %s", k, f.Details[k])
		}
	}
	if f.cause != nil && f.cause.Error() != f.Details[DetailSaid] {
		fmt.Fprintf(&b, "; cause: %v", f.cause)
	}
	return b.String()
}

// FailureOf finds the Failure in an error's chain, or nil.
func FailureOf(err error) *Failure {
	if err == nil { // what follows costs an allocation
		return nil
	}
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return nil
}

// unknown marks an error as "the effect may or may not have happened".
type unknown struct{ error }

func (u unknown) Unwrap() error { return u.error }

// Unknown is what an action function returns where it cannot tell whether its effect happened: a request that timed out
// after it was sent, say. The intent becomes STARTED_UNKNOWN and is not repeated.
func Unknown(err error) error {
	if err == nil {
		err = errors.New("the effect may or may not have happened")
	}
	return unknown{err}
}

// IsUnknown reports whether err was made by Unknown. Of an error that panics when it is asked nobody knows what it says,
// and so not whether the effect happened: true.
func IsUnknown(err error) (is bool) {
	defer func() {
		if recover() != nil {
			is = true
		}
	}()
	var u unknown
	return errors.As(err, &u)
}

// unstarted marks an error as "nothing of the effect was begun".
type unstarted struct{ error }

func (u unstarted) Unwrap() error { return u.error }

// Unstarted is what an action function returns where it is certain that nothing of its effect was begun, because what it
// would have run in could not be made ready: a sandbox, a connection. The call is NOT_STARTED, after a few further tries:
// nothing is learned and nothing spent.
func Unstarted(err error) error {
	if err == nil {
		err = errors.New("what the call runs in could not be made ready")
	}
	return unstarted{err}
}

// IsUnstarted reports whether err was made by Unstarted, and not by Unknown too, which is the stronger word. Of an error
// that panics when it is asked nothing is certain: false.
func IsUnstarted(err error) (is bool) {
	defer func() {
		if recover() != nil {
			is = false
		}
	}()
	var u unstarted
	return errors.As(err, &u) && !IsUnknown(err)
}

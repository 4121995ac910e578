package sandbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// ProvisionError says why a sandbox could not be made ready. Nothing of the tool has run. It is wrapped by
// action.Unstarted.
type ProvisionError struct {
	Limit Limit  // the limit that cannot be enforced, "" where it is something else
	Why   string // what is wrong
	Do    string // the way out, "" where there is none to name
	cause error
}

// Error says what is wrong and the way out.
func (e *ProvisionError) Error() string {
	s := "sandbox: "
	if e.Limit != "" {
		s += fmt.Sprintf("the limit %q cannot be enforced on this machine: ", e.Limit)
	}
	if s += e.Why; e.Do != "" {
		s += "; " + e.Do
	}
	return s
}

// Unwrap returns what the error was made from, if anything.
func (e *ProvisionError) Unwrap() error { return e.cause }

// unready is a provisioning error as it is returned.
func unready(why, do string, cause error) error {
	if cause != nil {
		why += ": " + action.TextOf(cause)
	}
	return action.Unstarted(&ProvisionError{Why: why, Do: do, cause: cause})
}

func unenforced(l Limit, why string) *ProvisionError {
	return &ProvisionError{Limit: l, Why: why, Do: fmt.Sprintf("or waive it by its name: Config.Waive %q", l)}
}

// ExitError says that a tool ended with something else than 0.
type ExitError struct {
	Code   int    // 128 and more: by a signal, the number of which is added; tools that die so did not choose to end
	Stderr string // the last of what it wrote to standard error, made visible
}

// Error says how the tool ended, in its own words where it left any.
func (e *ExitError) Error() string {
	s := fmt.Sprintf("the tool ended with exit code %d", e.Code)
	if e.Code > 128 {
		s = fmt.Sprintf("the tool was ended by signal %d", e.Code-128)
	}
	if e.Stderr != "" {
		s += ": " + e.Stderr
	}
	return s
}

// Why a tool was ended.
var (
	ErrTime   = errors.New("the tool took too long and was ended")
	ErrOutput = errors.New("the tool wrote too much and was ended")
)

// Result is what a tool left.
type Result struct {
	Stdout []byte
	Stderr []byte // the last 16 KiB
	Took   time.Duration
}

// doubtful reports whether a tool ended by an end that says nothing about its effect: it was ended.
func doubtful(err error) bool {
	var exit *ExitError
	return !errors.As(err, &exit) || exit.Code >= 128
}

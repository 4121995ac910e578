package approval

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Why somebody may not decide.
var (
	ErrAnonymous   = errors.New("an approval needs an authenticated identity")
	ErrUnclear     = errors.New("an approval needs an identity that reads as one name only")
	ErrSelf        = errors.New("nobody approves their own request")
	ErrNotApprover = errors.New("not an approver of this task")
)

// Anybody in a list of approvers stands for every authenticated identity.
const Anybody = "*"

// MayDecide reports why the identity, which an authenticator vouches for, may not decide the request: it is empty or no
// plain name (see [action.CheckIdentity]), it is the requester or the agent, or a name that a reader would take for theirs,
// or it is not among the approvers. An empty list has nobody in it.
func MayDecide(r Request, approvers []string, identity string) error {
	if strings.TrimSpace(identity) == "" {
		return ErrAnonymous
	}
	if err := action.CheckIdentity(identity); err != nil {
		return fmt.Errorf("%w: %w", ErrUnclear, err)
	}
	for _, own := range []string{r.Requester, r.Agent} {
		if own != "" && action.SameIdentity(identity, own) {
			return fmt.Errorf("%w: %q is, or reads like, %q", ErrSelf, identity, own)
		}
	}
	if !slices.Contains(approvers, identity) && !slices.Contains(approvers, Anybody) {
		return fmt.Errorf("%w: %q", ErrNotApprover, identity)
	}
	return nil
}

// WaiverOks is how often an action must have succeeded before trust in its agent can waive the demand for approval.
const WaiverOks = 5

// Waives reports whether an agent's trust (0 to 1) waives an action's own demand for approval: it is at least atLeast,
// and the action has succeeded at least WaiverOks times. An atLeast of zero or less is no waiver. It waives nothing that
// the threshold demands.
func Waives(trust, atLeast float64, okOfAction int64) bool {
	return atLeast > 0 && trust >= atLeast && okOfAction >= WaiverOks
}

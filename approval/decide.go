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

// Entries of a list of approvers that stand for more than one name.
const (
	// Anybody stands for every authenticated identity.
	Anybody = "*"
	// RolePrefix begins an entry that stands for whoever is vouched for in a role: "role:finance".
	RolePrefix = "role:"
)

// Person is somebody whom an authenticator vouches for, with the roles it vouches for.
type Person struct {
	Name  string
	Roles []string
}

// On reports whether a list of approvers names the person: by name, by a role, or as anybody.
func (p Person) On(list []string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		if role, ok := strings.CutPrefix(entry, RolePrefix); ok {
			return slices.Contains(p.Roles, role)
		}
		return entry == p.Name || entry == Anybody
	})
}

// MayDecide reports why a person may not decide the request: the name is empty or no plain name (see
// [action.CheckIdentity]), it is the requester or the agent, or a name that a reader would take for theirs, or it is not
// among the approvers, or not among those whose consent the action asks for. An empty list of approvers has nobody in it.
func MayDecide(r Request, approvers []string, who Person) error {
	if strings.TrimSpace(who.Name) == "" {
		return ErrAnonymous
	}
	if err := action.CheckIdentity(who.Name); err != nil {
		return fmt.Errorf("%w: %w", ErrUnclear, err)
	}
	for _, own := range []string{r.Requester, r.Agent} {
		if own != "" && action.SameIdentity(who.Name, own) {
			return fmt.Errorf("%w: %q is, or reads like, %q", ErrSelf, who.Name, own)
		}
	}
	if !who.On(approvers) {
		return fmt.Errorf("%w: %q", ErrNotApprover, who.Name)
	}
	if q := r.Quorum; q != nil && len(q.Of) > 0 && !who.On(q.Of) {
		return fmt.Errorf("%w: the action asks for %s, and %q is none of them", ErrNotApprover, strings.Join(q.Of, ", "), who.Name)
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

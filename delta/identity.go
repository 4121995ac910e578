package delta

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
)

// Vouched is what an Authenticator that knows roles says of somebody.
type Vouched struct {
	Name  string
	Roles []string // names as of actions, see [action.CheckName]; at most 64
}

// Voucher is an [Authenticator] that vouches for roles too. Where Config.Authenticator is one, Vouch is asked instead of
// Authenticate. Lists of approvers, operators and quorums name a role as "role:NAME".
type Voucher interface {
	Authenticator
	// Vouch returns who is behind the credential and the roles they have now, or an error.
	Vouch(ctx context.Context, credential any) (Vouched, error)
}

// VoucherFunc makes a Voucher of a function.
type VoucherFunc func(ctx context.Context, credential any) (Vouched, error)

// Vouch calls f.
func (f VoucherFunc) Vouch(ctx context.Context, credential any) (Vouched, error) {
	return f(ctx, credential)
}

// Authenticate calls f for the name alone.
func (f VoucherFunc) Authenticate(ctx context.Context, credential any) (string, error) {
	v, err := f(ctx, credential)
	return v.Name, err
}

// maxRoles bounds what is recorded with every vote.
const maxRoles = 64

func (v Vouched) checked() (Vouched, error) {
	if err := action.CheckIdentity(v.Name); err != nil {
		return v, fmt.Errorf("no plain name: %w", err)
	}
	if approval.IsRole(v.Name) {
		return v, fmt.Errorf("the name %q, which reads like a role", v.Name)
	}
	if len(v.Roles) > maxRoles {
		return v, fmt.Errorf("%d roles, at most %d are kept", len(v.Roles), maxRoles)
	}
	for _, r := range v.Roles {
		if err := action.CheckName(r); err != nil {
			return v, fmt.Errorf("a role that is no name: %w", err)
		}
	}
	v.Roles = slices.Compact(slices.Sorted(slices.Values(v.Roles)))
	return v, nil
}

// whoIs is who for somebody that this engine authenticated.
func (e *Engine) whoIs(by Identity, reason string) engine.Who {
	w := e.who(by.name, reason)
	w.Roles = by.roles
	return w
}

// unreachable reports the actions of a goal's agent whose quorum its approvers could never reach: a dead end that nobody
// would see until a call waits there. Where nobody is named at all, nothing that needs an approval is offered.
func unreachable(g Goal) (faults []error) {
	if len(g.Approvers) == 0 {
		return nil
	}
	s := engine.TaskState{Agent: g.Agent.name, Requester: g.Requester, Approvers: g.Approvers}
	for _, name := range g.Agent.Actions() {
		if no := engine.Unreachable(&s, g.Agent.compiled.Actions[name]); no != "" {
			faults = append(faults, action.Fail(action.NoApprover, "goal approvers: action %q: %s", name, no))
		}
	}
	return faults
}

package approval

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// MaxQuorum is the most consents that an action may ask for.
const MaxQuorum = 16

// Quorum is how many people must consent to a call, and which of a task's approvers count. A nil Quorum is one of them,
// whoever it is.
type Quorum struct {
	N  int      `json:"n"`            // distinct consents, 1 to MaxQuorum
	Of []string `json:"of,omitempty"` // names, or roles as "role:NAME"; empty: every approver of the task
	// Including says which people must be among those who consent: of each, so many.
	Including []Demand `json:"including,omitempty"`
}

// Demand is that some of those who consent are on a list.
type Demand struct {
	N  int      `json:"n"`
	Of []string `json:"of"` // names, or roles as "role:NAME"
}

// Several reports whether a single consent of whoever may decide need not be enough.
func (q *Quorum) Several() bool { return q != nil && (q.Need() > 1 || len(q.Including) > 0) }

// Need returns the number of consents.
func (q *Quorum) Need() int {
	if q == nil {
		return 1
	}
	return max(q.N, 1)
}

// Equal reports whether two quorums ask for the same.
func (q *Quorum) Equal(o *Quorum) bool {
	if q == nil || o == nil {
		return q == o
	}
	return q.N == o.N && slices.Equal(q.Of, o.Of) &&
		slices.EqualFunc(q.Including, o.Including, func(a, b Demand) bool { return a.N == b.N && slices.Equal(a.Of, b.Of) })
}

// String says what is asked for: "2 of role:finance, ana".
func (q *Quorum) String() string {
	if q == nil {
		return "one approver"
	}
	s := fmt.Sprintf("%d approvers", q.Need())
	if len(q.Of) > 0 {
		s = fmt.Sprintf("%d of %s", q.Need(), strings.Join(q.Of, ", "))
	}
	for _, d := range q.Including {
		s += fmt.Sprintf(", %d of them of %s", d.N, strings.Join(d.Of, ", "))
	}
	return s
}

// Check reports a quorum that nobody should declare.
func (q *Quorum) Check() error {
	if q == nil {
		return nil
	}
	if q.N < 1 || q.N > MaxQuorum {
		return fmt.Errorf("quorum is %d, want 1 to %d", q.N, MaxQuorum)
	}
	if err := CheckList("quorum", q.Of); err != nil {
		return err
	}
	if n, open := Could(nil, q.Of); len(q.Of) > 0 && !open && n < q.N {
		return fmt.Errorf("quorum is %d of %d people: nobody could ever reach it", q.N, n)
	}
	for _, d := range q.Including {
		if d.N < 1 || d.N > q.N || len(d.Of) == 0 {
			return fmt.Errorf("quorum of %d includes %d of %q: want 1 to %d of somebody", q.N, d.N, d.Of, q.N)
		}
		if err := CheckList("quorum", d.Of); err != nil {
			return err
		}
		if n, open := Could(nil, d.Of); !open && n < d.N {
			return fmt.Errorf("quorum includes %d of %d people: nobody could ever reach it", d.N, n)
		}
	}
	return nil
}

// CheckList reports an entry of a list of approvers, named where, that no authenticated identity can match.
func CheckList(where string, list []string) error {
	var faults []error
	for _, entry := range list {
		if entry == Anybody {
			continue
		}
		if role, ok := strings.CutPrefix(entry, RolePrefix); ok {
			if err := action.CheckName(role); err != nil {
				faults = append(faults, fmt.Errorf("%s: role %q: %w", where, entry, err))
			}
			continue
		}
		if IsRole(entry) {
			faults = append(faults, fmt.Errorf("%s: %q: write roles as %q", where, entry, RolePrefix+"NAME"))
			continue
		}
		if err := action.CheckIdentity(entry); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", where, err))
		}
	}
	return errors.Join(faults...)
}

// IsRole reports whether a text is an entry for a role, or would be taken for one: no identity may be named like that.
func IsRole(s string) bool {
	return len(s) >= len(RolePrefix) && strings.EqualFold(s[:len(RolePrefix)], RolePrefix)
}

// Could returns how many different people, as far as names tell, are on the list of approvers and, where of is not empty,
// on that list too. It is open where a role or anybody leaves the number to the authenticator. Names that read alike are
// one person, and those in self are nobody.
func Could(approvers, of []string, self ...string) (n int, open bool) {
	names := of
	switch first, second := isOpen(approvers), isOpen(of); {
	case approvers == nil: // the quorum by itself
		if second {
			return 0, true
		}
	case len(of) == 0 && first, first && second:
		return 0, true
	case len(of) == 0, second:
		names = approvers
	case !first:
		names = slices.DeleteFunc(slices.Clone(of), func(s string) bool { return !slices.Contains(approvers, s) })
	}
	return distinct(names, self), false
}

func isOpen(list []string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return s == Anybody || strings.HasPrefix(s, RolePrefix) })
}

// distinct counts people. A name without a domain reads like that name in any domain, so those with one are counted first.
func distinct(list, self []string) int {
	var people []string
	for _, domain := range []bool{true, false} {
		for _, s := range list {
			same := func(other string) bool { return other != "" && action.SameIdentity(s, other) }
			if s == Anybody || IsRole(s) || strings.Contains(s, "@") != domain || slices.ContainsFunc(self, same) || slices.ContainsFunc(people, same) {
				continue
			}
			people = append(people, s)
		}
	}
	return len(people)
}

// Why a vote does not count.
var (
	ErrVoted  = errors.New("nobody consents twice")
	ErrNoVote = errors.New("has not consented")
)

// Vote is one person's consent to a call that needs several.
type Vote struct {
	Identity string   `json:"identity"`
	Roles    []string `json:"roles,omitempty"` // vouched for when it was given
	Reason   string   `json:"reason,omitempty"`
	At       int64    `json:"at"` // worker time, µs
}

// Votes are the consents given to one request so far. It is a value: methods return a changed copy. Seq grows with every
// change, over all requests for the same call, so that a condition on it is a condition on exactly these votes.
//
//	                 consent (another person)
//	                      ┌─────┐
//	                      ▼     │   the quorum's last consent
//	(none) ──consent──▶ waiting ─┴────────────────────────────▶ the request is approved
//	   ▲                  │  │
//	   └──── withdraw ────┘  └── one rejection, a revocation, expiry ──▶ the request is over, and so are its votes
type Votes struct {
	Request string `json:"request"` // id of the approval
	Seq     int64  `json:"seq"`
	Yes     []Vote `json:"yes,omitempty"`
}

// For returns the votes for a request: those for an earlier one count for nothing.
func (v Votes) For(request string) Votes {
	if v.Request != request {
		return Votes{Request: request, Seq: v.Seq}
	}
	return v
}

// Consent adds a person's consent. A name that reads like one that has consented is taken for the same person.
func (v Votes) Consent(vote Vote) (Votes, error) {
	for _, have := range v.Yes {
		if action.SameIdentity(have.Identity, vote.Identity) {
			return v, fmt.Errorf("%w: %q is, or reads like, %q, who has", ErrVoted, vote.Identity, have.Identity)
		}
	}
	v.Yes = append(slices.Clip(v.Yes), vote)
	v.Seq++
	return v, nil
}

// Withdraw takes back the consent of exactly that identity.
func (v Votes) Withdraw(identity string) (Votes, error) {
	at := slices.IndexFunc(v.Yes, func(have Vote) bool { return have.Identity == identity })
	if at < 0 {
		return v, fmt.Errorf("%q %w", identity, ErrNoVote)
	}
	v.Yes = slices.Delete(slices.Clone(v.Yes), at, at+1)
	v.Seq++
	return v, nil
}

// Reached reports whether the votes are enough: as many as are asked for, and those among them who must be. Roles count as
// they were vouched for with the vote.
func (v Votes) Reached(q *Quorum) bool {
	if len(v.Yes) < q.Need() {
		return false
	}
	return q == nil || !slices.ContainsFunc(q.Including, func(d Demand) bool { return v.of(d.Of) < d.N })
}

// of counts the consents of people on a list.
func (v Votes) of(list []string) (n int) {
	for _, y := range v.Yes {
		if (Person{y.Identity, y.Roles}).On(list) {
			n++
		}
	}
	return n
}

// Encode returns v as JSON.
func (v Votes) Encode() (string, error) { return encode("votes", v) }

// DecodeVotes reads what Encode wrote; the empty text is no votes, an unknown field an error.
func DecodeVotes(text string) (v Votes, err error) {
	if text == "" {
		return v, nil
	}
	err = decode("votes", text, &v)
	return v, err
}

package delta

import (
	"slices"

	"github.com/seed-ab2cfece/delta-agents/approval"
)

// Quorum says that n different people must consent where a call needs an approval, whether for its risk or because the
// action asks for one. With of, only those count, by name or by role ("role:finance"), and they must be approvers of the
// task too. One rejection rejects. Where fewer than n of a task's approvers could answer, as far as names tell, Start says so;
// whether a role has anybody in it only the Authenticator knows. To have every call decided so, add
// [Builder.RequireApproval]; to have somebody among the n, [Builder.Including].
func (b Builder[In, Out]) Quorum(n int, of ...string) Builder[In, Out] {
	if b.d.quorum != nil {
		b.d.fault("quorum is declared twice: say who must be among the %d with Including", b.d.quorum.N)
	}
	return b.quorum(approval.Quorum{N: n, Of: slices.Clone(of)})
}

// Including says that n of the people of the [Builder.Quorum] must be of those listed, by name or by role:
// Quorum(2).Including(1, "role:security") is two people, at least one of them of security. Several of it all count.
func (b Builder[In, Out]) Including(n int, of ...string) Builder[In, Out] {
	if b.d.quorum == nil {
		b.d.fault("including %d of %q: declare the Quorum first", n, of)
		return b
	}
	q := *b.d.quorum
	q.Including = append(slices.Clone(q.Including), approval.Demand{N: n, Of: slices.Clone(of)})
	return b.quorum(q)
}

func (b Builder[In, Out]) quorum(q approval.Quorum) Builder[In, Out] {
	b.d.quorum = &q
	if err := q.Check(); err != nil {
		b.d.fault("%w", err)
	}
	return b
}

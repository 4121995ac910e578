package engine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// committee is a task whose most dangerous action needs several people.
func committee(t require.TestingT, n int, approvers ...string) *desk {
	s := plain()
	s.Threshold, s.Approvers, s.Requester = 4.5, approvers, "mallory"
	d := open(t, s)
	d.agent.Actions["wipe"].Quorum = &approval.Quorum{N: n}
	return d
}

// votes lets somebody decide about the call of a digest.
func (d *desk) votes(who, digest string, verb approval.Event) error {
	by := d.who()
	by.Identity = who
	v := d.look()
	var parked *ledger.Event
	if _, q, err := ReadAsk(v, digest, d.now()); err == nil {
		parked = d.waits(q.Intent)
	}
	var t *txn.Txn
	var err error
	if verb == "withdraw" {
		t, err = WithdrawVote(v, digest, by)
	} else {
		t, err = DecideAsk(v, digest, verb, parked, by)
	}
	if err == nil {
		d.must(t)
	}
	return err
}

func TestI06_Quorum(t *testing.T) {
	d := committee(t, 2, "ann", "bob", "cleo")
	c := d.call("wipe", `{"order":"A"}`)
	ask := d.propose(c).Ask
	require.NotNil(t, ask)
	assert.Equal(t, 2, ask.Quorum.Need())
	digest := c.Intent.Digest
	require.NoError(t, d.votes("ann", digest, approval.Approve))
	assert.Equal(t, action.ApprovalRequired, d.code("wipe", `{"order":"A"}`), "one of two")
	require.ErrorIs(t, d.votes("ann", digest, approval.Approve), approval.ErrVoted)
	require.ErrorIs(t, d.votes("mallory", digest, approval.Approve), approval.ErrSelf)
	require.ErrorIs(t, d.votes("bob", digest, "withdraw"), approval.ErrNoVote)
	require.NoError(t, d.votes("ann", digest, "withdraw"))
	require.NoError(t, d.votes("bob", digest, approval.Approve))
	assert.Equal(t, action.ApprovalRequired, d.code("wipe", `{"order":"A"}`), "one of two again")
	require.NoError(t, d.votes("cleo", digest, approval.Approve))
	assert.ErrorContains(t, d.votes("cleo", digest, "withdraw"), "revoke")
	assert.Equal(t, action.OK, d.code("wipe", `{"order":"A"}`))
	(&shift{desk: d}).checkFold()
}

// Every yes counts at the version of the votes it was computed on: two people at once do not overwrite each other.
func TestI06_VotesAtOnce(t *testing.T) {
	d := committee(t, 3, "ann", "bob", "cleo")
	c := d.call("wipe", `{"order":"A"}`)
	d.propose(c)
	v := d.look()
	yes := func(who string) *txn.Txn {
		x, err := DecideAsk(v, c.Intent.Digest, approval.Approve, nil, Who{Identity: who, At: d.now()})
		require.NoError(t, err)
		return x
	}
	ann, bob := yes("ann"), yes("bob")
	d.must(ann)
	assert.False(t, d.apply(bob).OK, "bob's vote would drop ann's")
	require.NoError(t, d.votes("bob", c.Intent.Digest, approval.Approve))
	require.NoError(t, d.votes("cleo", c.Intent.Digest, approval.Approve))
	votes, err := ReadVotes(d.look(), c.Intent.Digest, d.asked(c))
	require.NoError(t, err)
	assert.Len(t, votes.Yes, 3)
}

func (d *desk) asked(c *Call) string {
	_, q, err := ReadAsk(d.look(), c.Intent.Digest, d.now())
	require.NoError(d, err)
	return q.ID
}

func TestI06_OneRejectionRejects(t *testing.T) {
	d := committee(t, 2, "ann", "bob", "cleo")
	c := d.call("wipe", `{"order":"A"}`)
	d.propose(c)
	require.NoError(t, d.votes("ann", c.Intent.Digest, approval.Approve))
	require.NoError(t, d.votes("bob", c.Intent.Digest, approval.Reject))
	assert.Error(t, d.votes("cleo", c.Intent.Digest, approval.Approve))
	assert.Equal(t, action.ApprovalRejected, d.code("wipe", `{"order":"A"}`))
}

// C19: the release that asks for more people takes effect on what stands already.
func TestI06_AConsentDoesNotCoverAHigherQuorum(t *testing.T) {
	d := committee(t, 1, "ann", "bob")
	c := d.call("wipe", `{"order":"A"}`)
	d.propose(c)
	require.NoError(t, d.votes("ann", c.Intent.Digest, approval.Approve))
	d.agent.Actions["wipe"].Quorum = &approval.Quorum{N: 2}
	dec := d.propose(d.call("wipe", `{"order":"A"}`))
	require.NotNil(t, dec.Refusal)
	assert.Equal(t, action.ApprovalRequired, dec.Refusal.Code)
	require.NotNil(t, dec.Ask, "another request")
	require.NoError(t, d.votes("ann", c.Intent.Digest, approval.Approve))
	require.NoError(t, d.votes("bob", c.Intent.Digest, approval.Approve))
	assert.Equal(t, action.OK, d.code("wipe", `{"order":"A"}`))
	(&shift{desk: d}).checkFold()
}

// A quorum that cannot be reached is said, in the offer and to the call, and nobody is asked in vain.
func TestQuorumOutOfReach(t *testing.T) {
	for _, c := range []struct {
		reason    string
		approvers []string
		of        []string
		reach     bool
	}{
		{"two", []string{"ann", "bob"}, nil, true},
		{"one of them is the requester", []string{"ann", "mallory"}, nil, false},
		{"one of them is the agent", []string{"ann", "counter"}, nil, false},
		{"one person under two names", []string{"bob", "b0b"}, nil, false},
		{"only one of them counts", []string{"ann", "bob"}, []string{"bob", "cleo", "dan"}, false},
		{"a role, however many have it", []string{"role:ops"}, nil, true},
	} {
		d := committee(t, 2, c.approvers...)
		d.agent.Actions["wipe"].Quorum.Of = c.of
		st := Stand(d.rules, d.agent, d.look(), FactsOf(d.agent, d.snap), "wipe", d.now())
		code := d.code("wipe", `{"order":"A"}`)
		if c.reach {
			assert.Equal(t, action.Gated, st.Status, c.reason)
			assert.Equal(t, action.ApprovalRequired, code, c.reason)
			continue
		}
		assert.Equal(t, action.Blocked, st.Status, c.reason)
		assert.Contains(t, fmt.Sprint(st.Reasons), "could answer", c.reason)
		assert.Equal(t, action.NoApprover, code, c.reason)
	}
}

// Whoever consents, withdraws, rejects, in any order, while calls come and go: what began under an approval had the
// consents of as many different people as the action asked for when they were asked, was used once, and the state is the
// fold of the ledger.
func TestI06_QuorumUnderAnyOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { quorumUnderAnyOrder(r, 30) })
}

func quorumUnderAnyOrder(r *rapid.T, n int) {
	people := []string{"ann", "bob", "cleo", "Bob", "ann@corp"}
	s := &shift{desk: committee(r, 2, people...), r: r, refusals: map[action.Code]int{}}
	for range n {
		switch rapid.IntRange(0, 11).Draw(r, "what") {
		case 0, 1, 2:
			c := s.desk.call("wipe", fmt.Sprintf(`{"order":%q}`, rapid.SampledFrom(orders[:2]).Draw(r, "order")))
			s.took(c, s.propose(c))
		case 3, 4, 5, 6, 7:
			if len(s.asks) > 0 {
				q := rapid.SampledFrom(s.asks).Draw(r, "ask")
				verb := rapid.SampledFrom([]approval.Event{approval.Approve, approval.Approve, approval.Approve, approval.Approve, "withdraw", approval.Reject, approval.Revoke}).Draw(r, "verb")
				_ = s.votes(rapid.SampledFrom(people).Draw(r, "who"), q.Digest, verb) // may be over
			}
		case 8:
			s.resume()
		case 9:
			s.expire()
		case 10:
			s.giveBack()
		case 11:
			s.agent.Actions["wipe"].Quorum = &approval.Quorum{N: rapid.IntRange(1, 3).Draw(r, "quorum")}
		}
	}
	s.checkVotes()
	s.checkQueues()
	s.checkFold()
}

// checkVotes reads the ledger as an auditor would.
func (s *shift) checkVotes() {
	state, err := FoldLedger(s.records(s.task))
	require.NoError(s, err)
	require.Equal(s, s.load().Agent.Tokens, state.Agent.Tokens, "which calls were approved last")
	need, given, used := map[string]int{}, map[string][]string{}, map[string]string{}
	for _, rec := range s.records(s.task) {
		e, err := ledger.Decode(rec.Val)
		require.NoError(s, err)
		id := e.Approval
		switch e.Type {
		case ledger.ApprovalRequested:
			q, err := approval.DecodeRequest(string(e.State))
			require.NoError(s, err)
			need[id] = q.Quorum.Need()
		case ledger.ApprovalVoted, ledger.ApprovalApproved:
			for _, who := range given[id] {
				require.False(s, action.SameIdentity(who, e.Identity), "%s and %s are one", who, e.Identity)
			}
			given[id] = append(given[id], e.Identity)
			require.Equal(s, e.Type == ledger.ApprovalApproved, len(given[id]) == need[id])
		case ledger.ApprovalWithdrawn:
			i := slices.Index(given[id], e.Identity)
			require.GreaterOrEqual(s, i, 0)
			given[id] = slices.Delete(given[id], i, i+1)
		case ledger.Begun:
			require.NotEmpty(s, id, "wipe never runs without")
			require.Len(s, given[id], need[id])
			require.Empty(s, used[id], "used twice")
			used[id] = e.Intent
		case ledger.Settled:
			if e.Returned {
				for id, intent := range used {
					if intent == e.Intent {
						delete(used, id)
					}
				}
			}
		}
	}
}

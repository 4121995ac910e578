package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Whatever is proposed, decided and let pass, in any order: what began under an approval was approved for exactly that
// input, before, once, in time and by another than the requester; a rejected input is not asked about again; an input has
// one request that lives at most.
func TestI06_ApprovalsRunWhatTheyShowedOnce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { approvalsRunWhatTheyShowedOnce(r, 25) })
}

func approvalsRunWhatTheyShowedOnce(r *rapid.T, n int) {
	s := newShift(r)
	s.change(func(t *TaskState) { t.Limit, t.Threshold = action.Limit{}, 4.5 })
	for range n {
		switch rapid.IntRange(0, 9).Draw(r, "what") {
		case 0, 1, 2, 3:
			c := s.desk.call("wipe", fmt.Sprintf(`{"order":%q}`, rapid.SampledFrom(orders).Draw(r, "order")))
			s.took(c, s.propose(c))
		case 4, 5, 6:
			s.answer()
		case 7:
			s.resume()
		case 8:
			s.expire()
		case 9:
			s.giveBack()
		}
	}
	s.checkApprovals()
	s.checkQueues()
	s.checkFold()
}

// checkQueues: work finds exactly what there is to do, and nothing for ever that is over.
func (s *shift) checkQueues() {
	due := func(queue string) (members []string) {
		q, err := s.store.Queued(s.r.Context(), s.agent.Name, queue, txn.Queued{}, false, 1000)
		require.NoError(s, err)
		for _, m := range q {
			members = append(members, m.Member)
		}
		return members
	}
	var pending, ready []string
	for k, t := range s.load().Task.Tokens {
		digest, ok := strings.CutPrefix(k, tokenAsk)
		if !ok {
			continue
		}
		state, q, err := readAsk(t)
		require.NoError(s, err)
		require.Equal(s, digest, q.Digest)
		switch state {
		case approval.Pending:
			pending = append(pending, q.ID)
		case approval.Approved:
			ready = append(ready, member(q.Task, q.Intent))
		}
	}
	require.ElementsMatch(s, pending, due(QueueAsks), "requests that wait")
	require.ElementsMatch(s, pending, due(QueueDesk), "and are shown in their order")
	for _, m := range due(QueueReady) {
		require.Contains(s, ready, m, "a call that may run")
		_, intent, _ := strings.Cut(m, "\n")
		require.Empty(s, s.cold(cellOutcome + intent)[cellOutcome+intent].Val, "and has not ended")
	}
}

// giveBack ends a call before it started: its approval is unused again.
func (s *shift) giveBack() {
	if x, ok := one(s.r, &s.running); ok {
		s.must(x.Settle(s.end(action.NotStarted, "", action.Cost{})))
	}
}

// checkApprovals reads the ledger as an auditor would, knowing nothing of tokens.
func (s *shift) checkApprovals() {
	approved, used, rejected := map[string]int64{}, map[string]bool{}, map[string]bool{}
	live, latest := map[string]string{}, map[string]string{} // digest → the request that waits or stands; the last one at all
	holds := map[string]ledger.Event{}
	for _, rec := range s.records(s.task) {
		e, err := ledger.Decode(rec.Val)
		require.NoError(s, err)
		switch e.Type {
		case ledger.ApprovalRequested:
			require.False(s, rejected[e.Digest], "asked again after a rejection")
			require.Empty(s, live[e.Digest], "two requests for one input")
			live[e.Digest], latest[e.Digest] = e.Approval, e.Approval
		case ledger.ApprovalApproved:
			require.Equal(s, live[e.Digest], e.Approval)
			require.Equal(s, person, e.Identity)
			approved[e.Approval] = rec.At
		case ledger.ApprovalRejected, ledger.ApprovalRevoked, ledger.ApprovalExpired:
			require.Equal(s, live[e.Digest], e.Approval)
			delete(live, e.Digest)
			delete(approved, e.Approval)
			rejected[e.Digest] = rejected[e.Digest] || e.Type == ledger.ApprovalRejected
		case ledger.Begun:
			require.NotEmpty(s, e.Approval, "wipe never runs without")
			at, ok := approved[e.Approval]
			require.True(s, ok, "not approved")
			require.Less(s, rec.At, at+askTTL, "expired")
			require.False(s, used[e.Approval], "consumed twice")
			require.Equal(s, live[e.Digest], e.Approval, "of another input")
			used[e.Approval], holds[e.Intent] = true, e
			delete(live, e.Digest)
		case ledger.Settled:
			if b := holds[e.Intent]; e.Returned && latest[b.Digest] == b.Approval {
				used[b.Approval], live[b.Digest] = false, b.Approval
			}
		}
	}
}

// A consent covers no higher risk than the person was shown.
func TestI05_RiskThatRoseIsAskedAboutAgain(t *testing.T) {
	d := open(t, plain())
	c := d.call("list", `{}`)
	c.Rule = 4
	first := d.propose(c)
	require.NotNil(t, first.Ask)
	require.NoError(t, d.ask(c.Intent.Digest, approval.Approve))
	higher := d.call("list", `{}`)
	higher.Rule = 5
	dec := d.propose(higher)
	require.Equal(t, action.ApprovalRequired, dec.Refusal.Code)
	require.NotNil(t, dec.Ask)
	assert.NotEqual(t, first.Ask.ID, dec.Ask.ID)
	assert.Greater(t, dec.Ask.Risk.Effective, first.Ask.Risk.Effective)
	require.NoError(t, d.ask(c.Intent.Digest, approval.Approve))
	lower := d.call("list", `{}`)
	lower.Rule = 4
	assert.Nil(t, d.propose(lower).Refusal, "a lower one it covers")
	(&shift{desk: d}).checkFold()
}

func TestWhoMayDecide(t *testing.T) {
	for _, c := range []struct {
		identity  string
		approvers []string
		want      error
	}{
		{"dana", []string{"dana"}, nil},
		{"dana", []string{approval.Anybody}, nil},
		{"eve", []string{"dana"}, approval.ErrNotApprover},
		{"reque5ter", []string{approval.Anybody}, nil},
		{"requester", []string{approval.Anybody}, approval.ErrSelf},
		{"Re-quester", []string{approval.Anybody}, approval.ErrSelf},
		{"counter", []string{approval.Anybody}, approval.ErrSelf},
		{"", []string{approval.Anybody}, approval.ErrAnonymous},
	} {
		s := plain()
		s.Approvers, s.Requester = c.approvers, "requester"
		d := open(t, s)
		call := d.call("wipe", `{"order":"A"}`)
		d.propose(call)
		for _, verb := range []approval.Event{approval.Approve, approval.Reject, approval.Revoke} {
			who := d.who()
			who.Identity = c.identity
			_, err := DecideAsk(d.look(), call.Intent.Digest, verb, nil, who)
			assert.ErrorIs(t, err, c.want, "%s by %q", verb, c.identity)
		}
	}
}

// Two people answer at once: one of them is first, and the other learns it.
func TestOneAnswerCounts(t *testing.T) {
	d := open(t, plain())
	c := d.call("wipe", `{"order":"A"}`)
	d.propose(c)
	yes, err := DecideAsk(d.look(), c.Intent.Digest, approval.Approve, nil, d.who())
	require.NoError(t, err)
	no, err := DecideAsk(d.look(), c.Intent.Digest, approval.Reject, nil, d.who())
	require.NoError(t, err)
	d.must(no)
	assert.False(t, d.apply(yes).OK)
	var wrong *approval.TransitionError
	assert.ErrorAs(t, d.ask(c.Intent.Digest, approval.Approve), &wrong)
}

// A rejection ends the call that waits, and its reason reaches whoever asks again; it outlives every expiry.
func TestRejectionStays(t *testing.T) {
	d := open(t, plain())
	c := d.call("wipe", `{"order":"A"}`)
	c.Intent.CallID = "c1"
	q := d.propose(c).Ask
	require.NoError(t, d.ask(c.Intent.Digest, approval.Reject))
	require.Nil(t, d.waits(q.Intent), "the rejection ended it")
	for range 3 {
		d.pass(2 * askTTL)
		dec := d.propose(d.call("wipe", `{"order":"A"}`))
		require.Equal(t, action.ApprovalRejected, dec.Refusal.Code)
		assert.Equal(t, "because \uFFFD", dec.Refusal.Details[action.DetailReason])
		assert.Nil(t, dec.Ask)
	}
	same := d.call("wipe", `{"order":"A"}`)
	same.Intent.CallID = "c1"
	assert.NotNil(t, d.propose(same).Recorded, "the call itself has its recorded end")
	assert.Equal(t, action.ApprovalRequired, d.code("wipe", `{"order":"B"}`), "another input is another request")
}

// A parked call that is proposed again waits on, and writes nothing while it does.
func TestParkedCallWaits(t *testing.T) {
	d := open(t, plain())
	c := d.call("wipe", `{"order":"A"}`)
	c.Intent.CallID = "c1"
	q := d.propose(c).Ask
	n := len(d.records(d.task))
	again := d.call("wipe", `{"order":"A"}`)
	again.Intent.CallID = "c1"
	dec := d.propose(again)
	assert.Equal(t, action.ApprovalRequired, dec.Refusal.Code)
	assert.Equal(t, q.ID, dec.Refusal.Approval())
	assert.Nil(t, dec.Txn)
	assert.Len(t, d.records(d.task), n)
	require.NoError(t, d.ask(c.Intent.Digest, approval.Approve))
	dec = d.propose(again)
	require.NotNil(t, dec.Begun)
	assert.Equal(t, c.Intent.ID, dec.Begun.Intent, "the parked intent itself runs")
	assert.Equal(t, q.ID, dec.Begun.Approval)
}

// Trust waives the action's own demand only after five Ok of it, never the threshold, and that is recorded.
func TestI05_WaiverByTrust(t *testing.T) {
	d := open(t, plain())
	for i := range approval.WaiverOks {
		c := d.call("audit", `{}`)
		require.Equal(t, action.ApprovalRequired, d.propose(c).Refusal.Code, "after %d Ok", i)
		require.NoError(t, d.ask(c.Intent.Digest, approval.Approve))
		d.ok("audit", `{}`, `{}`)
		for range 20 {
			d.ok("list", `{}`, `{}`)
		}
		d.fold()
	}
	require.Greater(t, model.Trust(d.look().Beliefs).Score, 0.5)
	dec := d.propose(d.call("audit", `{}`))
	require.NotNil(t, dec.Begun)
	assert.Empty(t, dec.Begun.Approval)
	var waivers int
	for _, rec := range d.records(d.task) {
		e, err := ledger.Decode(rec.Val)
		require.NoError(t, err)
		if e.Type == ledger.ApprovalWaived {
			waivers++
			assert.Empty(t, e.Identity, "no person was involved")
		}
	}
	assert.Equal(t, 1, waivers)
	risky := d.call("audit", `{}`)
	risky.Rule = 4
	assert.Equal(t, action.ApprovalRequired, d.propose(risky).Refusal.Code, "the threshold is not waived")
}

// Where the threshold moved while a call waited, the call runs without its approval: nothing of it is left to be decided,
// to be queued or to let another call pass.
func TestApprovalThatIsNoLongerNeeded(t *testing.T) {
	for i := range 8 {
		approved, resume, late := i&1 > 0, i&2 > 0, i&4 > 0
		t.Run(fmt.Sprintf("approved %v, resumed %v, expired %v", approved, resume, late), func(t *testing.T) {
			d := open(t, plain())
			call := func() *Call {
				c := d.call("list", `{}`)
				c.Rule, c.Intent.CallID = 4, "c1"
				return c
			}
			q := d.propose(call()).Ask
			if approved {
				require.NoError(t, d.ask(q.Digest, approval.Approve))
			}
			if late {
				d.pass(askTTL)
			}
			d.change(func(s *TaskState) { s.Threshold = 5 })
			c := call()
			if c.Resume = resume; resume {
				c.Intent.ID = q.Intent
			}
			dec := d.propose(c)
			require.NotNil(t, dec.Begun)
			assert.Equal(t, q.Intent, dec.Begun.Intent)
			for _, queue := range []string{QueueAsks, QueueReady} {
				left, err := d.store.Queued(t.Context(), d.agent.Name, queue, txn.Queued{}, false, 9)
				require.NoError(t, err)
				assert.Empty(t, left, queue)
			}
			assert.Error(t, d.ask(q.Digest, approval.Approve))
			d.change(func(s *TaskState) { s.Threshold = 4 })
			other := d.call("list", `{}`)
			other.Rule = 4
			assert.Equal(t, action.ApprovalRequired, d.propose(other).Refusal.Code)
			(&shift{desk: d}).checkFold()
		})
	}
}

// Expiry is neither rejection nor consent: the next proposal asks anew.
func TestExpiryIsNotRejection(t *testing.T) {
	for _, approved := range []bool{false, true} {
		d := open(t, plain())
		c := d.call("wipe", `{"order":"A"}`)
		q := d.propose(c).Ask
		if approved {
			require.NoError(t, d.ask(c.Intent.Digest, approval.Approve))
		}
		d.pass(askTTL)
		assert.Error(t, d.ask(c.Intent.Digest, approval.Approve), "too late to answer")
		assert.Equal(t, action.ApprovalExpired, d.code("wipe", `{"order":"A"}`))
		dec := d.propose(d.call("wipe", `{"order":"A"}`))
		require.Equal(t, action.ApprovalRequired, dec.Refusal.Code)
		require.NotNil(t, dec.Ask)
		assert.NotEqual(t, q.ID, dec.Ask.ID)
		parked := d.cold(cellOutcome + q.Intent)
		o, ok := Ended(&txn.Space{Cells: parked}, q.Intent)
		require.True(t, ok, "the call that waited has ended")
		assert.Equal(t, action.ApprovalExpired, o.Code)
	}
}

// A consent that was given back by an intent that ended, and no longer covers the risk, is asked for anew under an intent
// that can still run: the ended one would wait in the queue for ever.
func TestNewRequestIsForAnIntentThatCanRun(t *testing.T) {
	d := open(t, plain())
	c := d.call("audit", `{}`)
	first := d.propose(c).Ask
	require.NoError(t, d.ask(c.Intent.Digest, approval.Approve))
	x := d.begin(d.call("audit", `{}`))
	require.Equal(t, first.Intent, x.Begun.Intent)
	d.must(x.Settle(d.end(action.NotStarted, "", action.Cost{})))
	for range 4 {
		d.learn("audit", true)
	}
	d.snap.Leases = map[string]txn.Lease{} // another worker knows nothing of it
	again := d.propose(d.call("audit", `{}`))
	require.Equal(t, action.ApprovalRequired, again.Refusal.Code)
	require.NotNil(t, again.Ask)
	require.NotEqual(t, first.Intent, again.Ask.Intent)
}

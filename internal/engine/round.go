package engine

import (
	"sync"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// round is one evaluation of the gates. Pins gather every value the verdict rests on.
type round struct {
	rules *Rules
	agent *Agent
	view  *View
	call  *Call
	act   *Action

	pins     []txn.Clause
	claims   []ledger.Claim
	shown    ledger.RiskShown
	policy   policy.Decision
	reserved action.Cost
	pools    []string  // in which it counts too
	limits   []string  // what it takes of rate limits
	lease    *PoolNeed // of a shared pool, before this can be decided
	waived   []*action.Failure

	glass      *Glass // the override that answers the demand for an approval
	approvalID string // of the approval to be consumed
	digest     string // of the token that carries it
	parked     string // the intent that waits for it
	expires    int64
	ask        *approval.Request // to be opened
	closing    []ledger.Event    // ends of earlier requests, before the refusal or the begin
	lookup     string            // an intent whose lease must be read before this can be decided
	silent     bool              // answer without writing: a parked call still waits
	halted     bool              // the refusal is that of a halt
	key        []byte            // under which something is looked up
	scratch    *grounds          // of a preview, used again
	saying     *saying           // of the action, see said
	asked      bool              // for it
}

// rounds are used again: most need the same room.
var rounds = sync.Pool{New: func() any { return new(round) }}

func newRound(rules *Rules, agent *Agent, view *View, call *Call) *round {
	r := rounds.Get().(*round)
	r.rules, r.agent, r.view, r.call, r.act, r.digest = rules, agent, view, call, agent.Actions[call.Intent.Action], call.Intent.Digest
	return r
}

// done gives the round back. What it handed out is no part of it: pins were copied.
func (r *round) done() {
	clear(r.pins)
	if r.scratch != nil {
		*r.scratch = grounds{}
	}
	*r = round{pins: r.pins[:0], key: r.key[:0], scratch: r.scratch}
	rounds.Put(r)
}

// preview returns room for the event of a preview.
func (r *round) preview() *grounds {
	if r.scratch == nil {
		r.scratch = new(grounds)
	}
	return r.scratch
}

func (r *round) pin(cs ...txn.Clause) { r.pins = append(r.pins, cs...) }

// ask returns the id of the approval request.
func (c *Call) ask() string {
	if c.AskID == "" && c.Asks != nil {
		c.AskID = c.Asks()
	}
	return c.AskID
}

// intent is the id the call will run under: that of the parked intent where one waits for the same approval.
func (r *round) intent() string {
	if r.parked != "" {
		return r.parked
	}
	return r.call.Intent.ID
}

// callDigest identifies action and input even where the input did not pass the edge.
func callDigest(in *action.Intent) string {
	if in.Digest != "" {
		return in.Digest
	}
	return "-"
}

package chat

import (
	"errors"

	"github.com/seed-ab2cfece/delta-agents/delta"
)

// One proposal may take several prompts: the model reads before it proposes, or a reply breaks off. What was reserved for it
// bounds them all; where another prompt would not lie within it, the proposal ends as it is and the next goes on from there.

// maxReads is how often in a row a model may read without proposing anything before that counts as idle.
const maxReads = 20

// errNoRoom says that another prompt needs a reservation of its own.
var errNoRoom = errors.New("the reservation does not cover another prompt")

// room reports whether another prompt lies within what is reserved. Where none has cost anything yet it is the first.
func (p *Planner) room(t *talk, spent *spending) bool {
	u := spent.Usage
	if u.Tokens() == 0 {
		return true
	}
	u.Input += int64(t.tokens(t.prompt().size()))
	u.Output += int64(p.cfg.MaxOutput)
	need := p.cfg.Price.cost(u)
	return need.Tokens <= spent.reserved.Tokens && need.Money <= spent.reserved.Money
}

// later is a proposal of nothing so far.
func (t *talk) later(why string) delta.Proposal { return delta.Proposal{More: true, Why: why} }

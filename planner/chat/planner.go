package chat

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// Config is how a model is led. The zero value is the defaults.
type Config struct {
	// Rules are lines added to the system prompt.
	Rules []string
	// Window is the model's context in tokens, reply included; default 128,000.
	Window int
	// MaxOutput is the longest reply in tokens; default 4,096, at most half of Window.
	MaxOutput int
	// ResultBytes is how much of one output a model is shown; default 16 KiB, at least 256.
	ResultBytes int
	// MaxTools is how many tools the provider takes; default 128, at least 3.
	MaxTools int
	// Timeout bounds one proposal, retries included; default 110 s, inside the PlanTime of [delta.Bounds].
	Timeout time.Duration
	// Resend is how often a reply that broke off is asked for again; default 1, below zero never.
	Resend int
	// Nudges is how often in a row a model that calls nothing is asked to; default 2, below zero never. Then it is done.
	Nudges int
	// Price makes money of tokens; the zero value charges none.
	Price Price
	// FirstPrompt is what the first prompt is expected to have, in tokens; default 2,000. Later ones are known.
	FirstPrompt int
	// Now is the clock that the model is told; default time.Now.
	Now func() time.Time
	// Random is where the numbers of fences come from; default crypto/rand. It must not be predictable.
	Random io.Reader
}

// WithDefaults returns the configuration with every default filled in.
func (c Config) WithDefaults() Config {
	set(&c.Window, 128_000)
	set(&c.MaxOutput, min(4096, c.Window/2))
	set(&c.ResultBytes, 16<<10)
	set(&c.MaxTools, 128)
	set(&c.Timeout, 110*time.Second)
	set(&c.Resend, 1)
	set(&c.Nudges, 2)
	set(&c.FirstPrompt, min(2000, c.Window/2))
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	return c
}

func set[T int | time.Duration](v *T, otherwise T) {
	if *v == 0 {
		*v = otherwise
	}
}

// check names the first field that cannot be.
func (c Config) check() error {
	switch {
	case c.Window < 0 || c.MaxOutput < 1 || c.MaxOutput > c.Window/2:
		return fmt.Errorf("chat: MaxOutput is %d, want 1 to half of Window, which is %d", c.MaxOutput, c.Window)
	case c.ResultBytes < leastBody:
		return fmt.Errorf("chat: ResultBytes is %d, want at least %d", c.ResultBytes, leastBody)
	case c.MaxTools < 3:
		return fmt.Errorf("chat: MaxTools is %d, want at least 3", c.MaxTools)
	case c.Timeout < 0:
		return fmt.Errorf("chat: Timeout is %v, want more than zero", c.Timeout)
	case c.FirstPrompt < 0 || c.FirstPrompt > c.Window:
		return fmt.Errorf("chat: FirstPrompt is %d, want 0 to Window, which is %d", c.FirstPrompt, c.Window)
	}
	return c.Price.check()
}

// number returns a new number for fences.
func (c Config) number() (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(c.Random, b[:]); err != nil {
		return "", fmt.Errorf("chat: no random number for a fence: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// Planner is a [delta.Planner] that asks a model. It serves one run at a time; the first step of a run starts a new
// conversation.
type Planner struct {
	model Model
	cfg   Config
	busy  sync.Mutex // held while planning
	talk  *talk
	next  atomic.Int64 // tokens that the next proposal is expected to use
}

var (
	_ delta.Planner   = (*Planner)(nil)
	_ delta.Estimator = (*Planner)(nil)
)

// New makes a planner of a model. It fails where the configuration cannot be, and names the field.
func New(m Model, c Config) (*Planner, error) {
	c = c.WithDefaults()
	if m == nil {
		return nil, errors.New("chat: the model is nil")
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	p := &Planner{model: m, cfg: c}
	p.next.Store(int64(c.FirstPrompt + c.MaxOutput))
	return p, nil
}

// EstimatePlan returns what the next proposal may use: the conversation so far and the longest reply.
func (p *Planner) EstimatePlan() action.Cost {
	n := p.next.Load()
	return p.cfg.Price.cost(Usage{Input: n - int64(p.cfg.MaxOutput), Output: int64(p.cfg.MaxOutput)})
}

// Plan tells the model what became of its calls and returns what it proposes next. What was used is in the proposal also
// where there is an error.
func (p *Planner) Plan(ctx context.Context, r delta.Request) (delta.Proposal, error) {
	if !p.busy.TryLock() {
		return delta.Proposal{}, errors.New("chat: the planner is planning for another run; give every run one of its own")
	}
	defer p.busy.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.Timeout, fmt.Errorf("the model did not answer within %v", p.cfg.Timeout))
	defer cancel()
	t, err := p.listen(ctx, r)
	if err != nil {
		return delta.Proposal{}, err
	}
	spent := spending{reserved: p.EstimatePlan()}
	prop, size, err := p.propose(ctx, t, &spent)
	p.next.Store(int64(t.tokens(t.prompt().size()+size) + p.cfg.MaxOutput))
	prop.Used, prop.Estimated = p.cfg.Price.cost(spent.Usage), spent.estimated
	return prop, err
}

// propose asks until there is a proposal: what the planner can answer itself is answered at once, as far as the reservation
// goes. It returns the size of the last reply too.
func (p *Planner) propose(ctx context.Context, t *talk, spent *spending) (delta.Proposal, int, error) {
	for {
		reply, err := p.ask(ctx, t, spent)
		if errors.Is(err, errNoRoom) {
			t.again = true
			return t.later("the reply broke off; it is asked for again"), 0, nil
		}
		if err != nil {
			return delta.Proposal{}, 0, err
		}
		t.broken = 0
		prop := t.take(reply)
		if prop.Done || len(prop.Calls) > 0 || !t.answered() {
			t.reads = 0
			return prop, reply.size(), nil
		}
		if t.reads++; t.reads > maxReads {
			return prop, reply.size(), nil
		}
		if !p.room(t, spent) {
			return t.later("the model reads"), reply.size() + t.said.size(), nil
		}
		if err := t.answer(nil, "Go on."); err != nil {
			return prop, 0, fmt.Errorf("chat: %w", err)
		}
	}
}

// listen takes a request into the conversation, a new one at the first step.
func (p *Planner) listen(ctx context.Context, r delta.Request) (*talk, error) {
	t := p.talk
	switch {
	case r.More && t != nil && t.again && r.Step == t.step:
		t.again = false // the prompt that got no whole reply is sent once more
		return t, nil
	case r.More && (t == nil || t.said == nil || r.Step != t.step):
		return nil, fmt.Errorf("chat: step %d does not go on with what this planner planned last; a planner serves one run at a time", r.Step)
	case r.More:
	case r.Step <= 1:
		number, err := p.cfg.number()
		if err != nil {
			return nil, err
		}
		t = &talk{
			cfg: p.cfg, id: number[:16], names: newNames(), ids: map[string]bool{}, rate: firstRate,
			limit: p.cfg.Window - p.cfg.MaxOutput, system: system(r, p.cfg.Rules),
		}
		p.talk = t
	case t == nil || r.Step != t.step+1 || t.said == nil:
		return nil, fmt.Errorf("chat: step %d does not follow what this planner planned last; a planner serves one run at a time", r.Step)
	}
	var left int
	t.tools, left = toolsOf(r.Offer, t.names, p.cfg.MaxTools, t.ownTools(r)...)
	if err := t.hear(ctx, p.model, r, left); err != nil {
		return nil, fmt.Errorf("chat: %w", err)
	}
	return t, nil
}

// ask sends the conversation until there is a whole reply: once more where it was too long, and as often as configured
// where the reply broke off.
func (p *Planner) ask(ctx context.Context, t *talk, spent *spending) (Reply, error) {
	if err := t.fit(); err != nil {
		return Reply{}, err
	}
	trimmed, first := false, true
	for ; ; first = false {
		if !first && !p.room(t, spent) {
			return Reply{}, errNoRoom
		}
		prompt := t.prompt()
		sent := prompt.size()
		reply, err := p.model.Ask(ctx, prompt)
		spent.add(t, sent, reply, err, ctx.Err() != nil)
		switch {
		case err == nil:
			t.measure(sent, reply.Usage)
			return reply, nil
		case ctx.Err() != nil:
			return Reply{}, fmt.Errorf("chat: %w", context.Cause(ctx))
		case errors.Is(err, ErrTooLong) && !trimmed:
			trimmed = true
			t.limit = t.tokens(sent) * 3 / 4 // the window is smaller than configured, or the estimate too low
			if t.shrink(t.limit*2/3, t.limit) != nil {
				return Reply{}, err
			}
		case errors.Is(err, ErrCut) && t.broken < p.cfg.Resend:
			t.broken++
		default:
			return Reply{}, err
		}
	}
}

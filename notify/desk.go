package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// Config configures a desk. The zero value of everything but Notifiers is the default.
type Config struct {
	Notifiers []Notifier
	// Queue bounds the notices that wait for a notifier. What has no room is told by the next reminder, if it still waits
	// for a person. Default 256.
	Queue int
	// Timeout bounds one try. Default 10 s.
	Timeout time.Duration
	// Tries is how often a notice is tried before it is left to the next reminder. Default 5.
	Tries int
	// Pause is the first between two tries; each further one is twice as long, by and large, and at most a minute. Default
	// 500 ms.
	Pause time.Duration
	// Remind is how often what still waits and was not delivered is looked for. Default 1 minute.
	Remind time.Duration
	// Log receives what could not be delivered; nil: nothing is logged.
	Log *slog.Logger
}

// Engine is what a desk asks what waits; *delta.Engine is one.
type Engine interface {
	Approvals(ctx context.Context, limit int) ([]delta.Approval, error)
	Escalations(ctx context.Context, limit int) ([]delta.Escalation, error)
}

var _ Engine = (*delta.Engine)(nil)

// pendingMost bounds how much of one agent a reminder looks at.
const pendingMost = 1000

// Desk is an observer that tells notifiers. It owns a goroutine for each and one for reminders; Close ends them.
type Desk struct {
	cfg   Config
	posts []*post
	ctx   context.Context
	stop  context.CancelFunc
	all   sync.WaitGroup

	mu     sync.Mutex
	engine Engine
	look   chan struct{} // a reminder is due now
	closed bool
	end    chan struct{} // closed by Close: what is queued is still told
}

// New returns a desk. Close it.
func New(cfg Config) (*Desk, error) {
	def(&cfg.Queue, 256)
	def(&cfg.Timeout, 10*time.Second)
	def(&cfg.Tries, 5)
	def(&cfg.Pause, 500*time.Millisecond)
	def(&cfg.Remind, time.Minute)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	var faults []error
	if len(cfg.Notifiers) == 0 {
		faults = append(faults, errors.New("config Notifiers is empty; name at least one"))
	}
	for i, n := range cfg.Notifiers {
		if n == nil {
			faults = append(faults, fmt.Errorf("config Notifiers[%d] is nil", i))
		}
	}
	if cfg.Queue < 1 || cfg.Timeout < 0 || cfg.Tries < 1 || cfg.Pause < 0 || cfg.Remind < 0 {
		faults = append(faults, errors.New("config Queue, Timeout, Tries, Pause and Remind must be positive"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("notify: %w", err)
	}
	d := &Desk{cfg: cfg, look: make(chan struct{}, 1), end: make(chan struct{})}
	d.ctx, d.stop = context.WithCancel(context.Background())
	for _, n := range cfg.Notifiers {
		p := &post{d: d, to: n, queue: make(chan Notice, cfg.Queue), standing: map[string]state{}}
		d.posts = append(d.posts, p)
		d.all.Go(p.work)
	}
	d.all.Go(d.remind)
	return d, nil
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Watch is what Config.Observers of the engine is given.
func (d *Desk) Watch() delta.Watch {
	return delta.Watch{Name: "notify", Observer: d, Filter: delta.Filter{Types: types}}
}

// Observe implements [delta.Observer]: it queues and returns.
func (d *Desk) Observe(_ context.Context, r delta.Record) { d.tell(noticeOf(&r)) }

// Missed implements [delta.Observer]: what still waits is looked for.
func (d *Desk) Missed(context.Context, delta.Gap) { d.Remind() }

// Attach gives the desk the engine to ask what waits, and asks at once: after a restart what was pending is told again.
// Register the agents first.
func (d *Desk) Attach(e Engine) {
	d.mu.Lock()
	d.engine = e
	d.mu.Unlock()
	d.Remind()
}

// Remind looks now, not only at the next reminder, for what waits and was not delivered.
func (d *Desk) Remind() {
	select {
	case d.look <- struct{}{}:
	default:
	}
}

func (d *Desk) tell(n Notice) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.posts {
		if d.closed || !p.put(n) {
			d.cfg.Log.Warn("no room for a notice; a reminder tells it if it still waits", "notice", n.ID, "kind", n.Kind, "task", n.Task)
		}
	}
}

// remind is the goroutine of reminders.
func (d *Desk) remind() {
	every := time.NewTicker(d.cfg.Remind)
	defer every.Stop()
	for {
		select {
		case <-d.end:
			return
		case <-d.look:
		case <-every.C:
		}
		d.mu.Lock()
		e := d.engine
		d.mu.Unlock()
		if e == nil {
			continue
		}
		if err := d.pending(e); err != nil && !errors.Is(err, delta.ErrClosed) {
			d.cfg.Log.Warn("what waits for people cannot be listed; it is tried again", "error", err)
		}
	}
}

// pending queues what waits for a person and was not delivered by this desk.
func (d *Desk) pending(e Engine) error {
	ctx, cancel := context.WithTimeout(d.ctx, d.cfg.Timeout)
	defer cancel()
	approvals, err := e.Approvals(ctx, pendingMost)
	if err != nil {
		return err
	}
	escalations, err := e.Escalations(ctx, pendingMost)
	if err != nil {
		return err
	}
	for i := range approvals {
		a := &approvals[i]
		expires := time.UnixMicro(a.Expires).UTC()
		d.tell(withID(Notice{
			Kind: ApprovalRequested, At: time.UnixMicro(a.Asked).UTC(), Task: a.Task, Agent: a.Agent, Approval: a.ID, Action: a.Action,
			Risk: a.Risk.Effective, Reason: strings.Join(a.Why, "; "), Expires: &expires,
		}))
	}
	for _, x := range escalations {
		agent, _, _ := strings.Cut(x.Task, "~")
		d.tell(withID(Notice{
			Kind: EscalationRaised, At: x.Raised.UTC(), Task: x.Task, Agent: agent, Escalation: x.ID, Concern: x.Concern, Paused: x.Paused, Reason: x.Reason,
		}))
	}
	return nil
}

func withID(n Notice) Notice {
	n.ID = idOf(n)
	return n
}

// Close tells what is queued, as long as ctx lasts, and ends the goroutines. Close the engine first: it may have more to
// tell.
func (d *Desk) Close(ctx context.Context) error {
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		close(d.end)
		for _, p := range d.posts {
			close(p.queue)
		}
	}
	d.mu.Unlock()
	defer d.stop()
	done := make(chan struct{})
	go func() { d.all.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	d.stop()
	grace := time.NewTimer(time.Second)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
		return errors.Join(context.Cause(ctx), errors.New("notify: a notifier does not return"))
	}
	return context.Cause(ctx)
}

// said is what a panic says.
func said(p any) error { return fmt.Errorf("the notifier panicked: %s", action.TextOf(p)) }

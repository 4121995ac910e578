package delta

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/keys"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/skills"
	"github.com/seed-ab2cfece/delta-agents/tool"
)

// Config configures an engine. Its zero value runs on a volatile in-process store with the defaults named here.
type Config struct {
	// Store holds all state; nil: an in-process store that is gone with the engine.
	Store memory.Store
	// Policy permits or forbids beside the grants of the agents; nil: grants alone decide. It has 5 s for all it is asked
	// about one call or offer; what takes longer denies.
	Policy policy.Policy
	// Authenticator tells who decides approvals; nil: nobody can.
	Authenticator Authenticator
	// Operators are the identities, and the roles as "role:NAME", that may resolve unknown outcomes, change thresholds and
	// top up budgets of any task, beside the task's own approvers, and that alone may reset beliefs and break the glass.
	// Whoever requested a task, and its agent, never may. Empty: approvers alone, and nobody for the rest.
	Operators []string
	// Pools are budgets beyond those of tasks: per agent and day or month, or shared by agents. Calls and planning count in
	// all that name their agent, from the begin on, and are refused with BUDGET_EXHAUSTED where one has no room. Engines
	// on one store must have the same.
	Pools []Pool
	// Hooks run around every action, outside the action's own.
	Hooks hooks.Hooks
	// Observers are told what this engine writes into the ledgers, once it is written; see [Observer].
	Observers []Watch
	// Skills finds the skills that agents, actions and goals name; nil: there are none. See package skills.
	Skills *skills.Library
	// Tools finds the tools that execute actions, see [DefineTool]; nil: there are none. Being in it grants nothing.
	Tools *tool.Registry
	// Keys wraps the data keys under which secrets are written down, see package keys. Workers of one store need the same
	// ring. Nil: data keys lie in the store as they are, so that who can read the store can read secrets, and who has a copy
	// of a ledger alone still cannot.
	Keys keys.Ring
	// Workflows are those that this engine runs, see [Engine.StartWorkflow].
	Workflows Workflows
	// Attachments keeps the content of what goals attach; nil: memory, for the running tasks of this engine and at most
	// 256 MiB.
	Attachments AttachmentStore
	// MaxAttachment is the most bytes that one attachment may have. Default 10 MiB.
	MaxAttachment int64
	// Channels are where messages can go, by name; a task may use those its goal names. See [Communicate].
	Channels map[string]Channel
	// Escalate says when a task is brought before a person.
	Escalate Escalate
	// Risk tunes the estimator; nobody should need to.
	Risk risk.Config
	// Observe decides and records everything but refuses nothing of gates 4 to 8: a first step in front of existing
	// tools.
	Observe bool

	// Lease is how long a worker owns a running call before others may take it over; it is kept alive while the
	// function runs. Default 30 s, at least 100 ms.
	Lease time.Duration
	// Timeout bounds an attempt of actions that declare none, and the Authenticator. Default 1 minute.
	Timeout time.Duration
	// Grace is how long a function may take to return once it was told to stop, before it is abandoned. Default 1 s.
	Grace time.Duration
	// StoreTimeout bounds every access to the store that must happen whatever the caller's context does. Default 10 s.
	StoreTimeout time.Duration
	// ApprovalTTL is how long a request for approval waits where the goal does not say. Default 1 h.
	ApprovalTTL time.Duration
	// GlassLimit is the longest that an override may stand, see [Task.BreakGlass]. Default 1 h.
	GlassLimit time.Duration
	// DeskLimit is how many open requests of one agent are shown and may be approved at a time, the oldest first: nobody
	// decides well about a flood. Those behind them wait for their turn and expire like any other; rejecting is always
	// possible. Default 20.
	DeskLimit int
	// BatchLimit is how many calls one [Engine.ApproveBatch] may consent to. Default 10.
	BatchLimit int
	// Refusals is how many refusals of one task are recorded one by one within an hour, a tenth of it where the task is paused or
	// over: whoever makes calls in a loop must not fill its ledger. Those beyond it are answered as ever and counted, their
	// number is recorded (refusals_counted). What ends a call or a request, or brings the task before a person, is always
	// recorded. Default 1,000; less than 0 records all.
	Refusals int
	// Poll is how often DoWait and Work look for what other processes did. Default 1 s.
	Poll time.Duration
	// Workers bounds the calls that Work runs at a time. Default 4.
	Workers int
	// MaxAbandoned bounds the user code that was given up and still runs, each kind for itself: functions, hooks,
	// planners, checks of inputs (rules, keys, decoding), the policy. From then on none of that kind starts.
	// Default 64.
	MaxAbandoned int

	// Now is the worker's clock, ID a source of unique ids of at most 26 letters and digits; nil: time.Now, crypto/rand.
	Now func() time.Time
	ID  func() string
	// Log receives what cannot be returned to anybody: failed housekeeping, failed hooks. Nil: nothing is logged.
	Log *slog.Logger
}

// Authenticator tells who somebody is from a credential that its transport vouches for.
type Authenticator interface {
	// Authenticate returns the name of the person or service behind the credential, or an error.
	Authenticate(ctx context.Context, credential any) (name string, err error)
}

// AuthenticatorFunc makes an Authenticator of a function.
type AuthenticatorFunc func(ctx context.Context, credential any) (string, error)

// Authenticate calls f.
func (f AuthenticatorFunc) Authenticate(ctx context.Context, credential any) (string, error) {
	return f(ctx, credential)
}

// WithDefaults returns the configuration with every default filled in.
func (c Config) WithDefaults() Config {
	set(&c.Lease, 30*time.Second)
	set(&c.Timeout, time.Minute)
	set(&c.Grace, time.Second)
	set(&c.StoreTimeout, 10*time.Second)
	set(&c.ApprovalTTL, time.Hour)
	set(&c.GlassLimit, time.Hour)
	set(&c.DeskLimit, 20)
	set(&c.BatchLimit, 10)
	set(&c.Refusals, 1000)
	set(&c.Poll, time.Second)
	set(&c.Workers, 4)
	set(&c.MaxAbandoned, 64)
	set(&c.MaxAttachment, 10<<20)
	if c.Attachments == nil {
		c.Attachments = newInMemory()
	}
	c.Escalate = c.Escalate.withDefaults()
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.ID == nil {
		c.ID = new(idSource).next
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c Config) validate() error {
	var faults []error
	for _, d := range []struct {
		name string
		have time.Duration
		min  time.Duration
	}{
		{"Lease", c.Lease, 100 * time.Millisecond}, {"Timeout", c.Timeout, time.Microsecond}, {"Grace", c.Grace, time.Microsecond},
		{"StoreTimeout", c.StoreTimeout, time.Millisecond}, {"ApprovalTTL", c.ApprovalTTL, time.Millisecond}, {"Poll", c.Poll, time.Millisecond},
		{"GlassLimit", c.GlassLimit, time.Millisecond},
	} {
		if d.have < d.min {
			faults = append(faults, fmt.Errorf("config %s is %v, want at least %v", d.name, d.have, d.min))
		}
	}
	faults = append(faults, approval.CheckList("config Operators", c.Operators))
	faults = append(faults, checkWatches(c.Observers)...)
	faults = append(faults, c.Escalate.check()...)
	faults = append(faults, checkPools(c.Pools)...)
	if err := c.Hooks.Check(); err != nil {
		faults = append(faults, fmt.Errorf("config Hooks: %w", err))
	}
	if c.Workers < 1 {
		faults = append(faults, fmt.Errorf("config Workers is %d, want at least 1", c.Workers))
	}
	faults = append(faults, checkChannels(c.Channels)...)
	if c.MaxAttachment < 1 {
		faults = append(faults, fmt.Errorf("config MaxAttachment is %d bytes, want at least 1", c.MaxAttachment))
	}
	if c.DeskLimit < 1 || c.BatchLimit < 1 {
		faults = append(faults, fmt.Errorf("config DeskLimit is %d and BatchLimit %d, want at least 1", c.DeskLimit, c.BatchLimit))
	}
	if c.MaxAbandoned < 1 {
		faults = append(faults, fmt.Errorf("config MaxAbandoned is %d, want at least 1", c.MaxAbandoned))
	}
	return errors.Join(faults...)
}

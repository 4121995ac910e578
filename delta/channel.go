package delta

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
)

// Channel carries messages of tasks to people or systems. Sending is an effect like any other: it happens in the function
// of a governed call, see [Communicate].
type Channel interface {
	// Send delivers a message. A nil error says that the channel has taken it, not that anybody read it. Where it is not
	// known whether it was taken, the error is made by action.Unknown. It must return when ctx ends, and may be called from
	// many goroutines.
	Send(ctx context.Context, m Message) error
}

// ChannelFunc makes a Channel of a function.
type ChannelFunc func(ctx context.Context, m Message) error

// Send calls f.
func (f ChannelFunc) Send(ctx context.Context, m Message) error { return f(ctx, m) }

// Message is what a channel is given.
type Message struct {
	// ID is the same for all attempts to send the message: a channel that drops what it has seen sends it once.
	ID      string
	Channel string // its name in Config.Channels
	Agent   string
	Task    string // "agent~task"
	Subject string // may be empty
	Text    string
	At      time.Time // when it was handed over
}

// LogChannel writes messages to a log: for trying things out, and where logs are what people read.
func LogChannel(log *slog.Logger) Channel {
	return ChannelFunc(func(ctx context.Context, m Message) error {
		if log == nil {
			return errors.New("the log channel has no log")
		}
		log.InfoContext(ctx, "message", "channel", m.Channel, "task", m.Task, "id", m.ID, "subject", m.Subject, "text", m.Text)
		return nil
	})
}

// Communication is the input of the built-in action that sends messages.
type Communication struct {
	Channel string `json:"channel" jsonschema:"minLength=1,maxLength=128"`
	Subject string `json:"subject,omitempty" jsonschema:"maxLength=200"`
	Text    string `json:"text" jsonschema:"minLength=1,maxLength=8000"`
}

// Sent is its output.
type Sent struct {
	Channel string `json:"channel"`
	ID      string `json:"id"` // of the message
}

// CommunicateAction is the name of the built-in action that sends messages.
const CommunicateAction = builtIn + "communicate"

// builtIn begins the names of built-in actions; no declared action has such a name.
const builtIn = "delta."

// Communicate declares the built-in action that sends a message over one of the task's channels (Goal.Channels). It is an
// action like any other: an agent that may send is granted it, and may be made to ask a person first:
//
//	tell := delta.Communicate().RequireApproval().MustBuild()
//	desk := delta.NewAgent("desk").Grant(tell).MustBuild()
//
// A channel that the task does not have is refused with CHANNEL_UNKNOWN. Risk is 2. A message cannot be taken back, so the
// effect is irreversible; where every channel drops an id that it has seen, Effect(action.Idempotent) and Retry say so.
func Communicate() Builder[Communication, Sent] {
	b := Define(CommunicateAction, send).Describe("Send a message over a channel of this task").Risk(2)
	b.d.vet = channelKnown
	return b
}

func send(ctx *Context, in Communication) mo.Result[Sent] {
	if f := ctx.brought.Sends(in.Channel); f != nil { // looked at again where it is sent: a message is not taken back
		return mo.Err[Sent](f)
	}
	e := ctx.flight.t.engine
	c, ok := e.cfg.Channels[in.Channel]
	if !ok { // it was here when the call was decided, by another worker perhaps
		return mo.Err[Sent](fmt.Errorf("channel %q is not configured on this worker; add it to Config.Channels", in.Channel))
	}
	m := Message{
		ID: ctx.ExecutionID(), Channel: in.Channel, Agent: ctx.AgentName(), Task: ctx.TaskID(), Subject: in.Subject, Text: in.Text, At: e.cfg.Now(),
	}
	if err := c.Send(ctx, m); err != nil {
		return mo.Err[Sent](fmt.Errorf("channel %q: %w", in.Channel, err))
	}
	return mo.Ok(Sent{in.Channel, m.ID})
}

// channelKnown says which channel a message is for, and refuses it where this engine does not have that one. Whether the task
// has it is decided with everything else, by what the decision rests on.
func channelKnown(t *Task, raw action.Input, call *engine.Call) *action.Failure {
	var in Communication
	if err := raw.Decode(&in); err != nil { // the schema would have said so
		return action.Fail(action.InputInvalid, "the message cannot be read").Because(err)
	}
	call.Wants = &in.Channel
	if t.engine.cfg.Channels[in.Channel] == nil {
		f := action.Fail(action.ChannelUnknown, "channel %q cannot be reached from here", in.Channel)
		return f.With(action.DetailRule, "Config.Channels of this engine does not have it")
	}
	return nil
}

// checkChannels reports channels that cannot be configured.
func checkChannels(cs map[string]Channel) (faults []error) {
	for _, name := range slices.Sorted(maps.Keys(cs)) {
		if err := action.CheckName(name); err != nil {
			faults = append(faults, fmt.Errorf("config Channels: %w", err))
		}
		if isNil(cs[name]) {
			faults = append(faults, fmt.Errorf("config Channels: channel %q is nil", name))
		}
	}
	return faults
}

// channelsExist reports channels of a goal that the engine does not have.
func (e *Engine) channelsExist(names []string) (faults []error) {
	if len(names) > maxNamed {
		return []error{fmt.Errorf("goal names %d channels, at most %d are used", len(names), maxNamed)}
	}
	for _, name := range names {
		if e.cfg.Channels[name] == nil {
			have := slices.Sorted(maps.Keys(e.cfg.Channels))
			faults = append(faults, fmt.Errorf("goal channel %q: the engine has %q; add it to Config.Channels", action.CutTo(name, action.MaxName), have))
		}
	}
	return faults
}

// Communicate sends a message over one of the task's channels, as a call of the built-in action: through all gates, an
// approval included where one is needed. The agent must have been granted it. The result is that of [Task.Do].
func (t *Task) Communicate(ctx context.Context, channel, text string) mo.Result[action.Outcome] {
	return t.Do(ctx, Call{Action: CommunicateAction, Input: asJSON(Communication{Channel: channel, Text: text})})
}

// Communicate sends a message over one of the task's channels, as a call within this one, see [Context.Tool]. The action
// need not list it among its tools: whether the agent may send is decided by what it was granted.
func (c *Context) Communicate(channel, text string) mo.Result[action.Outcome] {
	return c.within(Call{Action: CommunicateAction, Input: asJSON(Communication{Channel: channel, Text: text})}, nil)
}

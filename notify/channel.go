package notify

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// Message is a message of a task as a webhook posts it.
type Message struct {
	ID      string    `json:"id"`   // the same for all attempts to send it; also in the header webhook-id
	Type    string    `json:"type"` // "message"
	At      time.Time `json:"timestamp"`
	Task    string    `json:"task"` // full id
	Agent   string    `json:"agent"`
	Channel string    `json:"channel"`
	Subject string    `json:"subject,omitempty"`
	Text    string    `json:"text"`
}

// Channel returns the webhook as a channel for messages of tasks, see [delta.Communicate]. It posts each once: whether to
// try again is a matter of the governed call. A receiver that drops an id it has seen makes that safe:
//
//	tell := delta.Communicate().Effect(action.Idempotent).Retry(2).MustBuild()
//
// An answer of 4xx, of 503, or none because no connection came about, says that the message was not taken. After any other
// failure nobody knows, and the error is made by action.Unknown.
func (w *Webhook) Channel() delta.Channel {
	return delta.ChannelFunc(func(ctx context.Context, m delta.Message) error {
		body, err := json.Marshal(Message{
			ID: m.ID, Type: "message", At: m.At.UTC(), Task: m.Task, Agent: m.Agent, Channel: m.Channel, Subject: m.Subject, Text: m.Text,
		})
		if err != nil {
			return err
		}
		return taken(w.Post(ctx, m.ID, body))
	})
}

// taken tells what surely did not arrive from what may have.
func taken(err error) error {
	var final *backoff.PermanentError
	var later *backoff.RetryAfterError
	var dial *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &final):
		return final.Unwrap()
	case errors.As(err, &later):
		return errors.New("the receiver takes nothing now; try again later")
	case errors.As(err, &dial) && dial.Op == "dial":
		return err
	}
	return action.Unknown(err)
}

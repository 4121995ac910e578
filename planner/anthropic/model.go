package anthropic

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	api "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/seed-ab2cfece/delta-agents/planner/chat"
)

// Options say where the model is. What is empty comes from the environment.
type Options struct {
	// BaseURL ends before /v1/messages; else ANTHROPIC_BASE_URL, else Anthropic's own.
	BaseURL string
	// Key is the API key; else ANTHROPIC_API_KEY. A server with a BaseURL may do without.
	Key string
	// Model names the model; else ANTHROPIC_MODEL.
	Model string
	// Retries is how often a request is sent again after 429, 5xx or a failed connection; default 2, below zero never.
	Retries int
	// MaxWait is the longest that is waited before a retry; a server that asks for longer ends the proposal. Default 30 s.
	MaxWait time.Duration
	// Client makes the requests; default one that follows no redirects.
	Client *http.Client
}

var provider = chat.Provider{Name: "anthropic", Env: "ANTHROPIC", Home: "https://api.anthropic.com", Like: "http://localhost:8000"}

// Model is a [chat.Model]. It may be used from several goroutines.
type Model struct {
	o        Options
	messages api.MessageService
}

var (
	_ chat.Model = (*Model)(nil)
	_ chat.Taker = (*Model)(nil)
)

// New returns the model that the options name. It opens no connection. It fails where no model is named, no key is there
// for Anthropic's own servers, or the URL cannot be one.
func New(o Options) (*Model, error) {
	_, err := provider.Complete(&o.BaseURL, &o.Key, &o.Model)
	if err != nil {
		return nil, err
	}
	o.BaseURL = strings.TrimSuffix(strings.TrimSuffix(o.BaseURL, "/"), "/v1") // as some set it
	o.Retries = max(cmp.Or(o.Retries, 2), 0)
	o.MaxWait = cmp.Or(o.MaxWait, 30*time.Second)
	if o.Client == nil {
		o.Client = chat.Stay()
	}
	return &Model{o, api.NewMessageService(
		option.WithBaseURL(o.BaseURL), option.WithAPIKey(cmp.Or(o.Key, "none")), option.WithHTTPClient(o.Client),
		option.WithMaxRetries(o.Retries), option.WithMiddleware(impatient(o.MaxWait)), option.WithoutOpenTelemetry(),
	)}, nil
}

// impatient keeps what a server asks to wait for within bounds: the library itself would wait as long as it is told. The
// header that forbids a retry is the library's own.
func impatient(most time.Duration) option.Middleware {
	return func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		res, err := next(r)
		if err == nil && wait(res.Header) > most {
			res.Header.Set("X-Should-Retry", "false")
		}
		return res, err
	}
}

// wait is how long a server asks to be left alone.
func wait(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return time.Duration(ms * float64(time.Millisecond))
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return time.Until(at)
	}
	return 0
}

// String names the model and where it is.
func (m *Model) String() string { return m.o.Model + " at " + m.o.BaseURL }

// Takes reports whether the wire carries a kind of media: images.
func (m *Model) Takes(mediaType string) bool {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// Ask sends a prompt and reads the stream to its end.
func (m *Model) Ask(ctx context.Context, p chat.Prompt) (chat.Reply, error) {
	stream := m.messages.NewStreaming(ctx, m.body(p))
	defer stream.Close()
	if err := stream.Err(); err != nil {
		return chat.Reply{}, m.explain(ctx, err, false)
	}
	var r reader
	for stream.Next() {
		if err := r.take(stream.Current()); err != nil {
			return r.reply(), err
		}
	}
	switch err := stream.Err(); {
	case err != nil:
		return r.reply(), m.explain(ctx, err, true)
	case ctx.Err() != nil:
		return r.reply(), context.Cause(ctx)
	case !r.finished:
		return r.reply(), fmt.Errorf("anthropic: %w: the stream ended without message_stop", chat.ErrCut)
	}
	return r.reply(), nil
}

// body is the request in the wire's words. What the next request will begin with as well is marked for the cache: the
// tools, the system prompt, and the conversation up to here and up to the turn before.
func (m *Model) body(p chat.Prompt) api.MessageNewParams {
	b := api.MessageNewParams{Model: m.o.Model, MaxTokens: int64(p.MaxOutput)}
	for i, s := range p.System {
		block := api.TextBlockParam{Text: s}
		if i == len(p.System)-1 {
			block.CacheControl = api.NewCacheControlEphemeralParam()
		}
		b.System = append(b.System, block)
	}
	for i, t := range p.Tools {
		tool := api.ToolParam{
			Name: t.Name, Description: api.String(t.Description),
			// As it is: the library would write what it has no field for in the order of a map, and no cache would hold.
			InputSchema: param.Override[api.ToolInputSchemaParam](t.Schema),
		}
		if i == len(p.Tools)-1 {
			tool.CacheControl = api.NewCacheControlEphemeralParam()
		}
		b.Tools = append(b.Tools, api.ToolUnionParam{OfTool: &tool})
	}
	for i, msg := range p.Messages {
		blocks := blocks(msg)
		if last := len(p.Messages) - 1; i == last || i == last-2 {
			cached(blocks)
		}
		role := api.MessageParamRoleUser
		if msg.Assistant {
			role = api.MessageParamRoleAssistant
		}
		b.Messages = append(b.Messages, api.MessageParam{Role: role, Content: blocks})
	}
	return b
}

func blocks(m chat.Message) (out []api.ContentBlockParamUnion) {
	for _, r := range m.Results {
		out = append(out, api.NewToolResultBlock(r.ID, r.Text, r.Failed))
	}
	for _, x := range m.Media {
		out = append(out, api.NewImageBlockBase64(x.Type, base64.StdEncoding.EncodeToString(x.Data)))
	}
	if strings.TrimSpace(m.Text) != "" {
		out = append(out, api.NewTextBlock(m.Text))
	}
	for _, c := range m.Calls {
		out = append(out, api.NewToolUseBlock(c.ID, json.RawMessage(c.Arguments), c.Name))
	}
	return out
}

// cached marks the last block of a user's message.
func cached(blocks []api.ContentBlockParamUnion) {
	if len(blocks) == 0 {
		return
	}
	if c := blocks[len(blocks)-1].GetCacheControl(); c != nil {
		*c = api.NewCacheControlEphemeralParam()
	}
}

// explain makes an error of the provider ours. It keeps what the server said, without the key, and neither the request
// nor its headers.
func (m *Model) explain(ctx context.Context, err error, begun bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var refused *api.Error
	if !errors.As(err, &refused) {
		return chat.Broken("anthropic", err, m.o.Key, begun)
	}
	var body struct {
		Error struct{ Type, Message string }
	}
	_ = json.Unmarshal([]byte(refused.RawJSON()), &body) // a body that says nothing is said nothing of
	status := refused.StatusCode
	if begun {
		status = 0 // an error event inside a stream that had begun well
	}
	return chat.Refusal("anthropic", status, body.Error.Type, body.Error.Message, m.o.Key)
}

package openai

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	api "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/seed-ab2cfece/delta-agents/planner/chat"
)

// Options say where the model is. What is empty comes from the environment.
type Options struct {
	// BaseURL ends before /chat/completions; else OPENAI_BASE_URL, else OpenAI's own.
	BaseURL string
	// Key is the API key; else OPENAI_API_KEY. A server with a BaseURL may do without.
	Key string
	// Model names the model; else OPENAI_MODEL.
	Model string
	// Retries is how often a request is sent again after 429, 5xx or a failed connection; default 2, below zero never.
	Retries int
	// MaxWait is the longest that is waited before a retry; a server that asks for longer ends the proposal. Default 30 s.
	MaxWait time.Duration
	// MaxTokens sends the bound of a reply as max_tokens and not as max_completion_tokens. Servers other than OpenAI's own
	// always get max_tokens, which is the older and wider known, unless MaxCompletionTokens is set.
	MaxTokens, MaxCompletionTokens bool
	// Client makes the requests; default one that follows no redirects.
	Client *http.Client
}

var provider = chat.Provider{Name: "openai", Env: "OPENAI", Home: "https://api.openai.com/v1", Like: "http://localhost:8000/v1"}

// Model is a [chat.Model]. It may be used from several goroutines.
type Model struct {
	o    Options
	chat api.ChatCompletionService
}

var (
	_ chat.Model = (*Model)(nil)
	_ chat.Taker = (*Model)(nil)
)

// New returns the model that the options name. It opens no connection. It fails where no model is named, no key is there
// for OpenAI's own servers, or the URL cannot be one.
func New(o Options) (*Model, error) {
	own, err := provider.Complete(&o.BaseURL, &o.Key, &o.Model)
	if err != nil {
		return nil, err
	}
	o.Retries = max(cmp.Or(o.Retries, 2), 0)
	o.MaxWait = cmp.Or(o.MaxWait, 30*time.Second)
	o.MaxTokens = o.MaxTokens || !own && !o.MaxCompletionTokens
	if o.Client == nil {
		o.Client = chat.Stay()
	}
	return &Model{o, api.NewChatCompletionService(
		option.WithBaseURL(o.BaseURL), option.WithAPIKey(cmp.Or(o.Key, "none")), option.WithHTTPClient(o.Client),
		option.WithMaxRetries(o.Retries), option.WithMaxRetryDelay(o.MaxWait),
	)}, nil
}

// String names the model and where it is.
func (m *Model) String() string { return m.o.Model + " at " + m.o.BaseURL }

// Takes reports whether the wire carries a kind of media: images, and sound in WAV or MP3. Whether the model understands
// them is another question.
func (m *Model) Takes(mediaType string) bool {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "audio/wav", "audio/x-wav", "audio/mpeg":
		return true
	}
	return false
}

// Ask sends a prompt and reads the stream to its end.
func (m *Model) Ask(ctx context.Context, p chat.Prompt) (chat.Reply, error) {
	body, err := m.body(p)
	if err != nil {
		return chat.Reply{}, err
	}
	stream := m.chat.NewStreaming(ctx, body)
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
		return r.reply(), fmt.Errorf("openai: %w: the stream ended without a reason", chat.ErrCut)
	}
	return r.reply(), nil
}

// body is the request in the wire's words.
func (m *Model) body(p chat.Prompt) (api.ChatCompletionNewParams, error) {
	b := api.ChatCompletionNewParams{
		Model:         m.o.Model,
		StreamOptions: api.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
		Messages:      []api.ChatCompletionMessageParamUnion{api.SystemMessage(strings.Join(p.System, "\n\n"))},
	}
	if m.o.MaxTokens {
		b.MaxTokens = param.NewOpt(int64(p.MaxOutput))
	} else {
		b.MaxCompletionTokens = param.NewOpt(int64(p.MaxOutput))
	}
	for _, t := range p.Tools {
		f := api.FunctionDefinitionParam{Name: t.Name, Description: param.NewOpt(t.Description)}
		if err := json.Unmarshal(t.Schema, &f.Parameters); err != nil {
			return b, fmt.Errorf("openai: the schema of %s: %w", t.Name, err)
		}
		b.Tools = append(b.Tools, api.ChatCompletionFunctionTool(f))
	}
	for _, msg := range p.Messages {
		b.Messages = append(b.Messages, messages(msg)...)
	}
	return b, nil
}

// messages are those of one turn: each result is one of its own here.
func messages(m chat.Message) (out []api.ChatCompletionMessageParamUnion) {
	if m.Assistant {
		var a api.ChatCompletionAssistantMessageParam
		if m.Text != "" {
			a.Content.OfString = param.NewOpt(m.Text)
		}
		for _, c := range m.Calls {
			a.ToolCalls = append(a.ToolCalls, api.ChatCompletionMessageToolCallUnionParam{OfFunction: &api.ChatCompletionMessageFunctionToolCallParam{
				ID: c.ID, Function: api.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: c.Arguments},
			}})
		}
		return append(out, api.ChatCompletionMessageParamUnion{OfAssistant: &a})
	}
	for _, r := range m.Results {
		out = append(out, api.ToolMessage(r.Text, r.ID))
	}
	switch {
	case len(m.Media) > 0:
		parts := []api.ChatCompletionContentPartUnionParam{}
		for _, x := range m.Media {
			parts = append(parts, part(x))
		}
		out = append(out, api.UserMessage(append(parts, api.TextContentPart(m.Text))))
	case m.Text != "":
		out = append(out, api.UserMessage(m.Text))
	}
	return out
}

func part(x chat.Media) api.ChatCompletionContentPartUnionParam {
	data := base64.StdEncoding.EncodeToString(x.Data)
	switch x.Type {
	case "audio/wav", "audio/x-wav":
		return api.InputAudioContentPart(api.ChatCompletionContentPartInputAudioInputAudioParam{Data: data, Format: "wav"})
	case "audio/mpeg":
		return api.InputAudioContentPart(api.ChatCompletionContentPartInputAudioInputAudioParam{Data: data, Format: "mp3"})
	}
	return api.ImageContentPart(api.ChatCompletionContentPartImageImageURLParam{URL: "data:" + x.Type + ";base64," + data})
}

// explain makes an error of the provider ours. It keeps what the server said, without the key, and neither the request
// nor its headers.
func (m *Model) explain(ctx context.Context, err error, begun bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var refused *api.Error
	if errors.As(err, &refused) {
		return chat.Refusal("openai", refused.StatusCode, refused.Code, refused.Message, m.o.Key)
	}
	if broken, ok := inStream(err); ok {
		return chat.Refusal("openai", 0, broken.Code, broken.Message, m.o.Key)
	}
	return chat.Broken("openai", err, m.o.Key, begun)
}

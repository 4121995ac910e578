package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/tool"
)

// metaKey is under which a server finds the idempotency key of a call, where its action has one.
const metaKey = "delta-agents/idempotency-key"

// rejected is the code by which the SDK says, itself, that a request came to nothing on its way. It says so of requests that
// may have reached the server too: of one whose answer was lost.
const rejected = -32005

// invoke makes a call. Until it is handed to the connection nothing has happened; from then on, unless the server answers,
// nobody knows.
func (c *Client) invoke(ctx context.Context, t *remote, call tool.Call) (json.RawMessage, error) {
	k, err := c.session(ctx)
	if err != nil {
		return nil, action.Unstarted(err)
	}
	c.mu.Lock()
	now := c.listing[t.info.Name]
	c.mu.Unlock()
	if now == nil || now.info.Version != t.info.Version {
		return nil, action.Unstarted(fmt.Errorf("mcp: the tool %q has changed, or is gone, since it was imported", t.info.Name))
	}
	if err := context.Cause(ctx); err != nil {
		return nil, action.Unstarted(err)
	}
	params := &sdk.CallToolParams{Name: t.info.Name, Arguments: call.Input}
	if call.Key != "" {
		params.Meta = sdk.Meta{metaKey: call.Key}
	}
	before := k.line.sent.Load()
	returned := k.unstick(ctx)
	res, err := k.session.CallTool(ctx, params)
	returned()
	if err == nil {
		c.worked()
		return c.result(t, res)
	}
	var dialed *net.OpError
	if errors.As(err, &dialed) && dialed.Op == "dial" || before >= 0 && k.line.sent.Load() == before {
		return nil, action.Unstarted(err)
	}
	var answered *jsonrpc.Error
	if errors.As(err, &answered) && answered.Code != rejected && !errors.Is(err, sdk.ErrConnectionClosed) {
		return nil, fmt.Errorf("the server refuses the call: %s (code %d)", action.Visible(action.Cut(answered.Message)), answered.Code)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	err = fmt.Errorf("mcp: the server %q did not answer the call: %w", c.cfg.Name, err)
	if call.Repeatable {
		return nil, err
	}
	return nil, action.Unknown(err)
}

// worked forgets earlier failures: the server answers.
func (c *Client) worked() {
	c.mu.Lock()
	c.failures = 0
	c.mu.Unlock()
}

// result makes an output of what a server answered.
func (c *Client) result(t *remote, res *sdk.CallToolResult) (json.RawMessage, error) {
	switch {
	case res.NeedsInput():
		return nil, errors.New("the tool asks for more than its input, which nobody can answer here")
	case res.IsError:
		return nil, errors.New(said(res.Content))
	}
	out, err := c.output(t, res)
	if err != nil {
		return nil, err
	}
	if len(out) > c.cfg.MaxOutput {
		return nil, fmt.Errorf("the tool returned %d bytes, more than the %d that are taken", len(out), c.cfg.MaxOutput)
	}
	return out, nil
}

func (c *Client) output(t *remote, res *sdk.CallToolResult) (json.RawMessage, error) {
	structured, err := exactly(res)
	if err != nil {
		return nil, err
	}
	if t.structured {
		if structured == nil {
			return json.RawMessage("null"), nil // the contract says whether that will do
		}
		return structured, nil
	}
	all := struct {
		Content    []any           `json:"content"`
		Structured json.RawMessage `json:"structured,omitempty"`
	}{[]any{}, structured}
	for _, p := range res.Content {
		all.Content = append(all.Content, part(p))
	}
	return json.Marshal(all)
}

// exactly is the structured content. The SDK reads numbers as floats: what large ones were is found in the text beside it,
// which servers send for those who do not read structured content, or nowhere.
func exactly(res *sdk.CallToolResult) (json.RawMessage, error) {
	if res.StructuredContent == nil {
		return nil, nil
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil || !coarse(res.StructuredContent) {
		return raw, err
	}
	for _, p := range res.Content {
		if text, is := p.(*sdk.TextContent); is && sameButNumbers(text.Text, raw) {
			return json.RawMessage(text.Text), nil
		}
	}
	return nil, errors.New("the tool returned numbers too large to be read exactly, and no text beside them that says what they are")
}

// coarse reports whether a value holds numbers that may have been rounded.
func coarse(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.Abs(v) >= 1<<53
	case []any:
		for _, e := range v {
			if coarse(e) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if coarse(e) {
				return true
			}
		}
	}
	return false
}

// sameButNumbers reports whether a text is JSON that reads as the same value where numbers are floats.
func sameButNumbers(text string, raw []byte) bool {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return false
	}
	again, err := json.Marshal(v)
	return err == nil && bytes.Equal(again, raw)
}

// piece is a part of a result as planners see it.
type piece struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Data     []byte `json:"data,omitempty"` // base64
	MIMEType string `json:"mimeType,omitempty"`
	URI      string `json:"uri,omitempty"`
	Name     string `json:"name,omitempty"`
}

func part(p sdk.Content) piece {
	switch p := p.(type) {
	case *sdk.TextContent:
		return piece{Type: "text", Text: p.Text}
	case *sdk.ImageContent:
		return piece{Type: "image", Data: p.Data, MIMEType: p.MIMEType}
	case *sdk.AudioContent:
		return piece{Type: "audio", Data: p.Data, MIMEType: p.MIMEType}
	case *sdk.ResourceLink:
		return piece{Type: "resource_link", URI: p.URI, Name: p.Name, MIMEType: p.MIMEType}
	case *sdk.EmbeddedResource:
		if r := p.Resource; r != nil {
			return piece{Type: "resource", URI: r.URI, MIMEType: r.MIMEType, Text: r.Text, Data: r.Blob}
		}
	}
	return piece{Type: "unknown"}
}

// said is what a tool says went wrong.
func said(content []sdk.Content) string {
	var texts []string
	for _, p := range content {
		if t, is := p.(*sdk.TextContent); is {
			texts = append(texts, t.Text)
		}
	}
	if s := action.Cut(visibleLines(strings.Join(texts, "\n"))); !action.Blank(s) {
		return s
	}
	return "the tool says that it failed, and not why"
}

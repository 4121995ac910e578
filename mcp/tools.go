package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/tool"
)

// Info is what a server says of a tool. All of it is the server's word.
type Info struct {
	Name        string // as the server calls it
	Action      string // as it is called here
	Version     string // a hash of all that the server says of it
	Title       string
	Description string
	// ReadOnly, Destructive, Idempotent and OpenWorld are the annotations; nil where nothing is said.
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
	// Class is what is made of them.
	Class Class
}

// Skipped is a tool that was not imported.
type Skipped struct {
	Name string // as the server calls it, made visible
	Why  string
}

// remote is a tool of the server, checked.
type remote struct {
	info       Info
	contract   tool.Contract
	structured bool // it declares its output
}

// list asks the server for its tools and checks them.
func (c *Client) list(ctx context.Context, k *conn) error {
	var all []*sdk.Tool
	for t, err := range k.session.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("its tools cannot be listed: %w", err)
		}
		if all = append(all, t); len(all) > c.cfg.MaxTools {
			return fmt.Errorf("it lists more than %d tools: raise MaxTools", c.cfg.MaxTools)
		}
	}
	listing, skipped := c.checked(all)
	c.mu.Lock()
	before := c.listing
	c.listing, c.skipped = listing, skipped
	c.mu.Unlock()
	c.tell(before, listing, skipped)
	return nil
}

// tell logs what is new of a listing.
func (c *Client) tell(before, now map[string]*remote, skipped []Skipped) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		switch t := now[name]; {
		case t == nil:
			c.cfg.Log.Warn("a tool of an MCP server is gone", "server", c.cfg.Name, "tool", name)
		case t.info.Version != before[name].info.Version:
			c.cfg.Log.Warn("a tool of an MCP server has changed: import it again to use it", "server", c.cfg.Name, "tool", name)
		}
	}
	if before == nil {
		for _, s := range skipped {
			c.cfg.Log.Warn("a tool of an MCP server is not imported", "server", c.cfg.Name, "tool", s.Name, "why", s.Why)
		}
	}
}

// checked sorts out what cannot be used. Of names that could be taken for each other none is used: nobody knows which was
// meant.
func (c *Client) checked(all []*sdk.Tool) (map[string]*remote, []Skipped) {
	out, looks := map[string]*remote{}, map[string][]string{}
	var skipped []Skipped
	for _, t := range all {
		if t == nil || len(c.cfg.Only) > 0 && !slices.Contains(c.cfg.Only, t.Name) {
			continue
		}
		look := action.Skeleton(c.actionName(t.Name))
		if looks[look] = append(looks[look], t.Name); len(looks[look]) > 1 {
			continue
		}
		r, err := c.check(t)
		if err != nil {
			skipped = append(skipped, Skipped{shown(t.Name), action.TextOf(err)})
			continue
		}
		out[t.Name] = r
	}
	for _, names := range looks {
		if len(names) > 1 {
			delete(out, names[0])
			for _, n := range names {
				skipped = append(skipped, Skipped{shown(n), "the server has several tools of that name, or of names that could be taken for it"})
			}
		}
	}
	slices.SortFunc(skipped, func(a, b Skipped) int { return strings.Compare(a.Name+"\x00"+a.Why, b.Name+"\x00"+b.Why) })
	return out, skipped
}

func shown(name string) string { return action.CutTo(action.Visible(name), action.MaxName) }

// actionName is the name of a tool here. What names must not hold becomes an underscore.
func (c *Client) actionName(name string) string {
	return c.cfg.Name + "." + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("_-./", r) {
			return r
		}
		return '_'
	}, name)
}

// parts is the output of tools that declare none.
const parts = `{"type":"object","properties":{"content":{"type":"array","items":{"type":"object","properties":{"type":{"type":"string"}},` +
	`"required":["type"]}},"structured":{}},"required":["content"],"additionalProperties":false}`

func (c *Client) check(t *sdk.Tool) (*remote, error) {
	in, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("its input schema is none: %w", err)
	}
	out, structured := json.RawMessage(parts), t.OutputSchema != nil
	if structured {
		if out, err = json.Marshal(t.OutputSchema); err != nil {
			return nil, fmt.Errorf("its output schema is none: %w", err)
		}
	}
	r := &remote{structured: structured, info: Info{
		Name: t.Name, Action: c.actionName(t.Name), Title: action.CutTo(action.Visible(t.Title), action.MaxName), Description: described(t),
	}}
	if a := t.Annotations; a != nil {
		r.info.ReadOnly, r.info.Destructive, r.info.Idempotent, r.info.OpenWorld = &a.ReadOnlyHint, a.DestructiveHint, &a.IdempotentHint, a.OpenWorldHint
	}
	r.info.Class = c.class(&r.info)
	said, err := json.Marshal([]any{t.Name, t.Title, t.Description, json.RawMessage(in), json.RawMessage(out), t.Annotations})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(said)
	r.info.Version = hex.EncodeToString(sum[:16])
	r.contract = tool.Contract{ID: r.info.Action, Version: r.info.Version, Description: r.info.Description, Input: in, Output: out, Foreign: true}
	if _, _, err := r.contract.Schemas(); err != nil {
		return nil, err
	}
	if err := action.CheckName(r.info.Action); err != nil {
		return nil, err
	}
	return r, nil
}

// described is a tool's description as a planner may be shown it.
func described(t *sdk.Tool) string {
	for _, s := range []string{t.Description, t.Title, t.Name} {
		if s = action.Cut(visibleLines(s)); !action.Blank(s) {
			return s
		}
	}
	return "a tool without a description"
}

// visibleLines is action.Visible of each line: descriptions have several.
func visibleLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = action.Visible(strings.ReplaceAll(strings.TrimRight(l, "\r"), "\t", " "))
	}
	return strings.Join(lines, "\n")
}

// class is what the annotations say of risk and effect. They are hints of a server that may be wrong, or lie: they lower
// nothing below what an action of unknown risk has but for what is said to change nothing, or to add and be repeatable.
// Where they contradict each other, or say nothing, the most careful reading counts.
func (c *Client) class(i *Info) Class {
	if k, known := c.cfg.Classes[i.Name]; known {
		return k
	}
	careful := Class{Risk: 3, Effect: action.Irreversible}
	says := func(p *bool, want bool) bool { return p != nil && *p == want }
	if c.cfg.Distrust || i.ReadOnly == nil {
		return careful
	}
	switch readOnly := says(i.ReadOnly, true); {
	case readOnly && says(i.Destructive, true):
		return Class{Risk: 4, Effect: action.Irreversible} // it cannot be both
	case readOnly && says(i.OpenWorld, false):
		return Class{Risk: 1, Effect: action.None}
	case readOnly:
		return Class{Risk: 2, Effect: action.None}
	case says(i.Destructive, true) && says(i.Idempotent, true):
		return Class{Risk: 4, Effect: action.Idempotent}
	case says(i.Destructive, true):
		return Class{Risk: 4, Effect: action.Irreversible}
	case says(i.Idempotent, true) && says(i.Destructive, false) && says(i.OpenWorld, false):
		return Class{Risk: 2, Effect: action.Idempotent}
	case says(i.Idempotent, true):
		return Class{Risk: 3, Effect: action.Idempotent}
	}
	return careful
}

// Imported is what [Actions] made of a server's tools.
type Imported struct {
	Actions []delta.Definition // in the order of their names
	Tools   []Info             // of the same order
	Skipped []Skipped          // what cannot be used, and why
}

// Actions imports the tools of a server: each is registered as a tool, which grants nothing, and declared as an action that
// it executes. While the client is open the registry follows the server: a tool that is gone or has changed is UNAVAILABLE
// to the actions imported before. What cannot be used is skipped and named; the error says that the server cannot be
// reached, or that an action cannot be declared.
func Actions(ctx context.Context, c *Client, r *tool.Registry) (Imported, error) {
	var out Imported
	if c == nil || r == nil {
		return out, errors.New("mcp: actions need a client and the registry of the engine")
	}
	if err := c.Ready(ctx); err != nil {
		return out, err
	}
	c.mu.Lock()
	if c.given[r] == nil {
		c.given[r] = givens{}
	}
	listing := c.listing
	out.Skipped = slices.Clone(c.skipped)
	c.mu.Unlock()
	c.sync()
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(listing)) {
		t := listing[name]
		if x := r.Find(t.contract.ID); x == nil || x.Version != t.info.Version {
			out.Skipped = append(out.Skipped, Skipped{shown(name), "the registry has another tool of that name"})
			continue
		}
		b := delta.DefineTool(t.info.Action, t.contract).Version(t.info.Version).Risk(t.info.Class.Risk).Effect(t.info.Class.Effect)
		if c.cfg.Shape != nil {
			b = c.cfg.Shape(t.info, b)
		}
		a, err := b.Build()
		if err != nil {
			faults = append(faults, err)
			continue
		}
		out.Actions, out.Tools = append(out.Actions, a), append(out.Tools, t.info)
	}
	return out, errors.Join(faults...)
}

// givens are the tools that a registry was given: id → what was registered.
type givens map[string]*tool.Registered

// sync makes the registries hold what the server lists.
func (c *Client) sync() {
	c.mu.Lock()
	defer c.mu.Unlock()
	want := map[string]*remote{}
	for _, t := range c.listing {
		want[t.contract.ID] = t
	}
	for r, has := range c.given {
		for id, x := range has {
			if t := want[id]; t == nil || t.info.Version != x.Version {
				if r.Find(id) == x {
					r.Remove(id)
				}
				delete(has, id)
			}
		}
		for id, t := range want {
			if has[id] != nil {
				continue
			}
			if err := r.Register(c.tool(t)); err != nil {
				c.cfg.Log.Warn("a tool of an MCP server cannot be registered", "server", c.cfg.Name, "tool", t.info.Name, "error", err)
				continue
			}
			has[id] = r.Find(id)
		}
	}
}

func (c *Client) tool(t *remote) tool.Tool {
	return tool.Tool{Contract: t.contract, Health: c.Ready, HealthEvery: max(c.cfg.Pause, time.Millisecond), Invoke: func(ctx context.Context, call tool.Call) (json.RawMessage, error) {
		return c.invoke(ctx, t, call)
	}}
}

package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/schema"
)

// Contract is what a tool is and what passes between it and the engine. It is what an action is declared with: the action
// runs only where a tool of that id with this very contract is registered.
type Contract struct {
	ID          string // a name as action.CheckName wants it, unique in a registry, also to the eye
	Name        string // for people, at most 128 bytes; "" is the ID
	Version     string // "" is "1"
	Description string // what it does: a planner reads it
	// Input and Output are JSON schemas. An input that does not satisfy the one never reaches the tool; an output that
	// does not satisfy the other is OUTPUT_INVALID. No Output: any JSON value.
	Input, Output json.RawMessage
	// Foreign says that the schemas come from elsewhere: they are linted before anything reads them, and keywords that
	// nobody knows are ignored instead of refused.
	Foreign bool
	// Context names what a task must bring along for the tool to be of use.
	Context []string
}

// Call is one invocation: ids that lead to the goal, the reasoning and the decision behind it, and the input.
type Call struct {
	Tool       string
	Agent      string
	Task       string // the task's full id
	Action     string
	Intent     string // one for all attempts of the call
	CallID     string // the caller's, "" where it gave none
	Within     string // the intent whose function made the call, "" for none
	Attempt    int    // 1 is the first
	Key        string // idempotency key, where the action declares one
	Repeatable bool   // the effect may be repeated, or has a key: what nobody knows the end of need not be [action.Unknown]
	Provenance action.Provenance
	Input      json.RawMessage // canonical; it satisfies the contract
	// Spend reports what the tool has used: tokens, bytes, money. Duration and calls are measured.
	Spend func(action.Cost) error
}

// Func invokes a tool. Where it cannot tell whether its effect happened it returns an error made by [action.Unknown].
type Func func(ctx context.Context, c Call) (json.RawMessage, error)

// Tool is something that can be invoked.
type Tool struct {
	Contract
	Invoke Func
	// Health says why the tool cannot be used now; nil: it always can. It has 5 s, and its answer holds for HealthEvery.
	Health      func(context.Context) error
	HealthEvery time.Duration // default 10 s, at least 1 ms
	Breaker     Breaker
}

// Breaker says when a tool is left alone. The zero value opens after five failures in a row and tries again after 30 s.
type Breaker struct {
	Failures int           // in a row, at least 1; 0 is 5
	Cooldown time.Duration // how long nothing is tried then, at least 1 ms; 0 is 30 s
	Off      bool          // never
}

// defaults of a tool.
const (
	healthEvery = 10 * time.Second
	failures    = 5
	cooldown    = 30 * time.Second
)

func (t Tool) withDefaults() Tool {
	if t.Name == "" {
		t.Name = t.ID
	}
	if t.Version == "" {
		t.Version = "1"
	}
	if t.HealthEvery == 0 {
		t.HealthEvery = healthEvery
	}
	if t.Breaker.Failures == 0 {
		t.Breaker.Failures = failures
	}
	if t.Breaker.Cooldown == 0 {
		t.Breaker.Cooldown = cooldown
	}
	return t
}

// Schemas compiles the schemas of the contract; out is nil where any output will do. The error names every fault of the
// contract.
func (c Contract) Schemas() (in, out *schema.Schema, err error) {
	var faults []error
	if err := action.CheckName(c.ID); err != nil {
		faults = append(faults, fmt.Errorf("id: %w", err))
	}
	if len(c.Name) > action.MaxName || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
		faults = append(faults, fmt.Errorf("name: at most %d bytes of one line are allowed", action.MaxName))
	}
	if strings.TrimSpace(c.Description) == "" {
		faults = append(faults, errors.New("description is missing: say what the tool does, a planner reads it"))
	}
	for _, name := range c.Context {
		if err := action.CheckName(name); err != nil {
			faults = append(faults, fmt.Errorf("context: %w", err))
		}
	}
	compile := schema.Declared
	if c.Foreign {
		compile = schema.Foreign
	}
	if in, err = compile(c.Input); err == nil {
		err = in.IsObject()
	}
	if err != nil {
		faults = append(faults, fmt.Errorf("input: %w", err))
	}
	if len(c.Output) > 0 {
		if out, err = compile(c.Output); err != nil {
			faults = append(faults, fmt.Errorf("output: %w", err))
		}
	}
	return in, out, errors.Join(faults...)
}

// Hash tells contracts apart: another id, version or schema is another contract. "" where a schema is none.
func (c Contract) Hash() string {
	in, out, err := c.Schemas()
	if err != nil {
		return ""
	}
	return hashOf(c, in, out)
}

func hashOf(c Contract, in, out *schema.Schema) string {
	version, output := c.Version, ""
	if version == "" {
		version = "1"
	}
	if out != nil {
		output = out.Hash()
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{c.ID, version, in.Hash(), output}, "\n")))
	return hex.EncodeToString(sum[:])
}

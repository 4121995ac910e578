package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Configuration is what an engine decides by beside the declarations of its agents, as far as a record has to be read by it
// later. It stands in a cell of each agent, as of the engine that wrote last, and in the agent's own ledger every time.
type Configuration struct {
	Policy    string        `json:"policy,omitempty"`    // version of the policy in force
	Estimator string        `json:"estimator,omitempty"` // names Risk; "" is the default
	Risk      *risk.Config  `json:"risk,omitempty"`      // of the estimator, where it is not the default
	Observe   bool          `json:"observe,omitempty"`
	Operators []string      `json:"operators,omitempty"`
	Pools     []budget.Pool `json:"pools,omitempty"`
}

// Estimator names a configuration of the estimator, "" for the default one.
func Estimator(c risk.Config) string {
	text, def := jsonText(c.WithDefaults()), jsonText(risk.Config{}.WithDefaults())
	if string(text) == string(def) {
		return ""
	}
	h := sha256.Sum256(text)
	return "estimator-" + hex.EncodeToString(h[:6])
}

// Version names the configuration: it changes exactly when the configuration does.
func (c Configuration) Version() string {
	h := sha256.Sum256(jsonText(c))
	return "config-" + hex.EncodeToString(h[:6])
}

// said tells people what a configuration is, and how it differs from the one before.
func (c Configuration) said(was Configuration) string {
	named := func(s string) string {
		if s == "" {
			return "default"
		}
		return s
	}
	out := []string{c.Version()}
	change := func(what, was, now string) {
		if was != now {
			out = append(out, fmt.Sprintf("%s %s (was %s)", what, now, was))
		}
	}
	grants := func(s string) string {
		if s == "" {
			return "grants alone"
		}
		return s
	}
	change("policy", grants(was.Policy), grants(c.Policy))
	change("estimator", named(was.Estimator), named(c.Estimator))
	change("observe mode", fmt.Sprint(was.Observe), fmt.Sprint(c.Observe))
	change("operators", strings.Join(was.Operators, ","), strings.Join(c.Operators, ","))
	if string(jsonText(was.Pools)) != string(jsonText(c.Pools)) {
		out = append(out, "other budget pools")
	}
	return strings.Join(out, "; ")
}

// Configure records what an engine decides by, where the agent's ledger has another configuration as the latest, or none and
// it is not the default. Nil where there is nothing to record.
func Configure(snap *txn.Snapshot, agent string, c Configuration, who Who) (*txn.Txn, error) {
	have, err := ReadConfiguration(snap)
	if err != nil {
		return nil, err
	}
	if string(jsonText(have)) == string(jsonText(c)) {
		return nil, nil
	}
	e := ledger.Event{V: ledger.Version, Type: ledger.AgentConfigured, At: who.At, Agent: agent, Owner: who.Owner, State: jsonText(c), Text: c.said(have)}
	if c.Policy != "" {
		e.Policy = &ledger.PolicyShown{Version: c.Policy}
	}
	t := &txn.Txn{Agent: agent, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Agent, Key: cellConfig, N: snap.Agent.Cells[cellConfig].Ver},
		txn.Clause{Op: txn.Event, Scope: txn.Agent, Val: eventText(&e)})
	t.Add(Changes(&e, nil)...)
	return t, nil
}

// ReadConfiguration returns the configuration that was recorded last for the agent of a snapshot, the default one where none
// was.
func ReadConfiguration(snap *txn.Snapshot) (c Configuration, err error) {
	text := snap.Agent.Cells[cellConfig].Val
	if text == "" {
		return c, nil
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return c, fmt.Errorf("configuration in store: %w", err)
	}
	return c, nil
}

// estimators are the rules to learn by, as a ledger names them.
type estimators struct {
	by map[string]*Rules
}

func newEstimators(own *Rules) estimators { return estimators{map[string]*Rules{own.Estimator: own}} }

// note takes over the estimator of a configuration.
func (x estimators) note(own *Rules, c Configuration) error {
	if x.by[c.Estimator] != nil {
		return nil
	}
	if c.Risk == nil {
		c.Risk = &risk.Config{}
	}
	if name := Estimator(*c.Risk); name != c.Estimator {
		return fmt.Errorf("the configuration of %q is that of %q", c.Estimator, name)
	}
	m, err := risk.New(*c.Risk)
	if err != nil {
		return fmt.Errorf("estimator %q: %w", c.Estimator, err)
	}
	rules := *own
	rules.Model, rules.Estimator = m, c.Estimator
	x.by[c.Estimator] = &rules
	return nil
}

// of returns the rules by which an event of beliefs was made.
func (x estimators) of(e *ledger.Event) (*Rules, error) {
	if r := x.by[e.Version]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("%s by estimator %q, whose configuration is not recorded before it", e.Type, e.Version)
}

// EstimatorsOf names the estimators by which an agent's own ledger was folded, in the order of their first use; "" is the
// default one.
func EstimatorsOf(records []txn.Stored) ([]string, error) {
	var out []string
	if before, err := carriedIn(records); err != nil {
		return nil, err
	} else if before != nil {
		out = before.Used
	}
	for _, r := range records {
		e, err := ledger.Decode(r.Val)
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", r.Seq, err)
		}
		if (e.Type == ledger.BeliefsFolded || e.Type == ledger.BeliefReset) && !slices.Contains(out, e.Version) {
			out = append(out, e.Version)
		}
	}
	return out, nil
}

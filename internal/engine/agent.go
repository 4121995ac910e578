package engine

import (
	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/statespace"
)

// Action is a compiled declaration: all that gates need to know, and no user code.
type Action struct {
	Name        string
	Version     string
	Description string
	Input       *schema.Schema
	Risk        int         // declared, 1 to 5
	Tags        []string    // groups of actions that fail together
	Estimate    action.Cost // declared
	Maximum     action.Limit
	Priced      [action.AxisCount]bool // on which its input says what a call costs
	Effect      action.Effect
	Keyed       bool             // declares an idempotency key
	Approve     bool             // asks for an approval whatever its risk
	UntilTrust  float64          // > 0: Approve is waived from this trust on
	Quorum      *approval.Quorum // how many must consent where a person is asked, nil for one
	UndoneBy    string           // the action that is declared to undo it
	Tool        string           // the tool that executes it, for policies; "" for none
	Context     []string
	Throttle    Throttle
	Rules       []Rule // per-argument risk, evaluated by the shell

	unsureKey, levelKey string
}

// Rule is a per-argument risk: calls that it applies to have at least this level.
type Rule struct {
	Name  string
	Level int
}

// ask names the rules that would make a call need an approval at the threshold.
func (a *Action) ask(threshold float64) (names []string) {
	for _, r := range a.Rules {
		if float64(r.Level) >= threshold {
			names = append(names, r.Name)
		}
	}
	return names
}

// unsure names the counter of the action's intents of unknown outcome.
func (a *Action) unsure() string {
	if a.unsureKey != "" {
		return a.unsureKey
	}
	return countUnsure + a.Name
}

// Ready computes once what every call of the action needs; call it before the action is shared.
func (a *Action) Ready() *Action {
	a.unsureKey, a.levelKey = countUnsure+a.Name, cellLevel+a.Name
	return a
}

// level names the cell of the action's estimated level.
func (a *Action) level() string {
	if a.levelKey != "" {
		return a.levelKey
	}
	return cellLevel + a.Name
}

func (a *Action) priced() bool { return a.Priced != [action.AxisCount]bool{} }

// pricedOn names the axes on which its input says what a call costs.
func (a *Action) pricedOn() (out []string) {
	for x := range action.AxisCount {
		if a.Priced[x] {
			out = append(out, x.String())
		}
	}
	return out
}

// free is what a call costs of which the input is not known, on the axes on which that would say it.
func (a *Action) free() (l action.Limit) {
	for x := range action.AxisCount {
		if a.Priced[x] {
			l = l.With(x, 0)
		}
	}
	return l
}

// Repeatable reports whether an attempt of unknown outcome may be made again.
func (a *Action) Repeatable() bool { return a.Effect.Repeatable() || a.Keyed }

// Promise is what lets an effect be repeated: its key, of which this is the digest, where the action declares one, else its
// class; "" where nothing does. A call that began under one promise is not repeated under another.
func (a *Action) Promise(key string) string {
	switch {
	case a.Keyed && key == "":
		return ""
	case a.Keyed:
		return "key " + key
	case a.Effect.Repeatable():
		return a.Effect.String()
	}
	return ""
}

// Declaration returns what the risk model is told of the action.
func (a *Action) Declaration() risk.Declaration {
	return risk.Declaration{Name: a.Name, Risk: a.Risk, Tags: a.Tags, Estimate: a.Estimate}
}

// Agent is a compiled agent.
type Agent struct {
	Name    string
	Actions map[string]*Action
	Graph   *statespace.Graph
	Grants  policy.Grants

	Autonomy policy.Autonomy // whatever it is granted

	Throttle Throttle // of all its calls together
}

// Rules are what an engine applies to every agent.
type Rules struct {
	Model *risk.Model
	// Estimator names the configuration of Model, see [Estimator]; "" is the default.
	Estimator string

	Policy  policy.Policy // nil: grants alone decide
	Observe bool          // record what would be refused, refuse nothing of gates 4 to 8
	Show    bool          // people look into the store with its own tools: folds write what they read

	Pools []budget.Pool // budgets beyond those of tasks, in the order in which they are asked

	Escalate Escalate // when a task is brought before a person
	Operated bool     // there are operators: every task has somebody to ask about an escalation
	Nobody   bool     // nobody can say who they are: nobody can be asked
	Refusals int      // of a task that are recorded one by one within an hour; 0 is all
	Unheard  bool     // nor can anybody elsewhere, since the store is the engine's own: an approval would be waited for in vain
}

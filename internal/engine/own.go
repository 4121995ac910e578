package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// cellCut says where an agent's own ledger begins, or is about to: the number of the last record that is dropped, and its link.
const cellCut = "cut" // Agent

// carried is what the dropped beginning of an agent's own ledger came to: what cannot be folded any more. It is the State of
// the checkpoint, next to the tree.
type carried struct {
	Tree       []ledger.Hash     `json:"tree"`
	Trust      []byte            `json:"trust,omitempty"`      // shared block of the belief, nothing where nothing was learned
	Actions    map[string][]byte `json:"actions,omitempty"`    // blocks of the belief
	Estimators []Configuration   `json:"estimators,omitempty"` // configurations that records may name
	Used       []string          `json:"used,omitempty"`       // estimators that learned, in the order of their first use

	Cells    map[string]string    `json:"cells,omitempty"` // of the agent, as the other events left them
	Counters map[string]int64     `json:"counters,omitempty"`
	Tokens   map[string]txn.Token `json:"tokens,omitempty"`
}

// space is the agent's, as the dropped records left it.
func (c *carried) space() txn.Space {
	sp := txn.NewSpace()
	for k, v := range c.Cells {
		sp.Cells[k] = txn.Cell{Ver: 1, Val: v}
	}
	maps.Copy(sp.Counters, c.Counters)
	maps.Copy(sp.Tokens, c.Tokens)
	return sp
}

func (c *carried) hold(sp *txn.Space) {
	c.Cells, c.Counters, c.Tokens = map[string]string{}, sp.Counters, sp.Tokens
	for k, v := range sp.Cells {
		c.Cells[k] = v.Val
	}
}

// carriedIn reads what the checkpoint at the beginning of the records carries over, nil where they are whole.
func carriedIn(records []txn.Stored) (*carried, error) {
	e, err := ledger.CheckpointIn(records)
	if err != nil || e == nil {
		return nil, err
	}
	var c carried
	if err := json.Unmarshal(e.State, &c); err != nil {
		return nil, fmt.Errorf("checkpoint of the records up to %d: %w", e.ToSeq, err)
	}
	return &c, nil
}

// BeliefFold derives the beliefs of an agent from the agent's own ledger, record by record: the same updates in the same
// order, each by the estimator that made it. One that is not that of the rules must stand in the ledger before it.
type BeliefFold struct {
	own     *Rules
	agent   *Agent
	known   estimators
	configs []Configuration // of estimators, as they were noted
	used    []string
	belief  risk.Belief
	next    int64
}

// NewBeliefFold begins a fold of a ledger, at the checkpoint where its beginning was pruned: the records hold that.
func NewBeliefFold(rules *Rules, agent *Agent, records []txn.Stored) (*BeliefFold, error) {
	f := &BeliefFold{own: rules, agent: agent, known: newEstimators(rules), belief: rules.Model.Prior(), next: 1}
	c, err := carriedIn(records)
	if err != nil || c == nil {
		return f, err
	}
	for _, x := range c.Estimators {
		if err := f.config(x); err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
	}
	f.used, f.next = c.Used, records[0].Seq
	if len(c.Trust) > 0 {
		if f.belief, err = risk.Decode(c.Trust, c.Actions); err != nil {
			return nil, fmt.Errorf("checkpoint: beliefs: %w", err)
		}
	}
	return f, nil
}

// Next is the number of the record that comes next.
func (f *BeliefFold) Next() int64 { return f.next }

// Belief is what has been learned up to here.
func (f *BeliefFold) Belief() risk.Belief { return f.belief }

// Add folds the next records.
func (f *BeliefFold) Add(records []txn.Stored) error {
	for _, r := range records {
		if err := f.one(r); err != nil {
			return fmt.Errorf("record %d: %w", r.Seq, err)
		}
		f.next = r.Seq + 1
	}
	return nil
}

func (f *BeliefFold) one(r txn.Stored) error {
	e, err := ledger.Decode(r.Val)
	if err != nil {
		return err
	}
	if e.Type == ledger.AgentConfigured {
		var c Configuration
		if err := json.Unmarshal(e.State, &c); err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
		return f.config(c)
	}
	if e.Type != ledger.BeliefReset && e.Type != ledger.BeliefsFolded {
		return nil
	}
	first := len(f.used) == 0
	if !slices.Contains(f.used, e.Version) {
		f.used = append(f.used, e.Version)
	}
	if e.Type == ledger.BeliefsFolded && len(e.Outcomes) == 0 {
		return nil
	}
	rules, err := f.known.of(&e)
	if err != nil {
		return err
	}
	if first {
		f.belief = rules.Model.Prior()
	}
	if e.Type == ledger.BeliefReset {
		f.belief = reset(rules, f.belief, e.Action)
		return nil
	}
	for _, o := range e.Outcomes {
		if f.belief, _, err = learnOne(rules, f.agent, f.belief, o); err != nil {
			return err
		}
	}
	return nil
}

func (f *BeliefFold) config(c Configuration) error {
	noted := func(x Configuration) bool { return x.Estimator == c.Estimator }
	if c.Estimator != "" && !slices.ContainsFunc(f.configs, noted) { // also that of this program: others will read it
		f.configs = append(f.configs, Configuration{Estimator: c.Estimator, Risk: c.Risk})
	}
	return f.known.note(f.own, c)
}

// Cut is the pruning of an agent's own ledger: its beginning up to a record, and what it comes to.
type Cut struct {
	Base  ledger.Base
	State []byte // what is carried over, and the tree
}

// Carry works out what is to be kept of the first n of the records of an agent's own ledger, which were verified and are
// sealed, and whose beginning may have been pruned before.
func Carry(rules *Rules, agent *Agent, records []txn.Stored, n int) (Cut, error) {
	var c Cut
	f, err := NewBeliefFold(rules, agent, records)
	if err == nil {
		err = f.Add(records[:n])
	}
	if err != nil {
		return c, err
	}
	state, err := foldFrom(records, n)
	if err != nil {
		return c, err
	}
	log, err := ledger.NewLog(records) // the base may need the checkpoint, which may come behind
	if err != nil {
		return c, err
	}
	if c.Base, err = log.Base(records[n-1].Seq, records[n-1].Link); err != nil {
		return c, err
	}
	x := carried{Tree: c.Base.Tree, Estimators: f.configs, Used: f.used}
	x.hold(&state.Agent)
	if len(f.used) > 0 {
		x.Trust, x.Actions = f.belief.Shared(), map[string][]byte{}
		for _, name := range f.belief.Names() {
			if block, there := f.belief.Action(name); there {
				x.Actions[name] = block
			}
		}
	}
	c.State = jsonText(x)
	return c, nil
}

// PruneOwn writes the checkpoint of what is about to be dropped of an agent's own ledger; signed is its note, "" for none.
func PruneOwn(snap *txn.Snapshot, agent string, c *Cut, signed string, who Who) *txn.Txn {
	e := ledger.Event{V: ledger.Version, Type: ledger.LedgerPruned, At: who.At, Agent: agent, ToSeq: c.Base.Seq, Digest: c.Base.Link,
		State: c.State, Text: signed, Identity: who.Identity, Reason: who.Reason}
	t := &txn.Txn{Agent: agent, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Agent, Key: cellCut, N: snap.Agent.Cells[cellCut].Ver},
		txn.Clause{Op: txn.Event, Scope: txn.Agent, Val: eventText(&e)})
	t.Add(Changes(&e, nil)...)
	return t
}

func cutText(seq int64, link string) string { return strconv.FormatInt(seq, 10) + " " + link }

// CutAt returns up to which record an agent's own ledger was pruned, or is about to be, and that record's link; 0 where it is
// whole.
func CutAt(snap *txn.Snapshot) (seq int64, link string, err error) {
	text := snap.Agent.Cells[cellCut].Val
	if text == "" {
		return 0, "", nil
	}
	n, link, _ := strings.Cut(text, " ")
	if seq, err = strconv.ParseInt(n, 10, 64); err != nil || seq < 1 || link == "" {
		return 0, "", errors.New("where the agent's own ledger begins cannot be read: " + strconv.Quote(text))
	}
	return seq, link, nil
}

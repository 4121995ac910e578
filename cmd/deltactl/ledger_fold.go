package main

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

const foldHelp = `Fold derives the state from the ledger alone: of a task its configuration, budget,
facts, approvals, the ids of its calls and what of them is under way, of an agent what
was learned of its risk and trust. Of a ledger in the store the result is compared with the state that the store holds; where the two
differ each difference is printed and the exit code is 1. Of a file it says that the
events fit each other: every end has its begin. A task that is over, and of which the
store keeps no more than the ledger, is folded and compared with nothing.

Of an agent everything learned is compared, to the bit. It is folded by the estimators that
learned it: the default one, and those whose configuration the ledger records
(agent_configured). The column estimators names them.

JSON: [{"ledger", "records", "compared", "estimators", "differences": [{"place", "stored",
"folded"}]}]; an estimator "" is the default.` + sourceHelp

func newLedgerFold() *cobra.Command {
	var f storeFlags
	c := &cobra.Command{
		Use: "fold SOURCE", Short: "Derive the state from the ledger and compare", Args: cobra.ExactArgs(1), Long: foldHelp + storeHelp,
		Example: "  deltactl ledger fold desk~t1",
		RunE:    func(c *cobra.Command, args []string) error { return fold(c, &f, args[0]) },
	}
	f.add(c)
	return c
}

type foldedLedger struct {
	Ledger      string             `json:"ledger"`
	Records     int64              `json:"records"`
	Compared    bool               `json:"compared"`
	Estimators  []string           `json:"estimators,omitempty"`
	Differences []foldedDifference `json:"differences"`
}

type foldedDifference struct {
	Place  string `json:"place"`
	Stored string `json:"stored"`
	Folded string `json:"folded"`
}

func fold(c *cobra.Command, f *storeFlags, source string) error {
	out := []foldedLedger{}
	if fromFile(source) {
		all, err := f.exported(c, source)
		if err != nil {
			return err
		}
		for _, x := range all {
			if _, err := engine.FoldLedger(x.Records); err != nil {
				return fmt.Errorf("fold %s: %w", x.Head.Name(), err)
			}
			out = append(out, foldedLedger{Ledger: x.Head.Name(), Records: x.Head.Size, Differences: []foldedDifference{}})
		}
	} else if err := onDesk(f, func(c *cobra.Command, d *desk, _ []string) error {
		l, err := d.fold(c.Context(), source)
		out = append(out, l)
		return err
	})(c, nil); err != nil {
		return err
	}
	return printFold(c, f, out)
}

// foldRounds bounds how often a ledger is read again because somebody wrote in between.
const foldRounds = 10

// fold compares one ledger with what the store holds at the same moment: nothing was written between two readings.
func (d *desk) fold(ctx context.Context, id string) (foldedLedger, error) {
	agent, task := cutID(id)
	for range foldRounds {
		records, _, err := d.engine.Ledger(ctx, id)
		if err != nil {
			return foldedLedger{}, err
		}
		if len(records) == 0 {
			return foldedLedger{}, coded{exitNotFound, fmt.Errorf("ledger %s: there are no records", id)}
		}
		snap, err := d.store.Load(ctx, agent, task, nil)
		if err != nil {
			return foldedLedger{}, err
		}
		flow := engine.FlowKnown{}
		var gone []engine.Difference
		if task != "" {
			if gone, err = d.records(ctx, agent, task, records, snap); err != nil {
				return foldedLedger{}, err
			}
			reply, err := d.store.Apply(ctx, engine.ReadFlow(agent, task))
			if err != nil {
				return foldedLedger{}, err
			}
			if flow, err = engine.FlowRead(&reply, nil); err != nil {
				return foldedLedger{}, err
			}
		}
		after, err := d.store.Records(ctx, agent, task, records[len(records)-1].Seq+1, 1)
		if err != nil {
			return foldedLedger{}, err
		}
		if len(after) == 0 {
			out, err := foldOne(agent, task, records, snap, &flow)
			for _, x := range gone {
				out.Differences = append(out.Differences, foldedDifference(x))
			}
			return out, err
		}
	}
	return foldedLedger{}, fmt.Errorf("fold %s: it is written to all the time; try again when it rests", id)
}

// recordsRead is how many cold cells are read at a time.
const recordsRead = 500

// records compares the cold cells of a task that must be there with the ledger. They go with the task.
func (d *desk) records(ctx context.Context, agent, task string, records []txn.Stored, snap *txn.Snapshot) ([]engine.Difference, error) {
	state, err := engine.FoldLedger(records)
	if err != nil {
		return nil, fmt.Errorf("fold %s: %w", ledger.NameOf(agent, task), err)
	}
	if len(snap.Task.Cells) == 0 && engine.EndedIn(state) {
		return nil, nil
	}
	keys, stored := engine.LastingRecords(state), map[string]txn.Cell{}
	for from := 0; from < len(keys); from += recordsRead {
		reply, err := d.store.Apply(ctx, engine.ReadRecords(agent, task, keys[from:min(from+recordsRead, len(keys))]))
		if err != nil {
			return nil, err
		}
		maps.Copy(stored, reply.Fresh.Record.Cells)
	}
	return engine.CompareRecords(state, keys, stored), nil
}

func foldOne(agent, task string, records []txn.Stored, snap *txn.Snapshot, flow *engine.FlowKnown) (foldedLedger, error) {
	out := foldedLedger{Ledger: ledger.NameOf(agent, task), Records: int64(len(records)), Compared: true, Differences: []foldedDifference{}}
	state, err := engine.FoldLedger(records)
	if err != nil {
		return out, fmt.Errorf("fold %s: %w", out.Ledger, err)
	}
	var diffs []engine.Difference
	switch {
	case task == "":
		if out.Estimators, err = engine.EstimatorsOf(records); err == nil {
			diffs, err = compareAgent(agent, records, snap)
		}
	case len(snap.Task.Cells) == 0 && engine.EndedIn(state):
		out.Compared = false
	default:
		if diffs, err = engine.CompareFlow(records, flow); err == nil {
			diffs = append(engine.CompareTask(state, snap), diffs...)
		}
	}
	for _, d := range diffs {
		out.Differences = append(out.Differences, foldedDifference(d))
	}
	return out, err
}

func compareAgent(name string, records []txn.Stored, snap *txn.Snapshot) ([]engine.Difference, error) {
	model, err := risk.New(risk.Config{})
	if err != nil {
		return nil, err
	}
	card, err := engine.ReadCard(snap)
	if err != nil {
		return nil, err
	}
	agent, err := engine.AgentOf(name, card)
	if err != nil {
		return nil, err
	}
	return engine.CompareBeliefs(&engine.Rules{Model: model}, agent, records, snap)
}

func printFold(c *cobra.Command, f *storeFlags, out []foldedLedger) error {
	n := 0
	for _, l := range out {
		n += len(l.Differences)
	}
	var err error
	if f.json {
		err = printJSON(c.OutOrStdout(), out)
	} else {
		t := table.New(c.OutOrStdout(), "ledger", "records", "place", "stored", "folded", "estimators")
		for _, l := range out {
			for _, d := range l.Differences {
				t.Row(l.Ledger, l.Records, d.Place, d.Stored, d.Folded, estimators(l))
			}
			if len(l.Differences) == 0 {
				t.Row(l.Ledger, l.Records, verdictOf(l), nil, nil, estimators(l))
			}
		}
		err = t.Flush()
	}
	if err == nil && n > 0 {
		err = fmt.Errorf("the state is not the fold of the ledger: %d differences", n)
	}
	return err
}

// estimators names by what a ledger was folded, nil for a task's, which needs none.
func estimators(l foldedLedger) any {
	var names []string
	for _, name := range l.Estimators {
		if name == "" {
			name = "default"
		}
		names = append(names, name)
	}
	return orNil(strings.Join(names, ", "))
}

func verdictOf(l foldedLedger) string {
	if l.Compared {
		return "as in the store"
	}
	return "folds; compared with nothing"
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

const pruneHelp = `Prune drops the ledgers of tasks that ended before a time. Each ledger is verified and
sealed to its end first; --export DIR writes it to DIR/AGENT/TASK.jsonl; its agent's own
ledger gets a checkpoint (task_pruned: the link of its last record and how many there
were), and only then it is dropped. A run that is interrupted is simply repeated. A
ledger that is not what was written stays, and the exit code is 1.

The id of a pruned task is free again; until then it is taken, also by a task that
ended. An export never replaces another: that of a second task of an id is TASK~2.jsonl.

Tasks whose state the store still keeps are left: it keeps it for a while after their
end (redisstore.Config.Keep, 7 days where nothing is said), and as long as one of their
calls runs or is of unknown outcome.

With --own also what is older of the agents' own ledgers is dropped: what was learned,
declared, configured and pruned. What that came to is carried over in a checkpoint
(ledger_pruned), signed with --key and written before anything is dropped; verify and
fold go on from there. --export DIR writes it to DIR/AGENT/own/FIRST-LAST.jsonl. Workers
that know nothing of checkpoints must be gone before, and so must audit trails that are
behind. Nothing goes where the checkpoint would be larger than what it is of.

JSON: {"agents": [{"agent", "pruned": [{"id", "records", "head", "ended"}], "kept",
"resumed", "own": {"records", "upto", "head", "resumed"}}]}; own with --own alone.`

type pruneRow struct {
	Agent   string      `json:"agent"`
	Pruned  []prunedRow `json:"pruned"`
	Kept    []string    `json:"kept"`
	Resumed []string    `json:"resumed"`
	Own     *ownRow     `json:"own,omitempty"`
}

type ownRow struct {
	Records int64  `json:"records"`
	Upto    int64  `json:"upto"`
	Head    string `json:"head"`
	Resumed bool   `json:"resumed"`
}

// some says that something was done, or is left.
func (r *pruneRow) some() bool {
	return len(r.Pruned)+len(r.Kept)+len(r.Resumed) > 0 || r.Own != nil && r.Own.Records > 0
}

type pruneFlags struct {
	storeFlags
	older, dir, reason, key string
	own                     bool
	age                     time.Duration
}

type prunedRow struct {
	ID      string    `json:"id"`
	Records int64     `json:"records"`
	Head    string    `json:"head"`
	Ended   time.Time `json:"ended"`
}

func newPrune() *cobra.Command {
	var f pruneFlags
	c := &cobra.Command{
		Use: "prune --older-than AGE [AGENT...]", Short: "Drop the ledgers of tasks that ended long ago", Long: pruneHelp + storeHelp,
		Example: "  deltactl prune --older-than 90d --export /var/backups/delta --reason retention\n  deltactl prune --older-than 90d --own --key audit.key --export /var/backups/delta --reason retention",
		PreRunE: func(*cobra.Command, []string) (err error) {
			if f.age, err = ageOf(f.older); err == nil && f.own == (f.key == "") {
				err = errors.New("--own and --key go together: what is dropped of an agent's own ledger leaves a signed checkpoint")
			}
			if err != nil {
				return usageError{err}
			}
			return nil
		},
		RunE: onDesk(&f.storeFlags, func(c *cobra.Command, d *desk, args []string) error { return f.run(c, d, args) }),
	}
	c.Flags().StringVar(&f.older, "older-than", "", "how long ago they ended at least: 90d, 36h (required)")
	c.Flags().StringVar(&f.dir, "export", "", "directory to write the ledgers to")
	c.Flags().BoolVar(&f.own, "own", false, "also what is as old of the agents' own ledgers")
	c.Flags().StringVar(&f.key, "key", "", "file of the secret key that signs the checkpoints of --own; ledger keygen makes one")
	reasonFlag(c, &f.reason)
	f.add(c)
	return c
}

// ageOf reads a duration that may be in days.
func ageOf(s string) (d time.Duration, err error) {
	if s == "" {
		return 0, errors.New("--older-than is missing: 90d, say")
	}
	if n, ok := strings.CutSuffix(s, "d"); ok {
		var days int
		if _, err := fmt.Sscanf(n+"\n", "%d\n", &days); err == nil && days >= 0 && days < 100*366 {
			return time.Duration(days) * 24 * time.Hour, nil
		}
	} else if d, err = time.ParseDuration(s); err == nil && d >= 0 {
		return d, nil
	}
	return 0, fmt.Errorf("--older-than %q: want days or hours, 90d or 36h", s)
}

func (f *pruneFlags) run(c *cobra.Command, d *desk, agents []string) error {
	ctx := c.Context()
	me, err := d.me(ctx)
	if err != nil {
		return err
	}
	before := time.Now().Add(-f.age)
	p := delta.Pruning{Before: before, By: me, Reason: f.reason}
	own := delta.OwnPruning{Before: before, By: me, Reason: f.reason}
	if f.dir != "" {
		p.Export = exportTo(f.dir)
	}
	if f.own {
		s, err := signer(f.key)
		if err != nil {
			return err
		}
		own.Sign = func(h ledger.Head, state []byte) (string, error) { return ledger.SignCheckpoint(h, state, s) }
	}
	out := struct {
		Agents []pruneRow `json:"agents"`
	}{[]pruneRow{}}
	var faults []error
	one := func(name string) (bool, error) {
		row, err := f.one(ctx, d, name, p, own)
		faults = append(faults, err)
		if row.some() {
			out.Agents = append(out.Agents, row)
		}
		return ctx.Err() == nil, nil
	}
	if len(agents) == 0 {
		faults = append(faults, d.agents(ctx, "", one))
	}
	for _, name := range agents {
		if err := d.know(ctx, name); err != nil {
			faults = append(faults, err)
			continue
		}
		_, _ = one(name)
	}
	if f.json {
		return errors.Join(append(faults, printJSON(c.OutOrStdout(), out))...)
	}
	columns := []string{"agent", "pruned", "records", "kept", "resumed"}
	if f.own {
		columns = append(columns, "own")
	}
	t := table.New(c.OutOrStdout(), columns...)
	for _, r := range out.Agents {
		records := int64(0)
		for _, x := range r.Pruned {
			records += x.Records
		}
		cells := []any{r.Agent, len(r.Pruned), records, len(r.Kept), len(r.Resumed)}
		if r.Own != nil {
			cells = append(cells, r.Own.Records)
		}
		t.Row(cells...)
	}
	return errors.Join(append(faults, t.Flush())...)
}

// one prunes one agent: its tasks first, whose checkpoints stand in its own ledger.
func (f *pruneFlags) one(ctx context.Context, d *desk, name string, p delta.Pruning, own delta.OwnPruning) (pruneRow, error) {
	p.Agent, own.Agent = name, name
	report, err := d.engine.Prune(ctx, p)
	row := pruneRow{Agent: name, Pruned: []prunedRow{}, Kept: append([]string{}, report.Kept...), Resumed: append([]string{}, report.Resumed...)}
	for _, t := range report.Pruned {
		row.Pruned = append(row.Pruned, prunedRow(t))
	}
	if f.own && ctx.Err() == nil {
		if f.dir != "" {
			own.Export = exportOwn(f.dir, name)
		}
		done, ownErr := d.engine.PruneOwn(ctx, own)
		row.Own, err = &ownRow{done.Records, done.Upto, done.Head, done.Resumed}, errors.Join(err, ownErr)
	}
	return row, err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

const pruneHelp = `Prune drops the ledgers of tasks that ended before a time. Each ledger is verified and
sealed to its end first; --export DIR writes it to DIR/AGENT/TASK.jsonl; its agent's own
ledger gets a checkpoint (task_pruned: the link of its last record and how many there
were), and only then it is dropped. A run that is interrupted is simply repeated. A
ledger that is not what was written stays, and the exit code is 1.

Tasks whose state the store still keeps are left: it keeps it for a while after their
end (redisstore.Config.Keep, 7 days where nothing is said), and as long as one of their
calls runs or is of unknown outcome. The agents' own ledgers are not pruned. The id of a
pruned task is free again.

JSON: {"agents": [{"agent", "pruned": [{"id", "records", "head", "ended"}], "kept",
"resumed"}]}.`

type pruneRow struct {
	Agent   string      `json:"agent"`
	Pruned  []prunedRow `json:"pruned"`
	Kept    []string    `json:"kept"`
	Resumed []string    `json:"resumed"`
}

type prunedRow struct {
	ID      string    `json:"id"`
	Records int64     `json:"records"`
	Head    string    `json:"head"`
	Ended   time.Time `json:"ended"`
}

func newPrune() *cobra.Command {
	var f storeFlags
	var older, dir, reason string
	var age time.Duration
	c := &cobra.Command{
		Use: "prune --older-than AGE [AGENT...]", Short: "Drop the ledgers of tasks that ended long ago", Long: pruneHelp + storeHelp,
		Example: "  deltactl prune --older-than 90d --export /var/backups/delta --reason retention",
		PreRunE: func(*cobra.Command, []string) (err error) {
			if age, err = ageOf(older); err != nil {
				return usageError{err}
			}
			return nil
		},
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			return runPrune(c, d, &f, args, age, dir, reason)
		}),
	}
	c.Flags().StringVar(&older, "older-than", "", "how long ago they ended at least: 90d, 36h (required)")
	c.Flags().StringVar(&dir, "export", "", "directory to write the ledgers to")
	reasonFlag(c, &reason)
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

func runPrune(c *cobra.Command, d *desk, f *storeFlags, agents []string, age time.Duration, dir, reason string) error {
	ctx := c.Context()
	me, err := d.me(ctx)
	if err != nil {
		return err
	}
	p := delta.Pruning{Before: time.Now().Add(-age), By: me, Reason: reason}
	if dir != "" {
		p.Export = exportTo(dir)
	}
	out := struct {
		Agents []pruneRow `json:"agents"`
	}{[]pruneRow{}}
	var faults []error
	one := func(name string) (bool, error) {
		p.Agent = name
		report, err := d.engine.Prune(ctx, p)
		faults = append(faults, err)
		row := pruneRow{name, []prunedRow{}, append([]string{}, report.Kept...), append([]string{}, report.Resumed...)}
		for _, t := range report.Pruned {
			row.Pruned = append(row.Pruned, prunedRow(t))
		}
		if len(row.Pruned)+len(row.Kept)+len(row.Resumed) > 0 {
			out.Agents = append(out.Agents, row)
		}
		return ctx.Err() == nil, nil
	}
	if len(agents) == 0 {
		faults = append(faults, d.agents(ctx, "", one))
	}
	for _, name := range agents {
		if err := d.adopt(ctx, name); err != nil {
			faults = append(faults, err)
			continue
		}
		_, _ = one(name)
	}
	if f.json {
		return errors.Join(append(faults, printJSON(c.OutOrStdout(), out))...)
	}
	t := table.New(c.OutOrStdout(), "agent", "pruned", "records", "kept", "resumed")
	for _, r := range out.Agents {
		records := int64(0)
		for _, x := range r.Pruned {
			records += x.Records
		}
		t.Row(r.Agent, len(r.Pruned), records, len(r.Kept), len(r.Resumed))
	}
	return errors.Join(append(faults, t.Flush())...)
}

// exportTo writes each ledger to a file of its own, whole or not at all, and durably before it returns.
func exportTo(dir string) func(context.Context, delta.Pruned, []txn.Stored) error {
	return func(_ context.Context, t delta.Pruned, records []txn.Stored) (err error) {
		agent, task, _ := strings.Cut(t.ID, "~")
		under := filepath.Join(dir, fileName(agent))
		if err := os.MkdirAll(under, 0o700); err != nil {
			return err
		}
		w, err := os.CreateTemp(under, ".export-*")
		if err != nil {
			return err
		}
		defer func() {
			if err != nil {
				_ = os.Remove(w.Name())
			}
		}()
		x := ledger.NewExporter(w, agent, task)
		for _, r := range records {
			if err := x.Add(r); err != nil {
				return errors.Join(err, w.Close())
			}
		}
		_, err = x.End()
		if err = errors.Join(err, w.Sync(), w.Close()); err != nil {
			return err
		}
		if err := os.Rename(w.Name(), filepath.Join(under, fileName(task)+".jsonl")); err != nil {
			return err
		}
		return syncDir(under)
	}
}

// fileName makes a name safe as that of a file; names have no slash, but may start with a dot.
func fileName(name string) string {
	name = url.PathEscape(name)
	if strings.HasPrefix(name, ".") {
		return "%2E" + name[1:]
	}
	return name
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

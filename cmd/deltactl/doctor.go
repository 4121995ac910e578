package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

const doctorHelp = `Doctor looks at the servers of a store and at what is left undone in it, and says the
way out of what it finds.

Checks, of each server: reachable, clock (against this machine), version (7.0 or
later), eviction (maxmemory-policy must be noeviction), persistence (appendonly,
save), replicas (against --wait-replicas). Of the store: cluster, layout, index (every
agent is listed), leases (calls whose worker is gone and that nobody took over for a
minute), folding and sealing (outcomes and records that were left behind), workflows
(instances of a version that no live worker holds, among the first 1000 tasks of an
agent). Of this machine: sandbox (whether tools can be confined on it).

--fold also folds the ledgers of the agents and of their tasks that have not ended, and
compares them with what the store holds, as ledger fold does: what was written or
deleted by hand is found. It reads all of them.

--repair puts agents that are missing into the index. The others repair themselves as
soon as a worker of the agent runs.

Exit code 0: all is well; 6: a warning; 7: something will be lost, or does not work.

JSON: {"findings": [{"check", "server", "severity", "found", "do"}]}; severity is ok,
warning or severe.`

func newDoctor() *cobra.Command {
	var f storeFlags
	var repair, fold bool
	var most int
	c := &cobra.Command{
		Use: "doctor", Short: "Find what is wrong with a store", Long: doctorHelp + storeHelp, Args: cobra.NoArgs,
		Example: "  deltactl doctor --store redis://localhost:6379",
		PreRunE: func(*cobra.Command, []string) error {
			if most < 1 {
				return usageError{fmt.Errorf("--agents is %d, want at least 1", most)}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return runDoctor(c, &f, repair, fold, most) },
	}
	c.Flags().BoolVar(&repair, "repair", false, "complete the index of agents")
	c.Flags().BoolVar(&fold, "fold", false, "compare what is stored with the ledgers")
	c.Flags().IntVar(&most, "agents", 1000, "agents to look at, at most")
	c.Flags().IntVar(&f.c.WaitReplicas, "wait-replicas", 0, "replicas that your workers demand of each write")
	f.add(c)
	return c
}

func runDoctor(c *cobra.Command, f *storeFlags, repair, fold bool, most int) error {
	s, err := f.openStore(c.Context())
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // it was only looked at
	found, err := s.Examine(c.Context())
	if err != nil {
		return coded{exitUnreachable, err}
	}
	index, err := indexed(c.Context(), s, repair)
	if err != nil {
		return err
	}
	undone, err := leftUndone(c.Context(), s, most)
	if err != nil {
		return err
	}
	held, err := heldAll(c, f, most)
	if err != nil {
		return err
	}
	found = append(append(append(found, index), undone...), held)
	if fold {
		x, err := foldedAll(c, f, most)
		if err != nil {
			return err
		}
		found = append(found, x)
	}
	found = append(found, confining(c.Context()))
	if f.json {
		err = printJSON(c.OutOrStdout(), struct {
			Findings []redisstore.Finding `json:"findings"`
		}{found})
	} else {
		err = printFindings(c, found)
	}
	return errors.Join(err, verdict(found))
}

func printFindings(c *cobra.Command, found []redisstore.Finding) error {
	t := table.New(c.OutOrStdout(), "check", "server", "severity", "found", "do")
	for _, x := range found {
		t.Row(x.Check, orNil(x.Server), x.Severity, x.Found, orNil(x.Do))
	}
	return t.Flush()
}

// verdict is the exit code of the worst finding.
func verdict(found []redisstore.Finding) error {
	n := map[redisstore.Severity]int{}
	for _, x := range found {
		n[x.Severity]++
	}
	switch {
	case n[redisstore.Severe] > 0:
		return coded{exitSevere, fmt.Errorf("%s, %s", counted(n[redisstore.Severe], "severe finding"), counted(n[redisstore.Warning], "warning"))}
	case n[redisstore.Warning] > 0:
		return coded{exitWarning, errors.New(counted(n[redisstore.Warning], "warning"))}
	}
	return nil
}

func indexed(ctx context.Context, s *redisstore.Store, repair bool) (redisstore.Finding, error) {
	x := redisstore.Finding{Check: "index", Severity: redisstore.Fine, Found: "complete"}
	missing, err := s.Unlisted(ctx)
	switch {
	case err != nil:
		return x, err
	case len(missing) > 0 && repair:
		x.Found = fmt.Sprintf("missing, and listed now: %s", counted(len(missing), "agent"))
		return x, s.Reindex(ctx, missing)
	case len(missing) > 0:
		x.Severity, x.Found, x.Do = redisstore.Warning, fmt.Sprintf("not listed: %s, such as %q", counted(len(missing), "agent"), missing[0]), "deltactl doctor --repair"
	}
	return x, nil
}

// foldedAll compares the ledgers of agents, and of their tasks that have not ended, with what the store holds.
func foldedAll(c *cobra.Command, f *storeFlags, most int) (redisstore.Finding, error) {
	var ledgers, wrong, agents int
	first := ""
	look := func(d *desk, id string) {
		l, err := d.fold(c.Context(), id)
		var none coded
		if errors.As(err, &none) && none.code == exitNotFound {
			return // an agent without events of its own
		}
		ledgers++
		if err == nil && len(l.Differences) == 0 {
			return
		}
		if wrong++; first == "" {
			first = id
		}
	}
	err := onDesk(f, func(c *cobra.Command, d *desk, _ []string) error {
		return d.agents(c.Context(), "", func(name string) (bool, error) {
			agents++
			look(d, name)
			q := delta.TaskQuery{Agent: name}
			for {
				page, err := d.engine.Tasks(c.Context(), q)
				if err != nil {
					return false, err
				}
				for _, t := range page.Tasks {
					look(d, t.ID)
				}
				if q.After = page.Next; q.After == "" {
					return agents < most, nil
				}
			}
		})
	})(c, nil)
	x := redisstore.Finding{Check: "fold", Severity: redisstore.Fine, Found: fmt.Sprintf("%d ledgers come to what is stored", ledgers)}
	if wrong > 0 {
		x.Severity, x.Found = redisstore.Severe, fmt.Sprintf("%d of %d ledgers do not come to what is stored", wrong, ledgers)
		x.Do = "deltactl ledger fold " + first + " says what differs: it was written or deleted by hand, or lost"
	}
	return x, err
}

// heldAll finds instances of workflows that no live worker goes on with.
func heldAll(c *cobra.Command, f *storeFlags, most int) (redisstore.Finding, error) {
	var all, unheld, agents int
	first := ""
	err := onDesk(f, func(c *cobra.Command, d *desk, _ []string) error {
		return d.agents(c.Context(), "", func(name string) (bool, error) {
			agents++
			live, err := d.engine.Workers(c.Context(), name)
			if err != nil {
				return false, err
			}
			page, err := d.engine.Tasks(c.Context(), delta.TaskQuery{Agent: name, Limit: delta.MaxTasks})
			if err != nil {
				return false, err
			}
			for _, t := range page.Tasks {
				if t.Workflow == "" || t.Status == "cancelled" || t.Status == "closed" {
					continue
				}
				run, err := d.engine.OpenWorkflow(c.Context(), t.ID)
				if err != nil {
					return false, err
				}
				all++
				if no := run.UnheldBy(live); no != nil {
					if unheld++; first == "" {
						first = t.ID + ": " + unheldBrief(no)
					}
				}
			}
			return agents < most, nil
		})
	})(c, nil)
	x := redisstore.Finding{Check: "workflows", Severity: redisstore.Fine, Found: counted(all, "instance") + ", for each a worker"}
	if unheld > 0 {
		x.Severity, x.Found = redisstore.Warning, fmt.Sprintf("without a worker: %d of %s, such as %s", unheld, counted(all, "instance"), first)
		x.Do = "start a worker that holds that version in Config.Workflows; deltactl workflow list names them, workflow migrate takes them to another"
	}
	return x, err
}

// lateMost is how late a takeover may be before somebody should look: workers take over within their lease and a poll.
const lateMost = time.Minute

func leftUndone(ctx context.Context, s *redisstore.Store, most int) ([]redisstore.Finding, error) {
	var late, behind int
	var total redisstore.Health
	worst, after, seen := "", "", 0
	for seen < most {
		names, err := s.Agents(ctx, after, min(pageOf, most-seen))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			h, err := s.Health(ctx, name)
			if err != nil {
				return nil, err
			}
			if h.Late > lateMost {
				late, worst = late+h.Expired, name
			}
			if h.Pending > 0 || h.Unsealed > 0 {
				behind++
			}
			total.Pending, total.Unsealed = total.Pending+h.Pending, total.Unsealed+h.Unsealed
			after = name
		}
		if seen += len(names); len(names) == 0 {
			break
		}
	}
	of := fmt.Sprintf(" of %d agents", seen)
	leases := redisstore.Finding{Check: "leases", Severity: redisstore.Fine, Found: "none waits for a worker" + of}
	if late > 0 {
		leases.Severity, leases.Found = redisstore.Warning, fmt.Sprintf("waiting for a worker that takes over: %s, such as of agent %q", counted(late, "call"), worst)
		leases.Do = "start a worker that runs Work and holds the agent"
	}
	tail := redisstore.Finding{Check: "folding", Severity: redisstore.Fine, Found: fmt.Sprintf("%d outcomes not folded, %d records not sealed", total.Pending, total.Unsealed) + of}
	if total.Pending > pendingMost || total.Unsealed > unsealedMost {
		tail.Severity, tail.Do = redisstore.Warning, fmt.Sprintf("%d agents were left behind: their workers fold and seal as soon as they run", behind)
	}
	return []redisstore.Finding{leases, tail}, nil
}

// What is left behind for a moment is normal; more than this is not.
const (
	pendingMost  = 16 * 100
	unsealedMost = 10_000
)

// counted is a number of things, one or more.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

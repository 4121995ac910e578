package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/trace"
)

const traceHelp = `Trace tells the story behind an id from the ledger alone: goal, reasoning, decision,
plan step, intent, the tool that executed it, who decided, and the result.

ID is an intent, a call id, an approval, an escalation, a decision, a plan step, a
digest or a task. Without SOURCE, an ID that names a task (agent~task, as the id of an
approval begins) is looked for in that task's ledger in the store.

The story of a task in the store names the rules and halts under which it ran, of its
agent's own ledger.

The ledger is verified first. JSON: {"id", "as", "tasks": [{"id", "goal", "began",
"calls": [{"intent", "action", "tool", "provenance", "code", "result", "steps"}],
"steps"}]}.`

func newTrace() *cobra.Command {
	var f storeFlags
	c := &cobra.Command{
		Use: "trace ID [SOURCE...]", Short: "Tell the story behind an id", Long: traceHelp + sourceHelp + storeHelp, Args: cobra.MinimumNArgs(1),
		Example: "  deltactl trace d-42 ledger.jsonl\n  deltactl trace --store redis://localhost:6379 desk~t1",
		RunE:    func(c *cobra.Command, args []string) error { return tellStory(c, &f, args[0], args[1:]) },
	}
	f.add(c)
	return c
}

func tellStory(c *cobra.Command, f *storeFlags, id string, sources []string) error {
	if len(sources) == 0 {
		agent, task := cutID(id)
		if task == "" {
			return usageError{fmt.Errorf("where is %q to be looked for? name a SOURCE: a file that ledger export wrote, or a task", id)}
		}
		if local, _ := cutID(task); local != "" {
			task = local
		}
		sources = []string{agent + "~" + task}
	}
	var records []trace.Record
	if agent, task := cutID(sources[0]); len(sources) == 1 && task != "" && !fromFile(sources[0]) {
		sources = append(sources, agent) // what was decided about the agent
	}
	for i, source := range sources {
		all, err := f.exported(c, source)
		if i > 0 && exitCode(err) == exitNotFound {
			continue // an agent of which nothing is recorded
		}
		if err != nil {
			return err
		}
		for _, x := range all {
			more, err := toTrace(x)
			if err != nil {
				return fmt.Errorf("%s: %w", source, err)
			}
			records = append(records, more...)
		}
	}
	story, err := trace.Tell(id, records)
	if errors.Is(err, trace.ErrNothing) {
		return coded{exitNotFound, err}
	}
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(c.OutOrStdout(), story)
	}
	return story.Write(c.OutOrStdout())
}

func toTrace(x *ledger.Exported) ([]trace.Record, error) {
	out := make([]trace.Record, 0, len(x.Records))
	for _, r := range x.Records {
		e, err := ledger.Decode(r.Val)
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", r.Seq, err)
		}
		out = append(out, trace.Record{Seq: r.Seq, At: time.UnixMicro(r.At), Event: e})
	}
	return out, nil
}

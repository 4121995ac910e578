package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// inputSchema is what a recorded row tells the function that stands for its tool.
const inputSchema = `{"type":"object","properties":{"ok":{"type":"boolean"},"tokens":{"type":"integer"},"money":{"type":"integer"}},"required":["ok"],"additionalProperties":false}`

type input struct {
	OK     bool  `json:"ok"`
	Tokens int64 `json:"tokens,omitempty"`
	Money  int64 `json:"money,omitempty"`
}

// answer stands for every tool: it ends as the row says it ended.
func answer(ctx *delta.Context, raw action.Input) mo.Result[action.Output] {
	var in input
	if err := raw.Decode(&in); err != nil {
		return mo.Err[action.Output](err)
	}
	cost := action.Cost{Tokens: in.Tokens, Money: in.Money}
	if cost.Money > 0 {
		cost.Currency = Currency
	}
	if err := ctx.Spend(cost); err != nil {
		return mo.Err[action.Output](err)
	}
	if !in.OK {
		return mo.Err[action.Output](errRecorded)
	}
	return mo.Ok(action.Output("{}"))
}

var errRecorded = errors.New("it failed when it was recorded")

// enough is more time than an answer ever takes, so that a machine that stalls changes no outcome.
const enough = time.Hour

// call makes the call that a row records.
func (r *replay) call(ctx context.Context, row Row) error {
	a := r.agents[row.Agent]
	if a == nil || a.tools[row.Tool] == nil {
		return errChanged
	}
	if err := r.open(ctx, a, row.Run); err != nil {
		return err
	}
	raw, err := json.Marshal(input{row.OK, row.Cost.Tokens, row.Cost.Money})
	if err != nil {
		return err
	}
	out, err := do(ctx, a.task, delta.Call{Action: a.names.to[row.Tool], Input: raw})
	if err != nil {
		return err
	}
	if err := r.engine.Sync(ctx); err != nil { // decisions may leave the latest successes out; a replay leaves out none
		return err
	}
	return a.tools[row.Tool].count(row, out)
}

// maxTries bounds how often a call is made that lost a race against the engine's own housekeeping.
const maxTries = 10

// do makes a call, again where nothing ran and the engine says that it may.
func do(ctx context.Context, t *delta.Task, c delta.Call) (out action.Outcome, err error) {
	for range maxTries {
		out, err = t.Do(ctx, c).Get()
		if err != nil || out.Code != action.Stale {
			break
		}
	}
	return out, err
}

// open makes sure that the agent's task is that of the run. A task ends when its agent turns to another run: where runs
// alternate, one recorded run becomes several tasks, which changes neither risk nor trust.
func (r *replay) open(ctx context.Context, a *agent, run string) (err error) {
	if a.task != nil && a.run == run {
		return nil
	}
	if a.task != nil {
		if err := a.task.Done(ctx, "the recorded run ended"); err != nil {
			return err
		}
	}
	a.run = run
	a.task, err = r.engine.Start(ctx, delta.Goal{
		Agent: a.made, Text: run, Threshold: r.cfg.Threshold, Limit: action.Limit{Currency: Currency}, Approvers: []string{"*"},
	})
	return err
}

// count takes an outcome, which must be the recorded one.
func (a *Action) count(row Row, out action.Outcome) error {
	want := action.OK
	if !row.OK {
		want = action.Failed
	}
	if out.Code != want {
		return fmt.Errorf("tool %q: the engine ended the call as %s where %s was recorded: %w", row.Tool, out.Code, want, out.Err())
	}
	a.Runs++
	if row.OK {
		a.OK++
	} else {
		a.Err++
	}
	for _, f := range out.Waived {
		if f.Layer == action.LayerOversight {
			a.Gated++
			break
		}
	}
	return nil
}

// report reads what the engine has learned.
func (r *replay) report(ctx context.Context) (*Report, error) {
	out := &Report{Rows: r.total, Agents: []Agent{}, Actions: []Action{}}
	for _, a := range r.agents {
		t, err := r.engine.Trust(ctx, a.made.Name())
		if err != nil {
			return nil, err
		}
		out.Agents = append(out.Agents, Agent{a.name, t.Score, t.Lower, t.Upper, t.Ok, t.Err})
		risks, err := r.engine.Risks(ctx, a.made.Name())
		if err != nil {
			return nil, err
		}
		for _, k := range risks {
			line := *a.tools[a.names.from[k.Action]]
			line.Level, line.P, line.Lo, line.Hi = k.Score, k.P, k.Lo, k.Hi
			out.Actions = append(out.Actions, line)
		}
	}
	out.sort()
	if r.cfg.Why != "" {
		var err error
		if out.Why, err = r.why(ctx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

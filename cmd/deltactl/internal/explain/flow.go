package explain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// said is the step, and the planner, of the workflows that complete with what the file says.
const said = "said"

// workflows stand for those that the file says completed: they take any object and give any.
func (s *set) workflows(play *player) (w delta.Workflows, err error) {
	known := map[[2]string]*workflow.Definition{}
	for i := range s.done {
		c := &s.done[i]
		if c.workflow == "" {
			continue
		}
		of := [2]string{c.workflow, cmp.Or(c.version, "1")}
		if known[of] == nil {
			known[of], err = workflow.New(of[0], of[1]).Input(`{"type":"object"}`).Step(workflow.Reason(said, said).Output(`{"type":"object"}`)).Output(".", "steps."+said+".output").Build()
			if err != nil {
				return w, fmt.Errorf("line %d: done: %w", c.line, err)
			}
			w.Definitions = append(w.Definitions, known[of])
		}
		c.def = known[of]
	}
	w.Proposers = map[string]delta.Proposer{said: delta.ProposerFunc(func(context.Context, delta.StepRequest) (delta.Draft, error) {
		return delta.Draft{Document: filled(play.now.output)}, nil
	})}
	return w, nil
}

// filled is a document, {} where the file gives none.
func filled(text json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(text)) == 0 {
		return json.RawMessage(`{}`)
	}
	return text
}

// complete runs what completed before. It counts as a call.
func (s *set) complete(ctx context.Context, t *delta.Task, a *delta.Agent, c call) error {
	run, err := t.StartWorkflow(ctx, c.def, delta.Goal{Agent: a, Text: "what the file says", Limit: s.goal.small()}, filled(c.input))
	if err != nil {
		return err
	}
	state, err := run.Run(ctx)
	if err == nil && state.Status != workflow.Completed {
		err = fmt.Errorf("workflow %q could not have completed: %s", c.workflow, state.Status)
		if state.Failure != nil {
			err = fmt.Errorf("%w: %s", err, state.Failure.Explain())
		}
	}
	return err
}

// small is a share of the goal's limit in which a workflow of one proposal fits.
func (g *goal) small() (l action.Limit) {
	for _, axis := range []struct {
		has, gets *action.Bound
		n         int64
	}{
		{&g.limit.Tokens, &l.Tokens, 1}, {&g.limit.Duration, &l.Duration, int64(time.Second)}, {&g.limit.Calls, &l.Calls, 1},
		{&g.limit.Bytes, &l.Bytes, 1}, {&g.limit.Money, &l.Money, 1},
	} {
		if _, bounded := axis.has.Get(); bounded {
			*axis.gets = action.Max(axis.n)
		}
	}
	l.Currency = g.limit.Currency
	return l
}

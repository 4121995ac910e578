package delta_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// looked is a store that people look into.
type looked struct{ *memory.InProcess }

func (looked) Shows() bool { return true }

type payment struct {
	Order string `json:"order"`
	Card  string `json:"card" delta:"secret"`
}

type bill struct {
	Order string `json:"order"`
}

// shop is an engine with the functions, and one that has the store alone.
func shop(t *testing.T) (works, operates *delta.Engine, agent *delta.Agent, ana delta.Identity) {
	store := looked{memory.New(memory.Config{})}
	names := delta.AuthenticatorFunc(func(_ context.Context, c any) (string, error) { return c.(string), nil })
	works, err := delta.New(delta.Config{Store: store, Authenticator: names})
	require.NoError(t, err)
	operates, err = delta.New(delta.Config{Store: store, Authenticator: names})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, works.Close(context.Background()))
		assert.NoError(t, operates.Close(context.Background()))
		assert.NoError(t, store.Close())
	})
	charge := delta.Define("charge", func(_ *delta.Context, in payment) mo.Result[string] {
		if in.Order == "lost" {
			return mo.Err[string](action.Unknown(errors.New("no answer from the bank")))
		}
		return mo.Ok("charged")
	}).Describe("Charge a card").Risk(2).RequireApproval().MustBuild()
	send := delta.Define("send", func(_ *delta.Context, in bill) mo.Result[string] { return mo.Ok("sent") }).Describe("Send goods").Risk(4).Needs(charge.On("order")).MustBuild()
	agent = delta.NewAgent("desk").Role("sells").Grant(charge, send).MustBuild()
	ana, err = operates.Authenticate(t.Context(), "ana")
	require.NoError(t, err)
	return works, operates, agent, ana
}

func TestAStoreAloneIsEnoughToOperate(t *testing.T) {
	works, operates, agent, ana := shop(t)
	ctx := t.Context()
	task, err := works.Start(ctx, delta.Goal{ID: "t1", Agent: agent, Text: "sell", Approvers: []string{"ana"}, Requester: "bo", Threshold: 5,
		Limit: action.Limit{Calls: action.Max(9)}})
	require.NoError(t, err)
	call := func(order string) delta.Call {
		return delta.Call{ID: order, Action: "charge", Input: fmt.Appendf(nil, `{"order":%q,"card":"4111"}`, order)}
	}
	out := task.Do(ctx, call("lost")).MustGet()
	require.Equal(t, action.ApprovalRequired, out.Code)

	_, err = operates.Trust(ctx, "desk")
	require.Error(t, err, "nobody told this engine of the agent")
	names, err := operates.Agents(ctx, "", 10)
	require.NoError(t, err)
	require.Equal(t, []string{"desk"}, names)
	require.ErrorIs(t, operates.Adopt(ctx, "nobody"), delta.ErrNoAgent)
	require.NoError(t, operates.Adopt(ctx, names...))

	waiting, err := operates.Approvals(ctx, 10)
	require.NoError(t, err)
	require.Len(t, waiting, 1)
	assert.Equal(t, "Charge a card", waiting[0].Does)
	assert.NotContains(t, waiting[0].Explain(), "4111", "the card says what is secret")
	bo, err := operates.Authenticate(ctx, "bo")
	require.NoError(t, err)
	require.Error(t, operates.Approve(ctx, waiting[0].ID, bo, "mine"), "a requester never approves, by whatever door")
	require.NoError(t, operates.Approve(ctx, waiting[0].ID, ana, "seen"))

	out = task.Do(ctx, call("lost")).MustGet()
	require.Equal(t, action.StartedUnknown, out.Code)
	page, err := operates.Tasks(ctx, delta.TaskQuery{})
	require.NoError(t, err)
	require.Len(t, page.Tasks, 1)
	got := page.Tasks[0]
	assert.Equal(t, []any{"desk~t1", "running", "sell", 1, 0}, []any{got.ID, got.Status, got.Goal, got.Unknown, got.Waiting})

	unknown, err := operates.Unresolved(ctx, 10)
	require.NoError(t, err)
	require.Len(t, unknown, 1)
	there, err := operates.Open(ctx, "desk~t1")
	require.NoError(t, err)
	require.NoError(t, there.Resolve(ctx, unknown[0].Intent, ana, true, []byte(`"charged"`), action.Cost{}, "the bank says so"))
	unknown, err = operates.Unresolved(ctx, 10)
	require.NoError(t, err)
	assert.Empty(t, unknown)
	out = task.Do(ctx, delta.Call{Action: "send", Input: []byte(`{"order":"lost"}`)}).MustGet()
	assert.True(t, out.OK(), "what an operator found establishes the fact: %v", out.Failure)

	require.NoError(t, works.Sync(ctx))
	risks, err := operates.Risks(ctx, "desk")
	require.NoError(t, err)
	require.Len(t, risks, 2)
	assert.Equal(t, []any{"charge", 2, int64(1), "send", 4, int64(1)}, []any{risks[0].Action, risks[0].Declared, risks[0].N, risks[1].Action, risks[1].Declared, risks[1].N})
	mine, err := works.Risks(ctx, "desk")
	require.NoError(t, err)
	assert.Equal(t, mine, risks, "both see the same")

	require.NoError(t, there.TopUp(ctx, ana, action.Cost{Calls: 5}, "more"))
	b, err := there.Standing(ctx)
	require.NoError(t, err)
	assert.Contains(t, fmt.Sprint(b.Budget), "14")

	_, report, err := operates.Ledger(ctx, "desk~t1")
	require.NoError(t, err)
	assert.Positive(t, report.Sealed)

	n, err := operates.Kill(ctx, "desk", ana, "enough")
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	out = task.Do(ctx, call("more")).MustGet()
	assert.Equal(t, action.Cancelled, out.Code)
	page, err = operates.Tasks(ctx, delta.TaskQuery{})
	require.NoError(t, err)
	assert.Empty(t, page.Tasks)
	page, err = operates.Tasks(ctx, delta.TaskQuery{Ended: true})
	require.NoError(t, err)
	require.Len(t, page.Tasks, 1)
	assert.Equal(t, []string{"cancelled", "enough"}, []string{page.Tasks[0].Status, page.Tasks[0].Reason})
	events, err := task.Events(ctx)
	require.NoError(t, err)
	assert.Equal(t, "ana", events[len(events)-2].Identity+events[len(events)-1].Identity, "who stopped it is recorded")
}

func TestNoCallsWithoutFunctions(t *testing.T) {
	works, operates, agent, _ := shop(t)
	ctx := t.Context()
	_, err := works.Start(ctx, delta.Goal{ID: "t1", Agent: agent})
	require.NoError(t, err)
	require.NoError(t, operates.Adopt(ctx, "desk"))
	task, err := operates.Open(ctx, "desk~t1")
	require.NoError(t, err)
	require.ErrorIs(t, task.Do(ctx, delta.Call{Action: "charge", Input: []byte(`{}`)}).Error(), delta.ErrNoCalls)
	require.ErrorIs(t, task.DoWait(ctx, delta.Call{Action: "charge", Input: []byte(`{}`)}).Error(), delta.ErrNoCalls)
	_, err = task.Offer(ctx)
	require.ErrorIs(t, err, delta.ErrNoCalls)
	_, err = task.Preview(ctx, delta.Call{Action: "charge", Input: []byte(`{}`)}, nil)
	require.ErrorIs(t, err, delta.ErrNoCalls)
	_, err = operates.Start(ctx, delta.Goal{Agent: task.Agent()})
	require.ErrorIs(t, err, delta.ErrNoCalls)
	records, _, err := works.Ledger(ctx, "desk~t1")
	require.NoError(t, err)
	assert.Len(t, records, 1, "and nothing is recorded")

	require.NoError(t, operates.Register(agent), "who has the functions may")
	task, err = operates.Open(ctx, "desk~t1")
	require.NoError(t, err)
	_, err = task.Offer(ctx)
	require.NoError(t, err)
	require.NoError(t, operates.Adopt(ctx, "desk"), "adopting takes nothing away")
	_, err = task.Offer(ctx)
	require.NoError(t, err)
}

func TestTasksInPages(t *testing.T) {
	works, operates, agent, _ := shop(t)
	ctx := t.Context()
	other := delta.NewAgent("attic").MustBuild()
	for i := range 5 {
		for _, a := range []*delta.Agent{agent, other} {
			_, err := works.Start(ctx, delta.Goal{ID: fmt.Sprint("t", i), Agent: a})
			require.NoError(t, err)
		}
	}
	require.NoError(t, operates.Adopt(ctx, "desk", "attic"))
	var ids []string
	for q := (delta.TaskQuery{Limit: 3}); ; {
		page, err := operates.Tasks(ctx, q)
		require.NoError(t, err)
		for _, s := range page.Tasks {
			ids = append(ids, s.ID)
		}
		if q.After = page.Next; q.After == "" {
			break
		}
		require.Len(t, page.Tasks, 3)
	}
	assert.Equal(t, []string{"attic~t0", "attic~t1", "attic~t2", "attic~t3", "attic~t4", "desk~t0", "desk~t1", "desk~t2", "desk~t3", "desk~t4"}, ids)
	_, err := operates.Tasks(ctx, delta.TaskQuery{After: "x"})
	require.ErrorContains(t, err, "no place")
}

// An agent that nobody registered, and that only ever works for others, leaves its card all the same.
func TestADelegateLeavesItsCard(t *testing.T) {
	works, operates, _, _ := shop(t)
	ctx := t.Context()
	help := delta.NewAgent("help").Grant(nod).MustBuild()
	boss := delta.NewAgent("boss").MayDelegate(nod).MustBuild()
	task, err := works.Start(ctx, delta.Goal{ID: "t1", Agent: boss, Delegation: delta.Delegation{Active: 1}})
	require.NoError(t, err)
	for _, name := range []string{"first", "waits"} {
		_, err = task.Delegate(ctx, delta.Goal{ID: name, Agent: help})
		require.NoError(t, err)
	}
	require.NoError(t, operates.Adopt(ctx, "help"))
	risks, err := operates.Risks(ctx, "help")
	require.NoError(t, err)
	require.Len(t, risks, 1)
	assert.Equal(t, "nod", risks[0].Action)
}

var nod = delta.Define("nod", func(*delta.Context, bill) mo.Result[string] { return mo.Ok("yes") }).Describe("Nod").Risk(1).Cost(action.Cost{Tokens: 10}).MustBuild()

// Whoever decides where the functions are not sees first what the schema names, whatever names a planner chose, and
// what of the cost the input says.
func TestAStoreAloneKnowsWhatIsDeclared(t *testing.T) {
	store := looked{memory.New(memory.Config{})}
	works, err := delta.New(delta.Config{Store: store})
	require.NoError(t, err)
	operates, err := delta.New(delta.Config{Store: store})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, works.Close(context.Background()))
		assert.NoError(t, operates.Close(context.Background()))
		assert.NoError(t, store.Close())
	})
	send := delta.DefineRaw("send", []byte(`{"type":"object","properties":{"z":{"type":"integer"}},"additionalProperties":true}`),
		func(*delta.Context, action.Input) mo.Result[action.Output] { return mo.Ok(action.Output(`{}`)) }).
		Describe("Send").Risk(1).RequireApproval().CostOf(func(action.Input) action.Cost { return action.Cost{Bytes: 7} }, action.Bytes).MustBuild()
	task, err := works.Start(t.Context(), delta.Goal{ID: "t", Agent: delta.NewAgent("desk").Grant(send).MustBuild(), Approvers: []string{"ana"}})
	require.NoError(t, err)
	input := `{"z":5`
	for i := range 90 {
		input += fmt.Sprintf(`,"a%d":1`, i)
	}
	out := task.Do(t.Context(), delta.Call{Action: "send", Input: []byte(input + "}")}).MustGet()
	require.NoError(t, operates.Adopt(t.Context(), "desk"))
	a, err := operates.Approval(t.Context(), out.Failure.Approval())
	require.NoError(t, err)
	assert.Equal(t, "z", a.Arguments[0].Path)
	assert.Equal(t, 51, a.Unshown)
	assert.Contains(t, a.Explain(), "not all of it is shown: 40 of 91 values\n")
	assert.Contains(t, a.Explain(), "will cost 7 bytes, by its input; 1 call (forecast)")
	lines, err := operates.ApprovalInput(t.Context(), a.ID)
	require.NoError(t, err)
	assert.Len(t, lines, 93)
}

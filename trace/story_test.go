package trace_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/tool"
	"github.com/seed-ab2cfece/delta-agents/trace"
)

var boss = delta.AuthenticatorFunc(func(_ context.Context, c any) (string, error) { return c.(string), nil })

// lived is the ledger of a task in which a call was approved, made a call within itself by a tool, and another was refused.
func lived(t *testing.T) (records []trace.Record, o action.Outcome, approval, seen string) {
	ctx := context.Background()
	r := tool.NewRegistry()
	c := tool.Contract{ID: "crm.find", Description: "finds", Input: json.RawMessage(`{"type":"object"}`)}
	require.NoError(t, r.Register(tool.Tool{Contract: c, Invoke: func(_ context.Context, c tool.Call) (json.RawMessage, error) {
		seen = c.Provenance.Decision
		return json.RawMessage(`"Ana"`), nil
	}}))
	find := delta.DefineTool("find", c).Risk(1).Effect(action.None).MustBuild()
	type none struct{}
	refund := delta.Define("refund", func(ctx *delta.Context, _ none) mo.Result[string] {
		ctx.Tool("find").Call(none{})
		return mo.Ok("refunded")
	}).Describe("refunds").Risk(1).RequireApproval().Tools("find").MustBuild()
	e, err := delta.New(delta.Config{Tools: r, Authenticator: boss})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close(ctx)) }()
	task, err := e.Start(ctx, delta.Goal{ID: "t1", Agent: delta.NewAgent("desk").Grant(find, refund).MustBuild(), Text: "make the customer happy", Approvers: []string{"ana"}})
	require.NoError(t, err)
	call := delta.Call{ID: "call-7", Action: "refund", Input: json.RawMessage(`{}`), Provenance: action.Provenance{
		Goal: "g-1", Decision: "d-42", PlanStep: "3", Reason: "she paid twice\nIGNORE THIS LINE",
	}}
	o = task.Do(ctx, call).MustGet()
	approval = o.Failure.Approval()
	ana, err := e.Authenticate(ctx, "ana")
	require.NoError(t, err)
	require.NoError(t, e.Approve(ctx, approval, ana, "she is right"))
	o = task.Do(ctx, call).MustGet()
	require.True(t, o.OK(), "%v", o.Failure)
	task.Do(ctx, delta.Call{Action: "nothing", Provenance: action.Provenance{Decision: "d-43"}})
	stored, _, err := task.Ledger(ctx)
	require.NoError(t, err)
	for _, s := range stored {
		e, err := ledger.Decode(s.Val)
		require.NoError(t, err)
		records = append(records, trace.Record{Seq: s.Seq, At: time.UnixMicro(s.At), Event: e})
	}
	return records, o, approval, seen
}

// TestOneIDFindsAll: goal, reasoning, decision, intent, tool invocation and result are found by any of the ids.
func TestOneIDFindsAll(t *testing.T) {
	records, o, approval, seen := lived(t)
	assert.Equal(t, "d-42", seen, "the ids reach the tool")
	for as, id := range map[string]string{"intent": o.Intent, "call": "call-7", "approval": approval, "decision": "d-42"} {
		s, err := trace.Tell(id, records)
		require.NoError(t, err, as)
		assert.Contains(t, s.As, as)
		text := s.String()
		for _, want := range []string{
			"make the customer happy", "she paid twice IGNORE", "d-42", o.Intent, "crm.find", `"Ana"`, `"refunded"`, "by ana", "she is right", "approval_requested",
		} {
			assert.Contains(t, text, want, "by its %s", as)
		}
		assert.NotContains(t, text, "\nIGNORE", "a planner's words stay on their line")
		assert.NotContains(t, text, "d-43")
	}
}

func TestInnerCallLeadsOut(t *testing.T) {
	records, o, _, _ := lived(t)
	for _, r := range records {
		if r.Event.Within == o.Intent && r.Event.Type == ledger.Begun {
			s, err := trace.Tell(r.Event.Intent, records)
			require.NoError(t, err)
			require.Len(t, s.Tasks[0].Calls, 2)
			assert.Equal(t, o.Intent, s.Tasks[0].Calls[0].Intent)
			return
		}
	}
	t.Fatal("no call was made within the call")
}

func TestTaskAndRefusal(t *testing.T) {
	records, _, _, _ := lived(t)
	s, err := trace.Tell("desk~t1", records)
	require.NoError(t, err)
	assert.Len(t, s.Tasks[0].Calls, 3)
	s, err = trace.Tell("d-43", records)
	require.NoError(t, err)
	assert.Contains(t, s.String(), "refused call of nothing")
	assert.Equal(t, action.ActionUnknown, s.Tasks[0].Calls[0].Code)
	_, err = trace.Tell("nobody", records)
	require.ErrorIs(t, err, trace.ErrNothing)
	_, err = trace.Tell("", records)
	require.ErrorIs(t, err, trace.ErrNothing)
}

// TestACallThatWaitsIsNotRefused: it has no end yet; rejected it has.
func TestACallThatWaitsIsNotRefused(t *testing.T) {
	record := func(typ ledger.Type, code action.Code) trace.Record {
		return trace.Record{Event: ledger.Event{V: ledger.Version, Type: typ, Agent: "desk", Task: "t1", Intent: "i1", Approval: "desk~t1~a", Action: "refund", Code: code}}
	}
	asked := record(ledger.ApprovalRequested, action.ApprovalRequired)
	for _, c := range []struct {
		name string
		then []trace.Record
		want string
	}{
		{"asked", nil, "call waiting for a person of refund"},
		{"approved", []trace.Record{record(ledger.ApprovalApproved, "")}, "\n  call of refund"},
		{"rejected", []trace.Record{record(ledger.ApprovalRejected, "")}, "refused call of refund"},
	} {
		s, err := trace.Tell("i1", append([]trace.Record{asked}, c.then...))
		require.NoError(t, err, c.name)
		assert.Contains(t, s.String(), c.want, c.name)
	}
}

func TestSameStorySameText(t *testing.T) {
	records, o, _, _ := lived(t)
	first, err := trace.Tell(o.Intent, records)
	require.NoError(t, err)
	for range 20 {
		again, err := trace.Tell(o.Intent, records)
		require.NoError(t, err)
		require.Equal(t, first.String(), again.String())
	}
	assert.False(t, strings.Contains(first.String(), "\x1b"))
}

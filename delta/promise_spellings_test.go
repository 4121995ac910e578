package delta_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

type Payment struct {
	Amount float64   `json:"amount" jsonschema:"exclusiveMinimum=0"`
	Proof  []byte    `json:"proof"`
	Due    time.Time `json:"due"`
	Note   string    `json:"note,omitempty"`
	Tries  *int      `json:"tries,omitempty" jsonschema:"nullable"`
}

const paid = `{"amount":0.1,"proof":"aGk=","due":"2024-01-01T00:00:00Z"}`

// spellings decode to what paid decodes to, or are refused.
var spellings = []string{
	paid,
	`{"amount":1e-1,"proof":"\u0061Gk=","due":"2024-01-01T00:00:00Z"}`,
	`{"amount":0.10000000000000000555,"proof":"aGk=","due":"2024-01-01T00:00:00Z"}`,
	`{"amount":0.1,"proof":"aGl=","due":"2024-01-01T00:00:00Z"}`,
	`{"amount":0.1,"proof":"aGk=","due":"2024-01-01T00:00:00+00:00"}`,
	`{"amount":0.1,"proof":"aGk=","due":"2024-01-01T00:00:00.000Z"}`,
	`{"amount":0.1,"proof":"aGk=","due":"2024-01-01T02:00:00+02:00"}`,
	`{"amount":0.1,"proof":"aGk=","due":"2024-01-01T00:00:00Z","note":""}`,
	`{"amount":0.1,"proof":"aGk=","due":"2024-01-01T00:00:00Z","tries":null}`,
}

func spelling(raw string) delta.Call {
	return delta.Call{Action: "pay", Input: json.RawMessage(raw)}
}

// TestI09_UnknownByAnySpelling: what may have happened is not done again because the same input was written another way,
// and is done again once a person resolved it.
func TestI09_UnknownByAnySpelling(t *testing.T) {
	engine, err := delta.New(delta.Config{Authenticator: byName()})
	require.NoError(t, err)
	defer engine.Close(t.Context())
	ran := 0
	pay := delta.Define("pay", func(*delta.Context, Payment) mo.Result[Out] {
		ran++
		return mo.Err[Out](action.Unknown(errors.New("connection lost")))
	}).Describe("Pay").Risk(1).MustBuild()
	task, err := engine.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("payer").Grant(pay).MustBuild(), Approvers: []string{"ana"}})
	require.NoError(t, err)
	first := task.Do(t.Context(), spelling(paid)).MustGet()
	require.Equal(t, action.StartedUnknown, first.Code)
	for _, s := range spellings {
		o := task.Do(t.Context(), spelling(s)).MustGet()
		require.Contains(t, []action.Code{action.NotLegal, action.InputInvalid}, o.Code, s)
		if o.Code == action.NotLegal {
			require.Equal(t, first.Intent, o.Failure.Details[action.DetailIntent], s)
		}
	}
	require.Equal(t, 1, ran)
	other := task.Do(t.Context(), spelling(`{"amount":0.2,"proof":"aGk=","due":"2024-01-01T00:00:00Z"}`)).MustGet()
	require.Equal(t, action.StartedUnknown, other.Code, "another payment is another call")

	ana, err := engine.Authenticate(t.Context(), "ana")
	require.NoError(t, err)
	require.NoError(t, task.Resolve(t.Context(), first.Intent, ana, false, nil, action.Cost{}, "it never arrived"))
	again := task.Do(t.Context(), spelling(spellings[5])).MustGet()
	require.Equal(t, action.StartedUnknown, again.Code, "it is known now")
	require.Equal(t, action.NotLegal, task.Do(t.Context(), spelling(paid)).MustGet().Code)
	require.Equal(t, 3, ran)
}

// TestI06_RejectedByAnySpelling: nobody is asked again about what was rejected because it was written another way.
func TestI06_RejectedByAnySpelling(t *testing.T) {
	engine, err := delta.New(delta.Config{Authenticator: byName()})
	require.NoError(t, err)
	defer engine.Close(t.Context())
	pay := delta.Define("pay", func(*delta.Context, Payment) mo.Result[Out] { return mo.Ok(Out{"paid"}) }).Describe("Pay").Risk(4).MustBuild()
	task, err := engine.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("payer").Grant(pay).MustBuild(), Approvers: []string{"ana"}})
	require.NoError(t, err)
	ana, err := engine.Authenticate(t.Context(), "ana")
	require.NoError(t, err)
	o := task.Do(t.Context(), spelling(paid)).MustGet()
	require.NoError(t, engine.Reject(t.Context(), o.Failure.Approval(), ana, "not this one"))
	for _, s := range spellings {
		o := task.Do(t.Context(), spelling(s)).MustGet()
		require.Contains(t, []action.Code{action.ApprovalRejected, action.InputInvalid}, o.Code, s)
		if o.Code == action.ApprovalRejected {
			require.Equal(t, "not this one", o.Failure.Details[action.DetailReason], s)
		}
	}
	o = task.Do(t.Context(), spelling(`{"amount":0.2,"proof":"aGk=","due":"2024-01-01T00:00:00Z"}`)).MustGet()
	require.Equal(t, action.ApprovalRequired, o.Code, "another payment is asked about")
	pending, err := engine.Approvals(t.Context(), 9)
	require.NoError(t, err)
	require.Len(t, pending, 1)
}

// Two consumed needs that meet in one fact are one fact too few.
func TestI03_OneFactIsUsedUpOnce(t *testing.T) {
	type Move struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	engine, err := delta.New(delta.Config{})
	require.NoError(t, err)
	defer engine.Close(t.Context())
	confirm := delta.Define("confirm", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"yes"}) }).Describe("Confirm").Risk(1).MustBuild()
	move := delta.Define("move", func(*delta.Context, Move) mo.Result[Out] { return mo.Ok(Out{"moved"}) }).Describe("Move").Risk(1).
		Needs(confirm.OnAs("from", "id").Consumed(), confirm.OnAs("to", "id").Consumed()).MustBuild()
	task, err := engine.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("mover").Grant(confirm, move).MustBuild()})
	require.NoError(t, err)
	for _, id := range []string{"a", "b"} {
		require.NoError(t, confirm.Do(t.Context(), task, In{ID: id}).Error())
	}
	_, err = move.Do(t.Context(), task, Move{"a", "a"}).Get()
	require.ErrorIs(t, err, &action.Failure{Code: action.NotLegal})
	require.NoError(t, move.Do(t.Context(), task, Move{"a", "b"}).Error())
	_, err = move.Do(t.Context(), task, Move{"a", "b"}).Get()
	require.ErrorIs(t, err, &action.Failure{Code: action.NotLegal}, "both are used up")
}

package delta_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// What an agent noted for one tenant it does not recall for another, whoever of them has more notes.
func TestNotesStayWithTheirTenant(t *testing.T) {
	tell := delta.Define("tell", func(ctx *delta.Context, in In) mo.Result[Out] {
		if err := ctx.Remember("customer "+in.ID+" owes 100", "fact"); err != nil {
			return mo.Err[Out](err)
		}
		return mo.Ok(Out{Said: "noted"})
	}).Describe("Tell").Risk(1).MustBuild()
	agent := delta.NewAgent("desk").Grant(tell).MustBuild()
	e := engineFor(t, delta.Config{})
	for tenant, notes := range map[string]int{"acme": 600, "evil": 1, "": 1} {
		task, err := e.Start(t.Context(), delta.Goal{Agent: agent, Tenant: tenant})
		require.NoError(t, err)
		for i := range notes {
			require.NoError(t, tell.Do(t.Context(), task, In{ID: fmt.Sprint("of", tenant, i)}).Error())
		}
	}
	for _, tenant := range []string{"acme", "evil", ""} {
		task, err := e.Start(t.Context(), delta.Goal{Agent: agent, Tenant: tenant})
		require.NoError(t, err)
		_ = e.Run(t.Context(), task, delta.PlannerFunc(func(ctx context.Context, r delta.Request) (delta.Proposal, error) {
			for _, query := range []string{"customer", ""} {
				notes, err := r.Recall(ctx, query)
				require.NoError(t, err)
				assert.NotEmpty(t, notes)
				for _, n := range notes {
					assert.Equal(t, tenant, n.Tenant)
				}
			}
			return delta.Proposal{Done: true}, nil
		}))
	}
}

// An approver is not shown what was approved for another tenant, or about somebody else, as what changed since.
func TestWhatChangedIsOfTheSameTenantAndSubject(t *testing.T) {
	pay := delta.Define("pay", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{Said: "paid"}) }).Describe("Pay").Risk(1).RequireApproval().MustBuild()
	agent := delta.NewAgent("desk").Grant(pay).MustBuild()
	e := engineFor(t, delta.Config{Authenticator: anybody})
	boss, err := e.Authenticate(t.Context(), "boss")
	require.NoError(t, err)
	asked := func(tenant, subject, id string) delta.Approval {
		task, err := e.Start(t.Context(), delta.Goal{Agent: agent, Tenant: tenant, Subject: subject, Approvers: []string{"boss"}})
		require.NoError(t, err)
		call := delta.Call{ID: "c", Action: "pay", Input: inputOf(In{ID: id})}
		out, err := task.Do(t.Context(), call).Get()
		require.NoError(t, err)
		a, err := e.Approval(t.Context(), out.Failure.Approval())
		require.NoError(t, err)
		require.NoError(t, e.Approve(t.Context(), a.ID, boss, "fine"))
		out, err = task.Do(t.Context(), call).Get()
		require.NoError(t, err)
		require.Equal(t, action.OK, out.Code)
		return a
	}
	assert.Nil(t, asked("acme", "", "bolts").Last)
	for _, c := range []struct{ tenant, subject, before string }{{"evil", "", "bolts"}, {"evil", "ada", "nuts1"}, {"evil", "bob", "nuts2"}} {
		a := asked(c.tenant, c.subject, "nuts"+fmt.Sprint(len(c.subject)+len(c.tenant)))
		require.NotNil(t, a.Last)
		assert.True(t, a.Last.Elsewhere)
		assert.Empty(t, a.Last.Task)
		assert.NotContains(t, a.Explain(), c.before)
	}
	a := asked("evil", "bob", "screws")
	require.NotNil(t, a.Last)
	assert.False(t, a.Last.Elsewhere)
	assert.Contains(t, a.Explain(), "nuts")
	a = asked("acme", "", "nails")
	require.NotNil(t, a.Last)
	assert.False(t, a.Last.Elsewhere, "others came between")
	assert.Contains(t, a.Explain(), "bolts")
	assert.NotContains(t, a.Explain(), "nuts")
	a = asked("acme", "bob", "pins")
	assert.Equal(t, &delta.LastApproved{Elsewhere: true}, a.Last, "not even when")
}

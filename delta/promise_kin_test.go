package delta_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// TestI16_NobodyDecidesForTheirOwn: whatever a person may do to a task, neither its requester nor its agent may, nor an
// agent for which that one works, on whatever list they are and however they spell their name.
func TestI16_NobodyDecidesForTheirOwn(t *testing.T) {
	var ran atomic.Int64
	pay := counts("pay", &ran).RequireApproval().MustBuild()
	both := counts("both", &ran).RequireApproval().Quorum(2).MustBuild()
	lost := does("lost", func(*delta.Context, In) mo.Result[Out] {
		return mo.Err[Out](action.Unknown(errors.New("line went dead")))
	}).Risk(1).MustBuild()
	agents := map[string]*delta.Agent{}
	for _, name := range []string{"lead", "middle", "helper"} {
		agents[name] = delta.NewAgent(name).Grant(pay, both, lost).MustBuild()
	}
	e := engineFor(t, delta.Config{Authenticator: anybody, Operators: []string{"*"}})
	top, err := e.Start(t.Context(), delta.Goal{Agent: agents["lead"], Approvers: []string{"*"}, Requester: "bo"})
	require.NoError(t, err)
	task := top
	for _, name := range []string{"middle", "helper"} {
		c, err := task.Delegate(t.Context(), delta.Goal{Agent: agents[name]})
		require.NoError(t, err)
		task, err = c.Task(t.Context())
		require.NoError(t, err)
	}
	as := func(name string) delta.Identity {
		id, err := e.Authenticate(t.Context(), name)
		require.NoError(t, err)
		return id
	}
	asks := func(name, id string) string {
		o := task.Do(t.Context(), call(name, id)).MustGet()
		require.Equal(t, action.ApprovalRequired, o.Code)
		return o.Failure.Approval()
	}
	pending, consented, approved := asks("pay", "a"), asks("both", "a"), asks("pay", "b")
	require.NoError(t, e.Approve(t.Context(), consented, as("ana"), "yes"))
	require.NoError(t, e.Approve(t.Context(), approved, as("ana"), "yes"))
	unknown := task.Do(t.Context(), call("lost", "a")).MustGet()
	require.Equal(t, action.StartedUnknown, unknown.Code)

	verbs := map[string]func(delta.Identity) error{
		"approve": func(by delta.Identity) error { return e.Approve(t.Context(), pending, by, "r") },
		"approve batch": func(by delta.Identity) error {
			_, err := e.ApproveBatch(t.Context(), []string{pending}, by, nil, "r")
			return err
		},
		"consent":  func(by delta.Identity) error { return e.Approve(t.Context(), consented, by, "r") },
		"withdraw": func(by delta.Identity) error { return e.Withdraw(t.Context(), consented, by, "r") },
		"reject":   func(by delta.Identity) error { return e.Reject(t.Context(), pending, by, "r") },
		"revoke":   func(by delta.Identity) error { return e.Revoke(t.Context(), approved, by, "r") },
		"resolve": func(by delta.Identity) error {
			return task.Resolve(t.Context(), unknown.Intent, by, false, nil, action.Cost{}, "r")
		},
		"top up":    func(by delta.Identity) error { return task.TopUp(t.Context(), by, action.Cost{Calls: 1}, "r") },
		"threshold": func(by delta.Identity) error { return task.SetThreshold(t.Context(), by, 2, "r") },
		"break glass": func(by delta.Identity) error {
			_, err := task.BreakGlass(t.Context(), by, delta.Glass{For: time.Minute}, "r")
			return err
		},
		"restore glass": func(by delta.Identity) error { return task.RestoreGlass(t.Context(), by, "r") },
		"conclude":      func(by delta.Identity) error { return task.ConcludeBy(t.Context(), by, action.Reached, "r") },
	}
	kin := []string{"lead", "middle", "helper", "bo", "Lead", "lead@corp"}
	none := func(when string) {
		for verb, do := range verbs {
			for _, who := range kin {
				assert.ErrorIs(t, do(as(who)), approval.ErrSelf, "%s by %s%s", verb, who, when)
			}
		}
	}
	none("")
	for _, who := range kin {
		inbox, err := e.Inbox(t.Context(), as(who))
		require.NoError(t, err)
		assert.Empty(t, inbox, who)
	}
	raised, err := task.Escalate(t.Context(), action.ConcernLoop, "look")
	require.NoError(t, err)
	require.True(t, raised.Paused)
	verbs["resume"] = func(by delta.Identity) error { return e.ResumeTask(t.Context(), raised.ID, by, "r") }
	verbs["end"] = func(by delta.Identity) error { return e.EndTask(t.Context(), raised.ID, by, "r") }
	none(", paused")
	assert.Zero(t, ran.Load())
	assert.Error(t, e.ResetBelief(t.Context(), "helper", "pay", as("helper"), "r"), "an agent's beliefs are no task's: it is the agent that has no say")

	for _, verb := range []string{"resume", "revoke", "reject", "resolve", "threshold", "break glass", "restore glass", "conclude"} {
		assert.NoError(t, verbs[verb](as("eve")), "%s: anybody else", verb)
	}
	assert.NoError(t, top.CancelBy(t.Context(), as("lead"), "no need"), "anybody may stop a task")
}

// TestI16_KinDoNotMakeAQuorum: where only those are left to ask who have no say, the child is told so at once.
func TestI16_KinDoNotMakeAQuorum(t *testing.T) {
	var ran atomic.Int64
	both := counts("both", &ran).RequireApproval().Quorum(2).MustBuild()
	one := counts("one", &ran).RequireApproval().MustBuild()
	lead := delta.NewAgent("lead").Grant(both, one).MustBuild()
	helper := delta.NewAgent("helper").Grant(both, one).MustBuild()
	single := delta.NewAgent("single").Grant(one).MustBuild()
	e := engineFor(t, delta.Config{Authenticator: anybody})
	task, err := e.Start(t.Context(), delta.Goal{Agent: lead, Approvers: []string{"ana", "cy", "lead"}})
	require.NoError(t, err)
	for _, c := range []struct {
		reason    string
		agent     *delta.Agent
		approvers []string
		both, one action.Code
	}{
		{"those of the parent", helper, nil, action.ApprovalRequired, action.ApprovalRequired},
		{"one and an ancestor's agent are one", helper, []string{"ana", "lead"}, action.NoApprover, action.ApprovalRequired},
		{"an ancestor's agent is nobody", single, []string{"lead"}, action.ActionUnknown, action.NoApprover},
	} {
		child, err := task.Delegate(t.Context(), delta.Goal{Agent: c.agent, Approvers: c.approvers})
		if !assert.NoError(t, err, c.reason) {
			continue
		}
		sub, err := child.Task(t.Context())
		require.NoError(t, err)
		assert.Equal(t, c.both, sub.Do(t.Context(), call("both", "x")).MustGet().Code, c.reason)
		assert.Equal(t, c.one, sub.Do(t.Context(), call("one", "x")).MustGet().Code, c.reason)
		raised, err := sub.Escalate(t.Context(), action.ConcernLoop, "look")
		require.NoError(t, err)
		assert.Equal(t, c.one == action.ApprovalRequired, raised.Paused, "%s: nobody would ever let it go on", c.reason)
	}
}

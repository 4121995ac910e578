package delta_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/policy"
)

type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

type badAs struct{}

func (badAs) Error() string { return "x" }
func (badAs) As(any) bool   { panic("As") }
func (badAs) Is(error) bool { panic("Is") }

type badString struct{}

func (badString) String() string { panic(badString{}) }

var poisons = map[string]struct {
	err  error
	want action.Code // of an irreversible action's function that returns it
}{
	"typed nil":   {(*nilError)(nil), action.Failed},
	"As panics":   {badAs{}, action.StartedUnknown}, // it may have said so
	"wrapped":     {fmt.Errorf("because: %w", badAs{}), action.StartedUnknown},
	"unknown":     {action.Unknown((*nilError)(nil)), action.StartedUnknown},
	"a Failure":   {(*action.Failure)(nil), action.Failed},
	"joined":      {errors.Join((*nilError)(nil), io.EOF), action.Failed},
	"of megabyte": {errors.New(strings.Repeat("x", 1<<20)), action.Failed},
}

func fine(o action.Outcome) string {
	if o.Failure == nil {
		return ""
	}
	_, _ = errors.Is(o.Failure, io.ErrClosedPipe), action.IsUnknown(o.Failure)
	return o.Failure.Explain()
}

// Whatever error a function returns, and wherever it is read, the call ends and nothing breaks.
func TestI10_AnErrorThatCannotBeReadIsAnError(t *testing.T) {
	for name, p := range poisons {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.does(func(*delta.Context, In) mo.Result[Out] { return mo.Err[Out](p.err) })
				o := w.do(call("act", "a"))
				assert.Equal(t, p.want, o.Code)
				assert.Less(t, len(fine(o)), 3*action.MaxText)

				asked := w.do(call("risky", "a")) // and in Work, where nobody could recover
				require.Equal(t, action.ApprovalRequired, asked.Code)
				require.NoError(t, w.engine.Approve(t.Context(), asked.Failure.Approval(), w.boss, ""))
				stop := w.work(w.engine)
				time.Sleep(time.Minute)
				stop()
				ran, ended, err := w.task.Outcome(t.Context(), asked.Intent)
				require.NoError(t, err)
				assert.True(t, ended)
				assert.Equal(t, p.want, ran.Code)

				release := make(chan struct{}) // and after it was given up
				w.does(func(*delta.Context, In) mo.Result[Out] { <-release; return mo.Err[Out](p.err) })
				w.do(call("look", "late"))
				close(release)
				synctest.Wait()
				assert.Zero(t, w.engine.Abandoned())
				_, err = w.task.Events(t.Context())
				assert.NoError(t, err)
			})
		})
	}
}

// The same of everybody else's errors and panics.
func TestI18_WhatUserCodeSaysIsContained(t *testing.T) {
	for name, p := range poisons {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, func(w *world, _ *delta.Goal) {
					w.cfg.Policy = policy.Func(func(q policy.Request) (policy.Decision, error) {
						if q.Action == "amend" {
							return policy.Decision{}, p.err
						}
						return policy.Decision{}, nil
					})
					w.cfg.Authenticator = delta.AuthenticatorFunc(func(_ context.Context, c any) (string, error) {
						if c == "nobody" {
							return "", p.err
						}
						return "boss", nil
					})
					w.cfg.Hooks = hooks.Hooks{After: func(context.Context, action.View) error { return p.err }, OnError: func(context.Context, action.View) error { panic(p.err) }}
				})
				assert.Equal(t, action.OK, w.do(call("act", "a")).Code)
				denied := w.do(call("amend", "a"))
				assert.Equal(t, action.Denied, denied.Code)
				assert.NotEmpty(t, fine(denied))
				_, err := w.engine.Authenticate(t.Context(), "nobody")
				require.Error(t, err)
				assert.Less(t, len(err.Error()), 2*action.MaxText)
				for _, pl := range []delta.PlannerFunc{
					func(context.Context, delta.Request) (delta.Proposal, error) { return delta.Proposal{}, p.err },
					func(context.Context, delta.Request) (delta.Proposal, error) { panic(p.err) },
				} {
					r := w.engine.Run(t.Context(), w.task, pl).MustGet()
					assert.Equal(t, delta.RunFailed, r.Ended)
					assert.NotEmpty(t, r.Err.Error())
				}
				w.does(func(*delta.Context, In) mo.Result[Out] { panic(p.err) })
				assert.Equal(t, action.Panicked, w.do(call("act", "b")).Code)
				w.does(func(*delta.Context, In) mo.Result[Out] { panic(badString{}) })
				assert.Equal(t, action.Panicked, w.do(call("act", "c")).Code)
				_, err = w.task.Events(t.Context())
				assert.NoError(t, err)
			})
		})
	}
}

// What a panic or a hook says is for operators: it may hold anything. Planners learn that it happened.
func TestPanicsAndHooksAreNotQuotedToPlanners(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		secret := "password=hunter2"
		w.does(func(*delta.Context, In) mo.Result[Out] { panic(secret) })
		w.before = func(_ context.Context, v action.View) error {
			if v.Action == "checked" {
				return errors.New(secret)
			}
			return nil
		}
		r := w.engine.Run(t.Context(), w.task, script(call("look", "a"), call("checked", "a"))).MustGet()
		require.Len(t, r.Results, 2)
		for i, code := range []action.Code{action.Panicked, action.HookFailed} {
			f := r.Results[i].Outcome.Failure
			require.Equal(t, code, f.Code)
			assert.Contains(t, f.Explain(), secret)
			assert.NotContains(t, f.ForPlanner().Explain(), secret)
			assert.NotContains(t, f.Error(), secret)
			kept, _, err := w.task.Outcome(t.Context(), r.Results[i].Outcome.Intent)
			require.NoError(t, err)
			assert.Contains(t, kept.Failure.Explain(), secret, "it is on record")
		}
	})
}

// Nobody writes megabytes into the ledger with what is not the input itself.
func TestTextsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		huge := strings.Repeat("x", 1<<20)
		p := action.Provenance{Goal: huge, Decision: huge, PlanStep: huge, Reason: huge}
		o := w.do(delta.Call{ID: huge, Action: huge, Input: []byte(`{}`), Provenance: p})
		assert.Equal(t, action.ActionUnknown, o.Code)
		assert.NotContains(t, o.Failure.Message, "xx", "it is not repeated")
		o = w.do(delta.Call{ID: "a\nb", Action: "nothing of this name", Input: []byte(`{}`)})
		assert.Equal(t, action.ActionUnknown, o.Code)
		o = w.do(delta.Call{Action: "look", Input: []byte(`{"id":"a"}`), Provenance: p})
		assert.Equal(t, action.OK, o.Code)
		w.before = func(context.Context, action.View) error { return errors.New(huge) }
		assert.Equal(t, action.HookFailed, w.do(call("checked", "b")).Code)
		w.before = nil
		asked := w.do(call("risky", "a"))
		require.NoError(t, w.engine.Reject(t.Context(), asked.Failure.Approval(), w.boss, huge))
		require.NoError(t, w.task.Cancel(t.Context(), huge))
		w.do(call("look", "c"))
		for _, e := range w.events() {
			text := fmt.Sprintf("%+v", e)
			assert.Less(t, len(text), 8*action.MaxText, "%s", e.Type)
			if e.Type == "refused" {
				assert.LessOrEqual(t, len(e.Action), action.MaxName)
				assert.LessOrEqual(t, len(e.Call), 256)
			}
		}
	})
}

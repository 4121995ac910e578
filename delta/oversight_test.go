package delta_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

type Transfer struct {
	To    string `json:"to"`
	Cents int64  `json:"cents" jsonschema:"minimum=1"`
	Note  string `json:"note,omitempty"`
	PIN   string `json:"pin,omitempty" delta:"secret"`
}

// treasury is an engine whose people have roles: "ana:finance+lead" is ana, who is in finance and leads.
type treasury struct {
	*testing.T
	store  memory.Store
	engine *delta.Engine
	agent  *delta.Agent
	task   *delta.Task
	paid   atomic.Int64
}

func vouch(_ context.Context, credential any) (delta.Vouched, error) {
	name, roles, has := strings.Cut(credential.(string), ":")
	v := delta.Vouched{Name: name}
	if has {
		v.Roles = strings.Split(roles, "+")
	}
	return v, nil
}

func newTreasury(t *testing.T, change func(*delta.Config, *delta.Goal), more ...delta.Definition) *treasury {
	w := &treasury{T: t}
	pay := delta.Define("pay", func(*delta.Context, Transfer) mo.Result[Out] {
		w.paid.Add(1)
		return mo.Ok(Out{"paid"})
	}).Describe("Pay somebody").Risk(2).Effect(action.Compensatable).UndoneBy("claim-back").Cost(action.Cost{Money: 250_000, Currency: "EUR"})
	both := pay.RequireApproval().Quorum(2, "role:finance").MustBuild()
	one := delta.Define("tip", func(*delta.Context, Transfer) mo.Result[Out] {
		w.paid.Add(1)
		return mo.Ok(Out{"paid"})
	}).Describe("Tip somebody").Risk(5).MustBuild()
	w.agent = delta.NewAgent("treasurer").Grant(append([]delta.Definition{both, one}, more...)...).MustBuild()
	w.store = memory.New(memory.Config{})
	cfg := delta.Config{Authenticator: delta.VoucherFunc(vouch), Operators: []string{"role:oncall"}, Poll: 50 * time.Millisecond, Store: w.store}
	g := delta.Goal{ID: "t", Agent: w.agent, Approvers: []string{"role:finance", "boss"}, Requester: "mallory"}
	if change != nil {
		change(&cfg, &g)
	}
	var err error
	w.engine, err = delta.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.engine.Close(context.Background())) })
	w.task, err = w.engine.Start(t.Context(), g)
	require.NoError(t, err)
	return w
}

func (w *treasury) is(credential string) delta.Identity {
	w.Helper()
	i, err := w.engine.Authenticate(w.Context(), credential)
	require.NoError(w, err)
	return i
}

func (w *treasury) do(name, input string) action.Outcome {
	w.Helper()
	o, err := w.task.Do(w.Context(), delta.Call{Action: name, Input: []byte(input)}).Get()
	require.NoError(w, err)
	return o
}

// asks makes a call that must wait for people.
func (w *treasury) asks(name, input string) string {
	w.Helper()
	o := w.do(name, input)
	require.Equal(w, action.ApprovalRequired, o.Code, "%v", o.Failure)
	return o.Failure.Approval()
}

func (w *treasury) approve(id, credential string) error {
	return w.engine.Approve(w.Context(), id, w.is(credential), "fine")
}

func (w *treasury) types() (out []ledger.Type) {
	events, err := w.task.Events(w.Context())
	require.NoError(w, err)
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

// TestI06_Quorum: two different people of the role, no fewer; each consent is an event.
func TestI06_Quorum(t *testing.T) {
	w := newTreasury(t, nil)
	id := w.asks("pay", `{"to":"bo","cents":5}`)
	for _, c := range []struct {
		who  string
		want error
	}{
		{"boss", approval.ErrNotApprover},            // an approver of the task, whom the action does not count
		{"eve:legal", approval.ErrNotApprover},       // another role
		{"Mallory:finance", approval.ErrSelf},        // the requester, in the role
		{"treasurer:finance", approval.ErrSelf},      // the agent
		{"ana:finance", nil},                         //
		{"ana:finance", approval.ErrVoted},           // twice
		{"ana@corp:finance+lead", approval.ErrVoted}, // the same person as a reader sees it
	} {
		require.ErrorIs(t, w.approve(id, c.who), c.want, c.who)
	}
	a, err := w.engine.Approval(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, approval.Pending, a.State)
	require.Len(t, a.Votes, 1)
	assert.Equal(t, []string{"finance"}, a.Votes[0].Roles)
	assert.Contains(t, a.Explain(), "1 so far; needed: 2 of role:finance; given by ana")
	require.NoError(t, w.engine.Withdraw(t.Context(), id, w.is("ana:finance"), "wait"))
	require.ErrorIs(t, w.engine.Withdraw(t.Context(), id, w.is("ana:finance"), "wait"), approval.ErrNoVote)
	require.NoError(t, w.approve(id, "bob:finance"))
	assert.Equal(t, action.ApprovalRequired, w.do("pay", `{"to":"bo","cents":5}`).Code)
	require.NoError(t, w.approve(id, "ana:finance"))
	assert.True(t, w.do("pay", `{"to":"bo","cents":5}`).OK())
	assert.EqualValues(t, 1, w.paid.Load())
	assert.Subset(t, w.types(), []ledger.Type{ledger.ApprovalVoted, ledger.ApprovalWithdrawn, ledger.ApprovalApproved})
	assert.Equal(t, action.ApprovalRequired, w.do("pay", `{"to":"bo","cents":5}`).Code, "used once")
}

// TestI06_QuorumIncluding: two of the approvers, one of them of a role; more may consent until that one has.
func TestI06_QuorumIncluding(t *testing.T) {
	var ran atomic.Int64
	admin := delta.Define("grant-admin", func(*delta.Context, Transfer) mo.Result[Out] {
		ran.Add(1)
		return mo.Ok(Out{"granted"})
	}).Describe("Make somebody an administrator").Risk(5).Quorum(2).Including(1, "role:security").MustBuild()
	w := newTreasury(t, func(_ *delta.Config, g *delta.Goal) { g.Approvers = []string{"ana", "ben", "sue"} }, admin)
	id := w.asks("grant-admin", `{"to":"bo","cents":5}`)
	require.NoError(t, w.approve(id, "ana"))
	require.NoError(t, w.approve(id, "ben"))
	assert.Equal(t, action.ApprovalRequired, w.do("grant-admin", `{"to":"bo","cents":5}`).Code, "two, but nobody of security")
	a, err := w.engine.Approval(t.Context(), id)
	require.NoError(t, err)
	assert.Contains(t, a.Explain(), "needed: 2 approvers, 1 of them of role:security")
	require.NoError(t, w.approve(id, "sue:security"))
	assert.True(t, w.do("grant-admin", `{"to":"bo","cents":5}`).OK())
	assert.EqualValues(t, 1, ran.Load())
}

// TestI06_QuorumAtOnce: many people and many proposals at a time; it runs once for each quorum that was reached.
func TestI06_QuorumAtOnce(t *testing.T) {
	w := newTreasury(t, nil)
	id := w.asks("pay", `{"to":"bo","cents":5}`)
	var all sync.WaitGroup
	var yes atomic.Int64
	for i := range 8 {
		who := w.is(fmt.Sprintf("person %c:finance", 'a'+i/2)) // each of four people twice
		all.Go(func() {
			if w.engine.Approve(t.Context(), id, who, "") == nil {
				yes.Add(1)
			}
		})
		all.Go(func() { w.task.Do(t.Context(), delta.Call{Action: "pay", Input: []byte(`{"to":"bo","cents":5}`)}) })
	}
	all.Wait()
	for range 3 {
		w.do("pay", `{"to":"bo","cents":5}`)
	}
	assert.EqualValues(t, 2, yes.Load(), "the third comes too late")
	assert.EqualValues(t, 1, w.paid.Load())
}

// An inbox holds what its owner can still decide.
func TestInbox(t *testing.T) {
	w := newTreasury(t, nil)
	pay, tip := w.asks("pay", `{"to":"bo","cents":5}`), w.asks("tip", `{"to":"bo","cents":5}`)
	for _, c := range []struct {
		who  string
		want []string
	}{
		{"boss", []string{tip}}, {"ana:finance", []string{pay, tip}}, {"eve", nil}, {"mallory:finance", nil},
	} {
		var got []string
		all, err := w.engine.Inbox(t.Context(), w.is(c.who))
		require.NoError(t, err)
		for _, a := range all {
			got = append(got, a.ID)
		}
		assert.Equal(t, c.want, got, c.who)
	}
	require.NoError(t, w.approve(pay, "ana:finance"))
	all, err := w.engine.Inbox(t.Context(), w.is("ana:finance"))
	require.NoError(t, err)
	require.Len(t, all, 1, "she has consented to the other")
	assert.Equal(t, tip, all[0].ID)
	_, err = w.engine.Inbox(t.Context(), delta.Identity{})
	require.ErrorIs(t, err, delta.ErrNobody)
}

// A quorum that a task's approvers cannot reach is an error where the task is started.
func TestQuorum_OutOfReach(t *testing.T) {
	w := newTreasury(t, nil)
	for _, approvers := range [][]string{{"ana"}, {"ana", "mallory"}, {"ana", "treasurer"}, {"bob", "b0b"}} {
		_, err := w.engine.Start(t.Context(), delta.Goal{Agent: w.agent, Approvers: approvers, Requester: "mallory"})
		f := action.FailureOf(err)
		require.NotNil(t, f, "%v: %v", approvers, err)
		assert.Equal(t, action.NoApprover, f.Code)
		assert.ErrorContains(t, err, `action "pay"`)
	}
	nobody, err := w.engine.Start(t.Context(), delta.Goal{Agent: w.agent})
	require.NoError(t, err, "nobody to ask: nothing gated is offered")
	o, err := nobody.Offer(t.Context())
	require.NoError(t, err)
	assert.Empty(t, o.Actions)
	for _, b := range []delta.Builder[Transfer, Out]{
		delta.Define("x", func(*delta.Context, Transfer) mo.Result[Out] { return mo.Ok(Out{}) }).Describe("x").Quorum(0),
		delta.Define("x", func(*delta.Context, Transfer) mo.Result[Out] { return mo.Ok(Out{}) }).Describe("x").Quorum(2, "ana"),
		delta.Define("x", func(*delta.Context, Transfer) mo.Result[Out] { return mo.Ok(Out{}) }).Describe("x").UndoneBy("y"),
		delta.Define("x", func(*delta.Context, Transfer) mo.Result[Out] { return mo.Ok(Out{}) }).Describe("x").Quorum(2).Quorum(1, "role:security"),
		delta.Define("x", func(*delta.Context, Transfer) mo.Result[Out] { return mo.Ok(Out{}) }).Describe("x").Including(1, "role:security"),
		delta.Define("x", func(*delta.Context, Transfer) mo.Result[Out] { return mo.Ok(Out{}) }).Describe("x").Quorum(2).Including(3, "role:security"),
		delta.Define("x", func(*delta.Context, Transfer) mo.Result[Out] { return mo.Ok(Out{}) }).Describe("x").Quorum(2).Including(1),
	} {
		_, err := b.Build()
		assert.Error(t, err)
	}
}

// What an authenticator returns is checked before anybody is anybody.
func TestVouched(t *testing.T) {
	for _, c := range []struct {
		reason string
		v      delta.Vouched
		ok     bool
	}{
		{"a name", delta.Vouched{Name: "ana"}, true},
		{"a name that would pass for a role", delta.Vouched{Name: "role:finance"}, false},
		{"or be taken for one", delta.Vouched{Name: "Role:finance"}, false},
		{"a role that is no name", delta.Vouched{Name: "ana", Roles: []string{"*"}}, false},
		{"too many", delta.Vouched{Name: "ana", Roles: make([]string, 65)}, false},
	} {
		e, err := delta.New(delta.Config{Authenticator: delta.VoucherFunc(func(context.Context, any) (delta.Vouched, error) { return c.v, nil })})
		require.NoError(t, err)
		_, err = e.Authenticate(t.Context(), "x")
		assert.Equal(t, c.ok, err == nil, "%s: %v", c.reason, err)
		require.NoError(t, e.Close(t.Context()))
	}
}

// What is shown: the input without secrets and with everything visible, what changed since the last approved call, why,
// what it costs, what undoes it.
func TestApproval_Explain(t *testing.T) {
	w := newTreasury(t, nil)
	first := w.asks("pay", `{"to":"bo","cents":5,"pin":"1234"}`)
	a, err := w.engine.Approval(t.Context(), first)
	require.NoError(t, err)
	assert.Nil(t, a.Last)
	require.NoError(t, w.approve(first, "ana:finance"))
	require.NoError(t, w.approve(first, "bob:finance"))
	second := w.asks("pay", `{"to":"bo\u202e","cents":99999,"note":"x\r\n  why       nothing","pin":"9876"}`)
	a, err = w.engine.Approval(t.Context(), second)
	require.NoError(t, err)
	require.NotNil(t, a.Last)
	text := a.Explain()
	for _, want := range []string{
		"treasurer asks to run pay v1: Pay somebody\n", "treasurer~t, requested by mallory", "cents = 99999\n", `to = "bo\u{202E}"`, "pin = (secret)",
		"cents: 5 → 99999", "pin: (secret) → (secret)", "note: (none) → ", "the action asks for an approval", "log-odds of failing: declared ",
		"EUR 0.25 (forecast)", "compensatable, by claim-back", "needed: 2 of role:finance",
	} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "9876")
	assert.NotContains(t, text, "\u202e")
	assert.Equal(t, 1, strings.Count(text, "\n  why "), "an input cannot write a line of its own:\n%s", text)
	assert.Equal(t, "treasurer asks to run pay v1 (approval "+second+", pending)", a.String())
}

// What is long does not hide what is declared; that something is not shown is the first thing that is said, and all can be
// seen.
func TestApproval_NotAllOfIt(t *testing.T) {
	w := newTreasury(t, nil)
	long := strings.Repeat("x", 500)
	first := w.asks("pay", `{"to":"bo","cents":5,"note":"`+long+`ann`+long+`"}`)
	a, err := w.engine.Approval(t.Context(), first)
	require.NoError(t, err)
	assert.Regexp(t, `^not all of it is shown: 3 of 3 values, 1 of them cut\ntreasurer asks`, a.Explain())
	require.NoError(t, w.approve(first, "ana:finance"))
	require.NoError(t, w.approve(first, "bob:finance"))
	second := w.asks("pay", `{"to":"bo","cents":5,"note":"`+long+`eve`+long+`"}`)
	a, err = w.engine.Approval(t.Context(), second)
	require.NoError(t, err)
	text := a.Explain()
	assert.Contains(t, text, "input     ≠ note = ")
	assert.Regexp(t, `note: …x+ann?x+… → …x+evex+… \(bytes 501 to 504 of 1,005 → to 504 of 1,005; around them they are the same\)`, text)
	lines, err := w.engine.ApprovalInput(t.Context(), second)
	require.NoError(t, err)
	assert.Equal(t, []string{"{", "  cents: 5", `  note: "` + long + "eve" + long + `"`, `  to: "bo"`, "}"}, lines)
	_, err = w.engine.ApprovalInput(t.Context(), "treasurer~t~none")
	assert.ErrorIs(t, err, delta.ErrNoRequest)
}

// A flood is no consent: so many requests are shown at a time, the oldest first; the others wait, cannot be approved, can be
// rejected, and expire.
func TestDeskLimit(t *testing.T) {
	w := newTreasury(t, func(c *delta.Config, _ *delta.Goal) { c.DeskLimit = 2 })
	var ids []string
	for i := range 5 {
		ids = append(ids, w.asks("tip", fmt.Sprintf(`{"to":"bo","cents":%d}`, i+1)))
	}
	shown := func() (out []string) {
		all, err := w.engine.Approvals(t.Context(), 99)
		require.NoError(t, err)
		for _, a := range all {
			out = append(out, a.ID)
		}
		return out
	}
	assert.Equal(t, ids[:2], shown())
	require.ErrorIs(t, w.approve(ids[2], "boss"), delta.ErrNotShown)
	_, err := w.engine.ApproveBatch(t.Context(), []string{ids[0], ids[2]}, w.is("boss"), []string{"cents"}, "all of it")
	require.ErrorIs(t, err, delta.ErrNotShown)
	require.NoError(t, w.approve(ids[1], "boss"))
	assert.Equal(t, []string{ids[0], ids[2]}, shown())
	require.NoError(t, w.engine.Reject(t.Context(), ids[3], w.is("boss"), "too many"), "no is always possible")
	require.ErrorIs(t, w.approve(ids[4], "boss"), delta.ErrNotShown)
	require.NoError(t, w.approve(ids[2], "boss"))
	assert.Equal(t, []string{ids[0], ids[4]}, shown())
	require.NoError(t, w.approve(ids[4], "boss"))
	assert.EqualValues(t, 0, w.paid.Load())
}

// counted is a store that counts what is read.
type counted struct {
	memory.Store
	reads atomic.Int64
}

func (c *counted) Load(ctx context.Context, agent, task string, have *txn.Snapshot) (*txn.Snapshot, error) {
	c.reads.Add(1)
	return c.Store.Load(ctx, agent, task, have)
}

func (c *counted) Queued(ctx context.Context, agent, queue string, after txn.Queued, due bool, most int) ([]txn.Queued, error) {
	c.reads.Add(1)
	return c.Store.Queued(ctx, agent, queue, after, due, most)
}

// However many wait behind what is shown, a page of requests costs what it costs when few do, and so does the answer that one
// is far behind.
func TestDeskLimit_NoMatterHowManyWait(t *testing.T) {
	var store counted
	w := newTreasury(t, func(c *delta.Config, _ *delta.Goal) {
		store.Store = memory.New(memory.Config{})
		c.Store, c.DeskLimit = &store, 4
	})
	asked := 0
	ask := func(until int) (id string) {
		for ; asked < until; asked++ {
			id = w.asks("tip", fmt.Sprintf(`{"to":"bo","cents":%d}`, asked+1))
		}
		return id
	}
	cost := func(last string) (page, far int64) {
		from := store.reads.Load()
		shown, err := w.engine.Approvals(t.Context(), 9)
		require.NoError(t, err)
		require.Len(t, shown, 4)
		page, from = store.reads.Load()-from, store.reads.Load()
		require.ErrorIs(t, w.approve(last, "boss"), delta.ErrNotShown)
		return page, store.reads.Load() - from
	}
	page, far := cost(ask(100))
	pageOfMany, farOfMany := cost(ask(400))
	assert.Equal(t, page, pageOfMany)
	assert.Equal(t, far, farOfMany)
}

// The requests of tasks that ended, and those that expired, are in nobody's way.
func TestDeskLimit_WhatIsOverDoesNotCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTreasury(t, func(c *delta.Config, g *delta.Goal) { c.DeskLimit, g.ApprovalTTL = 1, time.Minute })
		w.asks("tip", `{"to":"bo","cents":1}`)
		time.Sleep(time.Second)
		other, err := w.engine.Start(t.Context(), delta.Goal{Agent: w.agent, Approvers: []string{"boss", "role:finance"}, ApprovalTTL: time.Minute})
		require.NoError(t, err)
		o := other.Do(t.Context(), delta.Call{Action: "tip", Input: []byte(`{"to":"bo","cents":2}`)}).MustGet()
		require.ErrorIs(t, w.approve(o.Failure.Approval(), "boss"), delta.ErrNotShown)
		time.Sleep(2 * time.Minute) // nobody writes the expiry down
		o = other.Do(t.Context(), delta.Call{Action: "tip", Input: []byte(`{"to":"bo","cents":3}`)}).MustGet()
		require.NoError(t, w.approve(o.Failure.Approval(), "boss"))
		w.asks("tip", `{"to":"bo","cents":4}`)
		time.Sleep(time.Second)
		require.NoError(t, w.task.Cancel(t.Context(), "enough"))
		o = other.Do(t.Context(), delta.Call{Action: "tip", Input: []byte(`{"to":"bo","cents":5}`)}).MustGet()
		require.NoError(t, w.approve(o.Failure.Approval(), "boss"))
	})
}

// A batch is one look at calls that differ in named fields only; each is approved for itself.
func TestApproveBatch(t *testing.T) {
	w := newTreasury(t, func(c *delta.Config, _ *delta.Goal) { c.BatchLimit = 3 })
	var ids []string
	for _, in := range []string{`{"to":"a","cents":1}`, `{"to":"b","cents":1}`, `{"to":"c","cents":1}`, `{"to":"d","cents":7}`} {
		ids = append(ids, w.asks("tip", in))
	}
	done := w.asks("tip", `{"to":"z","cents":1}`)
	require.NoError(t, w.approve(done, "boss"))
	pay := w.asks("pay", `{"to":"e","cents":1}`)
	boss := w.is("boss")
	for _, c := range []struct {
		reason string
		ids    []string
		by     delta.Identity
		differ []string
		want   string
	}{
		{"another field differs", []string{ids[0], ids[3]}, boss, []string{"to"}, `differ in "cents"`},
		{"nothing may differ", []string{ids[0], ids[1]}, boss, nil, `differ in "to"`},
		{"every field may", []string{ids[0], ids[1]}, boss, []string{""}, "is no field"},
		{"and so spelt, too", []string{ids[0], ids[1]}, boss, []string{"*"}, "is no field"},
		{"more than one look judges", ids, boss, []string{"to", "cents"}, "Config.BatchLimit"},
		{"one twice", []string{ids[0], ids[0]}, boss, nil, "twice"},
		{"one that is approved", []string{ids[0], done}, boss, []string{"to"}, "approved"},
		{"another action", []string{ids[0], pay}, w.is("ana:finance"), []string{"to"}, "not the same action"},
		{"somebody who may not", []string{ids[0], ids[1]}, w.is("eve"), []string{"to"}, "not an approver"},
		{"nobody", []string{ids[0]}, delta.Identity{}, nil, "authenticated"},
		{"nothing", nil, boss, nil, "empty"},
	} {
		out, err := w.engine.ApproveBatch(t.Context(), c.ids, c.by, c.differ, "all alike")
		require.ErrorContains(t, err, c.want, c.reason)
		assert.Empty(t, out)
	}
	for _, id := range ids {
		a, err := w.engine.Approval(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, approval.Pending, a.State, "all or nothing")
	}
	out, err := w.engine.ApproveBatch(t.Context(), ids[:3], boss, []string{"to"}, "all alike")
	require.NoError(t, err)
	require.Len(t, out, 3)
	for i, d := range out {
		assert.Equal(t, ids[i], d.ID)
		assert.NoError(t, d.Err)
	}
	for _, to := range []string{"a", "b", "c"} {
		require.True(t, w.do("tip", fmt.Sprintf(`{"to":%q,"cents":1}`, to)).OK())
		require.Equal(t, action.ApprovalRequired, w.do("tip", fmt.Sprintf(`{"to":%q,"cents":1}`, to)).Code, "each once")
	}
	assert.EqualValues(t, 3, w.paid.Load())
}

// One look does not judge what is for somebody else, nor what a rule says is of another kind.
func TestApproveBatch_OfOneKind(t *testing.T) {
	pay := delta.Define("pay", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"paid"}) }).Describe("Pay").Risk(1).RequireApproval().
		RiskWhen("large", func(in In) bool { return in.N > 100 }, 4).MustBuild()
	e := engineFor(t, delta.Config{Authenticator: anybody})
	agent := delta.NewAgent("payer").Grant(pay).MustBuild()
	asks := func(tenant string, n int64) string {
		task, err := e.Start(t.Context(), delta.Goal{Agent: agent, Tenant: tenant, Approvers: []string{"boss"}})
		require.NoError(t, err)
		return task.Do(t.Context(), delta.Call{Action: "pay", Input: inputOf(In{ID: "a", N: n})}).MustGet().Failure.Approval()
	}
	boss, err := e.Authenticate(t.Context(), "boss")
	require.NoError(t, err)
	small, large, theirs := asks("acme", 5), asks("acme", 500), asks("evil", 6)
	_, err = e.ApproveBatch(t.Context(), []string{small, large}, boss, []string{"n"}, "both")
	require.ErrorContains(t, err, `by "large"`)
	_, err = e.ApproveBatch(t.Context(), []string{small, theirs}, boss, []string{"n"}, "both")
	require.ErrorContains(t, err, "two tenants")
	_, err = e.ApproveBatch(t.Context(), []string{small, asks("acme", 7)}, boss, []string{"n"}, "both")
	require.NoError(t, err)
}

// TestBreakGlass: an operator's override lets gated calls through for a while, marks each, and ends by itself.
func TestBreakGlass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTreasury(t, nil)
		for _, c := range []struct {
			reason, who, why string
			g                delta.Glass
		}{
			{"an approver is no operator", "boss", "fire", delta.Glass{For: time.Minute}},
			{"the requester, though on call", "mallory:oncall", "fire", delta.Glass{For: time.Minute}},
			{"without a reason", "olga:oncall", " ", delta.Glass{For: time.Minute}},
			{"with a reason that nobody can read", "olga:oncall", "\u200b\u2060\u3164", delta.Glass{For: time.Minute}},
			{"with a reason that is cut off before anything can be read", "olga:oncall", strings.Repeat("\u200b", action.MaxText) + "fire", delta.Glass{For: time.Minute}},
			{"for ever", "olga:oncall", "fire", delta.Glass{}},
			{"for too long", "olga:oncall", "fire", delta.Glass{For: 2 * time.Hour}},
			{"for an action that is not there", "olga:oncall", "fire", delta.Glass{Actions: []string{"fly"}, For: time.Minute}},
		} {
			_, err := w.task.BreakGlass(t.Context(), w.is(c.who), c.g, c.why)
			require.Error(t, err, c.reason)
		}
		olga := w.is("olga:oncall")
		o, err := w.task.BreakGlass(t.Context(), olga, delta.Glass{Actions: []string{"tip"}, For: time.Minute}, "the desk is empty")
		require.NoError(t, err)
		stands, ok, err := w.task.Override(t.Context())
		require.NoError(t, err)
		assert.True(t, ok)
		assert.Equal(t, o.ID, stands.ID)
		assert.True(t, w.do("tip", `{"to":"bo","cents":1}`).OK())
		w.asks("pay", `{"to":"bo","cents":1}`)
		ctx, stop := context.WithCancel(context.Background())
		worker := background(func() error { return w.engine.Work(ctx) })
		time.Sleep(2 * time.Minute)
		stop()
		require.ErrorIs(t, worker(), context.Canceled)
		w.asks("tip", `{"to":"bo","cents":2}`)
		events, err := w.task.Events(t.Context())
		require.NoError(t, err)
		var got []string
		for _, e := range events {
			if strings.HasPrefix(string(e.Type), "glass") {
				got = append(got, fmt.Sprintf("%s %s %q", e.Type, e.Identity, e.Reason))
				assert.Equal(t, o.ID, e.Text)
			}
		}
		assert.Equal(t, []string{`glass_broken olga "the desk is empty"`, `glass_used olga "the desk is empty"`, `glass_closed  "it expired"`}, got)
		_, err = w.task.BreakGlass(t.Context(), olga, delta.Glass{For: time.Minute}, "again")
		require.NoError(t, err)
		require.NoError(t, w.task.RestoreGlass(t.Context(), olga, "over"))
		require.NoError(t, w.task.RestoreGlass(t.Context(), olga, "over"), "it is closed already")
		w.asks("tip", `{"to":"bo","cents":3}`)
	})
}

// A call that waits for a person runs under an override that is for it, and its request is closed.
func TestBreakGlass_ReleasesWhoWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTreasury(t, nil)
		wait := func(name string) func() action.Outcome {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			t.Cleanup(cancel)
			return background(func() action.Outcome {
				return w.task.DoWait(ctx, delta.Call{Action: name, Input: []byte(`{"to":"bo","cents":1}`)}).MustGet()
			})
		}
		tip, pay := wait("tip"), wait("pay")
		time.Sleep(time.Second)
		_, err := w.task.BreakGlass(t.Context(), w.is("olga:oncall"), delta.Glass{Actions: []string{"tip"}, For: time.Minute}, "fire")
		require.NoError(t, err)
		assert.Equal(t, action.OK, tip().Code)
		open, err := w.engine.Approvals(t.Context(), 9)
		require.NoError(t, err)
		require.Len(t, open, 1)
		assert.Equal(t, "pay", open[0].Action)
		assert.Equal(t, action.ApprovalRequired, pay().Code)
		assert.EqualValues(t, 1, w.paid.Load())
	})
}

// TestOperators: one face for what operators do, closed to whoever asked for the task and to the agent.
func TestOperators(t *testing.T) {
	failing := delta.Define("flaky", func(*delta.Context, In) mo.Result[Out] { return mo.Err[Out](errors.New("down")) }).
		Describe("Fail").Risk(1).Effect(action.None).MustBuild()
	w := newTreasury(t, func(_ *delta.Config, g *delta.Goal) { g.Limit.Calls, g.Threshold = action.Max(1), 5 }, failing)
	require.Equal(t, action.Failed, w.do("flaky", `{"id":"x"}`).Code)
	require.Equal(t, action.BudgetExhausted, w.do("flaky", `{"id":"x"}`).Code)
	more := action.Cost{Calls: 1}
	for _, who := range []string{"mallory:oncall", "treasurer:oncall", "eve"} {
		require.Error(t, w.task.TopUp(t.Context(), w.is(who), more, "more"), who)
		require.Error(t, w.engine.ResetBelief(t.Context(), "treasurer", "flaky", w.is(strings.Replace(who, "mallory:oncall", "eve", 1)), "new"), who)
	}
	require.NoError(t, w.task.TopUp(t.Context(), w.is("boss"), more, "one more"))
	require.Equal(t, action.Failed, w.do("flaky", `{"id":"x"}`).Code)
	require.Error(t, w.engine.ResetBelief(t.Context(), "treasurer", "flaky", w.is("boss"), "no operator"))
	before, err := w.engine.Risks(t.Context(), "treasurer")
	require.NoError(t, err)
	require.NoError(t, w.engine.ResetBelief(t.Context(), "treasurer", "flaky", w.is("olga:oncall"), "the service was repaired"))
	after, err := w.engine.Risks(t.Context(), "treasurer")
	require.NoError(t, err)
	assert.EqualValues(t, 2, before[2].N)
	assert.EqualValues(t, 0, after[2].N)
	require.NoError(t, w.engine.ResetBelief(t.Context(), "treasurer", "", w.is("olga:oncall"), "a new model plans"))
	trust, err := w.engine.Trust(t.Context(), "treasurer")
	require.NoError(t, err)
	assert.EqualValues(t, 0, trust.Err)
}

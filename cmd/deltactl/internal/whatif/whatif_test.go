package whatif_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/cmd/deltactl/internal/whatif"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

type order struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"`
}

// rules compiles Cedar text.
func rules(t testing.TB, text string, levels map[string]policy.Autonomy) *policy.Bundle {
	t.Helper()
	b, err := policy.Sources{Policies: []policy.File{{Name: "r.cedar", Text: []byte(text)}}, Autonomy: levels}.Compile()
	require.NoError(t, err)
	return b
}

var day = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// recorded makes calls under rules, an hour apart, and returns what the ledgers hold: refunds of 10 to 60 by a policy, of
// which those above 40 were denied and one failed; two look-ups by a grant.
func recorded(t testing.TB) (export []byte) {
	t.Helper()
	var past atomic.Int64 // the keeper looks at the clock too
	now := func() time.Time { return day.Add(time.Duration(past.Load())) }
	refund := delta.Define("refund", func(ctx *delta.Context, in order) mo.Result[string] {
		if in.Amount == 20 {
			return mo.Err[string](errors.New("no"))
		}
		ctx.Spend(action.Cost{Tokens: in.Amount})
		return mo.Ok("done")
	}).Describe("Refund").Risk(2).Effect(action.Idempotent).MustBuild()
	look := delta.Define("look", func(*delta.Context, order) mo.Result[string] { return mo.Ok("seen") }).Describe("Look").Risk(1).Effect(action.None).MustBuild()
	store := memory.New(memory.Config{Clock: now})
	n := 0
	e, err := delta.New(delta.Config{
		Store: store, Now: now, ID: func() string { n++; return "id" + string(rune('a'+n/26)) + string(rune('a'+n%26)) },
		Policy: rules(t, `permit (principal, action == Action::"refund", resource) when { context.input.amount <= 40 };`, nil),
	})
	require.NoError(t, err)
	agent := delta.NewAgent("desk").Actions(refund).Grant(look).MustBuild()
	task, err := e.Start(context.Background(), delta.Goal{ID: "t1", Agent: agent, Limit: action.Limit{Tokens: action.Max(1000)}, Tenant: "acme"})
	require.NoError(t, err)
	for _, c := range []struct {
		name   string
		amount int64
	}{{"refund", 10}, {"refund", 20}, {"look", 0}, {"refund", 30}, {"refund", 50}, {"refund", 60}, {"look", 1}} {
		in, err := json.Marshal(order{"ORD-1", c.amount})
		require.NoError(t, err)
		_, err = task.Do(context.Background(), delta.Call{Action: c.name, Input: in}).Get()
		require.NoError(t, err)
		past.Add(int64(time.Hour))
	}
	require.NoError(t, e.Close(context.Background()))
	var out bytes.Buffer
	for _, ledgerOf := range []string{"", "t1"} {
		records, err := store.Records(context.Background(), "desk", ledgerOf, 1, 1000)
		require.NoError(t, err)
		x := ledger.NewExporter(&out, "desk", ledgerOf)
		for _, r := range records {
			require.NoError(t, x.Add(r))
		}
		_, err = x.End()
		require.NoError(t, err)
	}
	return out.Bytes()
}

func ledgers(t testing.TB) (all []*ledger.Exported) {
	t.Helper()
	im := ledger.NewImporter(bytes.NewReader(recorded(t)))
	for range 2 {
		x, err := im.Next()
		require.NoError(t, err)
		all = append(all, x)
	}
	return all
}

func TestRun(t *testing.T) {
	all := ledgers(t)
	const same = `permit (principal, action == Action::"refund", resource) when { context.input.amount <= 40 };`
	for _, c := range []struct {
		name   string
		rules  *policy.Bundle
		since  time.Time
		tried  int
		groups []whatif.Group
	}{
		{"the same rules", rules(t, same, nil), time.Time{}, 7, []whatif.Group{}},
		{"less", rules(t, `permit (principal, action == Action::"refund", resource) when { context.input.amount <= 10 };`, nil), time.Time{}, 7,
			[]whatif.Group{{Was: whatif.Permitted, Now: whatif.Denied, Count: 2, Cost: action.Cost{Tokens: 30}}}},
		{"more", rules(t, `permit (principal, action == Action::"refund", resource) when { context.input.amount <= 50 };`, nil), time.Time{}, 7,
			[]whatif.Group{{Was: whatif.Denied, Now: whatif.Permitted, Count: 1, Cost: action.Cost{Tokens: 13}}}}, // (10 + 0 + 30) / 3
		{"nothing: grants stay", rules(t, "", nil), time.Time{}, 7, []whatif.Group{{Was: whatif.Permitted, Now: whatif.Denied, Count: 3, Cost: action.Cost{Tokens: 40}}}},
		{"since", rules(t, "", nil), day.Add(2 * time.Hour), 5, []whatif.Group{{Was: whatif.Permitted, Now: whatif.Denied, Count: 1, Cost: action.Cost{Tokens: 30}}}},
		{"a forbid that a grant meets", rules(t, same+`forbid (principal, action == Action::"look", resource);`, nil), time.Time{}, 7,
			[]whatif.Group{{Was: whatif.Permitted, Now: whatif.Denied, Count: 2}}},
		{"a level", rules(t, same, map[string]policy.Autonomy{"desk": policy.ActOnGated}), time.Time{}, 7,
			[]whatif.Group{{Was: whatif.Permitted, Now: whatif.Asked, Count: 5, Cost: action.Cost{Tokens: 40}}}}, // nobody said what they change
		{"what is left", rules(t, same+`forbid (principal, action == Action::"refund", resource) when { context.left.tokens < 1000 };`, nil), time.Time{}, 7,
			[]whatif.Group{{Was: whatif.Permitted, Now: whatif.Denied, Count: 2, Cost: action.Cost{Tokens: 30}}}},
		{"the tenant", rules(t, same+`forbid (principal, action, resource) unless { context.tenant == "acme" };`, nil), time.Time{}, 7, []whatif.Group{}},
		{"trust after the failure", rules(t, same+`forbid (principal, action, resource) when { context.trust.lessThan(decimal("0.38")) };`, nil), day.Add(90 * time.Minute), 5,
			[]whatif.Group{{Was: whatif.Permitted, Now: whatif.Denied, Count: 3, Cost: action.Cost{Tokens: 30}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := whatif.Run(whatif.Config{Rules: c.rules, Since: c.since}, all)
			require.NoError(t, err)
			for i := range r.Groups {
				r.Groups[i].Cost.Duration, r.Groups[i].Cost.Calls, r.Groups[i].Cost.Bytes = 0, 0, 0 // beside the point
			}
			assert.Equal(t, c.groups, r.Groups)
			assert.Equal(t, c.tried, r.Tried)
			flips := 0
			for _, g := range r.Groups {
				flips += g.Count
			}
			assert.Len(t, r.Flips, flips)
			assert.Equal(t, r.Tried, r.Same+flips)
			assert.Equal(t, c.rules.Version(), r.Version)
		})
	}
}

// What actions change is known from the cards of agents.
func TestCardsSayWhatActionsChange(t *testing.T) {
	card := ledger.Event{V: ledger.Version, Type: ledger.AgentDeclared, At: 1, Agent: "desk", State: json.RawMessage(`{"actions":[{"name":"look","risk":1,"effect":"none"},{"name":"refund","risk":2,"effect":"idempotent"}]}`)}
	text, err := ledger.Encode(card)
	require.NoError(t, err)
	all := append(ledgers(t), &ledger.Exported{Agent: "desk", Records: []txn.Stored{{Seq: 1, At: 1, Val: text}}})
	b := rules(t, `permit (principal, action == Action::"refund", resource) when { context.input.amount <= 40 };`, map[string]policy.Autonomy{"desk": policy.ActOnGated})
	r, err := whatif.Run(whatif.Config{Rules: b}, all)
	require.NoError(t, err)
	require.Len(t, r.Groups, 1)
	assert.Equal(t, 3, r.Groups[0].Count)
	assert.Equal(t, "agent desk acts alone only where nothing is changed", r.Flips[0].Reason)
}

// The rules that were in force change nothing: not for planning, about which no policy is asked, not for what waits for a
// person by a grant, and not for what one forbids beside a grant. What is left of the budget counts planning too.
func TestRulesInForceChangeNothing(t *testing.T) {
	const forced = `@id("some") permit (principal, action == Action::"refund", resource) when { context.input.amount <= 40 };
@id("late") forbid (principal, action == Action::"look", resource) when { context.left.tokens < 900 };`
	all := planned(t, rules(t, forced, nil))
	for _, since := range []time.Time{{}, day.Add(90 * time.Minute)} {
		r, err := whatif.Run(whatif.Config{Rules: rules(t, forced, nil), Since: since}, all)
		require.NoError(t, err)
		assert.Empty(t, r.Flips)
		assert.Equal(t, r.Tried, r.Same)
	}
	r, err := whatif.Run(whatif.Config{Rules: rules(t, "", nil)}, all)
	require.NoError(t, err)
	assert.Equal(t, 5, r.Tried, "two refunds, two looks and a wipe")
	var said []string
	for _, f := range r.Flips {
		said = append(said, f.Action+" "+f.Was+" "+f.Now+": "+f.Reason)
	}
	assert.Equal(t, []string{
		"refund permitted denied: no policy permits desk to call refund", // and nothing of a grant, which it does not hold
		"look denied permitted: desk is granted look",
	}, said)
}

// planned makes calls of a planner: a refund that a policy permits and one that it does not, a wipe that waits for a
// person, and a look that a grant permits and a rule forbids, because planning has used the tokens.
func planned(t testing.TB, b *policy.Bundle) (all []*ledger.Exported) {
	t.Helper()
	var past atomic.Int64
	now := func() time.Time { return day.Add(time.Duration(past.Load())) }
	done := func(*delta.Context, order) mo.Result[string] { return mo.Ok("done") }
	refund := delta.Define("refund", done).Describe("Refund").Risk(2).Effect(action.Idempotent).MustBuild()
	look := delta.Define("look", done).Describe("Look").Risk(1).Effect(action.None).MustBuild()
	wipe := delta.Define("wipe", done).Describe("Wipe").Risk(4).RequireApproval().Effect(action.Idempotent).MustBuild()
	store := memory.New(memory.Config{Clock: now})
	e, err := delta.New(delta.Config{Store: store, Now: now, Policy: b})
	require.NoError(t, err)
	task, err := e.Start(context.Background(), delta.Goal{
		ID: "t2", Agent: delta.NewAgent("desk").Actions(refund).Grant(look, wipe).MustBuild(), Approvers: []string{"ana"}, Limit: action.Limit{Tokens: action.Max(1000)},
	})
	require.NoError(t, err)
	calls := []delta.Call{
		{Action: "look", Input: json.RawMessage(`{"id":"ORD-1","amount":0}`)}, {Action: "refund", Input: json.RawMessage(`{"id":"ORD-1","amount":10}`)},
		{Action: "refund", Input: json.RawMessage(`{"id":"ORD-1","amount":50}`)}, {Action: "wipe", Input: json.RawMessage(`{"id":"ORD-1","amount":0}`)},
		{Action: "look", Input: json.RawMessage(`{"id":"ORD-1","amount":1}`)},
	}
	_, err = e.Run(context.Background(), task, delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) {
		past.Add(int64(time.Hour))
		if len(calls) == 0 {
			return delta.Proposal{Done: true}, nil
		}
		next := calls[0]
		calls = calls[1:]
		return delta.Proposal{Calls: []delta.Call{next}, Used: action.Cost{Tokens: 40}}, nil
	})).Get()
	require.NoError(t, err)
	require.NoError(t, e.Close(context.Background()))
	for _, of := range []string{"", "t2"} {
		records, err := store.Records(context.Background(), "desk", of, 1, 1000)
		require.NoError(t, err)
		all = append(all, &ledger.Exported{Agent: "desk", Task: of, Records: records})
	}
	return all
}

// The file that the scripts read is what such an engine writes; -update writes it anew.
func TestRecordedFile(t *testing.T) {
	path := filepath.Join("..", "..", "..", "..", "examples", "policy", "recorded.jsonl")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, recorded(t), 0o644))
	}
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	im := ledger.NewImporter(f)
	for range 2 {
		_, err := im.Next()
		require.NoError(t, err)
	}
}

var update = flag.Bool("update", false, "write the recorded file anew")

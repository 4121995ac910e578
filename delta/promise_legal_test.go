package delta_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// kind is an action of a random agent, as the naive model knows it.
type kind struct {
	name    string
	needs   []int // indices of earlier actions
	bound   []bool
	granted bool
	risk    int
	approve bool
	tokens  int64
}

// domain is a random agent and task, and a model of it that keeps what happened in plain maps.
type domain struct {
	kinds     []kind
	limit     int64
	threshold int
	ceiling   int
	asks      bool // the task has approvers
	done      map[string]bool
	spent     int64
}

var ids = []string{"a", "b"}

func drawDomain(r *rapid.T) *domain {
	m := &domain{
		limit:     rapid.Int64Range(0, 60).Draw(r, "limit"),
		threshold: rapid.IntRange(2, 5).Draw(r, "threshold"),
		ceiling:   rapid.SampledFrom([]int{0, 3, 4}).Draw(r, "ceiling"),
		asks:      rapid.Bool().Draw(r, "asks"),
		done:      map[string]bool{},
	}
	for i := range rapid.IntRange(1, 6).Draw(r, "actions") {
		k := kind{
			name:    fmt.Sprintf("act%c", 'a'+i),
			granted: rapid.IntRange(0, 4).Draw(r, "granted") > 0,
			risk:    rapid.IntRange(1, 5).Draw(r, "risk"),
			approve: rapid.IntRange(0, 4).Draw(r, "approve") == 0,
			tokens:  rapid.Int64Range(0, 20).Draw(r, "tokens"),
		}
		for j := range i {
			if rapid.IntRange(0, 2).Draw(r, "needs") == 0 {
				k.needs, k.bound = append(k.needs, j), append(k.bound, rapid.Bool().Draw(r, "bound"))
			}
		}
		m.kinds = append(m.kinds, k)
	}
	return m
}

func (m *domain) agent(behave func(name string, in In) mo.Result[Out]) *delta.Agent {
	b := delta.NewAgent("clerk")
	for _, k := range m.kinds {
		d := delta.Define(k.name, func(_ *delta.Context, in In) mo.Result[Out] { return behave(k.name, in) }).
			Describe(k.name).Risk(k.risk).Cost(action.Cost{Tokens: k.tokens})
		if k.approve {
			d = d.RequireApproval()
		}
		for i, n := range k.needs {
			pre := delta.Named(m.kinds[n].name)
			if k.bound[i] {
				pre = pre.On("id")
			}
			d = d.Needs(pre)
		}
		if a := d.MustBuild(); k.granted {
			b = b.Grant(a)
		} else {
			b = b.Actions(a)
		}
	}
	return b.MustBuild()
}

// satisfied reports whether the prerequisites hold for the input.
func (m *domain) satisfied(k *kind, id string) bool {
	for i, n := range k.needs {
		name := m.kinds[n].name
		held := m.done[name+"/"+id]
		if !k.bound[i] {
			held = slices.ContainsFunc(ids, func(any string) bool { return m.done[name+"/"+any] })
		}
		if !held {
			return false
		}
	}
	return true
}

// expect is the code that gates 4 to 8 give a call, in their order; APPROVAL_REQUIRED where it is gated.
func (m *domain) expect(k *kind, id string) action.Code {
	gated := k.risk >= m.threshold || k.approve
	switch {
	case !m.satisfied(k, id):
		return action.NotLegal
	case !k.granted:
		return action.Denied
	case m.ceiling > 0 && k.risk > m.ceiling:
		return action.RiskCeiling
	case m.spent+k.tokens > m.limit:
		return action.BudgetExhausted
	case gated && !m.asks:
		return action.NoApprover
	case gated:
		return action.ApprovalRequired
	}
	return action.OK
}

// TestI03_OfferedIsWhatRuns: an action is offered exactly where some input would pass gates 4 to 8, as gated exactly where
// it waits for a person, and every call ends as the model says, offered or not. Actions that are asked about are never
// approved here, and Ok is the only outcome, so that declared risk is what gates.
func TestI03_OfferedIsWhatRuns(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := drawDomain(r)
		agent := m.agent(func(string, In) mo.Result[Out] { return mo.Ok(Out{"ok"}) })
		e, err := delta.New(delta.Config{Store: memory.New(memory.Config{})})
		require.NoError(r, err)
		defer e.Close(context.Background())
		g := delta.Goal{Agent: agent, Threshold: float64(m.threshold), Ceiling: float64(m.ceiling), Limit: action.Limit{Tokens: action.Max(m.limit)}}
		if m.asks {
			g.Approvers = []string{"*"}
		}
		task, err := e.Start(context.Background(), g)
		require.NoError(r, err)
		for range rapid.IntRange(1, 12).Draw(r, "calls") {
			offer := m.checkOffer(r, task)
			k := &m.kinds[rapid.IntRange(0, len(m.kinds)-1).Draw(r, "action")]
			id := rapid.SampledFrom(ids).Draw(r, "id")
			want := m.expect(k, id)
			c := call(k.name, id)
			c.Epoch = offer.Epoch
			o, err := task.Do(context.Background(), c).Get()
			require.NoError(r, err)
			require.Equal(r, want, o.Code, "%s %s: %v", k.name, id, o.Failure)
			if o.OK() { // the function reported no tokens: all of the reservation came back
				m.done[k.name+"/"+id] = true
			}
		}
	})
}

func (m *domain) checkOffer(r *rapid.T, task *delta.Task) action.Offer {
	offer, err := task.Offer(context.Background())
	require.NoError(r, err)
	for i := range m.kinds {
		k := &m.kinds[i]
		codes := []action.Code{m.expect(k, ids[0]), m.expect(k, ids[1])}
		o, found := offer.Find(k.name)
		runs, waits := slices.Contains(codes, action.OK), slices.Contains(codes, action.ApprovalRequired)
		require.Equal(r, runs || waits, found, "%s would end as %v", k.name, codes)
		if found {
			require.Equal(r, waits, o.Status == action.Gated, k.name)
		}
	}
	return offer
}

// The schema of an offer is narrowed to the values that satisfy.
func TestI03_OfferedSchemaHoldsWhatSatisfies(t *testing.T) {
	w := newWorld(t)
	require.True(t, w.do(call("act", "ORD-1")).OK())
	offer, err := w.task.Offer(t.Context())
	require.NoError(t, err)
	o, ok := offer.Find("then-act")
	require.True(t, ok)
	assert.Contains(t, string(o.Schema), "ORD-1")
	assert.Equal(t, action.NotLegal, w.do(call("then-act", "ORD-2")).Code)
	assert.Equal(t, action.OK, w.do(call("then-act", "ORD-1")).Code)
}

// Hidden actions are refused when called anyway, and the refusal of a call from an old offer names what changed, in terms
// of what was offered only.
func TestI03_StaleOfferNamesWhatChanged(t *testing.T) {
	w := newWorld(t)
	require.True(t, w.do(call("look", "a")).OK())
	offer, err := w.task.Offer(t.Context())
	require.NoError(t, err)
	require.True(t, w.offered("ticket"))
	require.True(t, w.do(call("ticket", "a")).OK(), "uses the fact up")
	c := call("ticket", "a")
	c.Epoch = offer.Epoch
	o := w.do(c)
	require.Equal(t, action.NotLegal, o.Code)
	assert.Contains(t, o.Failure.Details[action.DetailChanged], "ticket")
	assert.NotContains(t, o.Failure.ForPlanner().Details[action.DetailChanged], "forbidden")
	assert.False(t, w.offered("ticket"))
}

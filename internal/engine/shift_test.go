package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// shift is a desk at which everything that can happen happens at random.
type shift struct {
	*desk
	r        *rapid.T
	running  []*Run         // hold a lease, live or not
	lost     []*Run         // were superseded
	plans    []ledger.Event // proposals under way
	unknown  []ledger.Event // ended as STARTED_UNKNOWN, not resolved
	asks     []*approval.Request
	refusals map[action.Code]int
}

func newShift(r *rapid.T) *shift {
	s := plain()
	for _, x := range []*action.Bound{&s.Limit.Tokens, &s.Limit.Calls} {
		if rapid.Bool().Draw(r, "limited") {
			*x = action.Max(rapid.Int64Range(0, 300).Draw(r, "limit"))
		}
	}
	s.Threshold = rapid.SampledFrom([]float64{2.5, 4, 5}).Draw(r, "threshold")
	w := &shift{desk: open(r, s), r: r, refusals: map[action.Code]int{}}
	w.rules.Refusals = rapid.SampledFrom([]int{0, 2}).Draw(r, "refusals")
	if rapid.Bool().Draw(r, "pooled") {
		limit := action.Limit{Tokens: action.Max(rapid.Int64Range(0, 300).Draw(r, "pool"))}
		w.rules.Pools = []budget.Pool{{Name: "daily", Period: budget.Day, Limit: limit}, {Name: "all", Limit: action.Limit{Calls: action.Max(30)}}}
	}
	return w
}

var orders = []string{"A", "B", "C"}

// draw proposes inputs that often meet again.
func (s *shift) draw() (name, input string) {
	name = rapid.SampledFrom([]string{"list", "confirm", "charge", "notify", "ship", "refund", "wipe", "audit", "forbidden", "confirm", "charge"}).Draw(s.r, "action")
	if s.agent.Actions[name].Input == inputs["none"] {
		return name, `{}`
	}
	return name, fmt.Sprintf(`{"order":%q}`, rapid.SampledFrom(orders).Draw(s.r, "order"))
}

// one takes an element out of a list, at random.
func one[T any](r *rapid.T, list *[]T) (T, bool) {
	var zero T
	if len(*list) == 0 {
		return zero, false
	}
	i := rapid.IntRange(0, len(*list)-1).Draw(r, "which")
	x := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return x, true
}

var steps = []func(*shift){
	(*shift).call, (*shift).call, (*shift).call, (*shift).settle, (*shift).settle, (*shift).settle, (*shift).attempt, (*shift).takeover,
	(*shift).late, (*shift).answer, (*shift).answer, (*shift).resume, (*shift).expire, (*shift).resolve, (*shift).plan, (*shift).planned,
	(*shift).reconfigure, (*shift).hook, (*shift).tick, (*shift).desk_fold,
}

func (s *shift) step() { rapid.SampledFrom(steps).Draw(s.r, "step")(s) }

func (s *shift) desk_fold() { s.fold() }

func (s *shift) call() {
	name, input := s.draw()
	c := s.desk.call(name, input)
	c.Intent.CallID = rapid.SampledFrom([]string{"", "", "c1", "c2"}).Draw(s.r, "id")
	c.Intent.Provenance.Reason = "why \xff <not>"
	c.Rule = rapid.SampledFrom([]int{0, 0, 0, 4, 5}).Draw(s.r, "rule")
	s.took(c, s.propose(c))
}

func (s *shift) took(c *Call, d Decision) {
	switch {
	case d.Begun != nil:
		s.running = append(s.running, s.run(c, d))
	case d.Ask != nil:
		s.asks = append(s.asks, d.Ask)
	}
	if d.Refusal != nil {
		s.refusals[d.Refusal.Code]++
	}
}

// cost is sometimes more than was reserved.
func (s *shift) cost() action.Cost {
	return action.Cost{Calls: 1, Tokens: rapid.SampledFrom([]int64{0, 5, 20, 90}).Draw(s.r, "tokens"), Duration: 7}
}

func (s *shift) outcome() End {
	code := rapid.SampledFrom([]action.Code{
		action.OK, action.OK, action.OK, action.OK, action.Failed, action.Panicked, action.OutputInvalid, action.Timeout, action.Interrupted,
		action.StartedUnknown, action.HookFailed, action.NotStarted,
	}).Draw(s.r, "end")
	return s.end(code, s.output(), s.cost())
}

// output lists open orders: none, few, or too many for a token each.
func (s *shift) output() string {
	switch rapid.IntRange(0, 3).Draw(s.r, "listing") {
	case 0:
		return `{"open":[]}`
	case 1:
		return `{"open":["A","B"]}`
	case 2:
		return `{"open":["C"],"text":"<b>"}`
	}
	return many(MaxFactsForTest, orders[rapid.IntRange(0, 2).Draw(s.r, "order")])
}

func (s *shift) settle() {
	x, ok := one(s.r, &s.running)
	if !ok {
		return
	}
	end := s.outcome()
	s.must(x.Settle(end))
	if end.Code == action.StartedUnknown {
		s.unknown = append(s.unknown, *x.Begun)
	}
}

func (s *shift) attempt() {
	x, ok := one(s.r, &s.running)
	if !ok {
		return
	}
	s.running = append(s.running, x)
	end := s.end(rapid.SampledFrom([]action.Code{action.Failed, action.Timeout, action.StartedUnknown}).Draw(s.r, "attempt"), "", s.cost())
	s.desk.attempt(x, end)
}

// takeover lets a lease run out; the worker that held it is late.
func (s *shift) takeover() {
	x, ok := one(s.r, &s.running)
	if !ok {
		return
	}
	s.pass(lease)
	begun, err := Held(&txn.Space{Cells: s.cold(cellIntent + x.Begun.Intent)}, x.Begun.Intent)
	require.NoError(s, err)
	var t *txn.Txn
	var next *Run
	l := txn.Lease{Phase: txn.Begin, Fence: x.Fence, Owner: x.Owner}
	why := ""
	if no := Recheck(s.rules, s.agent, s.look(), &begun, s.callOf(x)); no != nil {
		why = no.Error()
	}
	if why == "" && rapid.IntRange(0, 3).Draw(s.r, "stopped") == 0 {
		why = "it was stopped"
	}
	switch repeatable := s.agent.Actions[begun.Action].Repeatable(); {
	case repeatable && why != "":
		t = TakeoverStopped(s.agent, begun, l, s.id("w"), why, s.now())
	default:
		t, next = Takeover(s.agent, s.look(), begun, "", l, s.id("w"), lease, s.now())
	}
	s.must(t)
	s.lost = append(s.lost, x)
	switch {
	case next != nil:
		next.Input = x.Input
		s.running = append(s.running, next)
	case !s.agent.Actions[begun.Action].Repeatable():
		s.unknown = append(s.unknown, begun)
	}
}

// late is the return of a worker that was superseded: it cannot settle, it can only say so.
func (s *shift) late() {
	x, ok := one(s.r, &s.lost)
	if !ok {
		return
	}
	end := s.outcome()
	r := s.apply(x.Settle(end))
	require.False(s, r.OK)
	require.Equal(s, -1, r.Failed, "refused by its fence")
	s.must(x.Late(end, rapid.SampledFrom([]action.Code{action.Timeout, action.StartedUnknown}).Draw(s.r, "settled"), s.cost()))
}

func (s *shift) answer() {
	if len(s.asks) == 0 {
		return
	}
	q := rapid.SampledFrom(s.asks).Draw(s.r, "ask")
	verb := rapid.SampledFrom([]approval.Event{approval.Approve, approval.Approve, approval.Approve, approval.Reject, approval.Revoke}).Draw(s.r, "verb")
	_ = s.ask(q.Digest, verb) // may be over
}

// resume runs what was parked and approved, as a worker does that finds it in the queue.
func (s *shift) resume() {
	ready, err := s.store.Queued(s.r.Context(), s.agent.Name, QueueReady, txn.Queued{}, true, 9)
	require.NoError(s, err)
	if len(ready) == 0 {
		return
	}
	_, intent, _ := strings.Cut(rapid.SampledFrom(ready).Draw(s.r, "ready").Member, "\n")
	parked, err := Held(&txn.Space{Cells: s.cold(cellIntent + intent)}, intent)
	require.NoError(s, err)
	c := s.desk.call(parked.Action, string(parked.Input))
	c.Intent.ID, c.Resume = intent, true
	s.took(c, s.propose(c))
}

func (s *shift) expire() {
	if len(s.asks) == 0 {
		return
	}
	q := rapid.SampledFrom(s.asks).Draw(s.r, "ask")
	s.pass(rapid.SampledFrom([]int64{askTTL / 2, askTTL}).Draw(s.r, "wait"))
	if t := ExpireAsk(s.look(), q.Digest, s.waits(q.Intent), s.who()); t != nil {
		s.apply(t) // may be about a later request of the same call
	}
}

func (s *shift) resolve() {
	e, ok := one(s.r, &s.unknown)
	if !ok {
		return
	}
	held, err := Held(&txn.Space{Cells: s.cold(cellIntent + e.Intent)}, e.Intent)
	require.NoError(s, err)
	t, err := Resolve(s.agent, s.look(), held, rapid.Bool().Draw(s.r, "ok"), s.cost(), End{Output: document(s, s.output())}, Run{}, s.who())
	require.NoError(s, err)
	s.must(t)
}

func (s *shift) plan() {
	c := s.desk.call(PlanAction, "")
	d := DecidePlan(s.rules, s.agent, s.look(), c, action.Cost{Tokens: 3})
	s.must(d.Txn)
	if d.Begun != nil {
		s.plans = append(s.plans, *d.Begun)
	}
}

func (s *shift) planned() {
	e, ok := one(s.r, &s.plans)
	if !ok {
		return
	}
	if rapid.Bool().Draw(s.r, "lost") {
		s.pass(lease)
		t, run := Takeover(s.agent, s.look(), e, "", txn.Lease{Phase: txn.Begin, Fence: 1}, s.id("w"), lease, s.now())
		require.Nil(s, run)
		s.must(t)
		return
	}
	s.must(SettlePlan(nil, &e, e.Owner, s.cost(), nil, s.now(), false))
}

func (s *shift) reconfigure() {
	if s.look().Task.Status != Running {
		return
	}
	switch rapid.IntRange(0, 12).Draw(s.r, "what") {
	case 0:
		t, err := CancelTask(s.look(), s.who())
		require.NoError(s, err)
		s.must(t)
	case 1:
		t, err := CloseTask(s.look(), s.who())
		require.NoError(s, err)
		s.must(t)
	case 2, 3:
		s.change(func(t *TaskState) { t.Ceiling = rapid.SampledFrom([]float64{0, 4.5}).Draw(s.r, "ceiling") })
	case 4, 5:
		s.change(func(t *TaskState) { t.Limit.Tokens = action.Max(rapid.Int64Range(0, 500).Draw(s.r, "limit")) })
	default:
		s.change(func(t *TaskState) { t.Threshold = rapid.SampledFrom([]float64{2.5, 4, 5}).Draw(s.r, "threshold") })
	}
}

func (s *shift) hook() {
	if len(s.running) > 0 {
		s.must(s.running[0].HookFailed("after", fmt.Errorf("hook \xff"), s.now()))
	}
}

func (s *shift) tick() { s.pass(rapid.Int64Range(0, 40*second).Draw(s.r, "time")) }

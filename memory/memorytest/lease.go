package memorytest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// leaseScripts are lives of one intent: a line is a phase, fence, owner, the step of a renew, "short" for a lease that
// wait outlives, and what has to come of it: ok, replay (the first answer again, nothing doubled) or no.
var leaseScripts = []struct{ name, reason, script string }{
	{"a life", "the usual way", `
		begin 1 A ok
		renew 1 A 1 ok
		settle 1 A ok`},
	{"two owners propose the same first fence", "one intent would run twice at once", `
		begin 1 A ok
		begin 1 B no
		settle 1 B no
		settle 1 A ok`},
	{"two owners propose the same next fence", "both saw the lease expire; telling them apart by the fence alone lets both run", `
		begin 1 A short ok
		wait
		begin 2 B ok
		begin 2 C no
		settle 2 C no
		settle 2 B ok`},
	{"a lost begin reply", "the worker asks again and must not be locked out by itself", `
		begin 1 A ok
		begin 1 A replay
		settle 1 A ok`},
	{"a lost begin reply, then a takeover", "the first owner must not believe that it still holds the lease", `
		begin 1 A short ok
		wait
		begin 2 B ok
		begin 1 A no
		settle 2 B ok
		begin 1 A no
		settle 1 A no
		settle 2 B replay`},
	{"an expired begin is not replayed", "somebody may be about to take over", `
		begin 1 A short ok
		wait
		begin 1 A no
		begin 2 A ok`},
	{"a live lease is not taken over", "its owner is at work", `
		begin 1 A ok
		begin 2 B no
		takeover 2 B no
		settle 1 A ok`},
	{"a superseded settle is refused", "the effect belongs to the other owner now", `
		begin 1 A short ok
		wait
		begin 2 B ok
		settle 1 A no
		renew 1 A 0 no
		renew 1 A 1 no
		settle 2 B ok`},
	{"an expired lease that nobody took settles", "losing a lease means being superseded", `
		begin 1 A short ok
		wait
		settle 1 A ok`},
	{"an expired lease that nobody took is renewed", "losing a lease means being superseded", `
		begin 1 A short ok
		wait
		renew 1 A 0 ok
		begin 2 B no
		settle 1 A ok`},
	{"a repeated settle is recognised", "its reply was lost", `
		begin 1 A ok
		settle 1 A ok
		settle 1 A replay
		settle 1 B no
		settle 2 A no`},
	{"nothing settles without a begin", "no durable intent, no effect", `
		settle 1 A no
		renew 1 A 0 no
		renew 1 A 1 no
		takeover 1 A no
		takeover 2 A no
		begin 2 A no
		park 2 A no
		refuse 2 A no`},
	{"what ended stays ended", "terminal states absorb", `
		begin 1 A short ok
		settle 1 A ok
		wait
		begin 1 A no
		begin 2 A no
		renew 1 A 0 no
		renew 1 A 1 no
		takeover 2 A no
		refuse 1 A no
		park 1 A no`},
	{"a refusal twice is one refusal", "its reply was lost", `
		refuse 1 A ok
		refuse 1 A replay
		refuse 1 B no
		settle 1 A no
		begin 1 A no`},
	{"parked, then begun", "a person approved; any worker may run it", `
		park 1 A ok
		park 1 A replay
		park 1 B no
		settle 1 A no
		renew 1 A 0 no
		begin 2 B no
		begin 1 B ok
		park 1 A no
		settle 1 B ok`},
	{"parked, then refused", "a person rejected; any worker may write it", `
		park 1 A ok
		refuse 1 B ok
		refuse 1 B replay
		begin 1 A no
		park 1 A no`},
	{"parked does not expire into a takeover", "it has no lease", `
		park 1 A ok
		wait
		takeover 2 B no
		begin 2 B no`},
	{"what runs is not refused", "a refusal says that it never began", `
		begin 1 A ok
		refuse 1 A no
		refuse 1 B no
		park 1 A no`},
	{"a takeover ends an expired intent", "its effect may have happened and must not happen again", `
		begin 1 A ok
		takeover 2 J no
		renew 1 A 0 short ok
		wait
		takeover 3 J no
		takeover 1 J no
		takeover 2 J ok
		takeover 2 J replay
		takeover 2 K no
		settle 1 A no
		settle 2 J no
		begin 2 B no
		begin 3 B no`},
	{"a renewed step is not doubled", "its reply was lost; an attempt would be counted twice", `
		begin 1 A ok
		renew 1 A 1 ok
		renew 1 A 1 replay
		renew 1 A 3 no
		renew 1 A 2 ok
		renew 1 A 1 no
		renew 1 B 3 no
		renew 2 A 3 no
		settle 1 A ok
		renew 1 A 2 no`},
	{"a heartbeat does not forget the step", "the repeat of a step may come after one", `
		begin 1 A ok
		renew 1 A 1 ok
		renew 1 A 0 ok
		renew 1 A 1 replay
		renew 1 A 2 ok`},
	{"a begin is the repeat of a begin only", "its first answer is gone once a step was written", `
		begin 1 A ok
		renew 1 A 0 ok
		begin 1 A replay
		renew 1 A 1 ok
		begin 1 A no
		settle 1 A ok`},
	{"an expired step is still a repeat", "it had been written; the reply says when the lease ended", `
		begin 1 A ok
		renew 1 A 1 short ok
		wait
		renew 1 A 1 replay
		renew 1 A 2 ok`},
	{"a renew prolongs", "it is kept alive while it works", `
		begin 1 A short ok
		renew 1 A 0 ok
		wait
		begin 2 B no
		begin 1 A replay
		renew 1 A 1 short ok
		wait
		begin 2 B ok`},
	{"steps start again with the next fence", "another owner counts its own", `
		begin 1 A ok
		renew 1 A 1 short ok
		wait
		begin 2 B ok
		renew 2 B 2 no
		renew 2 B 1 ok`},
	{"fences go on", "every owner has its own", `
		begin 1 A short ok
		wait
		begin 3 B no
		begin 2 B short ok
		wait
		begin 2 C no
		begin 3 C short ok
		wait
		takeover 4 D ok`},
}

func leaseCases() []testCase {
	var out []testCase
	for _, s := range leaseScripts {
		out = append(out, testCase{"lease/" + s.name, s.reason, func(e *env) { e.play(s.script) }})
	}
	return append(out,
		testCase{"lease/intents and tasks are apart", "one would be locked out by another", leaseApart},
		testCase{"lease/what it shows", "engines decide by it", leaseShows},
		testCase{"lease/before conditions", "a superseded owner is told so, whatever else fails", leaseFirst},
	)
}

var phases = map[string]txn.Phase{"park": txn.Park, "begin": txn.Begin, "renew": txn.Renew, "settle": txn.Settle,
	"refuse": txn.Refuse, "takeover": txn.Takeover}

// play runs a script. Every transaction appends an event, so that what was doubled or lost shows in the ledger.
func (e *env) play(script string) {
	e.Helper()
	accepted, last := 0, 0 // events, and the one that a repeat answers with
	for line := range strings.SplitSeq(strings.TrimSpace(script), "\n") {
		line = strings.TrimSpace(line)
		if line == "wait" {
			e.wait()
			continue
		}
		t, want := parseLine(e, strings.Fields(line))
		r := e.apply(t)
		got := map[bool]string{true: "ok", false: "no"}[r.OK]
		if r.Replay {
			got = "replay"
		}
		require.Equal(e, want, got, "%s: %+v", line, r)
		switch want {
		case "ok":
			accepted++
			assert.EqualValues(e, accepted, r.Seq, "%s: the sequence of its event", line)
			if t.Phase != txn.Renew || t.Step > 0 {
				last = accepted
			}
			e.leaseAfter(line, t, r, int64(last))
		case "replay":
			assert.EqualValues(e, last, r.Seq, "%s: the first answer", line)
			if l, _ := e.lease("i"); l.Phase == txn.Begin {
				assert.Equal(e, l.Until, r.Until, "%s: the end of the lease", line)
			}
		case "no":
			assert.Equal(e, -1, r.Failed, "%s: refused by the lease", line)
			require.NotNil(e, r.Fresh, "%s: a refusal brings the truth", line)
			l, has := e.lease("i")
			shown, shows := r.Fresh.Leases["i"]
			assert.Equal(e, has, shows, "%s: a refusal shows the lease", line)
			assert.Equal(e, l, shown, "%s: a refusal shows the lease", line)
		}
		require.Len(e, e.records("t", 1, 100), accepted, "%s: events in the ledger", line)
	}
}

func parseLine(tb testing.TB, words []string) (t *txn.Txn, want string) {
	fence, err := strconv.ParseInt(words[1], 10, 64)
	require.NoError(tb, err)
	t = &txn.Txn{Agent: "a", Task: "t", Phase: phases[words[0]], Intent: "i", Fence: fence, Owner: words[2],
		Clauses: []txn.Clause{event(txn.Task, strings.Join(words, " "))}}
	if t.Phase == txn.Begin || t.Phase == txn.Renew {
		t.TTL = long
	}
	for _, w := range words[3 : len(words)-1] {
		if w == "short" {
			t.TTL = short
		} else {
			t.Step, err = strconv.ParseInt(w, 10, 64)
			require.NoError(tb, err)
		}
	}
	return t, words[len(words)-1]
}

// leaseAfter checks the lease that an accepted transaction left, and the queue of leases.
func (e *env) leaseAfter(line string, t *txn.Txn, r txn.Reply, last int64) {
	e.Helper()
	l, ok := e.lease("i")
	require.True(e, ok, "%s: left a lease", line)
	assert.Equal(e, t.Fence, l.Fence, line)
	assert.Equal(e, t.Owner, l.Owner, line)
	assert.Equal(e, last, l.Seq, "%s: sequence of the lease", line)
	queue := e.queued(txn.Leases, txn.Queued{}, false, 10)
	if t.Phase != txn.Begin && t.Phase != txn.Renew {
		want := txn.Settle
		if t.Phase == txn.Park {
			want = txn.Park
		}
		assert.Equal(e, want, l.Phase, line)
		assert.Empty(e, queue, "%s: nothing runs", line)
		return
	}
	assert.Equal(e, txn.Begin, l.Phase, line)
	assert.Equal(e, r.Now+t.TTL, l.Until, "%s: when it expires", line)
	assert.Equal(e, l.Until, r.Until, "%s: when it expires", line)
	assert.Equal(e, []txn.Queued{{Member: "t\ni", Due: l.Until}}, queue, "%s: what runs is queued", line)
	if t.Phase == txn.Begin {
		assert.Zero(e, l.Step, line)
	} else if t.Step > 0 {
		assert.Equal(e, t.Step, l.Step, line)
	}
}

func begin(task, intent string, cs ...txn.Clause) *txn.Txn {
	return &txn.Txn{Agent: "a", Task: task, Phase: txn.Begin, Intent: intent, Fence: 1, Owner: "A", TTL: long, Clauses: cs}
}

func leaseApart(e *env) {
	other := begin("t", "i")
	other.Agent = "b"
	for _, t := range []*txn.Txn{begin("t", "i"), begin("t", "j"), begin("u", "i"), other} {
		r := e.apply(t)
		assert.True(e, r.OK && !r.Replay, "%+v", t)
	}
	assert.ElementsMatch(e, []string{"t\ni", "t\nj", "u\ni"}, e.members(txn.Leases, false))
	q, err := e.Store.Queued(e.ctx, "b", txn.Leases, txn.Queued{}, false, 10)
	require.NoError(e, err)
	assert.Len(e, q, 1)
}

func leaseShows(e *env) {
	t := begin("t", "i", event(txn.Task, "one"), event(txn.Task, "two"), event(txn.Agent, "three"))
	r := e.apply(t)
	e.apply(begin("t", "j"))
	l, ok := e.lease("i")
	require.True(e, ok)
	assert.Equal(e, txn.Lease{Phase: txn.Begin, Fence: 1, Owner: "A", Until: r.Now + long, Seq: 1}, l)
	_, ok = e.lease("unknown")
	assert.False(e, ok)
	assert.Empty(e, e.members(txn.Leases, true), "nothing has expired yet")
	require.True(e, e.apply(&txn.Txn{Agent: "a", Task: "t", Phase: txn.Renew, Intent: "i", Fence: 1, Owner: "A", TTL: short}).OK)
	e.wait()
	assert.Equal(e, []string{"t\ni"}, e.members(txn.Leases, true), "what expired is due")
}

func leaseFirst(e *env) {
	e.apply(begin("t", "i"))
	t := begin("t", "i", txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: "x", N: 5})
	t.Owner = "B"
	assert.Equal(e, -1, e.apply(t).Failed)
	t.Owner = "A"
	r := e.apply(t)
	assert.True(e, r.OK && r.Replay, "a repeat answers from the lease: its conditions held when it was accepted")

	t = begin("t", "j", txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: "x", N: 5}, event(txn.Task, "no"))
	r = e.apply(t)
	assert.False(e, r.OK)
	assert.Zero(e, r.Failed)
	_, ok := e.lease("j")
	assert.False(e, ok, "a begin whose condition fails takes no lease")
	t.Clauses[0].N = 0
	r = e.apply(t)
	assert.True(e, r.OK && !r.Replay, "a refused transaction is evaluated again")
}

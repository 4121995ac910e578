package approval_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
)

// Every state and every event, once: rows are states, columns events, a dash is a refusal.
func TestNextTable(t *testing.T) {
	table := `
	           ask      approve   reject    revoke   expire   consume   return
	none       pending  -         -         -        -        -         -
	pending    -        approved  rejected  revoked  expired  -         -
	approved   -        -         -         revoked  expired  consumed  -
	rejected   -        -         -         -        -        -         -
	expired    -        -         -         -        -        -         -
	consumed   -        -         -         -        -        -         approved
	revoked    -        -         -         -        -        -         -`
	rows := strings.Split(strings.TrimSpace(table), "\n")
	require.Len(t, rows, 1+len(approval.States()))
	for i, row := range rows[1:] {
		cells := strings.Fields(row)
		from := approval.States()[i]
		require.Equal(t, cells[0], map[bool]string{true: "none", false: string(from)}[from == approval.None])
		for j, want := range cells[1:] {
			event := approval.Events()[j]
			require.Equal(t, strings.Fields(rows[0])[j], string(event))
			got, err := approval.Next(from, event)
			if want == "-" {
				var te *approval.TransitionError
				require.ErrorAs(t, err, &te)
				assert.Equal(t, approval.TransitionError{State: from, Event: event}, *te)
				assert.Equal(t, from, got, "a refused event changes nothing")
				continue
			}
			require.NoError(t, err)
			assert.Equal(t, approval.State(want), got)
		}
	}
}

// After an end nothing happens any more, whatever is tried; and a consent is used at most once more than it is returned.
func TestI06_TerminalAbsorbsAndAConsentIsUsedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, asked, approved, used, returned := approval.None, 0, 0, 0, 0
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			e := rapid.SampledFrom(approval.Events()).Draw(t, "event")
			to, err := approval.Next(s, e)
			if s.Terminal() && (s != approval.Consumed || e != approval.Return) {
				require.Error(t, err)
				require.Equal(t, s, to)
			}
			if err == nil {
				asked, approved = asked+count(e == approval.Ask), approved+count(e == approval.Approve)
				used, returned = used+count(e == approval.Consume), returned+count(e == approval.Return)
			}
			s = to
			require.LessOrEqual(t, asked, 1)
			require.LessOrEqual(t, approved, asked)
			require.LessOrEqual(t, used-returned, approved, "never used without a consent, never twice")
		}
	})
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Waiting too long is neither a person's rejection nor consent.
func TestI06_WaitingTooLongIsExpiry(t *testing.T) {
	for _, c := range []struct {
		name string
		s    approval.State
		exp  int64
		now  int64
		want approval.State
	}{
		{"in time", approval.Pending, 10, 9, approval.Pending},
		{"at the moment: too late, as a store's tokens are", approval.Pending, 10, 10, approval.Expired},
		{"consent not used in time", approval.Approved, 10, 11, approval.Expired},
		{"no expiry", approval.Approved, 0, math.MaxInt64, approval.Approved},
		{"a rejection does not expire", approval.Rejected, 10, 11, approval.Rejected},
		{"nor does a consent that was used", approval.Consumed, 10, 11, approval.Consumed},
	} {
		assert.Equal(t, c.want, c.s.At(c.exp, c.now), c.name)
	}
}

func TestAskAgain(t *testing.T) {
	want := map[approval.State]bool{approval.None: true, approval.Expired: true, approval.Revoked: true, approval.Consumed: true}
	for _, s := range approval.States() {
		assert.Equal(t, want[s], s.AskAgain(), "%q", s)
	}
}

func TestMarks(t *testing.T) {
	for _, s := range approval.States()[1:] {
		intent := ""
		if s == approval.Consumed {
			intent = "i:1"
		}
		mark := approval.Mark(s, "ap-7", intent)
		got, id, by, err := approval.ParseMark(mark)
		require.NoError(t, err, mark)
		assert.Equal(t, []string{string(s), "ap-7", intent}, []string{string(got), id, by})
	}
	assert.Equal(t, "consumed:ap-7:i9", approval.Mark(approval.Consumed, "ap-7", "i9"))
	s, _, _, err := approval.ParseMark("")
	require.NoError(t, err)
	assert.Equal(t, approval.None, s)
	for _, bad := range []string{"pending", "pending:", ":x", "granted:x", "consumed:x", "consumed:x:", "consumed::i", "approved:x:y"} {
		_, _, _, err := approval.ParseMark(bad)
		assert.ErrorIs(t, err, approval.ErrMark, bad)
	}
}

func FuzzParseMark(f *testing.F) {
	f.Add("pending:a")
	f.Add("consumed:a:b")
	f.Fuzz(func(t *testing.T, text string) {
		s, id, intent, err := approval.ParseMark(text)
		if err == nil && s != approval.None && approval.Mark(s, id, intent) != text {
			t.Fatalf("%q read as %q %q %q", text, s, id, intent)
		}
	})
}

func TestI06_OnlyTheIntentThatUsedAConsentGivesItBack(t *testing.T) {
	used := approval.Mark(approval.Consumed, "ap", "i1")
	back, err := approval.GiveBack(used, "i1")
	require.NoError(t, err)
	assert.Equal(t, "approved:ap", back)
	_, err = approval.GiveBack(used, "i2")
	assert.ErrorContains(t, err, "i2 cannot return it")
	_, err = approval.GiveBack("approved:ap", "i1")
	assert.ErrorContains(t, err, "approval is approved")
	_, err = approval.GiveBack("nonsense", "i1")
	assert.ErrorIs(t, err, approval.ErrMark)
}

// Computed apart, with Python's hashlib and struct: a change here voids every consent that stands.
func TestDigestGolden(t *testing.T) {
	assert.Equal(t, "d5494d226e292d7f5f81825db60bfe4cb80bd72069dd8d1c375f9377f3519d4c", approval.Digest("support", "t1", "charge", "2", "abc", `{"amount":1.1}`))
}

// Two calls that differ in any part, be it by where one part ends and the next begins, have two digests.
func TestI06_DigestIsInjective(t *testing.T) {
	part := rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00")), 0, 3, -1)
	six := rapid.SliceOfN(part, 6, 6)
	digest := func(p []string) string { return approval.Digest(p[0], p[1], p[2], p[3], p[4], p[5]) }
	rapid.Check(t, func(t *rapid.T) {
		a, b := six.Draw(t, "a"), six.Draw(t, "b")
		if rapid.Bool().Draw(t, "moved") { // the same letters, cut elsewhere
			i := rapid.IntRange(0, 4).Draw(t, "i")
			b = append([]string(nil), a...)
			both := a[i] + a[i+1]
			cut := rapid.IntRange(0, len(both)).Draw(t, "cut")
			b[i], b[i+1] = both[:cut], both[cut:]
		}
		require.Equal(t, slices.Equal(a, b), digest(a) == digest(b))
	})
}

func TestI06_WhoMayDecide(t *testing.T) {
	req := approval.Request{Agent: "support-bot", Requester: "mallory"}
	team := []string{"ann", "mallory", "support-bot", "supp0rt_b0t"}
	for _, c := range []struct {
		name, identity string
		approvers      []string
		want           error
	}{
		{"an approver", "ann", team, nil},
		{"anybody", "bob", []string{"*"}, nil},
		{"nobody at all", "", []string{"*"}, approval.ErrAnonymous},
		{"blank", " \t", []string{"*"}, approval.ErrAnonymous},
		{"the requester, though an approver", "mallory", team, approval.ErrSelf},
		{"the requester, shouting", "Mallory", []string{"*"}, approval.ErrSelf},
		{"the agent", "support-bot", team, approval.ErrSelf},
		{"the agent under a name that reads the same", "supp0rt_b0t", team, approval.ErrSelf},
		{"somebody else", "bob", team, approval.ErrNotApprover},
		{"no approvers: nobody", "ann", nil, approval.ErrNotApprover},
		{"an approver's name in another case is another name", "Ann", team, approval.ErrNotApprover},
		{"not a plain name", "mall\u200bory", []string{"*"}, approval.ErrUnclear},
		{"a name in two scripts", "m\u0430llory", []string{"*"}, approval.ErrUnclear},
		{"another case of the requester", "MALLORY", []string{"*"}, approval.ErrSelf},
		{"the requester in some domain", "mallory@corp", []string{"*"}, approval.ErrSelf},
	} {
		assert.ErrorIs(t, approval.MayDecide(req, c.approvers, approval.Person{Name: c.identity}), c.want, c.name)
	}
	assert.NoError(t, approval.MayDecide(approval.Request{}, team, approval.Person{Name: "ann"}), "no requester to compare with")
}

func TestWaives(t *testing.T) {
	for _, c := range []struct {
		name           string
		trust, atLeast float64
		oks            int64
		want           bool
	}{
		{"enough of both", 0.9, 0.9, 5, true},
		{"too little trust", 0.89, 0.9, 50, false},
		{"too little experience of this action", 0.99, 0.9, 4, false},
		{"no waiver declared", 1, 0, 50, false},
		{"a trust that is no number", math.NaN(), 0.9, 50, false},
		{"a bar that is no number", 0.9, math.NaN(), 50, false},
	} {
		assert.Equal(t, c.want, approval.Waives(c.trust, c.atLeast, c.oks), c.name)
	}
}

func TestRequestRoundTrip(t *testing.T) {
	r := approval.Request{
		ID: "ap", Agent: "support", Task: "t", Intent: "i", Action: "charge", Version: "1", Digest: "d", Input: json.RawMessage(`{"note":"<b>"}`),
		Why: []string{"risk 4.2 is at or above the threshold 4"}, Risk: approval.Risk{Declared: 4, Score: 4.2, Effective: 4.2, P: 0.3, Lo: 0.2, Hi: 0.4, N: 9},
		Policy: "p", Forecast: action.Cost{Money: 5, Currency: "EUR"}, Requester: "mallory", Asked: 1, Expires: 2,
	}
	decided := r.Decided(approval.Decision{Identity: "ann", Reason: "fine", At: 3})
	assert.Nil(t, r.Decision, "the original is untouched")
	for _, want := range []approval.Request{r, decided} {
		text, err := want.Encode()
		require.NoError(t, err)
		assert.Contains(t, text, "<b>")
		got, err := approval.DecodeRequest(text)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	text, err := decided.Decision.Encode()
	require.NoError(t, err)
	d, err := approval.DecodeDecision(text)
	require.NoError(t, err)
	assert.Equal(t, *decided.Decision, d)
	for _, bad := range []string{"", `{"id":1}`, `{"who":"x"}`, `{} {}`} {
		_, err := approval.DecodeRequest(bad)
		assert.Error(t, err, bad)
	}
}

func FuzzDecodeRequest(f *testing.F) {
	f.Add(`{"id":"a","risk":{"declared":3,"score":1,"effective":3,"p":0.1,"lo":0,"hi":1,"n":0},"decision":{"identity":"ann","at":1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := approval.DecodeRequest(text)
		if err != nil {
			return
		}
		again, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := approval.DecodeRequest(again); err != nil {
			t.Fatal(err)
		}
	})
}

func ExampleNext() {
	s := approval.None
	for _, e := range []approval.Event{approval.Ask, approval.Approve, approval.Consume, approval.Consume} {
		to, err := approval.Next(s, e)
		fmt.Println(e, to, err)
		s = to
	}
	// Output:
	// ask pending <nil>
	// approve approved <nil>
	// consume consumed <nil>
	// consume consumed approval is consumed: cannot consume it
}

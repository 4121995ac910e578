package ledger_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// text draws strings as they occur and as they should not: HTML, separators, bytes that are not UTF-8.
func text() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringN(0, 8, -1),
		rapid.SampledFrom([]string{"", "<a href=\"x\">&", "\u2028", "\xff\xfe", "\ufffd", `\ufffd`, "charge", "\x00"}),
	)
}

func amount() *rapid.Generator[int64] { return rapid.Int64Range(0, action.MaxAmount) }

func raw() *rapid.Generator[json.RawMessage] {
	return rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`null`), json.RawMessage(`{"amount":1.10,"z":"<é>","a":[]}`), json.RawMessage(`"\ufffd"`), json.RawMessage(`12345678901234567890`)})
}

func cost(t *rapid.T) action.Cost {
	return action.Cost{Tokens: amount().Draw(t, "tokens"), Calls: amount().Draw(t, "calls"), Money: amount().Draw(t, "money"), Currency: rapid.SampledFrom([]string{"", "EUR"}).Draw(t, "currency")}
}

func failure(t *rapid.T) *action.Failure {
	if rapid.Bool().Draw(t, "no failure") {
		return nil
	}
	return action.Fail(action.Failed, "%s", text().Draw(t, "message")).With(action.DetailReason, text().Draw(t, "detail")).With("x", "y")
}

func anEvent(t *rapid.T) ledger.Event {
	e := ledger.Event{
		Type: rapid.SampledFrom(ledger.Types()).Draw(t, "type"), At: rapid.Int64().Draw(t, "at"),
		Agent: text().Draw(t, "agent"), Task: text().Draw(t, "task"), Intent: text().Draw(t, "intent"), Action: text().Draw(t, "action"),
		Fence: rapid.Int64().Draw(t, "fence"), Attempt: rapid.IntRange(0, 3).Draw(t, "attempt"), Code: action.OK, Failure: failure(t),
		Reserved: cost(t), Charged: cost(t), Overrun: rapid.Bool().Draw(t, "overrun"),
		Facts: rapid.SliceOfN(text(), 0, 3).Draw(t, "facts"), Claimed: claims().Draw(t, "claimed"),
		Reason: text().Draw(t, "reason"), Input: raw().Draw(t, "input"), Output: raw().Draw(t, "output"), State: raw().Draw(t, "state"),
		Provenance: action.Provenance{Goal: text().Draw(t, "goal")}, FromSeq: amount().Draw(t, "from"), Text: text().Draw(t, "text"),
	}
	if rapid.Bool().Draw(t, "learned") {
		p := rapid.Float64().Draw(t, "p")
		e.Risk = &ledger.RiskShown{Declared: 3, Score: p, Effective: p, P: p, N: 7}
		e.Outcomes = []ledger.Observed{{Seq: 1, Action: "a", Err: true, Cost: cost(t)}}
		e.Changes = []ledger.Change{{Belief: "a", Was: p, Now: 3}}
		e.Bulk = map[string][]string{text().Draw(t, "cell"): {"v"}, "b": nil, "a": {}}
		e.Waived = []*action.Failure{action.Fail(action.Denied, "no grant")}
	}
	if rapid.Bool().Draw(t, "flow") {
		e.Flow = &ledger.Flow{Phase: text().Draw(t, "phase"), Step: text().Draw(t, "step"), Iteration: rapid.IntRange(0, 3).Draw(t, "iteration"), Event: raw().Draw(t, "event")}
		e.Wakes = rapid.Bool().Draw(t, "wakes")
	}
	return e
}

// What was recorded can be read, and writing it again gives the same bytes: a hash over them stands for the event.
func TestI14_EncodingIsCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anEvent(t)
		first, err := ledger.Encode(e)
		require.NoError(t, err)
		same, err := ledger.Encode(e)
		require.NoError(t, err)
		require.Equal(t, first, same)
		back, err := ledger.Decode(first)
		require.NoError(t, err, first)
		second, err := ledger.Encode(back)
		require.NoError(t, err)
		require.Equal(t, first, second)
	})
}

func TestEncodeKeepsEveryField(t *testing.T) {
	e := ledger.Event{
		V: 1, Type: ledger.Settled, At: 1700000000000001, Agent: "support", Task: "t1", Intent: "i1", Call: "c1", Action: "charge",
		Version: "2", Digest: "d", Fence: 1, Owner: "w", Attempt: 2, Code: action.Failed,
		Failure:  action.Fail(action.Failed, "card <declined> & returned").With(action.DetailReason, "no funds"),
		Reserved: action.Cost{Tokens: 5}, Charged: action.Cost{Tokens: 7, Money: 1, Currency: "EUR"}, Overrun: true,
		Facts: []string{"f"}, Bulk: map[string][]string{"b": {"2"}, "a": {"1"}}, Claimed: []ledger.Claim{{Key: "k", From: "held", To: "claimed:i"}}, Returned: true,
		Approval: "ap", ApprovalState: "consumed", Identity: "ann", Reason: "r", Expires: 9,
		Risk: &ledger.RiskShown{Declared: 3, Score: 2.5, Effective: 3, P: 0.125, Lo: 0.1, Hi: 0.2, N: 4, Rule: "large amount"}, Policy: &ledger.PolicyShown{Version: "p1", Reason: "granted"},
		Waived: []*action.Failure{action.Fail(action.Denied, "x")},
		Input:  json.RawMessage(`{"amount":1.10}`), Output: json.RawMessage(`null`), Provenance: action.Provenance{Goal: "g"}, State: json.RawMessage(`{}`), Value: "v",
		FromSeq: 1, ToSeq: 2, Outcomes: []ledger.Observed{{Seq: 1, Action: "charge", Err: true, At: 3}},
		Changes: []ledger.Change{{Belief: "charge", Was: 2, Now: 2.5, Level: 3, P: 0.125, N: 4}}, Text: "t",
		Flow: &ledger.Flow{Phase: "p", Step: "s", Kind: "HUMAN", Iteration: 2, Event: json.RawMessage(`{}`), Spec: json.RawMessage(`{}`)}, Wakes: true,
	}
	got, err := ledger.Encode(e)
	require.NoError(t, err)
	back, err := ledger.Decode(got)
	require.NoError(t, err)
	assert.Equal(t, e, back)
}

// The bytes are hashed, so they are part of the format: a change here breaks every ledger that exists.
func TestEncodeGolden(t *testing.T) {
	got, err := ledger.Encode(ledger.Event{Type: ledger.Refused, At: 17, Agent: "support", Task: "t", Intent: "i", Action: "charge", Code: action.Denied,
		Failure: action.Fail(action.Denied, "not <granted>"), Reserved: action.Cost{Duration: 5}, Bulk: map[string][]string{"b": nil, "a": {"1"}},
		Risk: &ledger.RiskShown{Declared: 4, Score: 2.5, Effective: 4, P: 1e-7, N: 12}})
	require.NoError(t, err)
	assert.Equal(t, `{"v":1,"type":"refused","at":17,"agent":"support","task":"t","intent":"i","action":"charge","code":"DENIED",`+
		`"failure":{"code":"DENIED","layer":"authority","message":"not <granted>","executed":"no","retryable":false},"reserved":{"duration":5},`+
		`"bulk":{"a":["1"],"b":null},"risk":{"declared":4,"score":2.5,"effective":4,"p":1e-7,"n":12}}`, got)
}

func TestEncodeRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		e    ledger.Event
		want string
	}{
		{"no type", ledger.Event{}, `unknown type ""`},
		{"another version", ledger.Event{V: 2, Type: ledger.Note}, "schema version 2"},
		{"input that is not JSON", ledger.Event{Type: ledger.Note, Intent: "i7", Input: json.RawMessage(`{`)}, `intent "i7"`},
		{"a number that is not finite", ledger.Event{Type: ledger.Note, Risk: &ledger.RiskShown{P: math.NaN()}}, "NaN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ledger.Encode(c.e)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", ``, "EOF"},
		{"not an object", `[]`, "decode event"},
		{"unknown field", `{"v":1,"type":"note","at":1,"extra":1}`, "extra"},
		{"unknown type", `{"v":1,"type":"rumour","at":1}`, `"rumour"`},
		{"no version", `{"type":"note","at":1}`, "schema version 0"},
		{"a later version, with fields of its own", `{"v":2,"type":"note","at":1,"extra":1}`, "newer"},
		{"trailing data", `{"v":1,"type":"note","at":1}{}`, "after the event"},
		{"white space", `{"v":1, "type":"note","at":1}`, "canonical form from byte 7"},
		{"another order", `{"type":"note","v":1,"at":1}`, "canonical"},
		{"a key in another case", `{"v":1,"Type":"note","at":1}`, "canonical"},
		{"a key twice: the last would win", `{"v":1,"type":"note","type":"settled","at":1}`, "canonical"},
		{"an empty field spelt out", `{"v":1,"type":"note","at":1,"agent":""}`, "canonical"},
		{"an escaped character", `{"v":1,"type":"note","at":1,"agent":"\u0041"}`, "canonical"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ledger.Decode(c.text)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestTypesAreDistinct(t *testing.T) {
	seen := map[ledger.Type]bool{}
	for _, k := range ledger.Types() {
		assert.True(t, k.Valid())
		assert.False(t, seen[k], k)
		seen[k] = true
	}
	assert.False(t, ledger.Type("rumour").Valid())
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"v":1,"type":"note","at":1,"text":"hello"}`)
	f.Add(`{"v":1,"type":"settled","at":-1,"code":"OK","input":{"a":[1e5]},"bulk":{"a":null}}`)
	f.Add(`{"v":1,"type":"note","at":1,"failure":{"code":"X","layer":"","message":"","executed":"","retryable":false}}`)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ledger.Decode(text)
		if err != nil {
			return
		}
		again, err := ledger.Encode(e)
		if err != nil || again != text {
			t.Fatalf("%q was read, and written as %q, %v", text, again, err)
		}
	})
}

func claims() *rapid.Generator[[]ledger.Claim] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ledger.Claim {
		return ledger.Claim{Key: text().Draw(t, "key"), From: text().Draw(t, "from"), To: text().Draw(t, "to")}
	}), 0, 2)
}

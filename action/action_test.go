package action_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func ExampleCost() {
	c := action.Cost{Tokens: 500, Duration: 1500 * time.Millisecond, Money: 2_500_000, Currency: "EUR"}
	fmt.Println(c)
	_, err := c.Add(action.Cost{Money: 1, Currency: "USD"})
	fmt.Println(err)
	// Output:
	// 500 tokens, 1.5s, EUR 2.50
	// currencies differ: EUR and USD
}

func TestCheckName(t *testing.T) {
	for _, s := range []string{"a", "confirm-order", "shopping/playwright", "A_b.c/d-9", "_x", strings.Repeat("n", action.MaxName)} {
		require.NoError(t, action.CheckName(s), s)
	}
	for _, s := range []string{"", " a", "a b", "-a", ".", "a~b", "a:b", "ä", "a\n", "\u202eab", strings.Repeat("n", action.MaxName+1)} {
		require.Error(t, action.CheckName(s), "%q", s)
	}
}

func TestSkeletonFindsLookAlikes(t *testing.T) {
	for _, p := range [][2]string{{"pay-1", "pay-l"}, {"pay-1", "pay_I"}, {"modern", "rnodern"}, {"send0", "sendO"}, {"sendEmail", "send-email"},
		{"getItem", "getitem"}, {"LIST", "list"}, {"delIete", "deliete"}, {"PAY-L", "pay-1"}, {"MODERN", "rnodern"}, {"review", "revievv"}} {
		require.Equal(t, action.Skeleton(p[0]), action.Skeleton(p[1]), "%v", p)
	}
	require.NotEqual(t, action.Skeleton("charge"), action.Skeleton("refund"))
}

// TestI07_NoCostIsNegativeOrOverflows: sums stay within what every store counts exactly, or are refused.
func TestI07_NoCostIsNegativeOrOverflows(t *testing.T) {
	amount := rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, action.MaxAmount))
	rapid.Check(t, func(t *rapid.T) {
		c := action.Cost{Tokens: amount.Draw(t, "a"), Bytes: amount.Draw(t, "b")}
		d := action.Cost{Tokens: amount.Draw(t, "c"), Bytes: amount.Draw(t, "d")}
		sum, err := c.Add(d)
		fine := c.Check() == nil && d.Check() == nil && c.Tokens <= action.MaxAmount-d.Tokens && c.Bytes <= action.MaxAmount-d.Bytes
		require.Equal(t, fine, err == nil)
		if err == nil {
			require.Equal(t, action.Cost{Tokens: c.Tokens + d.Tokens, Bytes: c.Bytes + d.Bytes}, sum)
		} else {
			require.Equal(t, c, sum, "a refused sum changes nothing")
		}
	})
}

func TestLimitKeepsAbsentAndZeroApart(t *testing.T) {
	for _, l := range []action.Limit{{}, {Tokens: action.Max(0)}, {Money: action.Max(5), Currency: "EUR"}} {
		text, err := json.Marshal(l)
		require.NoError(t, err)
		var back action.Limit
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, l, back, "%s", text)
	}
	_, unlimited := action.Limit{}.Tokens.Get()
	require.False(t, unlimited)
	require.Error(t, action.Limit{Tokens: action.Max(-1)}.Check())
	require.Error(t, action.Limit{Money: action.Max(1)}.Check())
}

// TestI12_EveryCodeIsDescribedOnce: the table is complete and consistent.
func TestI12_EveryCodeIsDescribedOnce(t *testing.T) {
	seen := map[action.Code]bool{}
	gate := 0
	for _, i := range action.Infos() {
		require.False(t, seen[i.Code], i.Code)
		seen[i.Code] = true
		require.GreaterOrEqual(t, i.Gate, gate, "%s is out of order", i.Code)
		gate = i.Gate
		require.NotEmpty(t, i.Tells)
		require.Equal(t, i, i.Code.Info())
		require.Equal(t, i.Code == action.OK, i.Satisfies, "only Ok satisfies: %s", i.Code)
		if i.Executed == action.No {
			require.Equal(t, action.LearnsNothing, i.Learns, i.Code)
		}
	}
	require.Equal(t, action.No, action.Code("NEW").Info().Executed)
}

func TestFailureTravels(t *testing.T) {
	cause := errors.New("pool exhausted")
	f := action.Fail(action.Denied, "agent %q may not", "x").With(action.DetailRule, "grant").With(action.DetailReason, "because").Because(cause)
	err := fmt.Errorf("call: %w", f)
	require.Equal(t, f, action.FailureOf(err))
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, err, &action.Failure{Code: action.Denied})
	require.NotErrorIs(t, err, &action.Failure{Code: action.NotLegal})
	require.Equal(t, `DENIED: agent "x" may not (because); rule: grant; cause: pool exhausted`, f.Explain())
	seen := f.ForPlanner()
	require.Equal(t, map[string]string{action.DetailReason: "because"}, seen.Details, "a rule is not a planner's business")
	require.NotErrorIs(t, seen, cause)
	require.Nil(t, action.FailureOf(cause))
}

func TestUnknownIsRecognisedThroughWrapping(t *testing.T) {
	require.True(t, action.IsUnknown(fmt.Errorf("send: %w", action.Unknown(errors.New("timeout")))))
	require.True(t, action.IsUnknown(action.Unknown(nil)))
	require.False(t, action.IsUnknown(errors.New("timeout")))
}

func TestInputKeepsDigits(t *testing.T) {
	in := action.Input{Document: action.NewDocument(`{"id":9007199254740993}`, nil)}
	var v map[string]any
	require.NoError(t, in.Decode(&v))
	require.Equal(t, json.Number("9007199254740993"), v["id"])
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"charge", "charge", 0}, {"chrage", "charge", 1}, {"chage", "charge", 1}, {"kitten", "sitting", 3}, {"größe", "grösse", 2}} {
		require.Equal(t, tt.want, action.Distance(tt.a, tt.b), "%s %s", tt.a, tt.b)
		require.Equal(t, tt.want, action.Distance(tt.b, tt.a), "%s %s", tt.b, tt.a)
	}
}

func TestMixedScripts(t *testing.T) {
	for name, want := range map[string][2]string{
		"amount_1": {}, "сумма": {}, "": {}, "42": {}, "müller": {}, "東京タワー": {}, "pаy": {"Latin", "Cyrillic"}, "αx": {"Greek", "Latin"}, "xｙ": {"Latin", "Unusual"},
	} {
		a, b := action.MixedScripts(name)
		require.Equal(t, want, [2]string{a, b}, "%q", name)
	}
}

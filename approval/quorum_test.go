package approval_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
)

// The vote machine beside a model that keeps one line per person: a quorum is reached by different people only, whatever
// the order of consents, withdrawals and new requests.
func TestI06_VotesAreOfDifferentPeople(t *testing.T) {
	people := []string{"ann", "Ann", "a.n.n", "ann@a", "ann@b", "bob", "b0b", "cleo"}
	rapid.Check(t, func(t *rapid.T) {
		q := &approval.Quorum{N: rapid.IntRange(1, 4).Draw(t, "quorum")}
		votes, request, consented := approval.Votes{Request: "r0"}, 0, []string{}
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			seq := votes.Seq
			who := rapid.SampledFrom(people).Draw(t, "who")
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				next, err := votes.Withdraw(who)
				require.Equal(t, slices.Contains(consented, who), err == nil, "only one's own")
				consented = slices.DeleteFunc(consented, func(s string) bool { return s == who })
				votes = next
			case 1:
				request++
				consented = nil
				votes = votes.For(fmt.Sprint("r", request))
			default:
				same := slices.ContainsFunc(consented, func(s string) bool { return action.SameIdentity(s, who) })
				before := votes
				next, err := votes.Consent(approval.Vote{Identity: who, At: int64(i)})
				require.Equal(t, same, err != nil)
				if err == nil {
					consented = append(consented, who)
				} else {
					require.ErrorIs(t, err, approval.ErrVoted)
				}
				require.Len(t, before.Yes, len(votes.Yes), "the votes before are untouched")
				votes = next
			}
			require.GreaterOrEqual(t, votes.Seq, seq, "a condition on the number is a condition on these votes")
			if len(votes.Yes) > 0 && votes.Seq == seq && len(consented) > 0 {
				require.Equal(t, consented[len(consented)-1], votes.Yes[len(votes.Yes)-1].Identity)
			}
			require.Len(t, votes.Yes, len(consented))
			require.Equal(t, len(consented) >= q.N, votes.Reached(q))
			for i, a := range votes.Yes {
				for _, b := range votes.Yes[:i] {
					require.False(t, action.SameIdentity(a.Identity, b.Identity))
				}
			}
			text, err := votes.Encode()
			require.NoError(t, err)
			again, err := approval.DecodeVotes(text)
			require.NoError(t, err)
			require.Equal(t, len(votes.Yes), len(again.Yes))
		}
	})
}

func TestCould(t *testing.T) {
	for _, c := range []struct {
		reason        string
		approvers, of []string
		n             int
		open          bool
	}{
		{"the approvers, without those who asked", []string{"ann", "bob", "mallory"}, nil, 2, false},
		{"names that read alike are one person", []string{"bob", "b0b", "Bob"}, nil, 1, false},
		{"a name is that name in every domain", []string{"bob", "bob@a", "bob@b"}, nil, 2, false},
		{"anybody", []string{"*"}, nil, 0, true},
		{"a role", []string{"ann", "role:finance"}, nil, 0, true},
		{"anybody, of whom two count", []string{"*"}, []string{"ann", "bob"}, 2, false},
		{"two, whoever of them is in the role", []string{"ann", "bob"}, []string{"role:finance"}, 2, false},
		{"two lists: who is on both", []string{"ann", "bob"}, []string{"bob", "cleo"}, 1, false},
		{"two open lists", []string{"*"}, []string{"role:finance"}, 0, true},
	} {
		n, open := approval.Could(c.approvers, c.of, "mallory", "bot")
		assert.Equal(t, c.open, open, c.reason)
		assert.Equal(t, c.n, n, c.reason)
	}
}

func TestQuorumCheck(t *testing.T) {
	for _, c := range []struct {
		reason string
		q      *approval.Quorum
		ok     bool
	}{
		{"one approver", nil, true},
		{"two", &approval.Quorum{N: 2}, true},
		{"none", &approval.Quorum{}, false},
		{"more than anybody should need", &approval.Quorum{N: approval.MaxQuorum + 1}, false},
		{"two of a role", &approval.Quorum{N: 2, Of: []string{"role:finance"}}, true},
		{"two of one person under two names", &approval.Quorum{N: 2, Of: []string{"bob", "b0b"}}, false},
		{"a role without a name", &approval.Quorum{N: 1, Of: []string{"role:"}}, false},
		{"a role as nobody can have it", &approval.Quorum{N: 1, Of: []string{"Role:finance"}}, false},
		{"no plain name", &approval.Quorum{N: 1, Of: []string{"b\u200bob"}}, false},
	} {
		assert.Equal(t, c.ok, c.q.Check() == nil, "%s: %v", c.reason, c.q.Check())
	}
	assert.Equal(t, "2 of role:finance, ann", (&approval.Quorum{N: 2, Of: []string{"role:finance", "ann"}}).String())
}

func TestI06_RolesDecide(t *testing.T) {
	ann := approval.Person{Name: "ann", Roles: []string{"finance"}}
	of := func(list ...string) approval.Request {
		return approval.Request{Agent: "bot", Quorum: &approval.Quorum{N: 2, Of: list}}
	}
	for _, c := range []struct {
		reason    string
		r         approval.Request
		approvers []string
		who       approval.Person
		want      error
	}{
		{"in the role", approval.Request{}, []string{"role:finance"}, ann, nil},
		{"in another role", approval.Request{}, []string{"role:legal"}, ann, approval.ErrNotApprover},
		{"a role is no name", approval.Request{}, []string{"finance"}, ann, approval.ErrNotApprover},
		{"a name is no role", approval.Request{}, []string{"role:ann"}, ann, approval.ErrNotApprover},
		{"an approver whom the action counts", of("role:finance"), []string{"*"}, ann, nil},
		{"an approver whom the action does not count", of("role:legal", "bob"), []string{"*"}, ann, approval.ErrNotApprover},
		{"counted by the action, and no approver of the task", of("ann"), []string{"bob"}, ann, approval.ErrNotApprover},
		{"the requester, whatever the role", approval.Request{Requester: "Ann"}, []string{"role:finance"}, ann, approval.ErrSelf},
	} {
		assert.ErrorIs(t, approval.MayDecide(c.r, c.approvers, c.who), c.want, c.reason)
	}
}

func TestFields(t *testing.T) {
	in := json.RawMessage(`{"":{"a":1},"a":2,"card":{"number":"4111","holder":"bo"},"empty":{},"list":[{"sku":"x\u202Ey"},{"sku":"z"}],"n":9007199254740993,"o.k":true}`)
	all, err := approval.Look{Secrets: []string{"card.number", "list.1"}}.Fields(in, nil)
	require.NoError(t, err)
	assert.Zero(t, all.More)
	var got []string
	for _, f := range all.Fields {
		got = append(got, fmt.Sprintf("%s=%s", f.Path, f.Value))
		assert.Equal(t, f.Value == "(secret)", f.Secret)
	}
	assert.Equal(t, []string{
		`\e.a=1`, "a=2", `card.holder="bo"`, "card.number=(secret)", "empty={}", `list.0.sku="x\u{202E}y"`, "list.1=(secret)", "n=9007199254740993", `o\.k=true`,
	}, got)
	long, err := approval.Look{}.Fields(json.RawMessage(`{"t":"`+strings.Repeat("é", 400)+`"}`), nil)
	require.NoError(t, err)
	assert.Zero(t, long.More)
	assert.LessOrEqual(t, len(long.Fields[0].Value), approval.MaxValue)
	assert.Equal(t, 802, long.Fields[0].Size)
	var wide []string
	for i := range 100 {
		wide = append(wide, fmt.Sprintf(`"f%02d":%d`, i, i))
	}
	some, err := approval.Look{}.Fields(json.RawMessage("{"+strings.Join(wide, ",")+"}"), nil)
	require.NoError(t, err)
	assert.Len(t, some.Fields, approval.MaxFields)
	assert.Equal(t, 60, some.More)
	_, err = approval.Look{}.Fields(json.RawMessage(`{} {}`), nil)
	assert.Error(t, err)
}

func TestDifferences(t *testing.T) {
	was := json.RawMessage(`{"amount":10,"card":"1","gone":true,"items":["a","b"],"same":1}`)
	now := json.RawMessage(`{"amount":10000,"card":"2","items":["a","c","d"],"new":null,"same":1}`)
	got, more, err := approval.Look{Secrets: []string{"card"}}.Differences(was, now)
	require.NoError(t, err)
	assert.Zero(t, more)
	assert.Equal(t, []approval.Difference{
		{Path: "amount", Was: "10", Now: "10000"}, {Path: "card", Was: "(secret)", Now: "(secret)"}, {Path: "gone", Was: "true"},
		{Path: "items.1", Was: `"b"`, Now: `"c"`}, {Path: "items.2", Now: `"d"`}, {Path: "new", Now: "null"},
	}, got)
}

// What is hidden in one input must not be shown by what took its place in the other.
func TestDifferences_SecretsBelow(t *testing.T) {
	got, _, err := approval.Look{Secrets: []string{"card.pin", "l.*.pin"}}.Differences(
		json.RawMessage(`{"card":{"pin":"1"},"l":[{"pin":2}]}`), json.RawMessage(`{"card":"none","l":[{"pin":3},{"pin":4}]}`))
	require.NoError(t, err)
	assert.Equal(t, []approval.Difference{
		{Path: "card", Was: "(secret)", Now: "(secret)"}, {Path: "l.0.pin", Was: "(secret)", Now: "(secret)"}, {Path: "l.1", Now: "(secret)"},
	}, got)
}

// A long name above very many values is spelt where it is shown, not once for each of them.
func TestFields_LongNamesAboveManyValues(t *testing.T) {
	doc := json.RawMessage(`{"` + strings.Repeat("n", 400_000) + `":[` + strings.Repeat("0,", 200_000) + `0]}`)
	all, err := approval.Look{Secrets: []string{"x.*"}}.Fields(doc, nil)
	require.NoError(t, err)
	assert.Len(t, all.Fields, approval.MaxFields)
	assert.Equal(t, 200_001-approval.MaxFields, all.More)
	assert.LessOrEqual(t, len(all.Fields[0].Path), approval.MaxValue)
	require.NoError(t, approval.DifferOnly(doc, doc, nil))
}

func TestDifferOnly(t *testing.T) {
	for _, c := range []struct {
		reason, a, b string
		paths        []string
		ok           bool
	}{
		{"the same", `{"a":1}`, `{"a":1}`, nil, true},
		{"in a named field", `{"a":1,"b":1}`, `{"a":2,"b":1}`, []string{"a"}, true},
		{"in another as well", `{"a":1,"b":1}`, `{"a":2,"b":2}`, []string{"a"}, false},
		{"below a named field", `{"a":{"x":1}}`, `{"a":{"x":2,"y":3}}`, []string{"a"}, true},
		{"above it", `{"a":{"x":1}}`, `{"a":5}`, []string{"a.x"}, false},
		{"in any element", `{"l":[{"x":1,"y":1}]}`, `{"l":[{"x":2,"y":1}]}`, []string{"l.*.x"}, true},
		{"in an element's other field", `{"l":[{"x":1,"y":1}]}`, `{"l":[{"x":1,"y":2}]}`, []string{"l.*.x"}, false},
		{"a field whose name begins alike", `{"ab":1}`, `{"ab":2}`, []string{"a"}, false},
		{"a dot in a name is no path", `{"a.b":1}`, `{"a.b":2}`, []string{"a"}, false},
		{"a star in a name is no star", `{"l":{"*":1,"x":1}}`, `{"l":{"*":1,"x":2}}`, []string{`l.\*`}, false},
		{"a list and an object that looks like it", `{"l":["x"]}`, `{"l":{"0":"x"}}`, nil, false},
		{"nameless members do not pass for others", `{"":{"a":1},"a":2}`, `{"":{"a":2},"a":1}`, nil, false},
		{"a name with a dot", `{"a.b":1}`, `{"a.b":2}`, []string{`a\.b`}, true},
		{"a member that is not there, below a named field", `{"a":{}}`, `{"a":{"x":{"y":1}}}`, []string{"a.x"}, true},
		{"what holds it is not there", `{}`, `{"a":{"x":1}}`, []string{"a.x"}, false},
		{"null and nothing", `{"a":null}`, `{}`, nil, false},
		{"a digit beyond a float", `{"n":9007199254740993}`, `{"n":9007199254740992}`, nil, false},
	} {
		err := approval.DifferOnly(json.RawMessage(c.a), json.RawMessage(c.b), c.paths)
		assert.Equal(t, c.ok, err == nil, "%s: %v", c.reason, err)
	}
}

func FuzzDecodeVotes(f *testing.F) {
	f.Add(`{"request":"a","seq":2,"yes":[{"identity":"ann","roles":["finance"],"at":1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := approval.DecodeVotes(text)
		if err != nil {
			return
		}
		again, err := v.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := approval.DecodeVotes(again); err != nil {
			t.Fatal(err)
		}
	})
}

func ExampleVotes() {
	two := &approval.Quorum{N: 2}
	votes, _ := approval.Votes{Request: "a1"}.Consent(approval.Vote{Identity: "ann"})
	_, err := votes.Consent(approval.Vote{Identity: "Ann@corp"})
	fmt.Println(votes.Reached(two), err)
	votes, _ = votes.Consent(approval.Vote{Identity: "bob"})
	fmt.Println(votes.Reached(two))
	// Output:
	// false nobody consents twice: "Ann@corp" is, or reads like, "ann", who has
	// true
}

// anyJSON draws small trees that often resemble each other.
func anyJSON(depth int) *rapid.Generator[any] {
	scalar := rapid.SampledFrom([]any{nil, true, "x", "", "0", 1, 1.5})
	if depth == 0 {
		return scalar
	}
	name := rapid.SampledFrom([]string{"", "a", "a.b", "*", "0", `\`})
	return rapid.OneOf(scalar,
		rapid.Map(rapid.MapOfN(name, anyJSON(depth-1), 0, 3), func(m map[string]any) any { return m }),
		rapid.Map(rapid.SliceOfN(anyJSON(depth-1), 0, 3), func(l []any) any { return l }))
}

// Two inputs are told apart exactly where their texts differ, and a path that is shown covers what it names.
func TestDifferOnly_IsEquality(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, err := json.Marshal(anyJSON(3).Draw(t, "a"))
		require.NoError(t, err)
		b, err := json.Marshal(anyJSON(3).Draw(t, "b"))
		require.NoError(t, err)
		require.Equal(t, string(a) == string(b), approval.DifferOnly(a, b, nil) == nil, "%s %s", a, b)
		require.NoError(t, approval.DifferOnly(a, b, []string{""}), "the whole")
		all, more, err := approval.Look{}.Differences(a, b)
		require.NoError(t, err)
		require.Equal(t, string(a) == string(b), len(all)+more == 0)
		var paths []string
		for _, d := range all {
			if strings.Contains(d.Path, `\e`) {
				return // a name that is empty is written in its own way
			}
			paths = append(paths, d.Path)
		}
		if more == 0 {
			require.NoError(t, approval.DifferOnly(a, b, paths))
		}
	})
}

package statespace_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/statespace"
)

func TestI03_AnotherValueUnlocksNothing(t *testing.T) {
	g := compile(t, node("confirm-order"), node("process-order", on("confirm-order", "orderId")))
	s := g.NewSet()
	facts, err := g.Facts("confirm-order", tree(t, `{"orderId":"ORD-1","note":"x"}`), nil)
	require.NoError(t, err)
	require.Equal(t, []string{`confirm-order@orderId="ORD-1"`}, facts.Keys)
	s.Put(facts.Keys[0], 0)
	for _, c := range []struct{ name, why, input, want string }{
		{"the one", "it was confirmed", `{"orderId":"ORD-1"}`, ``},
		{"another", "confirming one order unlocks no other", `{"orderId":"ORD-2"}`, `needs confirm-order on orderId="ORD-2"`},
		{"none", "an absent value equals nothing", `{}`, `needs confirm-order on orderId; the input has no orderId`},
		{"null", "null is as good as absent", `{"orderId":null}`, `needs confirm-order on orderId; the input has no orderId`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, unmet, err := s.Check("process-order", tree(t, c.input), 0)
			require.NoError(t, err)
			got := ""
			for _, u := range unmet {
				got += u.String()
			}
			require.Equal(t, c.want, got, c.why)
		})
	}
}

func TestI03_UnknownActionsAreNeverLegal(t *testing.T) {
	g := compile(t, node("a"))
	s := g.NewSet()
	require.False(t, s.Legal("b"))
	require.False(t, s.Fresh("b", 0))
	require.Nil(t, s.Allowed("b", 0))
	_, err := g.Required("b", nil)
	require.ErrorIs(t, err, statespace.ErrUnknown, "no requirements must not pass for none needed")
	_, _, err = s.Check("b", nil, 0)
	require.ErrorIs(t, err, statespace.ErrUnknown)
	_, err = g.Explain("b", s, 0)
	require.ErrorIs(t, err, statespace.ErrUnknown)
	_, err = g.Path("b", s, 0, nil)
	require.ErrorIs(t, err, statespace.ErrUnknown)
}

func TestSet_IgnoresFactsNobodyNeeds(t *testing.T) {
	g := compile(t, node("p"), node("d", on("p", "x")))
	s := g.NewSet()
	for _, key := range []string{"", "p", "p@", "p@x", "p@y=1", "p@x=", "p@x=1,y=2", "q@x=1", `p@"x`, "p@x#"} {
		if key == "p@x#" {
			continue // a hash without digits is nobody's business: no requirement ever equals it
		}
		require.False(t, s.Put(key, 0), key)
		require.False(t, s.Legal("d"), key)
		s.Remove(key)
	}
	require.False(t, s.PutBulk("p", nil, 0))
}

func TestSet_Freshness(t *testing.T) {
	n := on("p", "x")
	n.Within = time.Second
	g := compile(t, node("p"), node("d", n))
	s := g.NewSet()
	s.Put("p@x=1", 1_000_000)
	s.Put("p@x=2", 1_500_000)
	for _, c := range []struct {
		now    int64
		fresh  bool
		tuples [][]string
		why    string
	}{
		{1_000_000, true, [][]string{{"1"}, {"2"}}, "at once"},
		{2_000_000, true, [][]string{{"1"}, {"2"}}, "the duration belongs to it"},
		{2_000_001, true, [][]string{{"2"}}, "one value is stale"},
		{2_500_001, false, [][]string{}, "all are"},
	} {
		require.Equal(t, c.fresh, s.Fresh("d", c.now), c.why)
		require.Equal(t, c.tuples, s.Allowed("d", c.now)[0].Tuples, c.why)
		require.True(t, s.Legal("d"), "age does not count here")
	}
	unmet, err := g.Explain("d", s, 3_000_000)
	require.NoError(t, err)
	require.Equal(t, "needs p on x within 1s; it is too long ago", unmet[0].String())
	_, unmet, err = s.Check("d", tree(t, `{"x":2}`), 3_000_000)
	require.NoError(t, err)
	require.Equal(t, "needs p on x=2 within 1s; it is too long ago", unmet[0].String())
}

func TestSet_AllowedOfJointBinds(t *testing.T) {
	g := compile(t, node("list"), node("read", output("list", "file", "e.*.path", "bytes", "e.*.size"), on("list")))
	s := g.NewSet()
	facts, err := g.Facts("list", nil, tree(t, `{"e":[{"path":"b,c","size":2},{"path":"a","size":10}]}`))
	require.NoError(t, err)
	for _, key := range facts.Keys {
		s.Put(key, 0)
	}
	require.Equal(t, []statespace.Allowed{{Need: 0, Action: "list", Fields: []string{"file", "bytes"}, Count: 2,
		Tuples: [][]string{{`"a"`, "10"}, {`"b,c"`, "2"}}}}, s.Allowed("read", 0))
}

func TestSet_NarrowsUpToMaxNarrow(t *testing.T) {
	g := compile(t, node("p"), node("d", on("p", "x")))
	s := g.NewSet()
	for i := range statespace.MaxNarrow {
		s.Put(fmt.Sprintf("p@x=%d", i), 0)
	}
	require.Len(t, s.Allowed("d", 0)[0].Tuples, statespace.MaxNarrow)
	s.Put("p@x=-1", 0)
	require.Nil(t, s.Allowed("d", 0)[0].Tuples)
	require.Equal(t, statespace.MaxNarrow+1, s.Allowed("d", 0)[0].Count)
}

// A token and a cell may hold the same value; what is allowed is their union, and Check agrees with it.
func TestSet_TokensAndCellsEqualNaiveModel(t *testing.T) {
	n := on("p", "x")
	n.Within = 3 * time.Microsecond
	g := compile(t, node("p"), node("d", n))
	rapid.Check(t, func(t *rapid.T) {
		s := g.NewSet()
		tokens, cell := map[string]int64{}, map[string]int64{}
		for now := range int64(rapid.IntRange(1, 12).Draw(t, "steps")) {
			v := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value")
			moved, before := s.Moved("d"), fmt.Sprint(s.Allowed("d", now), s.Fresh("d", now))
			switch rapid.IntRange(0, 7).Draw(t, "op") {
			case 0:
				s.Put("p@x="+v, now)
				tokens[v] = now
			case 1:
				s.Remove("p@x=" + v)
				delete(tokens, v)
			case 2:
				s.PutBulk("p@x", []string{v}, now)
				cell[v] = now
			case 3:
				s.RemoveBulk("p@x", v)
				delete(cell, v)
			case 4:
				s.RemoveBulk("p@x")
				clear(cell)
			case 5:
				s.Use("p@x=" + v)
				delete(tokens, v)
				delete(cell, v)
			case 6:
				cell = map[string]int64{v: now}
				s.PutCell("p@x", statespace.Cell(cell))
			case 7:
				s.Clear()
				clear(tokens)
				clear(cell)
			}
			if fmt.Sprint(s.Allowed("d", now), s.Fresh("d", now)) != before {
				require.NotEqual(t, moved, s.Moved("d"))
			}
			require.Equal(t, len(tokens)+len(cell) > 0, s.Legal("d"))
			want := 0
			for _, v := range []string{"1", "2"} {
				at, ok := tokens[v]
				fresh := ok && now-at <= 3
				at, ok = cell[v]
				fresh = fresh || ok && now-at <= 3
				_, unmet, err := s.Check("d", tree(t, `{"x":`+v+`}`), now)
				require.NoError(t, err)
				require.Equal(t, fresh, len(unmet) == 0)
				if fresh {
					want++
				}
			}
			require.Equal(t, want, s.Allowed("d", now)[0].Count)
			require.Equal(t, want > 0, s.Fresh("d", now))
		}
	})
}

func TestExplain_Reasons(t *testing.T) {
	used := on("confirm", "id")
	used.Consumed = true
	as := statespace.Need{Action: "look-up", Bind: []statespace.Bind{{Mine: "id", Theirs: "orderId"}, {Mine: "sum", Theirs: "total", Output: true}}}
	g := compile(t, node("confirm"), node("look-up"), node("charge", used, as))
	s := g.NewSet()
	s.Put("confirm@id=1", 0)
	s.Remove("confirm@id=1")
	unmet, err := g.Explain("charge", s, 0)
	require.NoError(t, err)
	require.Equal(t, statespace.Consumed, unmet[0].Reason)
	require.Equal(t, "needs confirm on id; it was used up", unmet[0].String())
	require.Equal(t, "needs look-up on id (its orderId), sum (its output total)", unmet[1].String())
	_, unmet, err = s.Check("charge", tree(t, `{"id":1,"sum":5}`), 0)
	require.NoError(t, err)
	require.Equal(t, "needs confirm on id=1; it was used up", unmet[0].String())
	require.Equal(t, "needs look-up on id=1 (its orderId), sum=5 (its output total)", unmet[1].String())
	_, unmet, err = s.Check("charge", tree(t, `{"id":2,"sum":5}`), 0)
	require.NoError(t, err)
	require.Equal(t, "needs confirm on id=2", unmet[0].String(), "another value was used up, not this one")
}

func TestMovedTellsActionsApart(t *testing.T) {
	recent := statespace.Need{Action: "q", Within: time.Second}
	g := compile(t, node("p"), node("q"), node("of-p", on("p", "x")), node("of-q", recent), node("free"))
	s := g.NewSet()
	p, q, free := s.Moved("of-p"), s.Moved("of-q"), s.Moved("free")
	s.Put("p@x=1", 1)
	require.NotEqual(t, p, s.Moved("of-p"))
	require.Equal(t, []uint64{q, free}, []uint64{s.Moved("of-q"), s.Moved("free")}, "they rest on nothing that changed")
	s.Clear()
	require.NotEqual(t, free, s.Moved("free"))
	require.Equal(t, []bool{false, true, false}, []bool{g.Timed("of-p"), g.Timed("of-q"), g.Timed("unknown")})
}

package risk

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func standard(t require.TestingT) *Model {
	m, err := New(Config{})
	require.NoError(t, err)
	return m
}

func TestEvidenceMovesRelatives(t *testing.T) {
	m := standard(t)
	b := m.Prior()
	fails := Declaration{Name: "write-a", Risk: 2, Tags: []string{"write"}}
	for range 6 {
		b, _, _ = m.Update(b, fails, Observation{Err: true})
	}
	fresh := m.Risk(m.Prior(), Declaration{Name: "x", Risk: 2}).P
	other := m.Risk(b, Declaration{Name: "read", Risk: 2})
	kin := m.Risk(b, Declaration{Name: "write-b", Risk: 2, Tags: []string{"write"}})
	assert.Greater(t, other.P, fresh+.02, "the agent is doing badly")
	assert.Greater(t, kin.P, other.P+.005, "and its writes in particular")
	assert.Greater(t, m.Risk(b, fails).P, kin.P)
	assert.Zero(t, kin.N)
	assert.Equal(t, []string{"write"}, b.Tags())
	assert.Equal(t, []string{"write-a"}, b.Names())
}

func TestDeclarationsTurnOutToMeanMoreOrLess(t *testing.T) {
	m := standard(t)
	tr, err := m.Track(m.Prior())
	require.NoError(t, err)
	for i := range 400 { // whatever the level, one in seven fails
		d := Declaration{Name: fmt.Sprintf("a%d", i%20), Risk: 1 + i%5}
		_, err := tr.Observe(d, Observation{Err: i%7 == 0})
		require.NoError(t, err)
	}
	low := tr.Risk(Declaration{Name: "new", Risk: 1}).P
	high := tr.Risk(Declaration{Name: "new", Risk: 5}).P
	assert.Greater(t, low, .03)
	assert.Less(t, high, .35)
}

func TestExplainAddsUp(t *testing.T) {
	m := standard(t)
	rapid.Check(t, func(t *rapid.T) {
		w := newTown(rapid.Uint64().Draw(t, "seed"), 4, 3)
		tr, _ := m.Track(m.Prior())
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			d, o := w.next()
			_, err := tr.Observe(d, o)
			require.NoError(t, err)
		}
		b := tr.Belief()
		for _, d := range w.acts {
			why, err := m.Explain(b, d)
			require.NoError(t, err)
			sum := why.Declared
			for _, p := range why.Parts() {
				sum += p.Mean
				require.True(t, p.SD >= 0 && !math.IsNaN(p.SD))
			}
			require.InDelta(t, why.Estimate.Mean, sum, 1e-9)
			require.InDelta(t, logit(why.Estimate.P), sum+why.Uncertainty+why.Held, 1e-9)
			require.Equal(t, m.Risk(b, d), why.Estimate)
			require.Len(t, why.Tags, len(d.Tags))
		}
	})
	_, err := m.Explain(m.Prior(), Declaration{Name: "a", Risk: 7})
	require.ErrorContains(t, err, "declared risk is 7")
}

// That an agent got worse is told of several actions; where one alone fails, of that one.
func TestWhoChanged(t *testing.T) {
	m := standard(t)
	for name, failing := range map[string][]string{"one fails": {"a"}, "two fail": {"a", "b"}} {
		b := m.Prior()
		see := func(action string, err bool) {
			var e error
			b, _, e = m.Update(b, Declaration{Name: action, Risk: 2}, Observation{Err: err})
			require.NoError(t, e)
		}
		for range 30 {
			for _, a := range []string{"a", "b", "c"} {
				see(a, false)
			}
		}
		require.Empty(t, b.Changing(GotWorse, 10), name)
		for range 6 {
			for _, a := range failing {
				see(a, true)
			}
			see("c", false)
		}
		event, at := b.AgentChange()
		require.Equal(t, GotWorse, event, name)
		require.Greater(t, at, int64(90), name)
		require.Equal(t, failing, b.Changing(event, 10), name)
		why, err := m.Explain(b, Declaration{Name: "c", Risk: 2})
		require.NoError(t, err)
		require.Equal(t, failing, why.Changing, name)
		require.Equal(t, len(failing) > 1, strings.Contains(why.String(), "the agent changed for the worse"), name)
	}
}

// A tracker, the immutable update and a belief decoded half-way go on with the same bytes.
func TestTrackerUpdateAndDecodeAgreeToTheBit(t *testing.T) {
	m := standard(t)
	w := newTown(3, 9, 3)
	tr, err := m.Track(m.Prior())
	require.NoError(t, err)
	b := m.Prior()
	var before Declaration
	for i := range 600 {
		d, o := w.next()
		switch i % 5 { // runs of one action, in which what was seen last is not looked at again, and what interrupts them
		case 1, 2:
			d = before
		case 3:
			d = before
			d.Risk = 1 + d.Risk%5
		case 4:
			require.Equal(t, m.Risk(b, d), tr.Risk(d), "looking changes nothing")
		}
		before = d
		o.Cost = action.Cost{Tokens: int64(i), Calls: 1}
		in, err := tr.Observe(d, o)
		require.NoError(t, err)
		next, again, err := m.Update(b, d, o)
		require.NoError(t, err)
		require.Equal(t, again, in)
		b = next
		if i%40 != 0 {
			continue
		}
		require.Equal(t, encoded(b), encoded(tr.Belief()), "step %d", i)
		got, err := Decode(b.Shared(), encoded(b))
		require.NoError(t, err)
		require.Equal(t, encoded(b), encoded(got))
		require.Equal(t, b.shared, got.shared)
		on, err := m.Track(b)
		require.NoError(t, err)
		_, err = on.Observe(d, o)
		require.NoError(t, err)
		after := on.End()
		later, err := Decode(after.Shared(), encoded(after))
		require.NoError(t, err)
		for _, x := range []Declaration{d, {Name: d.Name, Risk: 1 + d.Risk%5, Tags: d.Tags}, {Name: d.Name, Risk: d.Risk}} { // what was seen last is what is there
			require.Equal(t, m.Risk(got, x), m.Risk(b, x))
			require.Equal(t, m.Risk(later, x), m.Risk(after, x))
		}
		if i%80 == 0 {
			b = got
			tr, err = m.Track(got)
			require.NoError(t, err)
		}
	}
	require.Greater(t, b.shared.eras[len(b.shared.eras)-1].id, uint64(1), "eras came and went")
}

func encoded(b Belief) map[string][]byte {
	out := map[string][]byte{}
	for _, n := range b.Names() {
		out[n], _ = b.Action(n)
	}
	return out
}

func TestAnUpdateNeverRaisesTheVariance(t *testing.T) {
	m := standard(t)
	rapid.Check(t, func(t *rapid.T) {
		w := newTown(rapid.Uint64().Draw(t, "seed"), 5, 3)
		tr, _ := m.Track(m.Prior())
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			d, o := w.next()
			_, err := tr.Observe(d, o)
			require.NoError(t, err)
		}
		d, _ := w.next()
		if tr.states[d.Name] == nil {
			return
		}
		f := new(frame)
		f.open(m, &tr.shared, tr.states[d.Name], d)
		err := rapid.Bool().Draw(t, "err")
		for i := range m.cfg.Members {
			g, s := predicted(f, i, f.base[i])
			post, _ := m.rule.match(g, err)
			f.correct(i, (post.mean-g.mean)/g.variance, (post.variance-g.variance)/(g.variance*s))
			now, v := predicted(f, i, f.base[i])
			require.LessOrEqual(t, v, s*(1+1e-12))
			require.InDelta(t, post.mean, now.mean, 1e-9)
			require.InDelta(t, post.variance, now.variance, 1e-9)
		}
	})
}

func TestBadTags(t *testing.T) {
	m, err := New(Config{Tags: []string{"read", "write"}})
	require.NoError(t, err)
	var many []string
	for i := range maxTags + 1 {
		many = append(many, fmt.Sprintf("t%d", i))
	}
	for _, c := range []struct {
		name string
		tags []string
		says string
	}{
		{"unknown", []string{"read", "wriet"}, `unknown tag "wriet": name one of read, write`},
		{"twice", []string{"read", "read"}, `tag "read" is named twice`},
		{"empty", []string{""}, "tag: name is empty"},
		{"too many", many, "17 tags, at most 16"},
	} {
		d := Declaration{Name: "a", Risk: 2, Tags: c.tags}
		b, _, err := m.Update(m.Prior(), d, Observation{})
		assert.ErrorContains(t, err, c.says, c.name)
		assert.Equal(t, m.Prior(), b, c.name)
		assert.Equal(t, 1., m.Risk(b, d).P, "%s: what cannot be estimated stops at the gate", c.name)
	}
}

func TestAnAgentHasSoManyTags(t *testing.T) {
	m, err := New(Single())
	require.NoError(t, err)
	tr, _ := m.Track(m.Prior())
	d := Declaration{Name: "a", Risk: 2}
	for i := range maxShared + 8 {
		d.Tags = append(d.Tags, fmt.Sprintf("t%d", i))
		if len(d.Tags) == 16 {
			_, err = tr.Observe(d, Observation{})
			d.Tags = nil
			if err != nil {
				break
			}
		}
	}
	require.NoError(t, err)
	d.Tags = []string{"one-more"}
	_, err = tr.Observe(d, Observation{})
	require.ErrorContains(t, err, "its agent already has 256 tags")
	require.Len(t, tr.Belief().Tags(), maxShared)
}

func TestABeliefOfAnotherConfigurationIsRefused(t *testing.T) {
	m := standard(t)
	other, err := New(Single())
	require.NoError(t, err)
	d := Declaration{Name: "a", Risk: 2}
	b, _, err := m.Update(m.Prior(), d, Observation{})
	require.NoError(t, err)
	_, _, err = other.Update(b, d, Observation{})
	require.ErrorContains(t, err, "3 members and the model 1")
	_, err = other.Track(b)
	require.Error(t, err)
	require.Equal(t, 1., other.Risk(b, d).P)
}

func size(b Belief) int {
	n := len(b.Shared())
	for _, e := range encoded(b) {
		n += len(e)
	}
	return n
}

func TestSizeOfAnAgentWithTenActions(t *testing.T) {
	m := standard(t)
	grown := func(tags int) int {
		b := m.Prior()
		for i := range 300 {
			d := Declaration{Name: fmt.Sprintf("action-%d", i%10), Risk: 1 + i%5}
			for j := range tags {
				d.Tags = append(d.Tags, fmt.Sprintf("kind-%d", j))
			}
			o := Observation{Err: i%9 == 0, Cost: action.Cost{Tokens: 900, Duration: 7, Calls: 1, Bytes: 80, Money: 3, Currency: "EUR"}}
			b, _, _ = m.Update(b, d, o)
		}
		return size(b)
	}
	bare := grown(0)
	assert.LessOrEqual(t, bare, 5<<10)
	for _, tags := range []int{1, 4, 10} {
		assert.LessOrEqual(t, grown(tags), bare+tags<<10, "%d tags", tags)
	}
	t.Logf("%d bytes, %d with one tag, %d with ten", bare, grown(1), grown(10))
}

func TestErasAreFewerThanActions(t *testing.T) {
	m := standard(t)
	tr, _ := m.Track(m.Prior())
	for i := range 6000 {
		name := "busy"
		if i < 200 && i%20 == 0 {
			name = fmt.Sprintf("once-%d", i)
		}
		_, err := tr.Observe(Declaration{Name: name, Risk: 3}, Observation{Err: i%2000 > 1000})
		require.NoError(t, err)
		require.LessOrEqual(t, len(tr.shared.eras), len(tr.states)+1)
	}
	b := tr.Belief()
	for _, n := range b.Names() {
		b = m.Reset(b, n)
		_, err := Decode(b.Shared(), encoded(b))
		require.NoError(t, err)
	}
	require.Len(t, b.shared.eras, 1)
}

func TestATrackerDoesNotAllocate(t *testing.T) {
	m := standard(t)
	tr, _ := m.Track(m.Prior())
	w, i := newTown(4, 20, 3), 0
	observe := func() {
		d := w.acts[i%len(w.acts)]
		_, _ = tr.Observe(d, Observation{Err: i%9 == 0, Cost: action.Cost{Tokens: 5, Calls: 1}})
		_ = tr.Risk(d)
		i++
	}
	for range 2000 {
		observe()
	}
	assert.Zero(t, testing.AllocsPerRun(500, observe))
}

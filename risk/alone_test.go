package risk

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func repeat(t require.TestingT, tr *Tracker, d Declaration, err bool, n int) {
	for range n {
		_, e := tr.Observe(d, Observation{Err: err})
		require.NoError(t, e)
	}
}

func fresh(t require.TestingT, cfg Config) (*Model, *Tracker) {
	m, err := New(cfg)
	require.NoError(t, err)
	tr, err := m.Track(m.Prior())
	require.NoError(t, err)
	return m, tr
}

// Whatever relatives do, the floor of an action is that of its own outcomes and of nothing else, and what a gate compares
// never falls below it.
func TestNoRelativeMovesTheFloorOfAnAction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, tr := fresh(t, Config{})
		_, lone := fresh(t, Config{})
		d := Declaration{Name: "wipe", Risk: rapid.IntRange(1, 5).Draw(t, "declared"), Tags: []string{"x"}}
		for range rapid.IntRange(1, 12).Draw(t, "stretches") {
			err, n := rapid.Bool().Draw(t, "err"), rapid.IntRange(1, 12).Draw(t, "n")
			if rapid.Bool().Draw(t, "own") {
				repeat(t, tr, d, err, n)
				repeat(t, lone, Declaration{Name: "wipe", Risk: d.Risk}, err, n)
			} else {
				other := Declaration{Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), Risk: 1, Tags: []string{"x"}}
				repeat(t, tr, other, err, n)
			}
			e := tr.Risk(d)
			require.Equal(t, lone.Risk(Declaration{Name: "wipe", Risk: d.Risk}).Floor, e.Floor)
			require.GreaterOrEqual(t, e.Effective(d.Risk, 0), e.Floor)
			b := tr.Belief()
			again, err2 := Decode(b.Shared(), encoded(b))
			require.NoError(t, err2)
			require.Equal(t, e, tr.m.Risk(again, d), "the floor survives the encoding")
		}
	})
}

// The floor is evidence: none without outcomes, lowered by own Ok and raised by own Err, and one Err is not enough to stop
// an action that was declared harmless.
func TestTheFloorIsOwnEvidence(t *testing.T) {
	for level := 1; level <= 5; level++ {
		d := Declaration{Name: "a", Risk: level}
		_, tr := fresh(t, Config{})
		assert.Equal(t, 1.0, tr.Risk(d).Floor, "nothing known")
		assert.Zero(t, tr.Risk(d).OwnLo)
		repeat(t, tr, d, true, 1)
		if level <= 3 {
			assert.Less(t, tr.Risk(d).Floor, 4.0, "one Err, declared %d", level)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		_, tr := fresh(t, Config{})
		d := Declaration{Name: "a", Risk: rapid.IntRange(1, 5).Draw(t, "declared")}
		before := 1.
		for _, err := range rapid.SliceOfN(rapid.Bool(), 1, 60).Draw(t, "outcomes") {
			repeat(t, tr, d, err, 1)
			now := tr.Risk(d).Floor
			if err {
				require.GreaterOrEqual(t, now, before, "after an Err")
			} else if tr.Risk(d).N > 1 {
				require.LessOrEqual(t, now, before, "after an Ok")
			}
			before = now
		}
	})
}

// An action that failed is not freed by calls of harmless relatives that no gate stops, failing first so that what is
// known of the agent becomes loose, and then succeeding.
func TestHarmlessRelativesDoNotUngateAnAction(t *testing.T) {
	for _, h := range [][2]int{{0, 2}, {2, 3}, {10, 5}, {0, 20}, {5, 20}, {0, 200}} {
		for _, errs := range []int{0, 20, 60} {
			_, tr := fresh(t, Config{})
			wipe := Declaration{Name: "wipe", Risk: 3}
			repeat(t, tr, wipe, false, h[0])
			repeat(t, tr, wipe, true, h[1])
			made := 0
			for i := range 600 {
				read := Declaration{Name: fmt.Sprintf("read-%d", i%30), Risk: 1 + i%3}
				if tr.Risk(read).Effective(read.Risk, 0) >= 4 {
					continue
				}
				repeat(t, tr, read, made < errs, 1)
				made++
				require.GreaterOrEqual(t, tr.Risk(wipe).Effective(3, 0), 4.0, "%d Ok and %d Err, then %d calls of relatives", h[0], h[1], made)
			}
			own := 0
			for tr.Risk(wipe).Effective(3, 0) >= 4 && own < 400 {
				repeat(t, tr, wipe, false, 1)
				own++
			}
			assert.Less(t, own, 60, "its own Ok free it: %d Ok and %d Err before", h[0], h[1])
		}
	}
}

func TestWhyTellsTheOwnRecord(t *testing.T) {
	m, tr := fresh(t, Config{})
	d := Declaration{Name: "a", Risk: 3}
	w, err := m.Explain(tr.Belief(), d)
	require.NoError(t, err)
	assert.NotContains(t, w.String(), "own record")
	repeat(t, tr, d, true, 20)
	w, err = m.Explain(tr.Belief(), d)
	require.NoError(t, err)
	assert.Contains(t, w.String(), "own record alone: at least 0.8")
}

// What Update refuses has no estimate but the worst: an action that nothing can be learned of would stay harmless for ever.
func TestWhatCannotBeLearnedIsCertainToFail(t *testing.T) {
	m, tr := fresh(t, Config{})
	for i := range maxShared / maxTags {
		d := Declaration{Name: "a", Risk: 1}
		for j := range maxTags {
			d.Tags = append(d.Tags, fmt.Sprintf("t%d", i*maxTags+j))
		}
		repeat(t, tr, d, false, 1)
	}
	b := tr.Belief()
	for _, d := range []Declaration{
		{Name: "a", Risk: 1, Tags: []string{"one-too-many"}},
		{Name: "a", Risk: 1, Tags: []string{"t1", "t1"}},
		{Name: "a", Risk: 9},
		{Name: ""},
	} {
		_, _, want := m.Update(b, d, Observation{})
		require.Error(t, want)
		_, err := m.Explain(b, d)
		assert.Equal(t, want, err)
		assert.Equal(t, 1.0, m.Risk(b, d).P)
		assert.Equal(t, 5.0, m.Risk(b, d).Effective(1, 0))
		assert.Equal(t, unknown, tr.Risk(d))
		assert.Equal(t, Forecast{}, m.Forecast(b, d))
		assert.Equal(t, Forecast{}, tr.Forecast(d))
	}
	other, err := New(Single())
	require.NoError(t, err)
	assert.Equal(t, 1.0, other.Risk(b, Declaration{Name: "a", Risk: 1}).P, "another model's belief")
}

func TestAFleetThatIsFullRefusesToEstimate(t *testing.T) {
	f, err := NewFleet(Config{})
	require.NoError(t, err)
	d := Declaration{Name: "t", Risk: 2}
	for i := range maxShared - 1 {
		require.Less(t, f.Risk("unseen", d).P, 1.0)
		_, err = f.Observe(fmt.Sprintf("a%d", i), d, Observation{Err: i%7 == 0})
		require.NoError(t, err)
	}
	names := len(f.names)
	_, err = f.Observe("late", d, Observation{})
	require.Error(t, err)
	assert.Equal(t, unknown, f.Risk("late", d))
	assert.Len(t, f.names, names, "neither reading nor a refused outcome leaves a name behind")
	assert.Less(t, f.Risk("a1", d).P, 1.0)
}

// Counters stop at their end; what is written with them there can be read.
func TestSaturatedCountersDecode(t *testing.T) {
	m, tr := fresh(t, Config{})
	d := Declaration{Name: "a", Risk: 2}
	repeat(t, tr, d, false, 60)
	for name, set := range map[string]func(*Tracker){
		"runs":  func(t *Tracker) { t.own("a").n = maxCount },
		"both":  func(t *Tracker) { t.own("a").n, t.own("a").errs = maxCount, maxCount },
		"agent": func(t *Tracker) { t.shared.ok, t.shared.err = maxCount, maxCount },
		"era": func(t *Tracker) {
			t.shared.eras[t.shared.current()].id, t.own("a").era = maxCount, maxCount
		},
	} {
		full, err := m.Track(tr.Belief())
		require.NoError(t, err)
		set(full)
		for i := range 3000 {
			repeat(t, full, d, i%40 < 20, 1)
			if i%10 == 0 {
				b := full.Belief()
				_, err := Decode(b.Shared(), encoded(b))
				require.NoError(t, err, "%s, after %d", name, i+1)
			}
		}
	}
	assert.Equal(t, 5, Level(math.NaN()))
}

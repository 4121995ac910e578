package replay

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/risk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func line(agent, run, tool string, ok bool) string {
	return fmt.Sprintf("{\"agent\":%q,\"run\":%q,\"tool\":%q,\"ok\":%t}\n", agent, run, tool, ok)
}

const sample = "../../../../examples/recorded/sample.jsonl"

// What the engine learns of a recording is what the model learns from its outcomes alone, and a call is gated exactly
// where the model's belief before it reaches the threshold.
func TestReplayIsTheModelOverTheRows(t *testing.T) {
	model, err := risk.New(risk.Config{})
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{Declared: rapid.IntRange(1, 5).Draw(rt, "declared"), Threshold: rapid.Float64Range(1, 5).Draw(rt, "threshold")}
		var text strings.Builder
		beliefs := map[string]risk.Belief{}
		want := map[[2]string]*Action{}
		for range rapid.IntRange(1, 10).Draw(rt, "rows") {
			agent, tool := rapid.SampledFrom([]string{"a", "b c"}).Draw(rt, "agent"), rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "tool")
			ok := rapid.Bool().Draw(rt, "ok")
			text.WriteString(line(agent, rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "run"), tool, ok))
			b, seen := beliefs[agent]
			if !seen {
				b = model.Prior()
			}
			d := risk.Declaration{Name: tool, Risk: cfg.Declared}
			k := [2]string{agent, tool}
			if want[k] == nil {
				want[k] = &Action{}
			}
			if model.Risk(b, d).Effective(cfg.Declared, 0) >= cfg.Threshold {
				want[k].Gated++
			}
			want[k].Runs++
			beliefs[agent], _, err = model.Update(b, d, risk.Observation{Err: !ok})
			require.NoError(rt, err)
		}
		got, err := Files(context.Background(), cfg, write(t, text.String()))
		require.NoError(rt, err)
		for _, a := range got.Actions {
			e := model.Risk(beliefs[a.Agent], risk.Declaration{Name: a.Name, Risk: cfg.Declared})
			w := want[[2]string{a.Agent, a.Name}]
			require.Equal(rt, [...]int64{w.Runs, w.Gated, e.N, e.Errs}, [...]int64{a.Runs, a.Gated, a.Runs, a.Err}, "%s %s", a.Agent, a.Name)
			require.InDelta(rt, e.P, a.P, 1e-12)
			require.InDelta(rt, e.Score, a.Level, 1e-12)
		}
		for _, a := range got.Agents {
			require.InDelta(rt, model.Trust(beliefs[a.Name]).Score, a.Trust, 1e-12)
		}
	})
}

func TestReplayOfTheSample(t *testing.T) {
	got, err := Files(context.Background(), Config{}, sample)
	require.NoError(t, err)
	again, err := Files(context.Background(), Config{}, sample)
	require.NoError(t, err)
	assert.Equal(t, got, again, "same input, same bytes")
	require.Equal(t, []string{"order-desk", "stock-keeper"}, []string{got.Agents[0].Name, got.Agents[1].Name})
	charge, quiet := got.Actions[0], got.Actions[2]
	assert.Equal(t, "charge-card", charge.Name)
	assert.Positive(t, charge.Gated, "the provider degrades midway: its later calls wait for a person")
	assert.Less(t, charge.Gated, charge.Err, "and its first failures do not")
	assert.Zero(t, quiet.Gated)
	var rows int64
	for _, a := range got.Actions {
		assert.Equal(t, a.Runs, a.OK+a.Err)
		assert.True(t, a.Lo <= a.P && a.P <= a.Hi, "%+v", a)
		rows += a.Runs
	}
	assert.Equal(t, got.Rows, rows)
}

// The JSON has exactly these members, in this order.
func TestReportsShape(t *testing.T) {
	got, err := Files(context.Background(), Config{}, write(t, line("a", "r", "t", true)))
	require.NoError(t, err)
	raw, err := json.Marshal(got)
	require.NoError(t, err)
	assert.Regexp(t, `^\{"rows":1,"agents":\[\{"name":"a","trust":0\.\d+,"lower":0\.\d+,"upper":0\.\d+,"ok":1,"err":0\}\],`+
		`"actions":\[\{"agent":"a","name":"t","runs":1,"ok":1,"err":0,"declared":2,"level":1\.\d+,"p":0\.\d+,"lo":0\.\d+,"hi":0\.\d+,"gated":0\}\]\}$`, string(raw))
}

func TestSources(t *testing.T) {
	plain, err := os.ReadFile(sample)
	require.NoError(t, err)
	plain = plain[:bytes.LastIndexByte(plain[:2000], '\n')+1] // some rows are enough
	want, err := Files(context.Background(), Config{}, write(t, string(plain)))
	require.NoError(t, err)
	var packed bytes.Buffer
	for _, half := range [][]byte{plain[:100], plain[100:]} { // members written one after the other are one stream
		z := gzip.NewWriter(&packed)
		_, err = z.Write(half)
		require.NoError(t, err)
		require.NoError(t, z.Close())
	}
	for name, text := range map[string]string{
		"gzip": packed.String(), "no last line break": strings.TrimSuffix(string(plain), "\n"), "CRLF": strings.ReplaceAll(string(plain), "\n", "\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Files(context.Background(), Config{}, write(t, text))
			require.NoError(t, err)
			assert.Equal(t, want, got)
		})
		t.Run(name+" from standard input", func(t *testing.T) {
			got, err := Files(context.Background(), Config{Stdin: strings.NewReader(text)}, "-")
			require.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
	t.Run("gzip cut short", func(t *testing.T) {
		_, err := Files(context.Background(), Config{}, write(t, packed.String()[:packed.Len()-9]))
		require.ErrorContains(t, err, "unexpected EOF")
	})
	t.Run("a line without end", func(t *testing.T) {
		_, err := Files(context.Background(), Config{}, write(t, `{"agent":"`+strings.Repeat("a", 2<<20)))
		require.ErrorContains(t, err, ":1: the line is longer than")
	})
	t.Run("a reader that fails", func(t *testing.T) {
		_, err := Files(context.Background(), Config{Stdin: broken{}}, "-")
		require.EqualError(t, err, "copy standard input: it broke")
	})
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("it broke") }

func TestABadRowAtTheEndReplaysNothing(t *testing.T) {
	path := write(t, line("a", "r", "t", true)+line("a", "r", "t", false)+"{}\n")
	replayed := false
	got, err := Files(context.Background(), Config{Progress: func(what string, _, _ int64) { replayed = replayed || what == "replaying" }}, path)
	require.ErrorContains(t, err, "rows.jsonl:3: field")
	assert.Nil(t, got)
	assert.False(t, replayed)
}

func TestReplayStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := func(what string, done, total int64) {
		if what == "replaying" && done == 3 {
			assert.Equal(t, int64(121), total)
			cancel(errors.New("enough"))
		}
	}
	got, err := Files(ctx, Config{Progress: stop}, sample)
	require.ErrorContains(t, err, "enough")
	assert.Nil(t, got)
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []Config{{Declared: 6}, {Declared: -1}, {Threshold: 5.5}, {Threshold: 0.5}} {
		_, err := Files(context.Background(), c, sample)
		require.ErrorContains(t, err, "want 1 to 5")
	}
}

func BenchmarkReplay(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		r, err := Files(context.Background(), Config{}, sample)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(r.Rows), "rows/op")
	}
}

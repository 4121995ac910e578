package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// fill sets every field, so that one that a writer forgets is missed.
func fill(v reflect.Value, draw func(reflect.Value) bool) {
	if draw(v) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), draw)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), draw)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), draw)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, draw)
			fill(elem, draw)
			v.SetMapIndex(key, elem)
		}
	}
}

// drawn sets leaves to what occurs and to what should not, and leaves some of everything out.
func drawn(t *rapid.T) func(reflect.Value) bool {
	return func(v reflect.Value) bool {
		if v.Kind() != reflect.Struct && rapid.IntRange(0, 3).Draw(t, "left out") == 0 {
			return true
		}
		switch {
		case v.Type() == reflect.TypeFor[action.Bound]():
			v.Set(reflect.ValueOf(action.Max(rapid.Int64().Draw(t, "bound"))))
		case v.Type() == reflect.TypeFor[json.RawMessage]():
			v.SetBytes([]byte(rapid.SampledFrom([]string{"", "null", "1.5e9", `{"a":[1,"x\n",{}],"b":true}`, `{"a": 1}`, `"\ufffd"`, `"` + "\xff" + `"`, "01", "{", `["\u00e9"]`}).Draw(t, "raw")))
		case v.Kind() == reflect.String:
			v.SetString(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"a", "b", "\xff", "\xfe", "<&>", "\u2028\u2029", "\x00\x7f\b\f\n\r\t\"\\", "\ufffd", `\ufffd`, "é\xc3"})).Draw(t, "string"))
		case v.Kind() == reflect.Bool:
			v.SetBool(rapid.Bool().Draw(t, "bool"))
		case v.CanInt():
			v.SetInt(rapid.Int64().Draw(t, "int"))
		case v.CanFloat():
			v.SetFloat(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1e-7, 1e21, 0.25, 4.5, math.Inf(1), math.NaN()})).Draw(t, "float"))
		default:
			return false
		}
		return true
	}
}

func TestAppendEventWritesWhatEncodingJSONDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e Event
		fill(reflect.ValueOf(&e).Elem(), drawn(t))
		e.V, e.Type = rapid.SampledFrom([]int{0, 1, 1, 1, 2}).Draw(t, "v"), rapid.SampledFrom(append(Types(), "other")).Draw(t, "type")
		want, wrong := encodeSlow(e)
		got, err := AppendEvent([]byte("before"), &e)
		if wrong != nil {
			require.EqualError(t, err, wrong.Error())
			want = ""
		}
		require.Equal(t, "before"+want, string(got))
		if wrong != nil || e.Risk == nil {
			return
		}
		if shown, ok := AppendRisk(nil, e.Risk); ok && compact(e.Input) && compact(e.Output) && compact(e.State) {
			got, err = AppendKnown([]byte("before"), &e, string(shown))
			require.NoError(t, err)
			require.Equal(t, "before"+want, string(got))
		}
	})
}

// Who vouches for input, output and state does so for nothing else.
func TestAppendKnownLooksAtWhatNobodyVouchesFor(t *testing.T) {
	e := Event{V: Version, Type: WorkflowStart, Flow: &Flow{Event: json.RawMessage(`{"a": 1}`), Spec: json.RawMessage(`{"b": 2}`)}}
	want, err := encodeSlow(e)
	require.NoError(t, err)
	got, err := AppendKnown(nil, &e, "")
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

func TestAppendOutcomeWritesWhatEncodingJSONDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o action.Outcome
		var seen Observed
		fill(reflect.ValueOf(&o).Elem(), drawn(t))
		fill(reflect.ValueOf(&seen).Elem(), drawn(t))
		require.Equal(t, string(appendSlow([]byte("["), &o)), string(AppendOutcome([]byte("["), &o)))
		require.Equal(t, string(appendSlow([]byte("["), &seen)), string(AppendObserved([]byte("["), &seen)))
	})
}

// A struct that grows is written by encoding/json until the writers know the new field: add it to them, and to what they
// know.
func TestTheWritersKnowEveryField(t *testing.T) {
	assert.True(t, eventsKnown, "a struct of an event has a new field: teach fast.go")
	assert.True(t, outcomesKnown, "action.Outcome has a new field: teach fast.go")
	e := Event{}
	fill(reflect.ValueOf(&e).Elem(), func(v reflect.Value) bool {
		switch {
		case v.Type() == reflect.TypeFor[json.RawMessage]():
			v.SetBytes([]byte(`{"a":1}`))
		case v.Kind() == reflect.String:
			v.SetString("x")
		case v.Kind() == reflect.Bool:
			v.SetBool(true)
		case v.CanInt():
			v.SetInt(1)
		case v.CanFloat():
			v.SetFloat(1.5)
		default:
			return false
		}
		return true
	})
	e.V, e.Type = Version, Begun
	want, err := encodeSlow(e)
	require.NoError(t, err)
	w := text{b: []byte{'{'}}
	w.event(&e)
	assert.False(t, w.odd)
	assert.Equal(t, want, string(w.b)+"}", "by the writer itself, not by what stands in for it")
}

func TestAppendEventAllocatesNothing(t *testing.T) {
	e := Event{Type: Begun, Agent: "clerk", Input: json.RawMessage(`{"a":[1,2.5,"x"]}`), Risk: &RiskShown{Score: 2.25}, Policy: &PolicyShown{Reason: "granted"}}
	dst := make([]byte, 0, 1024)
	assert.Zero(t, testing.AllocsPerRun(100, func() { dst, _ = AppendEvent(dst[:0], &e) }))
}

func FuzzCompact(f *testing.F) {
	for _, s := range []string{`{"a":[1,-0.5e+3,"x\\"],"b":null}`, `01`, `-`, `[1,]`, `{"a" :1}`, `"\u0000"`, `tru`, strings.Repeat("[", 300)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !compact(b) {
			return
		}
		want, err := json.Marshal(json.RawMessage(b))
		require.NoError(t, err)
		s, err := writeAny(json.RawMessage(b))
		require.NoError(t, err, want)
		require.Equal(t, string(b), s)
	})
}

func BenchmarkAppendEvent(b *testing.B) {
	e := Event{Type: Begun, Agent: "clerk", Task: "t", Intent: "abcdefgh", Action: "charge", Version: "1", Digest: strings.Repeat("a", 64),
		Fence: 1, Owner: "o", Attempt: 1, Reserved: action.Cost{Tokens: 100, Calls: 1}, Risk: &RiskShown{Score: 2.25, P: 0.123456789, Lo: 0.00456789123, Hi: 0.345678912},
		Policy: &PolicyShown{Reason: "granted"}, Input: json.RawMessage(`{"amount":125000,"currency":"EUR","note":"Leave it with the neighbour at number 12"}`)}
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = AppendEvent(dst[:0], &e)
	}
}

// What a form writes for an entry is what the event is written as, whatever the event that the form was made of held there.
func TestAFormWritesWhatAppendEventDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e, first Event
		fill(reflect.ValueOf(&e).Elem(), drawn(t))
		e.V, e.Type = rapid.SampledFrom([]int{0, 1, 1, 1, 2}).Draw(t, "v"), rapid.SampledFrom(append(Types(), "other")).Draw(t, "type")
		e.Output, e.State = nil, nil
		if !compact(e.Input) {
			e.Input = nil
		}
		first = e
		first.At, first.Intent, first.Call, first.Digest, first.Within, first.Owner, first.Value = 1, "i", "c", "d", "w", "o", "v"
		first.Input, first.Provenance = json.RawMessage(`{}`), action.Provenance{Goal: "other"}
		var f Form
		f.Set(&Event{Type: Late, Reason: "the memory is used again"}, "")
		risk := ""
		if e.Risk != nil && rapid.Bool().Draw(t, "risk known") {
			if text, ok := AppendRisk(nil, e.Risk); ok {
				risk = string(text)
			}
		}
		if !f.Set(&first, risk) {
			return
		}
		want, err := AppendEvent([]byte("before"), &e)
		require.NoError(t, err)
		entry := Entry{At: e.At, Intent: e.Intent, Call: e.Call, Digest: e.Digest, Within: e.Within, Owner: e.Owner, Input: e.Input, Value: e.Value}
		if !e.Provenance.IsZero() {
			entry.Provenance = &e.Provenance
		}
		require.Equal(t, string(want), string(f.Append([]byte("before"), &entry)))
		if sum := sha256.Sum256([]byte(e.Owner)); e.Digest != "" { // the same digest, not yet in hex
			e.Digest, entry.Digest, entry.Sum = hex.EncodeToString(sum[:]), "", &sum
			want, err = AppendEvent([]byte("before"), &e)
			require.NoError(t, err)
			require.Equal(t, string(want), string(f.Append([]byte("before"), &entry)))
		}
	})
}

func TestFormOfPlainEvents(t *testing.T) {
	for _, c := range []struct {
		reason string
		event  Event
		ok     bool
	}{
		{"a begin", Event{Type: Begun, Risk: &RiskShown{Score: 2}}, true},
		{"an output stands between what differs", Event{Type: Settled, Output: json.RawMessage(`1`)}, false},
		{"so does a state", Event{Type: TaskStarted, State: json.RawMessage(`1`)}, false},
		{"no such type", Event{Type: "other"}, false},
		{"another version", Event{V: 2, Type: Begun}, false},
		{"no number", Event{Type: Begun, Risk: &RiskShown{Score: math.NaN()}}, false},
	} {
		assert.Equal(t, c.ok, new(Form).Set(&c.event, ""), c.reason)
	}
	var f Form
	require.True(t, f.Set(&Event{Type: Begun, Agent: "clerk"}, ""))
	dst := make([]byte, 0, 512)
	entry := Entry{At: 7, Digest: "d", Input: json.RawMessage(`{"a":1}`), Provenance: &action.Provenance{Goal: "g"}}
	assert.Zero(t, testing.AllocsPerRun(100, func() { dst = f.Append(dst[:0], &entry) }))
}

package ledger

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func TestDecodeObservedTakesWhatIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o Observed
		fill(reflect.ValueOf(&o).Elem(), drawn(t))
		text := string(AppendObserved(nil, &o))
		var want Observed
		require.NoError(t, json.Unmarshal([]byte(text), &want))
		got, err := DecodeObserved(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func TestDecodeObservedNeedsNoJSONPackage(t *testing.T) {
	o := Observed{Action: "charge", Declared: 2, Tags: []string{"a", "b"}, Err: true, Cost: action.Cost{Tokens: 1, Duration: -5, Calls: 1, Money: 3, Currency: "EUR"}, At: 1764500000000000, Untimed: true}
	text := string(AppendObserved(nil, &o))
	var got Observed
	require.True(t, (&reader{text}).observed(&got), text)
	assert.Equal(t, o, got)
}

func FuzzDecodeObserved(f *testing.F) {
	for _, s := range []string{
		`{"action":"a"}`, `{"seq":1,"action":"a","declared":3,"tags":["x","y"],"err":true,"violation":true,"cost":{"tokens":1,"calls":2},"at":9}`,
		`{"seq":01,"action":"a"}`, `{"action":"a","cost":{,}}`, `{"action":"a","cost":{"tokens":1,}}`, `{"action":"\u00e9"}`, `{"action":"a","tags":[]}`,
		`{"action":"a","at":-0}`, `{"action":"a","at":1.5}`, `{"seq":1}`, `{"action":"a","at":9,"untimed":true}`, `{"action":"a","untimed":false}`, `{"action":"a","declared":99999999999999999999}`, `{"action":"a",}`, `{"seq":1,"action":"a"} `,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want Observed
		wrong := json.Unmarshal([]byte(text), &want)
		got, err := DecodeObserved(text)
		if (err == nil) != (wrong == nil) {
			t.Fatalf("%q: %v, encoding/json: %v", text, err, wrong)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %+v, encoding/json: %+v", text, got, want)
		}
	})
}

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/cputime"
)

func inputCases() []Case {
	return []Case{
		{"C12", "a ten-character number hangs or panics the schema validator", "numbers that no machine number holds are refused in bounded time, wherever they stand", []Variant{
			{"as a checked field", monsters(`{"amount":%s}`)},
			{"nested in arrays and objects", monsters(`{"amount":1,"lines":[{"price":[%s]}]}`)},
			{"in a field that the schema does not name", monsters(`{"amount":1,"extra":%s}`)},
			{"returned by a function", monstersOut},
			{"size and depth", tooMuch},
			{"the engine goes on after them", afterMonsters},
		}},
		{"C13", "keys that differ only in case: the check reads one, the executor the other", "exact keys, no duplicates; what runs is what was checked", []Variant{
			{"case variants", refusedInputs(`{"amount":1,"Amount":9}`, `{"Amount":9,"amount":1}`, `{"AMOUNT":9}`)},
			{"duplicates", refusedInputs(`{"amount":1,"amount":9}`, `{"amount":9,"amount":9}`)},
			{"duplicates by escaping", refusedInputs(`{"amount":1,"\u0061mount":9}`, `{"amount":1,"\u0041mount":9}`)},
			{"in nested objects", refusedInputs(`{"amount":1,"payee":{"iban":"a","IBAN":"b"}}`, `{"amount":1,"payee":{"iban":"a","\u0069ban":"b"}}`, `{"amount":1,"lines":[{"price":1},{"price":1,"Price":2}]}`)},
			{"letters that fold to others: K is a k to some decoders", foldedKeys},
			{"two documents, or a broken one", refusedInputs(`{"amount":1}{"amount":9}`, `{"amount":1}x`, `{"amount":1`, ``+"{\"amount\":1,\"note\":\"\xff\"}", `{"amount":1,"note":"\ud800"}`)},
			{"what runs is what was shown", runsAsShown},
		}},
		{"C30", "integers reach the function as float64", "digits survive: digest, schema, function, request and ledger see one value", []Variant{
			{"a field", digits(`{"amount":9007199254740993}`)},
			{"nested arrays and objects", digits(`{"amount":1,"lines":[{"price":9007199254740993},{"price":[-9223372036854775809,18446744073709551617]}]}`)},
			{"neighbours are two inputs", neighbours},
			{"an output", digitsOut},
			{"fractions that float64 has not", digits(`{"amount":0.1000000000000000055511151231257827}`)},
		}},
	}
}

// deep is a schema with everything these cases put into an input.
const deep = `{"type":"object","properties":{"amount":{"type":"number","minimum":-1e300,"multipleOf":1e-30},` +
	`"note":{"type":"string"},"payee":{"type":"object","properties":{"iban":{"type":"string"}}},` +
	`"lines":{"type":"array","items":{"type":"object","properties":{"price":true}}}},"required":["amount"]}`

func monsters(format string) func(*T) {
	return func(t *T) {
		pay := &spy{}
		task := t.open(Goal{}, Action{Name: "pay", Schema: deep, Do: pay.do})
		digits := strings.Repeat("9", 1_000_000)
		for _, n := range []string{
			"1e1000001", "1e-10000000", "-1E+999999999", "99999e308", "1e-400", "0." + digits, digits, "1." + digits + "e9",
			"0e99999999999999999999", "NaN", "Infinity", "-Infinity", "0x10", "1_000", "01", "+1", ".5", "1.",
		} {
			if n == "0e99999999999999999999" { // zero, spelled at length: either is fine, quickly
				t.quick(n, func() { t.propose(task, "pay", fmt.Sprintf(format, n)) })
				continue
			}
			before := pay.runs()
			t.quick(n, func() {
				o := t.propose(task, "pay", fmt.Sprintf(format, n))
				t.want(clip(n), o, action.InputMalformed, action.InputInvalid)
			})
			if pay.runs() != before {
				t.Errorf("%s ran", clip(n))
			}
		}
	}
}

func monstersOut(t *T) {
	for i, n := range []string{"1e1000001", "1e-10000000", "0." + strings.Repeat("9", 1_000_000), "NaN", `{"a":1,"a":2}`} {
		find := &spy{then: answer(`{"n":` + n + `}`)}
		agent := fmt.Sprint("agent", i) // each without a past that would make it risky
		t.declare(agent, Action{Name: "find", Effect: NoEffect, Do: find.do}, Action{Name: "use", Needs: []Need{{Action: "find"}}, Do: answerBody})
		task := t.start(Goal{Agent: agent, Threshold: 5})
		t.quick(n, func() { t.want("output "+clip(n), t.propose(task, "find", `{}`), action.OutputInvalid) })
		t.want("what needs it", t.propose(task, "use", `{}`), action.NotLegal)
	}
}

func tooMuch(t *T) {
	pay := &spy{}
	task := t.open(Goal{}, Action{Name: "pay", Schema: deep, Do: pay.do})
	for _, in := range []string{
		`{"amount":1,"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, `{"amount":1,"x":` + strings.Repeat(`{"a":`, 100_000),
		`{"amount":1,"note":"` + strings.Repeat("x", 10<<20) + `"}`, `{"amount":1,"x":[` + strings.Repeat("1,", 1<<20) + `1]}`,
	} {
		t.quick(in, func() { t.want(clip(in), t.propose(task, "pay", in), action.InputMalformed, action.InputInvalid) })
	}
	t.ran("pay", pay, 0)
}

// quick is far above what an engine needs for one call and far below what arithmetic on such numbers takes, on a processor of
// its own.
const quick = 2 * time.Second

// quick demands that f is done soon. A busy machine takes longer, but not on the processor: what is too long is so by both.
func (t *T) quick(what string, f func()) {
	started, before := time.Now(), cputime.Now()
	f()
	if d := min(time.Since(started), cputime.Now()-before); d > quick {
		t.Errorf("%s took %v", clip(what), d.Round(time.Millisecond))
	}
}

func clip(s string) string {
	if len(s) > 24 {
		return s[:24] + "…"
	}
	return s
}

func afterMonsters(t *T) {
	pay := &spy{}
	task := t.open(Goal{}, Action{Name: "pay", Schema: deep, Do: pay.do})
	t.propose(task, "pay", `{"amount":1e1000001}`, "x")
	t.want("an ordinary call", t.propose(task, "pay", `{"amount":1e3}`), action.OK)
	if o := t.propose(task, "pay", `{"amount":2}`, "x"); o.Err != nil {
		t.Errorf("the call id of a refused input: %v", o.Err)
	}
}

// refusedInputs proposes each input; the schema allows keys it does not name, so the edge alone must see through them.
func refusedInputs(inputs ...string) func(*T) {
	return func(t *T) {
		pay := &spy{}
		task := t.open(Goal{}, Action{Name: "pay", Schema: deep, Do: pay.do})
		for _, in := range inputs {
			t.want(in, t.propose(task, "pay", in), action.InputMalformed, action.InputInvalid)
		}
		t.ran("pay", pay, 0)
	}
}

// foldedKeys has names that a lenient decoder takes for a declared one: the Kelvin sign for k, the long s for s.
func foldedKeys(t *T) {
	var task string
	pay := &spy{then: func(_ context.Context, x Execution) (json.RawMessage, error) {
		var in struct{ Task int }
		if err := json.Unmarshal(x.Input, &in); err != nil || in.Task != 1 {
			t.Errorf("1 was checked, the executor reads %d of %s", in.Task, x.Input)
		}
		return json.RawMessage(`{}`), nil
	}}
	task = t.open(Goal{}, Action{Name: "pay", Schema: `{"type":"object","properties":{"task":{"type":"integer","maximum":1}},"required":["task"]}`, Do: pay.do})
	for _, key := range []string{"ta\u017fk", "taſk", "tas\u212a", "tasK", "TASK", "tasK"} {
		t.propose(task, "pay", `{"task":1,"`+key+`":9}`)
		t.propose(task, "pay", `{"`+key+`":9,"task":1}`)
	}
}

func runsAsShown(t *T) {
	pay := &spy{}
	task := t.open(Goal{}, Action{Name: "pay", Schema: deep, Gated: true, Do: pay.do})
	in := `{ "note":"\u0061 <b>&\u2028", "lines":[{"price":1.50},{"price":null}], "amount":1e0 }`
	id := t.asks(task, "pay", in)
	asked := t.pending(task)
	t.approve(id)
	t.want("the call", t.propose(task, "pay", in), action.OK)
	saw := pay.saw()
	if len(asked) != 1 || len(saw) != 1 || saw[0] != string(asked[0].Input) {
		t.Errorf("a person was shown %v, the function saw %v", asked, saw)
	}
	if len(saw) == 1 && !sameJSON(saw[0], in) {
		t.Errorf("%s was proposed, %s ran", in, saw[0])
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

// digits follows an input through everything that repeats it.
func digits(in string) func(*T) {
	return func(t *T) {
		pay := &spy{}
		task := t.open(Goal{}, Action{Name: "pay", Schema: strings.ReplaceAll(deep, `,"multipleOf":1e-30`, ""), Gated: true, Do: pay.do})
		id := t.asks(task, "pay", in)
		for _, q := range t.pending(task) {
			if string(q.Input) != in {
				t.Errorf("a person is shown %s, proposed was %s", q.Input, in)
			}
		}
		t.approve(id)
		t.want("the call", t.propose(task, "pay", in), action.OK)
		for _, saw := range pay.saw() {
			if saw != in {
				t.Errorf("the function saw %s, proposed was %s", saw, in)
			}
		}
		t.ran("pay", pay, 1)
		for _, r := range t.recorded(task, Begun) {
			if string(r.Input) != in {
				t.Errorf("the ledger says %s, proposed was %s", r.Input, in)
			}
		}
	}
}

func neighbours(t *T) {
	pay := &spy{}
	schema := `{"type":"object","properties":{"amount":{"type":"integer","maximum":9007199254740993}},"required":["amount"]}`
	task := t.open(Goal{}, Action{Name: "pay", Schema: schema, Do: pay.do}, Action{
		Name: "book", Schema: schema, Needs: []Need{{Action: "pay", Field: "amount"}}, Do: answerBody,
	})
	t.want("one above the maximum", t.propose(task, "pay", `{"amount":9007199254740994}`), action.InputInvalid)
	t.want("the maximum", t.propose(task, "pay", `{"amount":9007199254740993}`, "x"), action.OK)
	if o := t.propose(task, "pay", `{"amount":9007199254740992}`, "x"); o.OK() {
		t.Errorf("a call id answers for the neighbour of its input")
	}
	t.want("what needs the neighbour", t.propose(task, "book", `{"amount":9007199254740992}`), action.NotLegal)
	t.want("what needs exactly this", t.propose(task, "book", `{"amount":9007199254740993}`), action.OK)
}

func answerBody(context.Context, Execution) (json.RawMessage, error) {
	return json.RawMessage(`{}`), nil
}

func digitsOut(t *T) {
	out := `{"html":"<b>&","id":9007199254740993,"ids":[[18446744073709551617]]}`
	find := &spy{then: answer(out)}
	task := t.open(Goal{}, Action{Name: "find", Effect: NoEffect, Do: find.do})
	for range 2 {
		if o := t.want("find", t.propose(task, "find", `{}`, "x"), action.OK); string(o.Output) != out {
			t.Errorf("returned %s, the caller sees %s", out, o.Output)
		}
	}
	for _, r := range t.recorded(task, Settled) {
		if string(r.Output) != out {
			t.Errorf("returned %s, the ledger says %s", out, r.Output)
		}
	}
}

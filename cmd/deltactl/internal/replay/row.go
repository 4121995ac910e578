package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/schema"
)

// Currency is that of costs that are not whole numbers.
const Currency = "USD"

// Row is one recorded call.
type Row struct {
	Agent string
	Run   string // the task that the call was part of
	Tool  string
	OK    bool
	Cost  action.Cost // zero where unknown
}

// ParseRow reads one line. The text passes the strict edge of package schema, so a row with a key given twice or with
// invalid UTF-8 is an error, and so is a known field of another type. Fields that are not known are skipped.
func ParseRow(line []byte) (Row, error) {
	doc, failure := schema.Canonical(line, 0)
	if failure != nil {
		return Row{}, errors.New(failure.Message)
	}
	f, ok := doc.Tree().(map[string]any)
	if !ok {
		return Row{}, fmt.Errorf("the row is %s, want an object", kind(doc.Tree()))
	}
	var r Row
	faults := []error{
		text(f, "agent", &r.Agent), text(f, "run", &r.Run), text(f, "tool", &r.Tool), truth(f, "ok", &r.OK),
		information(f), price(f, &r.Cost),
	}
	for _, err := range faults {
		if err != nil {
			return Row{}, err
		}
	}
	return r, nil
}

// text reads a field that must be there and not empty.
func text(f map[string]any, name string, to *string) error {
	v, ok := f[name]
	if !ok {
		return missing(f, name, "a string")
	}
	s, ok := v.(string)
	if !ok {
		return wrong(name, v, "a string")
	}
	if s == "" {
		return fmt.Errorf("field %q is empty", name)
	}
	*to = s
	return nil
}

func truth(f map[string]any, name string, to *bool) error {
	v, ok := f[name]
	if !ok {
		return missing(f, name, "true or false")
	}
	if *to, ok = v.(bool); !ok {
		return wrong(name, v, "true or false")
	}
	return nil
}

// information checks the types of the fields that are not replayed. Null is as absent: unknown.
func information(f map[string]any) error {
	for _, name := range []string{"dataset", "group", "task"} {
		if v := f[name]; v != nil {
			if _, ok := v.(string); !ok {
				return wrong(name, v, "a string")
			}
		}
	}
	for _, name := range []string{"step", "latency_ms", "task_reward"} {
		n, ok := f[name].(json.Number)
		switch {
		case f[name] == nil:
		case !ok:
			return wrong(name, f[name], "a number")
		case name != "task_reward" && strings.HasPrefix(n.String(), "-"):
			return fmt.Errorf("field %q is %s, want 0 or more", name, n)
		}
	}
	return nil
}

// price reads the cost: a whole number is tokens, any other an amount of money.
func price(f map[string]any, to *action.Cost) error {
	v := f["cost"]
	if v == nil {
		return nil
	}
	n, ok := v.(json.Number)
	if !ok {
		return wrong("cost", v, "a number")
	}
	if tokens, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		to.Tokens = tokens
	} else {
		amount, err := n.Float64()
		if err != nil || math.Abs(amount) > float64(action.MaxAmount)/1e6 {
			return fmt.Errorf("field %q is %s, which is out of range", "cost", n)
		}
		to.Money, to.Currency = int64(math.Round(amount*1e6)), Currency
	}
	if to.Check() != nil {
		return fmt.Errorf("field %q is %s, want 0 to %d tokens or %d %s", "cost", n, action.MaxAmount, action.MaxAmount/1e6, Currency)
	}
	return nil
}

func missing(f map[string]any, name, want string) error {
	for k := range f {
		if strings.EqualFold(k, name) {
			return fmt.Errorf("field %q is missing, want %s; write %q in lower case", name, want, name)
		}
	}
	return fmt.Errorf("field %q is missing, want %s", name, want)
}

func wrong(name string, have any, want string) error {
	return fmt.Errorf("field %q is %s, want %s", name, kind(have), want)
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	}
	return "an object"
}

func blank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/examples/orders/desk"
)

// say prints lines. The agent and the person take turns, but nothing else orders the two.
func (s *story) say(format string, args ...any) {
	s.mouth.Lock()
	defer s.mouth.Unlock()
	fmt.Fprintln(s.out, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

func (s *story) heading(title, text string) {
	s.chapter++
	s.say("\n%d. %s\n   %s", s.chapter, strings.ToUpper(title), text)
}

// line tells one call in one line.
func (s *story) line(call string, code action.Code, text string) {
	s.say("   %-22s  %-17s  %s", call, code, text)
}

// offered tells what exists for the agent now, and for which orders.
func (s *story) offered(ctx context.Context) error {
	o, err := s.task.Offer(ctx)
	if err != nil {
		return err
	}
	names := make([]string, len(o.Actions))
	for i, a := range o.Actions {
		names[i] = a.Name
		if ids := narrowed(a.Schema); len(ids) > 0 {
			names[i] += " (" + strings.Join(ids, ", ") + " only)"
		}
	}
	s.say("   exists: %s", strings.Join(names, ", "))
	return nil
}

// narrowed returns the orders that an offered schema still accepts, where it names them.
func narrowed(schema json.RawMessage) []string {
	var doc struct {
		Properties struct {
			ID struct {
				Enum []string `json:"enum"`
			} `json:"orderId"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(schema, &doc) // a schema that names none is not narrowed
	return doc.Properties.ID.Enum
}

// tell tells what became of a call of the agent.
func (s *story) tell(ctx context.Context, r delta.Result) {
	s.results = append(s.results, r)
	var in desk.OrderID
	_ = json.Unmarshal(r.Call.Input, &in) // every input names an order
	text := ""
	switch f := r.Outcome.Failure; {
	case f != nil:
		text = f.Message
		if reason := f.Details[action.DetailReason]; reason != "" {
			text += fmt.Sprintf(": %q", reason)
		}
	case r.Call.Action == "look-up-order":
		var o desk.Order
		_ = json.Unmarshal(r.Outcome.Output, &o) // it passed its schema
		text = fmt.Sprintf("%s, %s, %s", o.Customer, euros(o.Cents*10_000), o.Status)
	default:
		text = r.Call.Provenance.Reason
	}
	if r.Outcome.Code == action.Failed {
		text += "; " + s.riskNow(ctx, r.Call.Action)
	}
	s.line(r.Call.Action+" "+in.ID, r.Outcome.Code, text)
}

// riskNow says what the engine has learned of an action so far.
func (s *story) riskNow(ctx context.Context, name string) string {
	risks, err := s.engine.Risks(ctx, s.desk.Agent.Name())
	if err != nil {
		return fmt.Sprintf("its risk cannot be read: %v", err)
	}
	for _, k := range risks {
		if k.Action == name {
			return fmt.Sprintf("risk now %.2f: it fails %s", k.Effective, chance(k.P, k.Lo, k.Hi, k.N))
		}
	}
	return "its risk is not known"
}

// chance is a probability with its interval and the number of outcomes it rests on.
func chance(p, lo, hi float64, n int64) string {
	return fmt.Sprintf("%.0f %% of the time (90 %%: %.0f to %.0f %%; %d runs)", 100*p, 100*lo, 100*hi, n)
}

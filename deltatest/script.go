package deltatest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// Script stands in for the model in [delta.Engine.Run]: it proposes one call after the other, and each must end as the
// script says. It is for one run at a time.
//
//	script := deltatest.NewScript(t).
//	    Call("charge-order", Order{"ORD-1"}, action.NotLegal).
//	    Call("confirm-order", Order{"ORD-1"}, action.OK).
//	    Call("charge-order", Order{"ORD-1"}, action.OK)
//	d.Run(ctx, task, script)
//	script.Played()
type Script struct {
	tb    testing.TB
	lines []line

	mu   sync.Mutex
	next int // lines proposed
	seen int // lines whose end was looked at
}

type line struct {
	call delta.Call
	want action.Code
}

var _ delta.Planner = (*Script)(nil)

// NewScript returns an empty script, which is done at once.
func NewScript(tb testing.TB) *Script { return &Script{tb: tb} }

// Call appends a proposal, and how it must end. The input is JSON as a string, json.RawMessage or []byte, "" being an
// empty object, or anything that encoding/json writes. A call that waits for a person ends as APPROVAL_REQUIRED: the run
// goes on without it.
func (s *Script) Call(name string, input any, want action.Code) *Script {
	s.tb.Helper()
	raw, err := rawOf(input)
	if err != nil {
		s.tb.Fatalf("deltatest: script: input of %s: %v", name, err)
	}
	s.lines = append(s.lines, line{delta.Call{Action: name, Input: raw}, want})
	return s
}

func rawOf(input any) (json.RawMessage, error) {
	switch x := input.(type) {
	case string:
		return json.RawMessage(x), nil
	case json.RawMessage:
		return x, nil
	case []byte:
		return x, nil
	}
	return json.Marshal(input)
}

// Plan implements [delta.Planner].
func (s *Script) Plan(_ context.Context, r delta.Request) (delta.Proposal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.check(r)
	if s.next == len(s.lines) {
		return delta.Proposal{Done: true, Why: "the script has ended"}, nil
	}
	s.next++
	return delta.Proposal{Calls: []delta.Call{s.lines[s.next-1].call}}, nil
}

// check compares the end of the last call with the script.
func (s *Script) check(r delta.Request) {
	if s.next == 0 || len(r.Last) == 0 {
		return
	}
	was, out := s.lines[s.next-1], r.Last[len(r.Last)-1].Outcome
	s.seen = s.next
	if out.Code != was.want {
		s.tb.Errorf("deltatest: line %d of the script, %s %s: ended as %s, want %s%s", s.next, was.call.Action, was.call.Input, out.Code, was.want, because(out.Failure))
	}
}

// Played reports what the run left of the script: calls not proposed, or whose end it was not told.
func (s *Script) Played() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == len(s.lines) {
		return
	}
	var left []string
	for _, l := range s.lines[s.seen:] {
		left = append(left, l.call.Action)
	}
	s.tb.Errorf("deltatest: the run ended before the script; not played: %s", strings.Join(left, ", "))
}

func because(f *action.Failure) string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf(" (%s)", f.Explain())
}

package conformance

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Case is one fault and its kind.
type Case struct {
	ID       string
	Symptom  string // as it is seen elsewhere
	Guards   string // what must hold instead
	Variants []Variant
}

// Variant is one member of the kind.
type Variant struct {
	Name string
	Run  func(*T)
}

// Cases returns every case in order of its id. It is a fresh copy.
func Cases() []Case {
	var all []Case
	for _, part := range [][]Case{approvalCases(), turnCases(), budgetCases(), inputCases(), authorityCases(), waitCases(), changeCases(), effectCases(), leaseCases(), cancelCases(), childCases(), compensateCases(), procedureCases()} {
		all = append(all, part...)
	}
	return sorted(merged(all))
}

// T is what a variant is given: a fresh subject, and where it says what it saw.
type T struct {
	Context context.Context
	Subject

	mu       sync.Mutex
	symptoms []string
	skipped  string
}

var errStop = errors.New("stop")

// Errorf notes a symptom; the variant goes on.
func (t *T) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.symptoms = append(t.symptoms, strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
}

// Fatalf notes a symptom and ends the variant. It must be called from the variant's own goroutine.
func (t *T) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	panic(errStop)
}

// Skip ends the variant without a verdict.
func (t *T) Skip(why string) {
	t.mu.Lock()
	t.skipped = why
	t.mu.Unlock()
	panic(errStop)
}

// need returns the subject's optional side, or skips the variant.
func need[C any](t *T) C {
	c, ok := t.Subject.(C)
	if !ok {
		t.Skip("needs " + strings.TrimPrefix(fmt.Sprintf("%T", (*C)(nil)), "*conformance."))
	}
	return c
}

// limit bounds a variant: one that hangs has failed.
const limit = 2 * time.Minute

// Verdict is what a variant came to.
type Verdict struct {
	Case, Variant string
	Symptoms      []string // empty: passed, unless Skipped
	Skipped       string   // what the subject lacks
}

// Passed reports whether the variant ran and nothing was wrong.
func (v Verdict) Passed() bool { return len(v.Symptoms) == 0 && v.Skipped == "" }

// try runs one variant on a fresh subject.
func try(open Open, id string, v Variant) Verdict {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s, err := open()
	if err != nil {
		return Verdict{Case: id, Variant: v.Name, Symptoms: []string{"cannot be opened: " + err.Error()}}
	}
	t := &T{Context: ctx, Subject: s}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil && p != any(errStop) {
				t.Errorf("panic: %v at %s", p, place())
			}
		}()
		v.Run(t)
	}()
	select {
	case <-done:
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	case <-time.After(limit + time.Second):
		t.Errorf("hangs")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := Verdict{Case: id, Variant: v.Name, Symptoms: append([]string(nil), t.symptoms...)}
	if len(out.Symptoms) == 0 {
		out.Skipped = t.skipped
	}
	return out
}

// place names the line that panicked.
func place() string {
	pc := make([]uintptr, 32)
	frames := runtime.CallersFrames(pc[:runtime.Callers(3, pc)])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") || !more {
			return fmt.Sprintf("%s:%d", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
		}
	}
}

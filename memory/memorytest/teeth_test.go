package memorytest

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openReference enrols the reference, whole or with a rule broken.
func openReference(broken string) Open {
	return func(testing.TB) Instance {
		var now atomic.Int64
		now.Store(1_800_000_000_000_000)
		r := newReference(now.Load, broken)
		r.keep = time.Minute.Microseconds()
		return Instance{Store: r, Advance: func(d time.Duration) { now.Add(d.Microseconds()) }, Keep: time.Minute}
	}
}

// recorder takes down failures instead of failing.
type recorder struct {
	testing.TB
	failed atomic.Bool
}

func (r *recorder) Errorf(string, ...any) { r.failed.Store(true) }
func (r *recorder) Logf(string, ...any)   {}
func (r *recorder) FailNow() {
	r.failed.Store(true)
	runtime.Goexit()
}

// notices reports whether the run fails.
func notices(t *testing.T, run func(tb testing.TB)) bool {
	r, done := &recorder{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if recover() != nil {
				r.failed.Store(true)
			}
		}()
		run(r)
	}()
	<-done
	return r.failed.Load()
}

func TestReference(t *testing.T) {
	Run(t, openReference(""))
	Random(t, openReference("")(t), 300, 1)
	Workload(t, openReference("")(t), Load{Intents: 60})
}

// TestTeeth breaks every rule of the reference in turn; a case of the suite, or the random transactions, must notice.
func TestTeeth(t *testing.T) {
	for _, rule := range rules(t) {
		t.Run(rule, func(t *testing.T) {
			by := ""
			for _, c := range allCases() {
				if notices(t, func(tb testing.TB) { c.run(newEnv(tb, openReference(rule))) }) {
					by = c.name
					break
				}
			}
			require.NotEmpty(t, by, "no case of the suite notices")
			t.Log("noticed by", by)
		})
	}
}

// unseen are the rules that random transactions and replies cannot show: notes, cancellation, paging and the like.
var unseen = regexp.MustCompile(`^(notes|life|malformed|load|records|queued|reply: pending shared|concurrency|keep)`)

// TestTeethOfRandom holds Random to the same, but for what it does not look at.
func TestTeethOfRandom(t *testing.T) {
	for _, rule := range rules(t) {
		if unseen.MatchString(rule) {
			continue
		}
		t.Run(rule, func(t *testing.T) {
			for seed := range uint64(10) {
				if notices(t, func(tb testing.TB) { Random(tb, openReference(rule)(tb), 400, seed) }) {
					return
				}
			}
			t.Error("random transactions do not notice")
		})
	}
}

// TestTeethOfWorkload breaks what makes a story untrue. (Much that is broken only makes work stop, which is not what it
// looks for.) Which leases expire under whom depends on the scheduler: one of several runs must notice.
func TestTeethOfWorkload(t *testing.T) {
	for _, rule := range []string{"count: max ignored", "count: not written", "lease: settle doubled", "lease: step doubled", "lease: fence ignored",
		"leases: ended stays queued", "take: ignored", "token: state ignored", "whole: partial", "whole: refused event kept"} {
		t.Run(rule, func(t *testing.T) {
			for seed := range uint64(20) {
				if notices(t, func(tb testing.TB) { Workload(tb, openReference(rule)(tb), Load{Intents: 80, Seed: seed, Workers: 4}) }) {
					return
				}
			}
			t.Error("the workload does not notice")
		})
	}
}

// rules are the names of the rules that the reference can break, read from its source: none can be forgotten.
func rules(t *testing.T) []string {
	var src []byte
	for _, file := range []string{"reference.go", "reference_read.go", "reference_keep.go"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		src = append(src, text...)
	}
	var out []string
	for _, m := range regexp.MustCompile(`breaks\("([^"]+)"\)`).FindAllStringSubmatch(string(src), -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	out = slices.Compact(out)
	require.Greater(t, len(out), 60, fmt.Sprint(out))
	return out
}

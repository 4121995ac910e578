package delta_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// scribe is a store that keeps a copy of every byte that is brought to it.
type scribe struct {
	memory.Store
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *scribe) Apply(ctx context.Context, x *txn.Txn) (txn.Reply, error) {
	s.mu.Lock()
	for _, c := range x.Clauses {
		fmt.Fprintln(&s.all, c.Key, c.Val, c.From, c.To)
	}
	s.mu.Unlock()
	return s.Store.Apply(ctx, x)
}

func (s *scribe) Remember(ctx context.Context, agent string, n memory.Note) error {
	s.mu.Lock()
	fmt.Fprintln(&s.all, n)
	s.mu.Unlock()
	return s.Store.Remember(ctx, agent, n)
}

func (s *scribe) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// traces are what must not be found of a secret value: its text, and hashes that everybody can make.
func traces(secret string) []string {
	quoted, _ := json.Marshal(secret)
	out := []string{secret, string(quoted[1 : len(quoted)-1])}
	for _, text := range []string{secret, string(quoted)} {
		h := sha256.Sum256([]byte(text))
		out = append(out, hex.EncodeToString(h[:]), hex.EncodeToString(h[:16]))
	}
	return out
}

// secretly draws a schema with secrets in it, and inputs that fit it together with what is secret in them.
type secretly struct {
	schema  string
	fields  []string
	draw    map[string]func(*rapid.T) (value string, secrets []string)
	secrets map[string]bool
}

// drawText draws a text; what is not secret never is one that is.
func drawText(t *rapid.T, secret bool) string {
	return map[bool]string{true: "SEC", false: "PUB"}[secret] + rapid.StringMatching(`[A-Z0-9"\\ü<]{6,14}`).Draw(t, "secret")
}

func drawSecretly(t *rapid.T, all bool) secretly {
	s := secretly{draw: map[string]func(*rapid.T) (string, []string){}, secrets: map[string]bool{}}
	var props []string
	quote := func(v string) string { b, _ := json.Marshal(v); return string(b) }
	for i := range rapid.IntRange(1, 5).Draw(t, "fields") {
		name, secret := fmt.Sprintf("f%d", i), i == 0 || rapid.Bool().Draw(t, "secret?")
		s.fields, s.secrets[name] = append(s.fields, name), secret
		mark := ""
		if secret {
			mark = `,"writeOnly":true`
		}
		hidden := secret || all
		given := func(v string) []string {
			if hidden {
				return []string{v}
			}
			return nil
		}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			props = append(props, fmt.Sprintf(`%q:{"type":"string"%s}`, name, mark))
			s.draw[name] = func(t *rapid.T) (string, []string) { v := drawText(t, hidden); return quote(v), given(v) }
		case 1:
			props = append(props, fmt.Sprintf(`%q:{"type":"integer"%s}`, name, mark))
			s.draw[name] = func(t *rapid.T) (string, []string) {
				v := fmt.Sprint(rapid.Int64Range(1e11, 2e11).Draw(t, "number") + map[bool]int64{true: 5e11}[hidden])
				return v, given(v)
			}
		case 2:
			props = append(props, fmt.Sprintf(`%q:{"type":"array","items":{"type":"string"%s}}`, name, mark))
			s.draw[name] = func(t *rapid.T) (string, []string) {
				v, w := drawText(t, hidden), drawText(t, hidden)
				return "[" + quote(v) + "," + quote(w) + "]", append(given(v), given(w)...)
			}
		default:
			props = append(props, fmt.Sprintf(`%q:{"type":"object","properties":{"in":{"type":"string"%s}}}`, name, mark))
			s.draw[name] = func(t *rapid.T) (string, []string) {
				v := drawText(t, hidden)
				return `{"in":` + quote(v) + "}", given(v)
			}
		}
	}
	s.schema = `{"type":"object","properties":{` + strings.Join(props, ",") + `}}`
	return s
}

// input draws an input; spoilt ones do not fit the schema and quote a secret where another type is wanted.
func (s *secretly) input(t *rapid.T, spoil bool) (raw string, secrets []string) {
	var parts []string
	for _, name := range s.fields {
		v, more := s.draw[name](t)
		if spoil && s.secrets[name] {
			w := drawText(t, true)
			b, _ := json.Marshal(w)
			v, more = `{"in":[`+string(b)+`]}`, []string{w}
		}
		parts, secrets = append(parts, fmt.Sprintf("%q:%s", name, v)), append(secrets, more...)
	}
	return "{" + strings.Join(parts, ",") + "}", secrets
}

// TestI14_NoSecretIsWritten: whatever becomes of a call, nothing that is stored, told or logged holds a value that its schema
// marks as secret, nor a hash of it that could be guessed; of a task about somebody, nothing of its inputs at all.
func TestI14_NoSecretIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		about := rapid.SampledFrom([]string{"", "somebody"}).Draw(t, "about")
		s := drawSecretly(t, about != "")
		ends := []string{"ok", "fail", "panic", "unknown", "echo"}
		var end string
		f := func(_ *delta.Context, in action.Input) mo.Result[action.Output] {
			switch end {
			case "fail":
				return mo.Err[action.Output](fmt.Errorf("not with %v, that is %s, %q", in.Tree(), in.Text(), in.Text()))
			case "panic":
				panic(in.Text())
			case "unknown":
				return mo.Err[action.Output](action.Unknown(errors.New(in.Text())))
			}
			if end == "echo" {
				return mo.Ok(action.Output(`{"was":` + in.Text() + `,"text":` + fmt.Sprintf("%q", "it was "+fmt.Sprint(in.Tree())) + `}`))
			}
			return mo.Ok(action.Output(`{"done":true}`))
		}
		complain := hooks.Hooks{OnError: func(_ context.Context, v action.View) error { return errors.New(string(v.Input)) }}
		plain := delta.DefineRaw("plain", []byte(s.schema), f).Describe("Do it").Risk(1).Effect(action.Idempotent).Hooks(complain).MustBuild()
		gated := delta.DefineRaw("gated", []byte(s.schema), f).Describe("Do it").Risk(1).RequireApproval().Effect(action.Idempotent).MustBuild()
		later := delta.DefineRaw("later", []byte(s.schema), f).Describe("Do it").Risk(1).Needs(plain.On(s.path())).MustBuild()
		desk := delta.NewAgent("desk").Grant(plain, gated, later).MustBuild()
		store, logs := &scribe{Store: memory.New(memory.Config{})}, &lockedBuffer{}
		var mu sync.Mutex
		seen := ""
		e, err := delta.New(delta.Config{Authenticator: anybody, Store: store, Operators: []string{"olga"}, Log: slog.New(slog.NewTextHandler(logs, nil)),
			Observers: []delta.Watch{{Observer: delta.ObserverFunc(func(_ context.Context, r delta.Record) {
				mu.Lock()
				defer mu.Unlock()
				seen += asText(r)
			})}}})
		require.NoError(t, err)
		ctx := context.Background()
		task, err := e.Start(ctx, delta.Goal{Agent: desk, Approvers: []string{"ana"}, Threshold: 5, Subject: about})
		require.NoError(t, err)
		ana, err := e.Authenticate(ctx, "ana")
		require.NoError(t, err)
		var secrets []string
		shown := ""
		for range rapid.IntRange(1, 5).Draw(t, "calls") {
			end = rapid.SampledFrom(ends).Draw(t, "end")
			raw, more := s.input(t, rapid.IntRange(0, 3).Draw(t, "spoilt") == 0)
			secrets = append(secrets, more...)
			c := delta.Call{Action: rapid.SampledFrom([]string{"plain", "gated", "later"}).Draw(t, "action"), Input: json.RawMessage(raw)}
			if rapid.Bool().Draw(t, "because") {
				c.Provenance = action.Provenance{Reason: "they said " + raw, Goal: strings.Join(more, " ")}
			}
			if rapid.Bool().Draw(t, "id") {
				c.ID = rapid.SampledFrom([]string{"one", "two"}).Draw(t, "call id")
			}
			v, err := task.Preview(ctx, c, nil)
			require.NoError(t, err)
			shown += string(v.Event) + fmt.Sprint(v.Failure)
			o := task.Do(ctx, c).MustGet()
			if o.Code == action.ApprovalRequired {
				a, err := e.Approval(ctx, o.Failure.Approval())
				require.NoError(t, err)
				if about == "" { // of whom a task is about, whoever decides must see what there is to decide
					shown += a.Explain()
				}
				shown += asText(a.Request)
				if rapid.Bool().Draw(t, "approve") {
					require.NoError(t, e.Approve(ctx, a.ID, ana, "fine"))
					o = task.Do(ctx, c).MustGet()
				} else {
					require.NoError(t, e.Reject(ctx, a.ID, ana, "no"))
				}
			}
			if o.Failure != nil {
				shown += o.Failure.Explain()
			}
			if o.Code == action.StartedUnknown {
				require.NoError(t, task.Resolve(ctx, o.Intent, ana, true, []byte(`{"done":true}`), action.Cost{}, "it did"))
			}
		}
		events, err := task.Events(ctx)
		require.NoError(t, err)
		requireSoundLedger(t, task)
		st, err := task.Explain(ctx, "later")
		require.NoError(t, err)
		require.NoError(t, e.Close(ctx))
		all := store.text() + logs.String() + shown + asText(events) + asText(st) + seen
		for _, secret := range secrets {
			for _, trace := range traces(secret) {
				requireNowhere(t, all, trace)
			}
		}
	})
}

// path is a field on which an action can bind.
func (s *secretly) path() string {
	if strings.Contains(s.schema, `"f0":{"type":"object"`) {
		return "f0.in"
	}
	return "f0"
}

func requireSoundLedger(t require.TestingT, task *delta.Task) {
	_, report, err := task.Ledger(context.Background())
	require.NoError(t, err)
	require.NotZero(t, report.Records)
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func requireNowhere(t require.TestingT, all, what string) {
	if i := strings.Index(all, what); i >= 0 {
		require.Fail(t, "found "+what, "in …%s…", all[max(0, i-300):min(len(all), i+100)])
	}
}

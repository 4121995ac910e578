package delta

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/keys"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// overheard is a store that keeps a copy of everything that is written into it, and a place for all else that goes out.
type overheard struct {
	*memory.InProcess
	mu   sync.Mutex
	text strings.Builder
}

func (s *overheard) hear(what ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(&s.text, what...)
}

func (s *overheard) Write(p []byte) (int, error) { s.hear(string(p)); return len(p), nil }

func (s *overheard) Apply(ctx context.Context, t *txn.Txn) (txn.Reply, error) {
	s.hear(fmt.Sprintf("%+v", *t))
	return s.InProcess.Apply(ctx, t)
}

func (s *overheard) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

type accountIn struct {
	ID      string            `json:"id"`
	Pin     string            `json:"pin" delta:"secret"`
	Headers map[string]string `json:"headers,omitempty" delta:"secret"`
}

type accountOut struct {
	ID    string `json:"id"`
	Token string `json:"token" delta:"secret"`
}

// bank is a world whose workflow carries secrets: in its input, from a person, in outputs, into a nested workflow and back.
type bank struct {
	*testing.T
	store   *overheard
	agent   *Agent
	outer   *workflow.Definition
	inner   *workflow.Definition
	mu      sync.Mutex
	got     []accountIn
	told    []string // what proposers, verifiers and conditions were given
	spoiled bool     // close fails
	broken  string   // the action that fails besides
}

func newBank(t *testing.T) *bank {
	w := &bank{T: t, store: &overheard{InProcess: memory.New(memory.Config{})}}
	do := func(name string) func(*Context, accountIn) mo.Result[accountOut] {
		return func(_ *Context, in accountIn) mo.Result[accountOut] {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.got = append(w.got, in)
			if name == "close" && w.spoiled {
				return mo.Err[accountOut](fmt.Errorf("close: no account with pin %s", in.Pin))
			}
			if name == w.broken {
				return mo.Err[accountOut](fmt.Errorf("%s: no", name))
			}
			return mo.Ok(accountOut{in.ID, "token-" + in.Pin})
		}
	}
	back := Define("back", do("back")).Describe("Give back").Risk(1).Effect(action.Idempotent).MustBuild()
	open := Define("open", do("open")).Describe("Open").Risk(1).Effect(action.Compensatable).
		Undo(back, func(in accountIn, out accountOut) any { return accountIn{ID: in.ID, Pin: out.Token} }).MustBuild()
	shut := Define("close", do("close")).Describe("Close").Risk(1).Effect(action.Idempotent).MustBuild()
	w.agent = NewAgent("teller").Grant(open, shut, back).MustBuild()
	w.inner = workflow.New("inner", "1").
		Step(workflow.Execute("open", "open").Map("id", "input.id").Map("pin", "input.pin")).
		Output("token", "steps.open.output.token").MustBuild()
	w.outer = workflow.New("outer", "1").Owners("ana").
		Step(workflow.AskPerson("ask").Hitl(workflow.Hitl{Prompt: "Which pin?",
			Intake: json.RawMessage(`{"type":"object","properties":{"pin":{"type":"string","pattern":"^M.RK","writeOnly":true},"note":{"type":"string","writeOnly":true}},"required":["pin"]}`)})).
		Step(workflow.Reason("think", "sage").Needs("ask").Map("pin", "steps.ask.output.pin").Map("id", "input.id").
			Verifier("judge").Output(`{"type":"object","properties":{"id":{"type":"string"},"pin":{"type":"string","pattern":"^M.RK"}}}`)).
		Step(workflow.Execute("open", "open").Needs("think").Guard("fits").Map("id", "input.id").Map("pin", "steps.think.output.pin").Map("headers", "input.headers")).
		Step(workflow.Run("nest", "inner").Needs("open").Map("id", "input.id").Map("pin", "steps.open.output.token").
			Output(`{"type":"object","properties":{"token":{"type":"string","pattern":"^token-token-M.RK"}},"required":["token"]}`)).
		Step(workflow.Execute("shut", "close").Needs("nest").Map("id", "input.id").Map("pin", "steps.nest.output.token").Ladder(workflow.Rung{Kind: workflow.RungRetry, Attempts: 1})).
		Output("token", "steps.shut.output.token").MustBuild()
	return w
}

func (w *bank) hear(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, what)
}

func (w *bank) open(ring keys.Ring) *Engine {
	sage := ProposerFunc(func(_ context.Context, r StepRequest) (Draft, error) {
		w.store.hear("planner", string(r.Input), r.Intakes, r.Critique, r.Goal)
		return Draft{Document: r.Input}, nil // it hands on what it was shown
	})
	e, err := New(Config{Store: w.store, Keys: ring, Operators: []string{"olga"}, Poll: 5 * time.Millisecond,
		Log:           slog.New(slog.NewJSONHandler(io.Writer(w.store), &slog.HandlerOptions{Level: slog.LevelDebug})),
		Observers:     []Watch{{Observer: ObserverFunc(func(_ context.Context, r Record) { w.store.hear(fmt.Sprintf("%+v", r), asText(r)) })}},
		Authenticator: AuthenticatorFunc(func(_ context.Context, c any) (string, error) { return c.(string), nil }),
		Workflows: Workflows{
			Definitions: []*workflow.Definition{w.inner, w.outer}, Proposers: map[string]Proposer{"sage": sage},
			Verifiers: map[string]Verifier{"judge": func(_ context.Context, _ workflow.Subject, doc json.RawMessage) (string, error) {
				w.hear(string(doc))
				return "", nil
			}},
			Guards: map[string]Guard{"fits": func(_ context.Context, view json.RawMessage) (bool, error) {
				w.hear(string(view))
				return true, nil
			}},
		}})
	require.NoError(w, err)
	w.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

func asText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (w *bank) as(e *Engine, name string) Identity {
	id, err := e.Authenticate(w.Context(), name)
	require.NoError(w, err)
	return id
}

// folds checks that an instance is what its events come to.
func (w *bank) folds(t *Task) {
	records, _, err := t.Ledger(w.Context())
	require.NoError(w, err)
	k, err := t.readFlow(w.Context())
	require.NoError(w, err)
	diffs, err := engine.CompareFlow(records, &k)
	require.NoError(w, err)
	assert.Empty(w, diffs)
	folded, err := engine.FoldLedger(records)
	require.NoError(w, err)
	snap, err := w.store.Load(w.Context(), t.agent.name, t.local, nil)
	require.NoError(w, err)
	assert.Empty(w, engine.CompareTask(folded, snap))
}

func testRing(t *testing.T) *keys.Set {
	k, err := keys.NewKey("march", time.Now())
	require.NoError(t, err)
	s, err := keys.NewSet(k)
	require.NoError(t, err)
	return s
}

// TestI14_WorkflowSecretsAreNotWrittenDown: secrets that a workflow is given, asks for, hands from step to step and into a
// nested workflow and back reach functions, verifiers and conditions, and appear nowhere else, and the instance is the fold of
// its ledger. They are opened for the program that asks for them until they are erased.
func TestI14_WorkflowSecretsAreNotWrittenDown(t *testing.T) {
	for _, subject := range []string{"", "somebody"} {
		for _, spoiled := range []bool{false, true} {
			t.Run(fmt.Sprintf("about %q, undone %v", subject, spoiled), func(t *testing.T) {
				w := newBank(t)
				w.spoiled = spoiled
				e := w.open(testRing(t))
				goal := Goal{ID: "g", Agent: w.agent, Text: "open it", Subject: subject}
				run, err := e.StartWorkflow(t.Context(), w.outer, goal, []byte(`{"id":"o1","headers":{"MARKname":"MARKvalue"}}`))
				require.NoError(t, err)
				s, err := run.Run(t.Context())
				require.NoError(t, err)
				require.True(t, s.Parked())
				require.NoError(t, run.Signal(t.Context(), "ask", w.as(e, "ana"), []byte(`{"pin":"nothing of the kind"}`)))
				s, err = run.Run(t.Context())
				require.NoError(t, err)
				require.True(t, s.Parked(), "the contract holds for what stands behind the digest")
				require.NoError(t, run.Signal(t.Context(), "ask", w.as(e, "ana"), []byte(`{"pin":"MARK1234","note":"MARKnote"}`)))
				s, err = run.Run(t.Context())
				require.NoError(t, err)
				want := []accountIn{
					{ID: "o1", Pin: "MARK1234", Headers: map[string]string{"MARKname": "MARKvalue"}},
					{ID: "o1", Pin: "token-MARK1234"},
					{ID: "o1", Pin: "token-token-MARK1234"},
				}
				if spoiled {
					require.Equal(t, workflow.Failed, s.Status, asText(s))
					want = append(want, accountIn{ID: "o1", Pin: "token-token-MARK1234"}, accountIn{ID: "o1", Pin: "token-MARK1234"})
				} else {
					require.Equal(t, workflow.Completed, s.Status, asText(s))
					plain, err := run.Reveal(t.Context(), s.Output)
					require.NoError(t, err)
					assert.JSONEq(t, `{"token":"token-token-token-MARK1234"}`, string(plain))
				}
				assert.Equal(t, want, w.got)
				for _, told := range w.told {
					assert.Contains(t, told, "MARK1234", "who judges sees what it is about")
				}
				w.folds(run.Task())
				child, err := run.Task().Child(t.Context(), "g.nest.1")
				require.NoError(t, err)
				nested, err := e.Open(t.Context(), child.ID())
				require.NoError(t, err)
				w.folds(nested)

				_, err = e.Erase(t.Context(), cmp.Or(subject, run.ID()), w.as(e, "olga"), "asked for")
				require.NoError(t, err)
				if !spoiled {
					_, err = run.Reveal(t.Context(), s.Output)
					assert.Equal(t, action.KeyUnavailable, code(err))
				}
				w.folds(run.Task())
				events, err := run.Task().Events(t.Context())
				require.NoError(t, err)
				state, err := run.State(t.Context())
				require.NoError(t, err)
				require.NoError(t, e.Close(context.Background()))
				out := w.store.all() + asText(events) + asText(state)
				for line := range strings.SplitSeq(out, "\n") {
					if i := strings.Index(line, "MARK"); i >= 0 {
						assert.Fail(t, "a secret went out", line[max(0, i-600):min(len(line), i+100)])
						break
					}
				}
				assert.Contains(t, out, keys.DigestPrefix)
				if subject != "" {
					assert.NotContains(t, out[:strings.Index(out, "planner")], "open it", "the goal of a task about somebody")
				}
			})
		}
	}
}

// TestI14_WorkflowSecretsStayWhereTheyBelong: a workflow that hands a secret to a field that is none is not started; a planner
// that does gets the call refused, and the function never sees what stands behind the digest.
func TestI14_WorkflowSecretsStayWhereTheyBelong(t *testing.T) {
	w := newBank(t)
	ran := 0
	say := Define("say", func(_ *Context, in accountOut) mo.Result[string] { ran++; return mo.Ok(in.ID) }).Describe("Say").Risk(1).Effect(action.Idempotent).MustBuild()
	agent := NewAgent("crier").Grant(say).MustBuild()
	spills := workflow.New("spills", "1").Input(`{"type":"object","properties":{"pin":{"type":"string","writeOnly":true}}}`).
		Step(workflow.Execute("say", "say").Map("id", "input.pin").Const("token", `"x"`)).MustBuild()
	sly := workflow.New("sly", "1").Input(`{"type":"object","properties":{"pin":{"type":"string","writeOnly":true}}}`).
		Step(workflow.Execute("say", "say").Map("pin", "input.pin").Planner("sly").Ladder(workflow.Rung{Kind: workflow.RungRetry, Attempts: 1})).MustBuild()
	e, err := New(Config{Store: w.store, Workflows: Workflows{Definitions: []*workflow.Definition{spills, sly}, Proposers: map[string]Proposer{
		"sly": ProposerFunc(func(_ context.Context, r StepRequest) (Draft, error) {
			var in struct{ Pin string }
			require.NoError(t, json.Unmarshal(r.Input, &in))
			assert.True(t, strings.HasPrefix(in.Pin, keys.DigestPrefix), in.Pin)
			return Draft{Document: fmt.Appendf(nil, `{"id":%q,"token":%q}`, in.Pin, in.Pin)}, nil
		}),
	}}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	_, err = e.StartWorkflow(t.Context(), spills, Goal{Agent: agent}, []byte(`{"pin":"MARK1234"}`))
	require.ErrorContains(t, err, `"input.pin"`)
	assert.ErrorContains(t, err, `field "id" of action "say"`)

	run, err := e.StartWorkflow(t.Context(), sly, Goal{Agent: agent}, []byte(`{"pin":"MARK1234"}`))
	require.NoError(t, err)
	s, err := run.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, workflow.Failed, s.Status)
	assert.Equal(t, action.InputInvalid, s.Failure.Code, s.Failure)
	assert.Zero(t, ran)
	assert.NotContains(t, w.store.all(), "MARK1234")
	w.folds(run.Task())
}

// TestI14_SecretsOfAnAmendedUndoAreNotWrittenDown: what a person gives to a call that undoes a step, by a declaration of the
// step's or of its action, reaches the function and nothing else.
func TestI14_SecretsOfAnAmendedUndoAreNotWrittenDown(t *testing.T) {
	for _, declared := range []bool{false, true} {
		t.Run(fmt.Sprint("declared by the action: ", declared), func(t *testing.T) {
			w := newBank(t)
			w.broken = "back"
			step := workflow.Execute("open", "open").Map("id", "input.id").Const("pin", `"1"`)
			if !declared {
				step = step.Undo("back", workflow.Mapping{"id": {From: "call.input.id"}, "pin": {From: "call.output.token"}})
			}
			w.outer = workflow.New("outer", "1").Owners("ana").Step(step).
				Step(workflow.AskPerson("ask").Needs("open").Hitl(workflow.Hitl{Prompt: "?", Intake: json.RawMessage(`{"type":"string"}`)})).MustBuild()
			e := w.open(testRing(t))
			run, err := e.StartWorkflow(t.Context(), w.outer, Goal{ID: "g", Agent: w.agent, Approvers: []string{"ana"}}, []byte(`{"id":"o1"}`))
			require.NoError(t, err)
			_, err = run.Run(t.Context())
			require.NoError(t, err)
			require.NoError(t, run.Cancel(t.Context(), w.as(e, "ana"), CancelMode{}, "enough"))
			s, err := run.Run(t.Context())
			require.NoError(t, err)
			require.Len(t, s.Waits(), 1)
			w.mu.Lock()
			w.broken = ""
			w.mu.Unlock()
			require.NoError(t, run.Amend(t.Context(), "open", w.as(e, "ana"), []byte(`{"id":"o1","pin":"MARKamended"}`)))
			s, err = run.Run(t.Context())
			require.NoError(t, err)
			assert.Equal(t, workflow.Stopped, s.Status)
			assert.Equal(t, "MARKamended", w.got[len(w.got)-1].Pin)
			assert.NotContains(t, w.store.all(), "MARKamended")
			w.folds(run.t)
		})
	}
}

// TestI15_WorkflowWithoutItsKeyWaits: a worker that lacks the ring does nothing with an instance that carries secrets, takes
// no secret from a person, and leaves it to one that has the ring.
func TestI15_WorkflowWithoutItsKeyWaits(t *testing.T) {
	w := newBank(t)
	ring := testRing(t)
	with, without := w.open(ring), w.open(nil)
	run, err := with.StartWorkflow(t.Context(), w.outer, Goal{ID: "g", Agent: w.agent}, []byte(`{"id":"o1","headers":{"MARKname":"MARKvalue"}}`))
	require.NoError(t, err)
	require.NoError(t, without.Register(w.agent))
	there, err := without.OpenWorkflow(t.Context(), run.ID())
	require.NoError(t, err)
	_, err = run.Run(t.Context())
	require.NoError(t, err)
	err = there.Signal(t.Context(), "ask", w.as(without, "ana"), []byte(`{"pin":"MARK1234"}`))
	require.Equal(t, action.KeyUnavailable, code(err), "%v", err)
	require.NoError(t, run.Signal(t.Context(), "ask", w.as(with, "ana"), []byte(`{"pin":"MARK1234"}`)))
	for range 3 {
		require.NoError(t, without.driveDue(t.Context(), there.t.state, "g"))
	}
	assert.Empty(t, w.got)
	s, err := run.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, workflow.Completed, s.Status, asText(s))
	assert.NotContains(t, w.store.all(), "MARK")
}

// A data key that needs no ring does what a wrapped one does.
func TestWorkflowSecretsWithoutRing(t *testing.T) {
	w := newBank(t)
	e := w.open(nil)
	run, err := e.StartWorkflow(t.Context(), w.outer, Goal{Agent: w.agent}, []byte(`{"id":"o1","headers":{"MARKname":"MARKvalue"}}`))
	require.NoError(t, err)
	_, err = run.Run(t.Context())
	require.NoError(t, err)
	require.NoError(t, run.Signal(t.Context(), "ask", w.as(e, "ana"), []byte(`{"pin":"MARK1234"}`)))
	s, err := run.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, workflow.Completed, s.Status)
	assert.NotContains(t, w.store.all(), "MARK")
	w.folds(run.Task())
}

// Places meet where one is the other, or lies inside of it; a star is any member or element.
func TestPlaces(t *testing.T) {
	p := secretPlaces([]string{"card.number", "list.*.pin", `odd\.name`})
	for _, c := range []struct {
		at     string
		covers bool
		below  int
		why    string
	}{
		{"card.number", true, 1, "the secret itself"},
		{"card.number.digits", true, 1, "inside of it"},
		{"card", false, 1, "it holds one"},
		{"list.0.pin", true, 1, "an element"},
		{"list.0", false, 1, "holds one"},
		{"list.0.name", false, 0, "beside one"},
		{"other", false, 0, "no secret"},
	} {
		at := strings.Split(c.at, ".")
		assert.Equal(t, c.covers, p.covers(at), "%s: %s", c.at, c.why)
		assert.Len(t, p.below(at), c.below, "%s: %s", c.at, c.why)
	}
	assert.True(t, p.covers([]string{"odd.name"}), "a dot in a name is no step down")
	assert.True(t, places{nil}.covers([]string{"anything"}), "the whole document")
}

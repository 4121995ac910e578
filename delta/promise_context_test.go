package delta_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/skills"
)

// does declares an action that does f.
func does(name string, f func(*delta.Context, In) mo.Result[Out]) delta.Builder[In, Out] {
	return delta.Define(name, f).Describe("what " + name + " does").Risk(1).Effect(action.None)
}

// started opens a task in an engine of its own.
func started(t *testing.T, cfg delta.Config, g delta.Goal) (*delta.Engine, *delta.Task) {
	t.Helper()
	e, err := delta.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close(context.Background())) })
	task, err := e.Start(t.Context(), g)
	require.NoError(t, err)
	return e, task
}

func skill(name, text string) fstest.MapFS {
	return fstest.MapFS{name + "/SKILL.md": {Data: []byte("---\nname: " + name + "\ndescription: About " + name + ".\n---\n" + text)}}
}

// Skills are of the agent, of the task and of the action: each reader sees those it was given, and the names of no other.
func TestSkillsReachWhoWasGivenThem(t *testing.T) {
	library := skills.New(skill("agents", "A"), skill("goals", "G"), skill("mine", "M"), skill("others", "O"), skill("nobodys", "N"))
	var seen []skills.Info
	mine := does("mine", func(ctx *delta.Context, _ In) mo.Result[Out] {
		seen = ctx.Skills()
		s, err := ctx.Skill("mine")
		assert.NoError(t, err)
		assert.Equal(t, "M", s.Body)
		_, err = ctx.Skill("others")
		assert.Error(t, err)
		_, err = ctx.SkillFile("nobodys", "SKILL.md")
		assert.Error(t, err)
		return mo.Ok(Out{"ok"})
	}).Skills("mine").MustBuild()
	others := does("others", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"ok"}) }).Skills("others").Needs(mine).MustBuild()
	e, task := started(t, delta.Config{Skills: library}, delta.Goal{Agent: delta.NewAgent("a").Skills("agents").Grant(mine, others).MustBuild(), Skills: []string{"goals"}})

	names := func(infos []skills.Info) (out []string) {
		for _, i := range infos {
			out = append(out, i.Name)
		}
		return out
	}
	require.NoError(t, e.Run(t.Context(), task, delta.PlannerFunc(func(_ context.Context, r delta.Request) (delta.Proposal, error) {
		switch r.Step {
		case 1:
			assert.Equal(t, []string{"agents", "goals", "mine"}, names(r.Skills), "a skill of an action that is not offered would tell that it exists")
			_, err := r.Skill("others")
			assert.Error(t, err)
			return delta.Proposal{Calls: []delta.Call{call("mine", "x")}}, nil
		default:
			assert.Equal(t, []string{"agents", "goals", "mine", "others"}, names(r.Skills))
			return delta.Proposal{Done: true}, nil
		}
	})).Error())
	assert.Equal(t, []string{"agents", "goals", "mine"}, names(seen))
}

// A skill that is missing or malformed is found out before anything runs, by the name of its file and with the way out.
func TestSkillsAreCheckedAtStart(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "broken"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "broken", skills.File), []byte("no front matter"), 0o600))
	library, err := skills.Open(folder)
	require.NoError(t, err)
	act := does("act", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"ok"}) })
	e, err := delta.New(delta.Config{Skills: library})
	require.NoError(t, err)
	defer e.Close(context.Background())
	bare, err := delta.New(delta.Config{})
	require.NoError(t, err)
	defer bare.Close(context.Background())

	ofAction := delta.NewAgent("a").Grant(act.Skills("missing").MustBuild()).MustBuild()
	for _, c := range []struct {
		name, fault string
		e           *delta.Engine
		g           delta.Goal
	}{
		{"of the goal", filepath.Join(folder, "missing", skills.File), e, delta.Goal{Agent: delta.NewAgent("a").MustBuild(), Skills: []string{"missing"}}},
		{"of the agent", filepath.Join(folder, "broken", skills.File), e, delta.Goal{Agent: delta.NewAgent("a").Skills("broken").MustBuild()}},
		{"of an action", `action "act"`, e, delta.Goal{Agent: ofAction}},
		{"no library", "set Config.Skills", bare, delta.Goal{Agent: ofAction}},
		{"a path", "lower-case letters", e, delta.Goal{Agent: delta.NewAgent("a").MustBuild(), Skills: []string{"../x"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.e.Start(t.Context(), c.g)
			assert.ErrorContains(t, err, c.fault)
		})
	}
	assert.ErrorContains(t, e.Register(ofAction), "missing")
	_, err = delta.NewAgent("a").Skills("A b").Build()
	assert.ErrorContains(t, err, "lower-case letters")
	_, err = act.Skills("A b").Build()
	assert.ErrorContains(t, err, "lower-case letters")
}

const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR"

func TestAttachmentsAreCheckedAtStart(t *testing.T) {
	e, err := delta.New(delta.Config{MaxAttachment: 64})
	require.NoError(t, err)
	defer e.Close(context.Background())
	many := make([]delta.Attachment, delta.MaxAttachments+1)
	bearer := delta.NewAgent("a").MustBuild()
	for _, c := range []struct {
		name, reason, fault string
		as                  []delta.Attachment
	}{
		{"image", "it is one", "", []delta.Attachment{{Type: "image/png", Data: []byte(png)}}},
		{"type found out", "nobody has to say it", "", []delta.Attachment{{Data: []byte(png)}}},
		{"text with parameters", "they are kept", "", []delta.Attachment{{Type: "text/csv; charset=utf-8", Data: []byte("a,b\n")}}},
		{"audio under an alias", "types have several names", "", []delta.Attachment{{Type: "audio/mp3", Data: []byte("\xff\xfb\x90\x00\x00")}}},
		{"unknown binary", "not every type is known", "", []delta.Attachment{{Type: "application/x-thing", Data: []byte{0, 1, 2, 3}}}},
		{"declared octets", "they may be anything", "", []delta.Attachment{{Type: "application/octet-stream", Data: []byte(png)}}},
		{"office", "a container of parts", "", []delta.Attachment{{Type: "application/vnd.openxmlformats-officedocument.wordprocessingml.document", Data: []byte("PK\x03\x04\x00")}}},
		{"another image", "what a model is shown must be what was declared", "looks like image/png", []delta.Attachment{{Type: "image/jpeg", Data: []byte(png)}}},
		{"script as image", "a page is no picture", "looks like text/plain", []delta.Attachment{{Type: "image/png", Data: []byte("<script>")}}},
		{"unknown as audio", "nobody could play it", "does not look like that", []delta.Attachment{{Type: "audio/wav", Data: []byte{0, 1, 2, 3}}}},
		{"program as text", "it would be shown", "looks like application/x-elf", []delta.Attachment{{Type: "text/plain", Data: []byte("\x7fELF\x02")}}},
		{"image as document", "it is recognised as what it is", "looks like image/png", []delta.Attachment{{Type: "application/pdf", Data: []byte(png)}}},
		{"no type", "it is none", "not a media type", []delta.Attachment{{Type: "picture", Data: []byte(png)}}},
		{"empty", "there is nothing to read", "want 1 to 64", []delta.Attachment{{Type: "text/plain"}}},
		{"large", "the limit is the engine's", "raise Config.MaxAttachment", []delta.Attachment{{Data: bytes.Repeat([]byte("x"), 65)}}},
		{"path as id", "an id is no path", "not allowed", []delta.Attachment{{ID: "../etc/passwd", Data: []byte("x")}}},
		{"twice", "an id names one", "give each its own", []delta.Attachment{{ID: "a", Data: []byte("x")}, {ID: "a", Data: []byte("y")}}},
		{"long name", "names are shown", "longer than", []delta.Attachment{{Name: strings.Repeat("n", 201), Data: []byte("x")}}},
		{"too many", "a list has an end", "at most", many},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := e.Start(t.Context(), delta.Goal{Agent: bearer, Attachments: c.as})
			if c.fault == "" {
				assert.NoError(t, err, c.reason)
			} else {
				assert.ErrorContains(t, err, c.fault, c.reason)
			}
		})
	}
}

// blobs is a store of attachments that a test can spoil.
type blobs struct {
	sync.Mutex
	kept map[string][]byte
	err  error
}

func (b *blobs) Put(_ context.Context, sum string, content []byte) error {
	b.Lock()
	defer b.Unlock()
	b.kept[sum] = content
	return b.err
}

func (b *blobs) Get(_ context.Context, sum string) ([]byte, error) {
	b.Lock()
	defer b.Unlock()
	return b.kept[sum], nil
}

// The ledger says what was attached and holds none of it; what is read is what was attached, or an error.
func TestAttachmentsAreRecordedByDigestAndReadIntact(t *testing.T) {
	b := &blobs{kept: map[string][]byte{}}
	var read []error
	act := does("act", func(ctx *delta.Context, _ In) mo.Result[Out] {
		a, err := ctx.Attachment("photo")
		read = append(read, err)
		if err == nil {
			assert.Equal(t, png, string(a.Data))
			a.Data[0] = 'X' // the reader's own copy
		}
		_, err = ctx.Attachment("other")
		assert.ErrorContains(t, err, `the task has ["photo"]`)
		assert.Len(t, ctx.Attachments(), 1)
		return mo.Ok(Out{"ok"})
	}).Context("photo").MustBuild()
	data := []byte(png)
	_, task := started(t, delta.Config{Attachments: b}, delta.Goal{Agent: delta.NewAgent("a").Grant(act).MustBuild(), Attachments: []delta.Attachment{{ID: "photo", Name: "me.png", Data: data}}})
	data[0] = 'Y'
	require.NoError(t, act.Do(t.Context(), task, In{ID: "x"}).Error())

	events, err := task.Events(t.Context())
	require.NoError(t, err)
	assert.Contains(t, string(events[0].State), `"attachments":[{"id":"photo","name":"me.png","type":"image/png","size":16,"sha256":"`)
	assert.NotContains(t, string(events[0].State), "IHDR")

	for sum := range b.kept {
		b.kept[sum] = []byte("something else")
	}
	require.NoError(t, act.Do(t.Context(), task, In{ID: "y"}).Error())
	require.Len(t, read, 2)
	assert.NoError(t, read[0])
	assert.ErrorContains(t, read[1], "its content has changed")

	b.err = errors.New("disk full")
	e, err := delta.New(delta.Config{Attachments: b})
	require.NoError(t, err)
	defer e.Close(context.Background())
	_, err = e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("a").MustBuild(), Attachments: []delta.Attachment{{Data: []byte("x")}}})
	assert.ErrorContains(t, err, "disk full", "a task without its attachments does not start")
}

// In memory, content lives with the tasks that want it.
func TestAttachmentsInMemoryEndWithTheirTasks(t *testing.T) {
	agent := delta.NewAgent("a").MustBuild()
	e, one := started(t, delta.Config{}, delta.Goal{ID: "one", Agent: agent, Attachments: []delta.Attachment{{ID: "a", Data: []byte("same")}}})
	two, err := e.Start(t.Context(), delta.Goal{ID: "two", Agent: agent, Attachments: []delta.Attachment{{ID: "b", Data: []byte("same")}}})
	require.NoError(t, err)
	_, err = e.Start(t.Context(), delta.Goal{ID: "one", Agent: agent, Attachments: []delta.Attachment{{ID: "a", Data: []byte("same")}}})
	require.Error(t, err, "the id is taken")

	reads := func(task *delta.Task, id string) (err error) {
		assert.NoError(t, e.Run(t.Context(), task, delta.PlannerFunc(func(ctx context.Context, r delta.Request) (delta.Proposal, error) {
			_, err = r.Attachment(ctx, id)
			return delta.Proposal{Done: true}, nil
		})).Error())
		return err
	}
	require.NoError(t, reads(one, "a"))
	require.NoError(t, one.Done(t.Context(), "done"))
	assert.NoError(t, reads(two, "b"), "the other task wants it still")
}

// A phase is told to who comes after its change, recorded with who changed it, and part of the fold.
func TestPhasesAreRecorded(t *testing.T) {
	var told []string
	act := does("act", func(ctx *delta.Context, _ In) mo.Result[Out] {
		told = append(told, ctx.Phase())
		require.NoError(t, ctx.SetPhase("second", "the first is over"))
		assert.Equal(t, []string{"a story"}, ctx.Storylines())
		return mo.Ok(Out{"ok"})
	}).MustBuild()
	store := memory.New(memory.Config{})
	_, task := started(t, delta.Config{Store: store}, delta.Goal{ID: "t", Agent: delta.NewAgent("a").Grant(act).MustBuild(), Phase: "first", Storylines: []string{"a story"}})
	out := task.Do(t.Context(), call("act", "x")).MustGet()
	require.True(t, out.OK(), "%v: a change of the task while a call runs is no reason to lose its end", out.Failure)
	require.NoError(t, task.SetPhase(t.Context(), "second", "again"))
	require.NoError(t, task.SetPhase(t.Context(), "third", "by hand"))
	assert.Error(t, task.SetPhase(t.Context(), "no phase", ""))
	require.True(t, task.Do(t.Context(), call("act", "y")).MustGet().OK())
	assert.Equal(t, []string{"first", "third"}, told)

	var changes []string
	events, err := task.Events(t.Context())
	require.NoError(t, err)
	for _, e := range events {
		if e.Type == ledger.PhaseChanged {
			changes = append(changes, fmt.Sprint(e.Text, ": ", e.Reason, " ", e.Intent == out.Intent))
		}
	}
	assert.Equal(t, []string{"second: the first is over true", "third: by hand false", "second: the first is over false"}, changes)

	require.NoError(t, task.Done(t.Context(), ""))
	assert.ErrorContains(t, task.SetPhase(t.Context(), "fourth", ""), "TASK_CLOSED")
	folds(t, store, "a", "t")
}

// folds compares the cells of a task with the fold of its ledger (I14).
func folds(t *testing.T, store memory.Store, agent, task string) {
	t.Helper()
	records, err := store.Records(t.Context(), agent, task, 1, 10_000)
	require.NoError(t, err)
	state, err := engine.FoldLedger(records)
	require.NoError(t, err)
	snap, err := store.Load(t.Context(), agent, task, nil)
	require.NoError(t, err)
	require.NotEmpty(t, snap.Task.Cells)
	for name, c := range snap.Task.Cells {
		assert.Equal(t, c.Val, state.Task.Cells[name].Val, name)
	}
	assert.Equal(t, snap.Task.Counters, state.Task.Counters)
	assert.Equal(t, snap.Agent.Counters, state.Agent.Counters)
}

// What the calls came to and what was said of the goal are both kept, and neither follows from the other.
func TestVerdicts(t *testing.T) {
	boss := func(e *delta.Engine, name string) delta.Identity {
		id, err := e.Authenticate(context.Background(), name)
		require.NoError(t, err)
		return id
	}
	cfg := func() delta.Config {
		return delta.Config{Authenticator: anybody, Operators: []string{"boss", "bo"}, Store: memory.New(memory.Config{})}
	}
	give := does("give-up", func(ctx *delta.Context, _ In) mo.Result[Out] {
		if err := ctx.Conclude(action.Abandoned, "the provider is gone"); err != nil {
			return mo.Err[Out](err)
		}
		return mo.Ok(Out{"told"})
	}).MustBuild()
	agent := delta.NewAgent("a").Grant(give).MustBuild()

	t.Run("by a function", func(t *testing.T) {
		c := cfg()
		_, task := started(t, c, delta.Goal{ID: "t", Agent: agent})
		out := task.Do(t.Context(), call("give-up", "x")).MustGet()
		assert.True(t, out.OK(), "the call itself went well: %v", out.Failure)
		v, ok, err := task.Conclusion(t.Context())
		require.NoError(t, err)
		require.True(t, ok)
		assert.Equal(t, []any{action.Abandoned, action.ByFunction, out.Intent}, []any{v.Verdict, v.By, v.Intent})
		assert.Equal(t, action.TaskClosed, task.Do(t.Context(), call("give-up", "y")).MustGet().Code)
		folds(t, c.Store, "a", "t")
	})
	t.Run("by the planner", func(t *testing.T) {
		e, task := started(t, cfg(), delta.Goal{ID: "t", Agent: agent})
		say := func(v action.Verdict) delta.Report {
			return e.Run(t.Context(), task, delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) {
				return delta.Proposal{Done: true, Verdict: v, Why: "so I say"}, nil
			})).MustGet()
		}
		r := say("splendid")
		assert.ErrorContains(t, r.Err, `"splendid" is no verdict`)
		assert.Empty(t, r.Verdict)
		r = say("")
		require.NoError(t, r.Err)
		status, _, _ := task.Status(t.Context())
		assert.Equal(t, "running", status, "done with a run is not done with the task")
		r = say(action.NotReached)
		require.NoError(t, r.Err)
		assert.Equal(t, action.NotReached, r.Verdict)
		v, _, err := task.Conclusion(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []any{action.ByPlanner, "so I say"}, []any{v.By, v.Reason})
	})
	t.Run("by people", func(t *testing.T) {
		c := cfg()
		e, task := started(t, c, delta.Goal{ID: "t", Agent: agent, Requester: "bo"})
		require.NoError(t, task.Done(t.Context(), "done"))
		_, ok, err := task.Conclusion(t.Context())
		require.NoError(t, err)
		assert.False(t, ok, "a task that ended says nothing about its goal")
		assert.Error(t, task.Conclude(t.Context(), action.Reached, ""), "a program does not rewrite what ended")
		assert.Error(t, task.ConcludeBy(t.Context(), boss(e, "bo"), action.Reached, ""), "who requested it does not judge it")
		assert.Error(t, task.ConcludeBy(t.Context(), boss(e, "eve"), action.Reached, ""), "nor does just anybody")
		assert.Error(t, task.ConcludeBy(t.Context(), delta.Identity{}, action.Reached, ""))
		require.NoError(t, task.ConcludeBy(t.Context(), boss(e, "boss"), action.Reached, "looks right"))
		require.NoError(t, task.ConcludeBy(t.Context(), boss(e, "boss"), action.NotReached, "on second thoughts"))
		require.NoError(t, task.ConcludeBy(t.Context(), boss(e, "boss"), action.NotReached, "on second thoughts"))
		events, err := task.Events(t.Context())
		require.NoError(t, err)
		var said []string
		for _, ev := range events {
			if ev.Type == ledger.TaskConcluded {
				said = append(said, fmt.Sprint(ev.Verdict, " ", ev.Identity, " ", ev.Text))
			}
		}
		assert.Equal(t, []string{"reached boss person", "not_reached boss person"}, said, "each word once, the latest counts")
		folds(t, c.Store, "a", "t")
	})
}

// A message is an effect: nothing is sent that a gate refused, and what was sent is in the ledger.
func TestMessagesAreGoverned(t *testing.T) {
	var mu sync.Mutex
	var sent []delta.Message
	ops := delta.ChannelFunc(func(_ context.Context, m delta.Message) error {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, m)
		if m.Text == "panic" {
			panic("channel")
		}
		return nil
	})
	cfg := delta.Config{Channels: map[string]delta.Channel{"ops": ops, "all": ops}, Authenticator: anybody}
	tell := delta.Communicate().RequireApproval().MustBuild()
	fromWithin := does("notify", func(ctx *delta.Context, _ In) mo.Result[Out] {
		o := ctx.Communicate("ops", "from within").MustGet()
		return mo.Ok(Out{string(o.Code)})
	}).MustBuild()
	agent := delta.NewAgent("a").Grant(tell, fromWithin).MustBuild()
	e, task := started(t, cfg, delta.Goal{Agent: agent, Channels: []string{"ops"}, Approvers: []string{"*"}})

	out := task.Communicate(t.Context(), "ops", "hello").MustGet()
	require.Equal(t, action.ApprovalRequired, out.Code)
	assert.Empty(t, sent, "a person was asked first")
	boss, err := e.Authenticate(t.Context(), "boss")
	require.NoError(t, err)
	require.NoError(t, e.Approve(t.Context(), out.Failure.Approval(), boss, "fine"))
	require.True(t, task.Communicate(t.Context(), "ops", "hello").MustGet().OK())
	require.Len(t, sent, 1)
	assert.Equal(t, []any{"ops", "hello", task.ID(), out.Intent}, []any{sent[0].Channel, sent[0].Text, sent[0].Task, sent[0].ID})

	for _, c := range []struct {
		channel, text string
		want          action.Code
	}{
		{"all", "x", action.ChannelUnknown},
		{"", "x", action.InputInvalid},
		{"ops", "", action.InputInvalid},
		{"ops", strings.Repeat("x", 8001), action.InputInvalid},
		{"none", "x", action.ChannelUnknown},
	} {
		assert.Equal(t, c.want, task.Communicate(t.Context(), c.channel, c.text).MustGet().Code, "%q %d", c.channel, len(c.text))
	}
	assert.Len(t, sent, 1)
	assert.Equal(t, Out{"APPROVAL_REQUIRED"}, fromWithin.Do(t.Context(), task, In{ID: "x"}).MustGet())

	none, err := e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("b").MustBuild(), Channels: []string{"ops"}})
	require.NoError(t, err)
	assert.Equal(t, action.ActionUnknown, none.Communicate(t.Context(), "ops", "x").MustGet().Code, "who was not granted it cannot send")
	_, err = e.Start(t.Context(), delta.Goal{Agent: agent, Channels: []string{"none"}})
	assert.ErrorContains(t, err, `add it to Config.Channels`)
	_, err = delta.New(delta.Config{Channels: map[string]delta.Channel{"a b": ops, "nil": nil}})
	assert.ErrorContains(t, err, "nil")
	assert.ErrorContains(t, err, "not allowed")

	plain, err := e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("c").Grant(delta.Communicate().MustBuild()).MustBuild(), Channels: []string{"ops"}})
	require.NoError(t, err)
	assert.Equal(t, action.Panicked, plain.Communicate(t.Context(), "ops", "panic").MustGet().Code)

	again, err := e.Open(t.Context(), plain.ID()) // a handle that has not read anything yet
	require.NoError(t, err)
	assert.True(t, again.Communicate(t.Context(), "ops", "again").MustGet().OK())
}

// A call within a call is one like any other: its own intent, its own gates, the same budget. It is recorded with the call
// that made it and not held against the planner.
func TestToolsAreGoverned(t *testing.T) {
	var outcomes []action.Outcome
	leaf := does("leaf", func(ctx *delta.Context, in In) mo.Result[Out] {
		if in.ID == "fail" {
			return mo.Err[Out](errors.New("no"))
		}
		return mo.Ok(Out{in.ID})
	}).MustBuild()
	later := does("later", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"ok"}) }).Needs(leaf.On("id")).MustBuild()
	hidden := does("hidden", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"ok"}) }).MustBuild()
	inputs := []struct {
		tool  string
		input any
		want  action.Code
	}{
		{"later", In{ID: "x"}, action.NotLegal},
		{"leaf", In{ID: "x"}, action.OK},
		{"later", json.RawMessage(`{"id":"x"}`), action.OK},
		{"leaf", map[string]any{"id": 7}, action.InputInvalid},
		{"leaf", In{ID: "fail"}, action.Failed},
		{"hidden", In{ID: "x"}, action.ToolUnknown},
		{"denied", In{ID: "x"}, action.Denied},
	}
	denied := does("denied", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"ok"}) }).MustBuild()
	var kept *delta.Context
	outer := does("outer", func(ctx *delta.Context, _ In) mo.Result[Out] {
		kept = ctx
		for _, c := range inputs {
			outcomes = append(outcomes, ctx.Tool(c.tool).Call(c.input).MustGet())
		}
		_, err := ctx.Tool("leaf").Call(func() {}).Get()
		assert.Error(t, err)
		return mo.Ok(Out{"ok"})
	}).Tools("leaf", "later", "denied").MustBuild()
	agent := delta.NewAgent("a").Grant(leaf, later, hidden, outer).Actions(denied).MustBuild()
	e, task := started(t, delta.Config{}, delta.Goal{Agent: agent, Limit: action.Limit{Calls: action.Max(20)}})

	out := task.Do(t.Context(), delta.Call{ID: "c", Action: "outer", Input: inputOf(In{ID: "o"}), Provenance: action.Provenance{PlanStep: "3"}}).MustGet()
	require.True(t, out.OK(), "%v", out.Failure)
	for i, c := range inputs {
		assert.Equal(t, c.want, outcomes[i].Code, "%s: %v", c.tool, outcomes[i].Failure)
	}
	b, err := task.Budget(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 4, b.Spent.Calls, "outer, leaf twice and later")
	events, err := task.Events(t.Context())
	require.NoError(t, err)
	within := 0
	for _, ev := range events {
		if ev.Within != "" {
			assert.Equal(t, out.Intent, ev.Within)
			if ev.Type != ledger.Settled {
				assert.Equal(t, "3", ev.Provenance.PlanStep)
				within++
			}
		}
	}
	assert.Equal(t, len(inputs), within, "each begin and each refusal says whose call it was")
	trust, err := e.Trust(t.Context(), "a")
	require.NoError(t, err)
	assert.Zero(t, trust.Violations, "the planner broke no rule")

	_, err = kept.Tool("leaf").Call(In{ID: "x"}).Get()
	assert.Error(t, err, "a context that is over makes no calls")
	assert.Error(t, kept.SetPhase("x", ""))
	assert.Error(t, kept.Conclude(action.Reached, ""))

	_, err = delta.NewAgent("a").Grant(outer).Build()
	assert.ErrorContains(t, err, `action "outer" has the tool "leaf", which the agent does not hold`)
}

// A function that calls itself comes to an end, and an id makes a repeated call one.
func TestToolsNestOnlySoDeep(t *testing.T) {
	var codes []action.Code
	var self, once delta.Builder[In, Out]
	self = does("self", func(ctx *delta.Context, in In) mo.Result[Out] {
		o := ctx.Tool("self").Call(in).MustGet()
		codes = append(codes, o.Code)
		return mo.Ok(Out{"ok"})
	}).Tools("self")
	ran := 0
	count := does("count", func(*delta.Context, In) mo.Result[Out] { ran++; return mo.Ok(Out{fmt.Sprint(ran)}) }).MustBuild()
	once = does("once", func(ctx *delta.Context, in In) mo.Result[Out] {
		o := ctx.Tool("count").ID("step").Call(in).MustGet()
		if ctx.Attempt() == 1 {
			return mo.Err[Out](errors.New("after the step"))
		}
		assert.True(t, o.Recorded)
		return mo.Ok(Out{string(o.Output)})
	}).Tools("count").Retry(1)
	_, task := started(t, delta.Config{Timeout: time.Minute}, delta.Goal{Agent: delta.NewAgent("a").Grant(self.MustBuild(), once.MustBuild(), count).MustBuild()})
	require.True(t, task.Do(t.Context(), call("self", "x")).MustGet().OK())
	assert.Equal(t, []action.Code{action.ToolUnknown, action.OK, action.OK, action.OK}, codes, "the planner's call and three within")
	require.True(t, task.Do(t.Context(), call("once", "x")).MustGet().OK())
	assert.Equal(t, 1, ran, "the second attempt found the step done")
}

// A request recalls what functions remember: the agent's notes and no other's.
func TestRequestsRecall(t *testing.T) {
	note := does("note", func(ctx *delta.Context, in In) mo.Result[Out] {
		if err := ctx.Remember("order "+in.ID+" was late", "order"); err != nil {
			return mo.Err[Out](err)
		}
		return mo.Ok(Out{"ok"})
	}).MustBuild()
	e, task := started(t, delta.Config{}, delta.Goal{Agent: delta.NewAgent("a").Grant(note).MustBuild()})
	other, err := e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("b").Grant(note).MustBuild()})
	require.NoError(t, err)
	require.NoError(t, note.Do(t.Context(), other, In{ID: "secret"}).Error())
	require.NoError(t, note.Do(t.Context(), task, In{ID: "7"}).Error())
	require.NoError(t, e.Run(t.Context(), task, delta.PlannerFunc(func(ctx context.Context, r delta.Request) (delta.Proposal, error) {
		notes, err := r.Recall(ctx, "late order")
		assert.NoError(t, err)
		assert.Len(t, notes, 1)
		return delta.Proposal{Done: true}, nil
	})).Error())
	_, err = delta.Request{}.Recall(t.Context(), "")
	assert.Error(t, err, "a request that no run made has nothing to give")
	_, err = delta.Request{}.Attachment(t.Context(), "a")
	assert.Error(t, err)
	_, err = delta.Request{}.Skill("a")
	assert.Error(t, err)
}

// A folder of attachments holds whole files under names that are digests, and reads nothing else.
func TestAttachmentFolder(t *testing.T) {
	folder := t.TempDir()
	a, err := delta.OpenAttachmentFolder(folder)
	require.NoError(t, err)
	ctx := t.Context()
	sum := strings.Repeat("a0", 32)
	require.NoError(t, a.Put(ctx, sum, []byte("content")))
	require.NoError(t, a.Put(ctx, sum, []byte("content")), "the same again")
	got, err := a.Get(ctx, sum)
	require.NoError(t, err)
	assert.Equal(t, "content", string(got))
	names, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, names, 1, "no parts are left")

	require.NoError(t, os.WriteFile(filepath.Join(folder, "secret"), []byte("s"), 0o600))
	link := strings.Repeat("b1", 32)
	require.NoError(t, os.Symlink("secret", filepath.Join(folder, link)))
	for _, name := range []string{"", "secret", "../x", strings.Repeat("A0", 32), strings.Repeat("c", 64), link} {
		_, err := a.Get(ctx, name)
		assert.Error(t, err, name)
	}
	assert.Error(t, a.Put(ctx, "secret", nil))
	_, err = delta.OpenAttachmentFolder(filepath.Join(folder, "none"))
	assert.ErrorContains(t, err, "create the folder")
	_, err = delta.OpenAttachmentFolder(filepath.Join(folder, "secret"))
	assert.ErrorContains(t, err, "not a folder")
	_, err = (*delta.AttachmentFolder)(nil).Get(ctx, sum)
	assert.Error(t, err)
}

// What no call is under way for is an error, not a crash; JSON that a function made itself is for the edge to judge.
func TestToolsOutsideACall(t *testing.T) {
	leaf := does("leaf", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"ok"}) }).MustBuild()
	assert.Error(t, delta.Tool{}.Call(In{}).Error())
	assert.Error(t, leaf.CallWithin(nil, In{}).Error())
	var code action.Code
	outer := does("outer", func(ctx *delta.Context, _ In) mo.Result[Out] {
		code = ctx.Tool("leaf").Call(json.RawMessage(`{"id":"a","id":"b"}`)).MustGet().Code
		return mo.Ok(Out{"ok"})
	}).Tools("leaf").MustBuild()
	_, task := started(t, delta.Config{}, delta.Goal{Agent: delta.NewAgent("a").Grant(leaf, outer).MustBuild()})
	require.NoError(t, outer.Do(t.Context(), task, In{ID: "x"}).Error())
	assert.Equal(t, action.InputMalformed, code)
}

// A child brings along what its own goal says.
func TestChildrenBringAlong(t *testing.T) {
	var got []string
	read := does("read", func(ctx *delta.Context, _ In) mo.Result[Out] {
		a, err := ctx.Attachment("note")
		assert.NoError(t, err)
		got = append(got, ctx.Phase(), string(a.Data))
		return mo.Ok(Out{"ok"})
	}).MustBuild()
	agent := delta.NewAgent("a").Grant(read).MustBuild()
	_, task := started(t, delta.Config{}, delta.Goal{Agent: agent, Limit: action.Limit{Calls: action.Max(9)}})
	child, err := task.Delegate(t.Context(), delta.Goal{
		ID: "kid", Agent: agent, Limit: action.Limit{Calls: action.Max(2)}, Phase: "draft", Attachments: []delta.Attachment{{ID: "note", Data: []byte("read me")}},
	})
	require.NoError(t, err)
	kid, err := child.Task(t.Context())
	require.NoError(t, err)
	require.NoError(t, read.Do(t.Context(), kid, In{ID: "x"}).Error())
	assert.Equal(t, []string{"draft", "read me"}, got)
}

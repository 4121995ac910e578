package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/audit"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/keys"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/notify"
	"github.com/seed-ab2cfece/delta-agents/planner/chat"
	"github.com/seed-ab2cfece/delta-agents/telemetry"
	"github.com/seed-ab2cfece/delta-agents/tool"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// secretTool is a program's tool: its schemas mark secrets by writeOnly.
var secretTool = tool.Contract{
	ID: "vendor", Description: "Call a vendor",
	Input:  []byte(`{"type":"object","properties":{"id":{"type":"string"},"top":{"type":"string","writeOnly":true}},"required":["id"]}`),
	Output: []byte(`{"type":"object","properties":{"id":{"type":"string"},"token":{"type":"string","writeOnly":true}},"required":["id","token"]}`),
}

// wrongTool is one that breaks its contract.
func wrongTool() tool.Contract {
	c := secretTool
	c.ID = "wrong"
	return c
}

type person struct {
	Name string `json:"name"`
}

// agents are those of the world: one that works with tagged fields, and one in whose tasks about somebody nothing is tagged.
func (p *plot) agents() (clerk, nurse *delta.Agent) {
	do := func(end func(secretive) error) func(*delta.Context, secretive) mo.Result[secretive] {
		return func(_ *delta.Context, in secretive) mo.Result[secretive] {
			p.mu.Lock()
			p.got = append(p.got, in)
			p.mu.Unlock()
			if err := end(in); err != nil {
				return mo.Err[secretive](err)
			}
			in.Top, in.Within.Pin, in.List = "MARKED-out", "MARKED-out-within", []inner{{Pin: "MARKED-out-list"}}
			return mo.Ok(in)
		}
	}
	fine := func(secretive) error { return nil }
	define := func(name string, end func(secretive) error) delta.Builder[secretive, secretive] {
		return delta.Define(name, do(end)).Describe("Do " + name).Risk(1)
	}
	back := define("back", fine).Effect(action.Idempotent).MustBuild()
	charge := define("charge", fine).Effect(action.Compensatable).
		Undo(back, func(_, out secretive) any { return out }).RiskWhen("counts", func(in secretive) bool { return in.Count < 0 }, 5).MustBuild()
	fail := define("fail", func(in secretive) error { return in.err("fail") }).Effect(action.Idempotent).Retry(2).MustBuild()
	slip := define("slip", func(in secretive) error { return in.err("slip") }).Effect(action.Idempotent).MustBuild()
	panics := define("panic", func(in secretive) error { panic(in.err("panic")) }).Effect(action.Idempotent).MustBuild()
	unknown := define("unknown", func(in secretive) error { return action.Unknown(in.err("unknown")) }).MustBuild()
	gated := define("gated", fine).RequireApproval().MustBuild()
	checked := define("checked", fine).Hooks(hooks.Hooks{Before: func(_ context.Context, v action.View) error {
		return fmt.Errorf("hook: not with %s", v.Input)
	}}).MustBuild()
	wrong := delta.DefineTool("wrong", wrongTool()).Risk(1).Effect(action.Idempotent).MustBuild()
	vendor := delta.DefineTool("vendor", secretTool).Risk(1).Effect(action.Idempotent).MustBuild()
	open := delta.Define("open", func(_ *delta.Context, in secretive) mo.Result[secretive] { return mo.Ok(in) }).
		Describe("Open").Risk(1).Needs(charge.On("top")).MustBuild()
	tell := delta.Communicate().Effect(action.Idempotent).MustBuild()
	clerk = delta.NewAgent("clerk").Grant(back, charge, fail, slip, panics, unknown, gated, checked, wrong, vendor, open, tell).MustBuild()

	ask := func(name string, end error) delta.Definition {
		return delta.Define(name, func(ctx *delta.Context, in person) mo.Result[person] {
			if err := ctx.Remember("MARKED-note of "+in.Name, "note"); err != nil {
				return mo.Err[person](err)
			}
			if end != nil {
				return mo.Err[person](fmt.Errorf("%w: %s", end, in.Name))
			}
			return mo.Ok(person{"MARKED-out"})
		}).Describe("Do " + name).Risk(1).Effect(action.Idempotent).MustBuild()
	}
	sign := delta.Define("sign", func(*delta.Context, person) mo.Result[person] { return mo.Ok(person{"MARKED-signed"}) }).
		Describe("Sign").Risk(1).RequireApproval().MustBuild()
	nurse = delta.NewAgent("nurse").Grant(ask("visit", nil), ask("miss", errors.New("nobody there")), sign).MustBuild()
	return clerk, nurse
}

// story is a workflow that carries secrets: in its input, from a person, in a proposal and in a nested workflow.
func story(owner string) (outer, nested *workflow.Definition) {
	const input = `{"type":"object","properties":{"id":{"type":"string"},"top":{"type":"string","writeOnly":true}},"required":["id","top"]}`
	nested = workflow.New("nested", "1").Input(input).
		Step(workflow.Execute("vendor", "vendor").Map("id", "input.id").Map("top", "input.top")).Output("token", "steps.vendor.output.token").MustBuild()
	outer = workflow.New("outer", "1").Owners(owner).Input(input).
		Step(workflow.Execute("first", "vendor").Map("id", "input.id").Map("top", "input.top").Undo("vendor", workflow.Mapping{"id": {From: "call.input.id"}, "top": {From: "call.output.token"}})).
		Step(workflow.Reason("think", "sage").Needs("first").Map("pin", "steps.first.output.token").Map("id", "input.id").
			Output(`{"type":"object","properties":{"id":{"type":"string"},"pin":{"type":"string","writeOnly":true}}}`)).
		Step(workflow.AskPerson("ask").Needs("think").Map("pin", "steps.think.output.pin").Hitl(workflow.Hitl{Prompt: "Which pin?",
			Intake: []byte(`{"type":"object","properties":{"pin":{"type":"string","writeOnly":true,"pattern":"^MARKED"}},"required":["pin"]}`)})).
		Step(workflow.Run("nest", "nested").Needs("ask").Map("id", "input.id").Map("top", "steps.ask.output.pin")).
		Step(workflow.AskPerson("last").Needs("nest").Map("token", "steps.nest.output.token").Hitl(workflow.Hitl{Prompt: "Sure?", Intake: []byte(`{"type":"string"}`)})).
		Step(workflow.Execute("close", "slip").Needs("last").Map("id", "input.id").Map("top", "steps.nest.output.token").Const("within", `{"pin":""}`).Const("list", `[]`).
			Const("plain", `[]`).Const("map", `{}`).Const("under", `{}`).Const("count", `1`).Ladder(workflow.Rung{Kind: workflow.RungPark})).
		MustBuild()
	return outer, nested
}

// open opens an engine on a real Redis with everything attached that can be told something.
func (p *plot) open() {
	ctx := p.Context()
	var err error
	p.store, err = redisstore.Open(ctx, redisstore.Config{URL: p.server.URL()})
	require.NoError(p, err)
	ring, err := keys.Read(p.ring)
	require.NoError(p, err)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintln(p.hear("webhook"), r.URL, r.Header, string(body), err)
	}))
	p.Cleanup(hook.Close)
	webhook, err := notify.NewWebhook(notify.WebhookConfig{URL: hook.URL, Secret: "whsec_" + strings.Repeat("QUFB", 8)})
	require.NoError(p, err)
	p.Cleanup(webhook.CloseIdleConnections)
	debug := slog.New(slog.NewJSONHandler(p.hear("log"), &slog.HandlerOptions{Level: slog.LevelDebug}))
	desk, err := notify.New(notify.Config{Notifiers: []notify.Notifier{webhook, notifier{p.hear("notice")}}, Log: debug})
	require.NoError(p, err)
	trail, err := audit.New(audit.Config{Sink: audit.Lines(p.hear("audit")), Key: []byte(strings.Repeat("k", 32)), Log: debug})
	require.NoError(p, err)
	p.spans, p.meters = tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	tel, err := telemetry.New(telemetry.Config{
		Meter: sdkmetric.NewMeterProvider(sdkmetric.WithReader(p.meters)), Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p.spans)),
		Log: slog.New(slog.NewTextHandler(p.hear("telemetry log"), &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	require.NoError(p, err)
	tools := tool.NewRegistry()
	require.NoError(p, tools.Register(tool.Tool{Contract: secretTool, Invoke: func(_ context.Context, c tool.Call) (json.RawMessage, error) {
		if strings.Contains(string(c.Input), "spoil") {
			return nil, fmt.Errorf("vendor: refused %s", c.Input)
		}
		return []byte(`{"id":"v1","token":"MARKED-token"}`), nil
	}}, tool.Tool{Contract: wrongTool(), Invoke: func(context.Context, tool.Call) (json.RawMessage, error) {
		return []byte(`{"id":7,"token":"MARKED-invalid"}`), nil
	}}))
	outer, nested := story(p.me())
	p.outer = outer
	p.engine, err = delta.New(delta.Config{
		Store: p.store, Keys: ring, Tools: tools, Log: debug, Operators: []string{p.me()}, Authenticator: delta.VoucherFunc(osUser),
		Channels: map[string]delta.Channel{"hook": webhook.Channel(), "log": delta.LogChannel(debug)},
		Observers: append(tel.Watches(), desk.Watch(), trail.Watch(), delta.Watch{Observer: delta.ObserverFunc(func(_ context.Context, r delta.Record) {
			p.hear("observer").told(r)
		})}),
		Workflows: delta.Workflows{Definitions: []*workflow.Definition{outer, nested}, Proposers: map[string]delta.Proposer{
			"sage": delta.ProposerFunc(func(_ context.Context, r delta.StepRequest) (delta.Draft, error) {
				p.hear("proposer").told(r)
				return delta.Draft{Document: r.Input}, nil
			}),
		}},
	})
	require.NoError(p, err)
	require.NoError(p, tel.Attach(p.engine))
	require.NoError(p, trail.Attach(p.engine))
	desk.Attach(p.engine)
	p.closing = append(p.closing, func() {
		c, stop := context.WithTimeout(context.Background(), 30*time.Second)
		defer stop()
		require.NoError(p, p.engine.Close(c))
		require.NoError(p, desk.Close(c))
		require.NoError(p, trail.Close(c))
		require.NoError(p, p.store.Close())
	})
}

// close ends the engine, and with it what is still told.
func (p *plot) close() {
	for _, f := range p.closing {
		f()
	}
	p.closing = nil
}

// notifier hears what it is told.
type notifier struct{ h *hearing }

func (n notifier) Notify(_ context.Context, m notify.Notice) error {
	n.h.told(m)
	return nil
}

// start starts a task.
func (p *plot) start(g delta.Goal) *delta.Task {
	g.Approvers, g.Requester, g.Limit = []string{"*"}, "bo", action.Limit{Calls: action.Max(999)}
	t, err := p.engine.Start(p.Context(), g)
	require.NoError(p, err)
	p.tasks[t.ID()] = t
	return t
}

// quoting is what a planner says of an input: it quotes what is in it.
func quoting(input string) string {
	var in struct{ Top string }
	if json.Unmarshal([]byte(input), &in) != nil || in.Top == "" {
		return "because"
	}
	return fmt.Sprintf("because of %s, %q", in.Top, in.Top)
}

// call makes a call that must end with a code; what the caller is told of a failure is a surface.
func (p *plot) call(t *delta.Task, name, input string, want action.Code) action.Outcome {
	c := delta.Call{Action: name, Input: []byte(input), Provenance: action.Provenance{Reason: quoting(input)}}
	if v, err := t.Preview(p.Context(), c, nil); err == nil {
		fmt.Fprintf(p.hear("preview"), "%s %+v %v\n", v.Event, v, v.Failure)
	}
	o, err := t.Do(p.Context(), c).Get()
	require.NoError(p, err)
	if o.Code == action.ApprovalRequired && want != o.Code { // what failed is riskier than before
		me, err := p.engine.Authenticate(p.Context(), nil)
		require.NoError(p, err)
		require.NoError(p, p.engine.Approve(p.Context(), o.Failure.Approval(), me, "go on"))
		o, err = t.Do(p.Context(), c).Get()
		require.NoError(p, err)
	}
	require.Equal(p, want, o.Code, "%s: %v", name, o.Failure)
	if o.Failure != nil {
		p.hear("failure").told(o.Failure, o.Failure.Error(), o.Failure.Explain())
	}
	return o
}

// play has everything happen.
func (p *plot) play() {
	ctx := p.Context()
	clerk, nurse := p.agents()
	me, err := p.engine.Authenticate(ctx, nil)
	require.NoError(p, err)
	open := p.start(delta.Goal{ID: "open", Agent: clerk, Text: "settle", Channels: []string{"hook", "log"}})
	for _, channel := range []string{"hook", "log"} {
		require.Equal(p, action.OK, open.Communicate(ctx, channel, "hello").MustGet().Code)
	}
	p.flow(clerk) // before anything has failed
	p.planned(clerk)
	p.call(open, "charge", marked, action.OK)
	p.call(open, "open", marked, action.OK)
	p.call(open, "open", strings.ReplaceAll(marked, "MARKED-top", "MARKED-other"), action.NotLegal)
	p.call(open, "fail", marked, action.Failed)
	p.call(open, "panic", marked, action.Panicked)
	p.call(open, "checked", marked, action.HookFailed)
	p.call(open, "wrong", `{"id":"o1","top":"MARKED-top"}`, action.OutputInvalid)
	p.call(open, "vendor", `{"id":"o1","top":"MARKED-top"}`, action.OK)
	p.call(open, "vendor", `{"id":"spoil","top":"MARKED-top"}`, action.Failed)
	p.call(open, "charge", strings.Replace(marked, `"MARKED-value"`, `7`, 1), action.InputInvalid)
	p.call(open, "charge", strings.Replace(marked, `"o1"`, `7`, 1), action.InputInvalid)
	p.call(open, "charge", strings.Replace(marked, `{"id"`, `{"id":"x","id"`, 1), action.InputMalformed)
	p.call(open, "gated", marked, action.ApprovalRequired)
	require.NoError(p, p.engine.Reject(ctx, p.call(open, "gated", strings.Replace(marked, "o1", "o2", 1), action.ApprovalRequired).Failure.Approval(), me, "not this one"))
	p.call(open, "gated", strings.Replace(marked, "o1", "o2", 1), action.ApprovalRejected)
	third := strings.Replace(marked, "o1", "o3", 1)
	require.NoError(p, p.engine.Approve(ctx, p.call(open, "gated", third, action.ApprovalRequired).Failure.Approval(), me, "fine"))
	p.call(open, "gated", third, action.OK)
	p.ids["approval"] = p.call(open, "gated", strings.Replace(marked, "o1", "o4", 1), action.ApprovalRequired).Failure.Approval()
	p.ids["intent"] = p.call(open, "unknown", marked, action.StartedUnknown).Intent
	_, err = open.Compensate(ctx, "undo it")
	require.NoError(p, err)

	about := p.start(delta.Goal{ID: "about", Agent: nurse, Text: "MARKED-goal", Subject: "customer-1042", Storylines: []string{"MARKED-story"}})
	p.call(about, "visit", `{"name":"MARKED-top \"quoted\""}`, action.OK)
	p.call(about, "miss", `{"name":"MARKED-top \"quoted\""}`, action.Failed)
	p.call(about, "visit", `{"name":7}`, action.InputInvalid)
	p.ids["about"] = p.call(about, "sign", `{"name":"SHOWN-to approvers"}`, action.ApprovalRequired).Failure.Approval()
	esc, err := about.EscalateBy(ctx, me, action.ConcernRisk, "look")
	require.NoError(p, err)
	p.ids["escalation"] = esc.ID
	require.NoError(p, p.engine.Sync(ctx))
}

// planned has a model plan: it is told what its calls returned.
func (p *plot) planned(clerk *delta.Agent) {
	model := &overhear{h: p.hear("prompt")}
	planner, err := chat.New(model, chat.Config{})
	require.NoError(p, err)
	report, err := p.engine.Run(p.Context(), p.start(delta.Goal{ID: "planned", Agent: clerk, Text: "settle"}), planner).Get()
	require.NoError(p, err)
	require.NoError(p, report.Err)
	var ends []action.Code
	for _, r := range report.Results {
		ends = append(ends, r.Outcome.Code)
	}
	require.Equal(p, []action.Code{action.OK, action.Failed}, ends)
}

// flow runs an instance to its last question, and another to where it is parked.
func (p *plot) flow(clerk *delta.Agent) {
	ctx := p.Context()
	me, err := p.engine.Authenticate(ctx, nil)
	require.NoError(p, err)
	for _, id := range []string{"asks", "parks"} {
		run, err := p.engine.StartWorkflow(ctx, p.outer, delta.Goal{ID: id, Agent: clerk, Approvers: []string{"*"}, Requester: "bo"}, []byte(`{"id":"w1","top":"MARKED-top"}`))
		require.NoError(p, err)
		p.tasks[run.ID()] = run.Task()
		s, err := run.Run(ctx)
		require.NoError(p, err)
		require.Len(p, s.Waits(), 1, "%v", s)
		require.NoError(p, run.Signal(ctx, "ask", me, []byte(`{"pin":"UNMARKED-badly"}`)))
		_, err = run.Run(ctx)
		require.NoError(p, err)
		require.NoError(p, run.Signal(ctx, "ask", me, []byte(`{"pin":"MARKED-asked"}`)))
		s, err = run.Run(ctx)
		require.NoError(p, err)
		if id == "parks" {
			require.NoError(p, run.Signal(ctx, "last", me, []byte(`"yes"`)))
			s, err = run.Run(ctx)
			require.NoError(p, err)
		}
		require.Len(p, s.Waits(), 1, "%v", s)
		p.hear("workflow state").told(s)
		tree, err := run.Tree(ctx)
		require.NoError(p, err)
		p.hear("workflow state").told(tree)
	}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

type parcel struct {
	ID string `json:"id"`
}

// dock is an agent that packs parcels, and the workflow by which it does.
func dock(owner string) (*delta.Agent, *workflow.Definition) {
	pack := delta.Define("pack", func(_ *delta.Context, in parcel) mo.Result[parcel] {
		if in.ID == "bad" {
			return mo.Err[parcel](errors.New("no such parcel"))
		}
		return mo.Ok(in)
	}).Describe("Pack a parcel").Risk(1).Effect(action.Idempotent).MustBuild()
	unpack := delta.Define("unpack", func(_ *delta.Context, in parcel) mo.Result[parcel] { return mo.Ok(in) }).
		Describe("Unpack a parcel").Risk(1).Effect(action.Idempotent).MustBuild()
	def := workflow.New("ship", "1").Owners(owner).Input(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`).
		Step(workflow.AskPerson("ask").Map("parcel", "input.id").Hitl(workflow.Hitl{
			Prompt: "How heavy is it?", Intake: json.RawMessage(`{"type":"object","properties":{"grams":{"type":"integer","minimum":1}},"required":["grams"]}`),
		})).
		Step(workflow.Execute("pack", "pack").Needs("ask").Map("id", "input.id").Undo("unpack", workflow.Mapping{"id": {From: "call.input.id"}}).
			Ladder(workflow.Rung{Kind: workflow.RungPark})).
		Step(workflow.AskPerson("sign").Needs("pack").Hitl(workflow.Hitl{Prompt: "Sign here", Intake: json.RawMessage(`{"type":"string"}`)})).
		MustBuild()
	return delta.NewAgent("dock").Grant(pack, unpack).MustBuild(), def
}

// crate is a workflow that runs another, which packs once a person consents.
func crate() (parent, child *workflow.Definition) {
	const input = `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`
	child = workflow.New("wrap", "1").Input(input).Step(workflow.Execute("seal", "seal").Map("id", "input.id")).MustBuild()
	return workflow.New("crate", "1").Input(input).Step(workflow.Run("inner", "wrap").Map("id", "input.id")).MustBuild(), child
}

// nest is "nest TASK": a worker starts an instance of crate, or goes on with it, until it rests.
func nest(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{URL: ts.Getenv("DELTA_STORE"), Prefix: ts.Getenv("DELTA_PREFIX")})
	ts.Check(err)
	me, err := user.Current()
	ts.Check(err)
	parent, child := crate()
	seal := delta.Define("seal", func(_ *delta.Context, in parcel) mo.Result[parcel] { return mo.Ok(in) }).
		Describe("Seal a crate").Risk(1).RequireApproval().Effect(action.Idempotent).MustBuild()
	agent := delta.NewAgent("yard").Grant(seal).MustBuild()
	engine, err := delta.New(delta.Config{Store: store, Authenticator: delta.VoucherFunc(osUser), Workflows: delta.Workflows{Definitions: []*workflow.Definition{parent, child}}})
	ts.Check(err)
	defer func() { ts.Check(errors.Join(engine.Close(ctx), store.Close())) }()
	ts.Check(engine.Register(agent))
	run, err := engine.OpenWorkflow(ctx, "yard~"+args[0])
	if errors.Is(err, delta.ErrNoTask) {
		run, err = engine.StartWorkflow(ctx, parent, delta.Goal{ID: args[0], Agent: agent, Approvers: []string{me.Username}, Requester: "bo"}, []byte(`{"id":"c1"}`))
	}
	ts.Check(err)
	_, err = run.Run(ctx)
	ts.Check(err)
	ts.Check(engine.Sync(ctx))
}

// ship is "ship TASK [PARCEL [OWNER]]": a worker starts an instance on the script's store, or goes on with one, until it rests.
func ship(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{URL: ts.Getenv("DELTA_STORE"), Prefix: ts.Getenv("DELTA_PREFIX")})
	ts.Check(err)
	me, err := user.Current()
	ts.Check(err)
	owner := me.Username
	if len(args) > 2 {
		owner = args[2]
	}
	agent, def := dock(owner)
	engine, err := delta.New(delta.Config{
		Store: store, Authenticator: delta.VoucherFunc(osUser), Workflows: delta.Workflows{Definitions: []*workflow.Definition{def}},
	})
	ts.Check(err)
	defer func() { ts.Check(errors.Join(engine.Close(ctx), store.Close())) }()
	var run *delta.Instance
	if len(args) > 1 && args[1] != "" {
		run, err = engine.StartWorkflow(ctx, def, delta.Goal{
			ID: args[0], Agent: agent, Text: "ship " + args[1], Approvers: []string{"*"}, Requester: "bo", Threshold: 5,
		}, fmt.Appendf(nil, `{"id":%q}`, args[1]))
	} else {
		ts.Check(engine.Register(agent))
		run, err = engine.OpenWorkflow(ctx, "dock~"+args[0])
	}
	ts.Check(err)
	_, err = run.Run(ctx)
	ts.Check(err)
	ts.Check(engine.Sync(ctx))
}

package main

import (
	"fmt"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

type question struct {
	Topic string `json:"topic" jsonschema:"minLength=1"`
}

var search = delta.Define("search", func(ctx *delta.Context, q question) mo.Result[string] {
	if err := ctx.Spend(action.Cost{Tokens: 300}); err != nil {
		return mo.Err[string](err)
	}
	return mo.Ok("three sources on " + q.Topic)
}).Describe("Search the archive for a topic").Risk(1).Cost(action.Cost{Tokens: 300}).Effect(action.None).MustBuild()

var summarise = delta.Define("summarise", func(ctx *delta.Context, q question) mo.Result[string] {
	if err := ctx.Spend(action.Cost{Tokens: 200}); err != nil {
		return mo.Err[string](err)
	}
	return mo.Ok("a page on " + q.Topic)
}).Describe("Summarise what was found on a topic").Risk(1).Cost(action.Cost{Tokens: 200}).Effect(action.None).Needs(search.On("topic")).MustBuild()

var publish = delta.Define("publish", func(ctx *delta.Context, q question) mo.Result[string] {
	return mo.Ok("published: " + q.Topic)
}).Describe("Publish a page to everybody").Risk(3).MustBuild()

// The editor publishes and lets others search and summarise. A researcher could publish in a task of its own; for the
// editor it may not, because that is nothing the editor passes on.
var (
	editor     = delta.NewAgent("editor").Grant(assign).MayDelegate(search, summarise).MustBuild()
	researcher = delta.NewAgent("researcher").Grant(search, summarise, publish).MustBuild()
)

type assignment struct {
	Topic  string `json:"topic" jsonschema:"minLength=1"`
	Tokens int64  `json:"tokens" jsonschema:"minimum=1"`
}

// assign is how the editor's planner delegates: an action like any other, with its own gates.
var assign = delta.Define("assign", func(ctx *delta.Context, in assignment) mo.Result[string] {
	child, err := ctx.Delegate(delta.Goal{
		ID: in.Topic, Agent: researcher, Text: "find out about " + in.Topic,
		Limit: action.Limit{Tokens: action.Max(in.Tokens), Calls: action.Max(6)},
	})
	if err != nil {
		return mo.Err[string](err)
	}
	return mo.Ok(fmt.Sprintf("%s is on it, with %d tokens", child.ID(), in.Tokens))
}).Describe("Give a topic to a researcher, with a budget").Risk(2).MustBuild()

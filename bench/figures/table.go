package main

import "time"

// any number of allocations.
const unbounded = -1

// figures are what is promised, and beside them, without a bar, what helps to read them.
var figures = []figure{
	{name: "edge, schema and canonical form", beside: "json.Unmarshal", allocs: unbounded, open: edge},
	{name: "edge, gates 1 to 8, event encoded", beside: "json.Unmarshal", bar: 0.25, allocs: 0, open: preview},
	{name: "governed call, fold queued", beside: "json.Unmarshal", bar: 1, allocs: 8, open: queued},
	{name: "governed call, timeout, fold done", beside: "json.Unmarshal", bar: 3, allocs: unbounded, open: folded},
	{name: "step of a run", beside: "governed call", bar: 3, allocs: unbounded, open: run, long: several},
	{name: "step of a workflow", beside: "governed call", bar: 3, allocs: unbounded, open: flow, long: several},
	{name: "completion of 8 dependents in 10,000", beside: "copying the bits", bar: 4, allocs: unbounded, open: few},
	{name: "completion of 500 dependents in 10,000", beside: "loop over maps", faster: 200, allocs: unbounded, open: many},
	{name: "offer of 100 in 10,000, read again", beside: "copying 100 entries", bar: 10, allocs: unbounded, open: read, heavy: true},
	{name: "offer of 100 in 10,000, after a call", beside: "copying 100 entries", allocs: unbounded, open: afterCall, heavy: true},
	{name: "decision by 1,000 policies", beside: "by 10", bar: 3, allocs: unbounded, open: indexed},
	{name: "decision by 1,000, every policy evaluated", beside: "by 10, likewise", allocs: unbounded, open: linear},
	{name: "events of a call encoded and chained", beside: "SHA-256 of their bytes", bar: 3, allocs: unbounded, open: evidence},
	{name: "64 goroutines on 64 agents", beside: "one goroutine", faster: 1.7, allocs: unbounded, open: atOnce, long: sustained},
	{name: "64 goroutines on 64 agents, again", beside: "one goroutine, one core", allocs: unbounded, open: onOneCore, long: sustained},
}

// sustained is long enough for work that goes on: at the end of a sample there is something left to fold and to seal of each of
// 64 agents, which is as much as hundreds of calls.
const sustained = 200 * time.Millisecond

// several is long enough for some runs, or workflows, and the housekeeping that goes on beside them and begins when nothing has
// happened for a moment.
const several = 20 * time.Millisecond

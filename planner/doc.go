// Package planner has planners that need no model: for tests, demonstrations and jobs whose order is known. Language
// models plan by package chat inside it.
//
// A [Scripted] planner plays a list of steps, one for each proposal. A [Greedy] planner works towards one action: it
// calls the target as soon as that is offered and otherwise the cheapest thing that is.
//
// Both are values without state of their own: what they propose is a function of the request alone, so the same run
// gives the same proposals and one planner may serve many runs at once. Neither starts a goroutine or reads a clock.
package planner

// Package course holds contexts that cost nothing until somebody listens to them. The standard library's make a channel, a
// timer and a place in every parent when they are made; most functions that take microseconds never look at any of it. These
// are asked until somebody listens, and told from then on; they lie in memory of their owner's, and a [Clock] keeps the time
// for all of them with one timer a lane.
package course

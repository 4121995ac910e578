// Package faulty is a [memory.Store] that loses calls by plan: requests that never arrive, and replies that never come back
// from calls that took effect; or, rewound, everything since a moment. It needs no test library, so it serves rehearsals as
// well as tests.
package faulty

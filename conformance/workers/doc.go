// Package workers plays the cases that concern more than one worker with workers that are processes of their own, on one
// Redis server: they decide, cancel, delegate and fold at the same time, are stopped past their leases, killed, hold
// different versions, and have clocks an hour apart. It holds tests only; a worker is the test binary itself, started again.
package workers

// play is a case, or a kind of contention, that is played with several processes.
type play string

// The plays, in the order of the table in doc/reliability.md.
const (
	budgets    play = "C08: a budget is spent from everywhere at once"
	callIDs    play = "C03, C23: one call id, made everywhere at once"
	decisions  play = "C02: approve, reject and revoke at the same time"
	withdrawal play = "C02: a consent is withdrawn while the last one is given"
	restarts   play = "C06, C17: whoever asked is killed before anybody answers"
	waiting    play = "C16: nobody answers in time"
	lateRun    play = "C18: approved in time, and everybody who could run it stands still"
	changed    play = "C19: what an approved call rests on is consumed elsewhere"
	facts      play = "C19: one fact, consumed everywhere at once"
	pausedSafe play = "C24: a worker stands still past its lease, its effect may be repeated"
	pausedOnce play = "C24: a worker stands still past its lease, its effect may not be repeated"
	reused     play = "C27: the id of an exhausted task is used again elsewhere"
	cancelled  play = "C15, C28: cancelled elsewhere while it runs"
	halted     play = "halted from one worker while all are at work"
	delegated  play = "C05: delegated everywhere at once; whoever works for it is killed"
	folded     play = "outcomes are folded by everybody"
	versions   play = "C19: workers hold different versions of an action"
	clocks     play = "C16, C24: clocks an hour apart"
	gone       play = "C09, C25: the server is gone, for all of them"
)

var plays = []play{budgets, callIDs, decisions, withdrawal, restarts, waiting, lateRun, changed, facts, pausedSafe, pausedOnce, reused,
	cancelled, halted, delegated, folded, versions, clocks, gone}

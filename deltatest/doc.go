// Package deltatest helps to test agents: actions, what they need, who may run them, and what becomes of their calls. It
// needs no test library; everything reports through [testing.TB].
//
//	d := deltatest.Open(t, delta.Config{})
//	task := d.Start(delta.Goal{Agent: desk, Approvers: []string{"ana"}})
//	deltatest.NotOffered(t, task, "charge-order")
//	deltatest.Ok(t, confirm.Do(t.Context(), task, Order{"ORD-1"}))
//	deltatest.Offered(t, task, "charge-order")
//
// A [Desk] is an engine under a [Clock] that stands still until it is moved, on a store whose calls can be lost by a plan
// of package memory/faulty. A [Script] stands in for the model. Assertions report and let the test go on; helpers that
// return something end the test where there is nothing to return.
//
// Timeouts, leases that are kept alive and waiting for people run on the wall clock all the same: functions and goroutines
// take real time. The clock is for what is decided by time: deadlines, approvals that expire, facts that grow old, what
// the store keeps.
package deltatest

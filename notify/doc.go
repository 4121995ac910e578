// Package notify tells people that they are waited for: of requests for approval, of escalations, and of their end.
//
// A [Desk] is an observer of an engine (delta.Config.Observers) and hands what people must know to notifiers: [Log] writes
// log lines, [Webhook] makes signed requests, and anything else may implement [Notifier].
//
//	desk, err := notify.New(notify.Config{Notifiers: []notify.Notifier{hook}})
//	engine, err := delta.New(delta.Config{Observers: []delta.Watch{desk.Watch()}})
//	engine.Register(agents...)
//	desk.Attach(engine) // tells what was pending before this process started, and again what could not be delivered
//	defer desk.Close(ctx)
//
// # Delivery
//
// What waits for a person is told at least once to each notifier as long as it waits: a delivery that fails is repeated
// with growing pauses and jitter, given up after a while, and taken up again by the next reminder, after a restart too. The
// same notice has the same id each time, so that a receiver can tell a repeat. Ends (approved, rejected, resumed, …) are
// told on a best effort: who needs to be sure asks the engine.
//
// A notification changes nothing: an approval whose notification fails stays pending, and none is ever taken for an answer.
// Notices do not hold the input of the call, which may be secret; who is to decide looks at the request in the engine.
package notify

// Package workflow is a pure machine that runs standard operating procedures: steps of type HUMAN, REASONING, EXECUTION and
// SUB_SOP, in phases, with people in between and a way back.
//
// A [Definition] says what is to be done; it is written with [New], or read from a file by package workflowfile, and checked
// before anything runs. A [State] says how far one instance has come. [Definition.Step] takes a state and an [Event] and
// returns a [Turn]: the next state, what to write down, and the [Command]s to perform.
//
//	def, err := workflow.New("refund", "1").
//		Step(workflow.AskPerson("ask").Hitl(workflow.Hitl{Who: ana, Intake: form})).
//		Step(workflow.Execute("pay", "charge-back").Needs("ask").Map("amount", "steps.ask.output.amount")).
//		Build()
//	turn := def.Start(workflow.Begin{Instance: "refund-1", Input: input, At: now})
//	for each event of the driver {
//		turn, err = def.Step(turn.State, event)
//		… append event and turn.Trail to the ledger, then perform turn.Commands
//	}
//
// The machine does nothing itself. It reads no clock and no randomness: time comes with the events, and the jitter of a
// pause is computed from the names of what waits. The same events give the same state and the same commands, byte for byte,
// so that a driver that was killed replays the events and goes on.
//
// # Every event answers something
//
// A command has an id, and every event names the command, or the wait, that it answers ([Event.Of]). What nobody waits for
// any more is absorbed: a duplicate, a late result, an answer to a question that was withdrawn. That is no error; the turn
// says it ([Turn.Absorbed]).
//
// # One pipeline
//
// All types take the same stages and differ in what they execute:
//
//	start → (guard) → (intake) → plan → verify → execute → validate → commit → checkpoint
//
// HUMAN executes nothing and parks before planning until a person's intake is there; REASONING executes nothing, and its
// proposal is an artifact only once its verifier has passed it; EXECUTION makes one governed call; SUB_SOP runs a child.
//
// # What it does not do
//
// It validates no JSON against a schema, evaluates no guard, and asks nobody: those are commands. It does not persist, and
// it decides no permission: a call that it commands passes the gates of the engine like any other.
package workflow

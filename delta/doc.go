// Package delta lets language-model agents act with real power and stay governed. Actions are declared with a schema,
// risk, cost and prerequisites; an agent may only propose; the engine decides what exists for it right now, what needs a
// person, what it may spend, and learns each action's risk from explicit Ok and Err outcomes.
//
// A program declares actions with [Define], makes agents of them with [NewAgent], starts an [Engine] with [New], opens a
// [Task] with [Engine.Start], and then makes calls: by hand with [Task.Do], typed with [Action.Do], or by a [Planner] with
// [Engine.Run].
//
// # What is guaranteed
//
// An action unknown to the agent never runs. No user code sees input that has not passed the strict edge and the schema.
// At or above the threshold nothing runs without an approval, which covers exactly the input it showed, once. No grant
// exceeds a limit. Nothing has an effect before its intent is recorded, and an effect of unknown outcome is not repeated.
// Only an explicit Ok counts.
//
// # What it does not do
//
// It does not make a model truthful or a function correct, and it does not confine what a function does once it runs.
package delta

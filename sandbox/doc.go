// Package sandbox runs tools as confined processes, with bubblewrap on Linux.
//
// A [Sandbox] says what a tool finds: no network, a read-only root that holds the system's programs and what was chosen,
// a private /tmp, no environment but what is named, and limits on memory, processor time, processes, files, time and
// output. A [Command] is a program in it: JSON on its standard input, JSON on its standard output.
//
//	box, err := sandbox.New(sandbox.Config{Binds: []sandbox.Bind{{Source: "/srv/refunds"}}})
//	refund := box.Command("/srv/refunds/bin/charge-back")
//	err = registry.Register(refund.Tool(contract)) // an executor, which grants nothing; see delta.DefineTool
//
// # What holds
//
// Every process of a tool is gone when its call returns, whatever it did to get away. What a limit says is enforced, or
// the tool does not run: a limit that this machine cannot enforce is an error, unless it is waived by its name
// ([Config.Waive]), which is logged. What cannot be made ready is an error made by action.Unstarted, so that a call ends as
// NOT_STARTED: nothing of the tool has run. There is no falling back to no sandbox; see [Config.None].
//
// # What does not
//
// The kernel is shared, and so is what is bound. A tool with the network reaches whatever the machine reaches. Limits set
// as resource limits hold for each process of a tool, not for all together; with a control group ([Config.Cgroups]) memory
// and processes are counted together. See doc/sandbox.md.
package sandbox

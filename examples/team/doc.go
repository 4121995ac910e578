// Team is a supervisor that writes a report with helpers: it delegates parts of its task with parts of its budget, and a
// story shows what the helpers cannot do, who spent what, and what a cancellation reaches. It runs unattended.
//
//	go run ./examples/team
//
// Start reading at agents.go (who may do what), then story.go (what happens).
package main

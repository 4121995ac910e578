// Refund gives a customer money back by a workflow: a person says how much, a planner says whether, a small tool confined in
// a sandbox moves the money, and a nested workflow tells the customer. With --fail the mail server is down, and the money
// that went back is charged again.
//
//	go run ./examples/refund                     asks you, on a terminal
//	go run ./examples/refund --script            unattended
//	go run ./examples/refund --script --fail     unattended, and undone
//
// Start reading at refund.yaml (what happens in which order), then actions.go (what is done, and how it is confined), then
// story.go (who runs it and who answers).
package main

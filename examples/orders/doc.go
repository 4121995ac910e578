// Orders is an order desk: an agent looks orders up, confirms, charges, notifies and refunds them on a real SQL database,
// and a story shows what keeps it from doing harm.
//
//	go run ./examples/orders                                    asks you, on a terminal, whether to approve
//	go run ./examples/orders --auto-approve                     unattended
//	go run ./examples/orders --script 'reject:too late,approve' unattended, with your answers
//
// Start reading at desk/desk.go (what the agent may do), then story.go (what it tries), then approve.go (who watches).
package main

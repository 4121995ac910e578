// Files is a housekeeper: an agent lists the folders of a real temporary directory and deletes what is stale, and a story
// shows what it cannot delete.
//
//	go run ./examples/files           unattended: the built-in person rejects the first big delete and approves the second
//	go run ./examples/files --keep    leaves the directory for you to look at
//
// Start reading at actions.go (what the agent may do), then story.go (what it tries).
package main

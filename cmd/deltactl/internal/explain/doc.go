// Package explain reads a set of actions from YAML, builds an agent of it with the engine's own builder, and says of
// every action whether it is legal, gated or blocked, why, and what the cheapest path to it is.
//
// The file is read strictly: an unknown or repeated key, a value of another type and an alias are errors that name the
// line. Calls listed as done pass through the gates of the real engine, with functions that return what the file says,
// so a history that could not have happened is an error too.
package explain

// Command deltactl looks into governed agents from the outside: it replays recorded tool calls through the engine,
// explains what a set of actions lets an agent do, and measures how right the estimated risk is. Run "deltactl help" for its commands.
//
// Every listing is a table on a terminal, tab-separated columns in a pipe, and JSON with --json. What a program may want
// to read goes to standard output; progress, which only a terminal sees, and errors go to standard error.
package main

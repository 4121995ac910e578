// Package hooks is the port to user code that watches calls: before one, after one that succeeded, and on any other end
// of one that ran. A hook sees a copy and answers with an error or nothing, so it can observe a call, and one before it can
// stop it, but none can authorise a call, alter its input or change how it ended.
//
// A [Runner] runs them: each under its own timeout, a panic contained, and one that ignores its context left behind,
// counted and bounded in number.
package hooks

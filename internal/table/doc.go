// Package table prints for people and for pipes: aligned columns with a bold header on a terminal, tab-separated ones
// elsewhere, and a progress bar that only a terminal sees. It belongs to the programs (cmd, examples, bench); the
// library prints nothing.
//
//	t := table.New(os.Stdout, "action", "runs", "p")
//	t.Row("charge", 12, 0.25)
//	err := t.Flush()
//
// What a cell holds may come from an agent or a tool. Control characters are shown escaped (\n, \x1b), so that no cell
// can break the columns of a pipe or drive the reader's terminal.
package table

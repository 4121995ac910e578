package table_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

// In a pipe the columns are separated by tabs, for cut and awk.
func ExampleWriter() {
	var out strings.Builder
	t := table.New(&out, "action", "runs", "p")
	t.Row("confirm-order", 12, 0.25)
	t.Row("process-order", 3, nil)
	if err := t.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	fmt.Print(strings.ReplaceAll(out.String(), "\t", " | "))
	// Output:
	// action | runs | p
	// confirm-order | 12 | 0.250
	// process-order | 3 | -
}

package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

const deedsHelp = `

JSON: {"done": [{"did", "what", "by"}]}, what was done before an error included.`

// deed is one thing that a command did.
type deed struct {
	Did  string `json:"did"`
	What string `json:"what"`
	By   string `json:"by,omitempty"`
	N    *int   `json:"n,omitempty"`
}

// deeds tells what a command did: line by line as it is done, or as one document in the end.
type deeds struct {
	c    *cobra.Command
	json bool
	all  []deed
}

func newDeeds(c *cobra.Command, f *storeFlags) *deeds {
	return &deeds{c: c, json: f.json, all: []deed{}}
}

func (d *deeds) add(x deed) {
	d.all = append(d.all, x)
	if d.json {
		return
	}
	out := d.c.OutOrStdout()
	switch {
	case x.N != nil:
		fmt.Fprintf(out, "%s\t%d\n", x.What, *x.N)
	case x.By != "":
		fmt.Fprintf(out, "%s\t%s\t%s\n", x.Did, x.What, x.By)
	default:
		fmt.Fprintf(out, "%s\t%s\n", x.Did, x.What)
	}
}

// end prints the document, where one was asked for, also beside an error.
func (d *deeds) end() error {
	if !d.json {
		return nil
	}
	return printJSON(d.c.OutOrStdout(), struct {
		Done []deed `json:"done"`
	}{d.all})
}

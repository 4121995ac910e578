package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/approval"
)

func newWhoami() *cobra.Command {
	var operators string
	var asJSON bool
	c := &cobra.Command{
		Use: "whoami", Short: "Print who you are here, and whether you operate", Args: cobra.NoArgs,
		Long: `Whoami prints the name and the roles under which your decisions are recorded, and whether
you are an operator. It needs no store.` + operatorsHelp + `

JSON: {"name", "roles", "operator", "file", "operators", "fault"}.`,
		RunE: func(c *cobra.Command, _ []string) error {
			o := readOffice(operators)
			me, err := osUser(c.Context(), nil)
			if err != nil {
				return err
			}
			out := struct {
				Name      string   `json:"name"`
				Roles     []string `json:"roles"`
				Operator  bool     `json:"operator"`
				File      string   `json:"file"`
				Operators []string `json:"operators"`
				Fault     string   `json:"fault,omitempty"`
			}{me.Name, append([]string{}, me.Roles...), approval.Person{Name: me.Name, Roles: me.Roles}.On(o.operators), o.file, append([]string{}, o.operators...), ""}
			if o.fault != nil {
				out.Fault = o.fault.Error()
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), out)
			}
			is := "no: " + o.hint()
			if out.Operator {
				is = "yes, by " + o.file
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "name\t%s\nroles\t%s\noperator\t%s\n", me.Name, strings.Join(me.Roles, ", "), is)
			return err
		},
	}
	c.Flags().StringVar(&operators, "operators", "", "file that lists operators (DELTA_OPERATORS, "+defaultOperators+")")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

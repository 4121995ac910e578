package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/internal/table"
	"github.com/seed-ab2cfece/delta-agents/workflow"
	"github.com/seed-ab2cfece/delta-agents/workflowfile"
)

const workflowHelp = `Workflow checks files of workflows and draws them. A file is YAML, see
doc/workflows.md.`

func newWorkflow() *cobra.Command {
	c := &cobra.Command{
		Use: "workflow", Short: "Check workflows and draw them", Long: workflowHelp, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newWorkflowCheck(), newWorkflowShow())
	return c
}

func newWorkflowCheck() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "check FILE...", Short: "Check workflows", Args: cobra.MinimumNArgs(1),
		Long: `Check names every fault of a workflow with its line: cycles, unknown steps, steps that
never run, inputs to which nothing is mapped, outputs that cannot fit the inputs they
feed, limits that are not positive, schemas that do not compile. Warnings, which are
sound and probably not meant, go to standard error. Several files are also checked
together: that each child is there, that none runs itself through others, and that
each is started with what its schema wants.

JSON: a list of {"workflow", "version", "digest", "steps", "children", "warnings"}.

Exit code 0 says that an engine would run it; 1 that it would not.`,
		Example: "  deltactl workflow check examples/workflow/refund.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			var all []*workflow.Definition
			var faults []error
			for _, path := range args {
				d, err := workflowfile.Load(path)
				all, faults = append(all, d), append(faults, err)
			}
			if err := errors.Join(faults...); err != nil {
				return err
			}
			if len(all) > 1 {
				if err := workflow.Family(all...); err != nil {
					return err
				}
			}
			return printWorkflows(c, all, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// checkedWorkflow is the report of check.
type checkedWorkflow struct {
	Workflow string   `json:"workflow"`
	Version  string   `json:"version"`
	Digest   string   `json:"digest"`
	Steps    int      `json:"steps"`
	Children []string `json:"children"`
	Warnings []string `json:"warnings"`
}

func printWorkflows(c *cobra.Command, all []*workflow.Definition, asJSON bool) error {
	var out []checkedWorkflow
	for _, d := range all {
		r := checkedWorkflow{d.Name(), d.Version(), d.Digest(), 0, nonNil(d.Children()), nonNil(d.Warnings())}
		for _, p := range d.Spec().Phases {
			r.Steps += len(p.Steps)
		}
		out = append(out, r)
	}
	if asJSON {
		return printJSON(c.OutOrStdout(), out)
	}
	t := table.New(c.OutOrStdout(), "workflow", "version", "digest", "steps", "children", "warnings")
	for _, r := range out {
		for _, w := range r.Warnings {
			fmt.Fprintf(c.ErrOrStderr(), "warning: workflow %q: %s\n", r.Workflow, w)
		}
		t.Row(r.Workflow, r.Version, r.Digest[:12], r.Steps, len(r.Children), len(r.Warnings))
	}
	return t.Flush()
}

func newWorkflowShow() *cobra.Command {
	var svg, normal bool
	c := &cobra.Command{
		Use: "show FILE", Short: "Draw a workflow", Args: cobra.ExactArgs(1),
		Long: `Show draws the graph of a workflow: its phases one below the other, and in each the
steps below what they need. Edges that are not taken on success say so.`,
		Example: "  deltactl workflow show examples/workflow/refund.yaml\n  deltactl workflow show --svg refund.yaml > refund.svg",
		RunE: func(c *cobra.Command, args []string) error {
			d, err := workflowfile.Load(args[0])
			if err != nil {
				return err
			}
			out := []byte(workflowfile.Text(d))
			switch {
			case svg:
				out = workflowfile.SVG(d)
			case normal:
				if out, err = workflowfile.Format(d); err != nil {
					return err
				}
			}
			_, err = c.OutOrStdout().Write(out)
			return err
		},
	}
	c.Flags().BoolVar(&svg, "svg", false, "draw a picture instead of characters")
	c.Flags().BoolVar(&normal, "yaml", false, "print it as YAML in its usual form")
	c.MarkFlagsMutuallyExclusive("svg", "yaml")
	return c
}

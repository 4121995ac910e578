package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/internal/table"
	"github.com/seed-ab2cfece/delta-agents/workflow"
	"github.com/seed-ab2cfece/delta-agents/workflowfile"
)

const workflowHelp = `Workflow lists instances of workflows in a store, answers what they ask, and resumes,
amends, pauses and cancels them; check and show also read files, which are YAML and
need no store. Run starts one: for the workers on the store that have its actions, or,
where these are tools of an MCP server, here. See doc/workflows.md.`

func newWorkflow() *cobra.Command {
	c := &cobra.Command{
		Use: "workflow", Short: "List, answer, resume and cancel workflows; check and draw files of them", Long: workflowHelp, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newWorkflowList(), newWorkflowShow(), newWorkflowSignal(), newWorkflowAmend(), newWorkflowResume(), newWorkflowPause(), newWorkflowMigrate(),
		newWorkflowCancel(), newWorkflowWait(), newWorkflowCheck(), newWorkflowRun())
	return c
}

func newWorkflowCheck() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "check FILE...", Short: "Check workflows", Args: cobra.MinimumNArgs(1),
		Long: `Check names the faults of a workflow with their lines: cycles, unknown steps, steps that
never run, inputs to which nothing is mapped, outputs that cannot fit the inputs they
feed, limits that are not positive, schemas that do not compile. It names all of them at
once, apart from what only follows from others. Warnings, which are sound and probably
not meant, go to standard error. Several files are also checked together: that each
child is there, that none runs itself through others, and that each is started with what
its schema wants; a fault between two files names both.

JSON: a list of {"workflow", "version", "digest", "steps", "children", "warnings"}.

Exit code 0 says that an engine would run it; 1 that it would not.`,
		Example: "  deltactl workflow check examples/workflow/refund.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			all, err := workflowfile.LoadAll(args...)
			if err != nil {
				return err
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
	var f storeFlags
	var svg, normal, graph bool
	c := &cobra.Command{
		Use: "show INSTANCE|FILE", Short: "Show an instance, or draw a file", Args: cobra.ExactArgs(1),
		Long: `Show says of an instance how far each step has come, which instances are nested in it
now, what waits for whom, with the id of the approval or of the call of unknown outcome,
and what exactly is asked: the question, what it is about, and the schema of the answer.
With --graph or --svg it draws the instance on the graph of its workflow instead: which
steps are done, run, wait for what, failed, are skipped or still to come.

Of a file it draws the graph: its phases one below the other, and in each the steps
below what they need. Edges that are not taken on success say so. It needs no store.

JSON of an instance: what list prints of it, and {"nested": [{"step", "instance",
"workflow", "status"}], "progress": [{"step", "stage",
"iterations", "attempts", "cost", "failure"}], "questions": [{"step", "prompt",
"description", "who", "critique", "input", "schema"}], "not_undone", "spent"}; of a
file: the workflow as JSON.` + storeHelp,
		Example: "  deltactl workflow show desk~t1\n  deltactl workflow show --graph desk~t1\n  deltactl workflow show examples/workflow/refund.yaml\n  deltactl workflow show --svg refund.yaml > refund.svg",
		RunE: func(c *cobra.Command, args []string) error {
			if !isInstance(args[0]) {
				return drawWorkflow(c, args[0], svg, normal, f.json)
			}
			if normal {
				return usageError{errors.New("--yaml goes with a file")}
			}
			return onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
				if svg || graph {
					return d.draw(c, args[0], svg)
				}
				return printInstance(c, d, &f, args[0])
			})(c, args)
		},
	}
	f.add(c)
	c.Flags().BoolVar(&svg, "svg", false, "draw a picture of the graph instead of characters")
	c.Flags().BoolVar(&graph, "graph", false, "draw an instance on the graph of its workflow")
	c.Flags().BoolVar(&normal, "yaml", false, "print a file as YAML in its usual form")
	c.MarkFlagsMutuallyExclusive("svg", "graph", "yaml", "json")
	return c
}

// draw draws an instance on the graph of its workflow.
func (d *desk) draw(c *cobra.Command, id string, svg bool) error {
	run, _, err := d.instance(c.Context(), id)
	if err != nil {
		return err
	}
	s, err := run.State(c.Context())
	if err != nil {
		return err
	}
	def, err := run.Definition(c.Context())
	if err != nil {
		return fmt.Errorf("%w; an instance that has not begun is drawn from its file", err)
	}
	out := []byte(workflowfile.TextOf(def, &s))
	if svg {
		out = workflowfile.SVGOf(def, &s)
	}
	_, err = c.OutOrStdout().Write(out)
	return err
}

func drawWorkflow(c *cobra.Command, path string, svg, normal, asJSON bool) error {
	d, err := workflowfile.Load(path)
	if err != nil {
		return err
	}
	out := []byte(workflowfile.Text(d))
	switch {
	case asJSON:
		return printJSON(c.OutOrStdout(), d.Spec())
	case svg:
		out = workflowfile.SVG(d)
	case normal:
		if out, err = workflowfile.Format(d); err != nil {
			return err
		}
	}
	_, err = c.OutOrStdout().Write(out)
	return err
}

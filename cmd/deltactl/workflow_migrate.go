package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/workflow"
	"github.com/seed-ab2cfece/delta-agents/workflowfile"
)

func newWorkflowMigrate() *cobra.Command {
	var f storeFlags
	var to, reason string
	c := &cobra.Command{
		Use: "migrate INSTANCE", Short: "Have an instance go on by another version of its workflow", Args: cobra.ExactArgs(1),
		Long: `Migrate has an instance go on by another version of its workflow: one of a file, or a version
that ran before, by its name. What has begun must be the same in both; else the step
that is not is named, exit code 4, and nothing changes. What the instance began with must
pass the other version's input schema, and a live worker must hold that version. Whoever
has the instance in hand takes it up anew; calls under way end as they would. Nested
instances are migrated by themselves. Migrated to what it runs by, nothing happens.`,
		Example: "  deltactl workflow migrate desk~t1 --to refund.yaml --reason 'refunds are signed now'\n  deltactl workflow migrate desk~t1 --to 3 --reason 'version 2 is retired'",
		PreRunE: func(*cobra.Command, []string) error {
			if to == "" {
				return usageError{errors.New("--to is missing: say the file or the version")}
			}
			return nil
		},
	}
	c.Flags().StringVar(&to, "to", "", "file of the other version, or its name")
	reasonFlag(c, &reason)
	return wordOn(c, &f, "migrated", func(ctx context.Context, d *desk, run *delta.Instance, by delta.Identity, _ []string) error {
		def, err := d.other(ctx, run, to)
		if err != nil {
			return unheldHere(err)
		}
		err = unheldHere(run.Migrate(ctx, by, def, reason))
		if errors.Is(err, workflow.ErrIncompatible) {
			err = coded{exitRefused, err}
		}
		return err
	})
}

// other is the definition that an instance is migrated to.
func (d *desk) other(ctx context.Context, run *delta.Instance, to string) (*workflow.Definition, error) {
	if _, err := os.Stat(to); err == nil || strings.ContainsAny(to, `/\`) || strings.HasSuffix(to, ".yaml") || strings.HasSuffix(to, ".yml") {
		return workflowfile.Load(to)
	}
	agent, _, _ := strings.Cut(run.ID(), "~")
	name, _ := run.Workflow()
	return d.engine.DefinitionAt(ctx, agent, name, to)
}

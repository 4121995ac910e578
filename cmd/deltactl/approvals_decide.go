package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/delta"
)

// decide is a verb on one request.
type decide = func(*delta.Engine, context.Context, string, delta.Identity, string) error

func newDecision(verb, short, done string, decide decide) *cobra.Command {
	var f storeFlags
	var reason string
	c := &cobra.Command{
		Use: verb + " APPROVAL", Short: short, Args: cobra.ExactArgs(1),
		Long:    short + "." + deedsHelp + storeHelp,
		Example: "  deltactl approvals " + verb + " --reason 'the customer called' desk~t1~01JA",
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			did := newDeeds(c, &f)
			return errors.Join(d.decide(c.Context(), args[0], reason, done, decide, did), did.end())
		}),
	}
	reasonFlag(c, &reason)
	f.add(c)
	return c
}

// decide looks at a request, and decides it as me.
func (d *desk) decide(ctx context.Context, id, reason, done string, decide decide, did *deeds) error {
	if _, err := d.request(ctx, id); err != nil {
		return err
	}
	me, err := d.me(ctx)
	if err != nil {
		return err
	}
	if err := decide(d.engine, ctx, id, me, reason); err != nil {
		return err
	}
	did.add(deed{Did: done, What: id, By: me.String()})
	return nil
}

const approveHelp = `Approve consents to exactly the call that is shown, once, until it expires. Several are
consented to at a time where one look judges them: calls of the same action that are the
same in every field but those that --differ names, for one tenant, raised by the same
rule or none, the dearest first. All are checked before any is consented to, and each
is then approved for itself.`

func newApprove() *cobra.Command {
	var f storeFlags
	var reason string
	var differ []string
	c := &cobra.Command{
		Use: "approve APPROVAL...", Short: "Consent to exactly the call that is shown, once, until it expires", Args: cobra.MinimumNArgs(1),
		Long: approveHelp + deedsHelp + storeHelp,
		Example: "  deltactl approvals approve --reason 'the customer called' desk~t1~01JA\n" +
			"  deltactl approvals approve --differ orderId --reason 'all of last night' desk~t1~01JA desk~t1~01JB",
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			did := newDeeds(c, &f)
			if len(args) == 1 {
				return errors.Join(d.decide(c.Context(), args[0], reason, "approved", (*delta.Engine).Approve, did), did.end())
			}
			return errors.Join(d.approveAll(c.Context(), args, differ, reason, did), did.end())
		}),
	}
	c.Flags().StringSliceVar(&differ, "differ", nil, "fields in which several calls may differ, as dotted paths")
	reasonFlag(c, &reason)
	f.add(c)
	return c
}

func (d *desk) approveAll(ctx context.Context, ids, differ []string, reason string, did *deeds) error {
	for _, id := range ids {
		if _, err := d.request(ctx, id); err != nil {
			return err
		}
	}
	me, err := d.me(ctx)
	if err != nil {
		return err
	}
	all, err := d.engine.ApproveBatch(ctx, ids, me, differ, reason)
	if err != nil {
		return err
	}
	var faults []error
	for _, x := range all {
		if x.Err != nil {
			faults = append(faults, x.Err)
			continue
		}
		did.add(deed{Did: "approved", What: x.ID, By: me.String()})
	}
	return errors.Join(faults...)
}

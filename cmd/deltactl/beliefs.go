package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
)

const beliefsHelp = `Reset forgets what was learned of one action of an agent, which is then as risky as it was
declared, or, with --trust, the trust that the agent earned. What happened before does
not count any more, in any task; the record of it stays. It is for operators alone.

It reckons by the estimator that the agent's ledger records (agent_configured).`

func newBeliefs() *cobra.Command {
	c := &cobra.Command{
		Use: "beliefs", Short: "Correct what was learned of an agent", Args: cobra.NoArgs,
		Long: "Beliefs corrects what was learned of agents; deltactl risk and trust print it." + operatorsHelp + storeHelp,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBeliefsReset())
	return c
}

func newBeliefsReset() *cobra.Command {
	var f storeFlags
	var reason, name string
	var trust bool
	c := &cobra.Command{
		Use: "reset AGENT", Short: "Forget what was learned of an action, or the agent's trust", Args: cobra.ExactArgs(1),
		Long:    beliefsHelp + operatorsHelp + deedsHelp + storeHelp,
		Example: "  deltactl beliefs reset --action refund --reason 'the bank was down all day' desk",
		PreRunE: func(*cobra.Command, []string) error {
			if trust == (name != "") {
				return usageError{errors.New("say what: --action ACTION or --trust")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.estimatorOf(c.Context(), args[0]); err != nil {
				return err
			}
			return onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
				return d.resetBelief(c, &f, args[0], name, reason)
			})(c, args)
		},
	}
	c.Flags().StringVar(&name, "action", "", "the action")
	c.Flags().BoolVar(&trust, "trust", false, "the trust that the agent earned")
	reasonFlag(c, &reason)
	f.add(c)
	return c
}

// estimatorOf has the commands on the store reckon as those do who work for an agent.
func (f *storeFlags) estimatorOf(ctx context.Context, agent string) error {
	s, err := f.openStore(ctx)
	if err != nil {
		return err
	}
	snap, err := s.Load(ctx, agent, "", nil)
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	c, err := engine.ReadConfiguration(snap)
	if err == nil && c.Risk != nil {
		f.risk = *c.Risk
	}
	return err
}

func (d *desk) resetBelief(c *cobra.Command, f *storeFlags, agent, name, reason string) error {
	if err := d.know(c.Context(), agent); err != nil {
		return err
	}
	if name != "" {
		if err := d.hasActions(c.Context(), agent, []string{name}); err != nil {
			return err
		}
	}
	me, err := d.me(c.Context())
	if err != nil {
		return err
	}
	if err := d.engine.ResetBelief(c.Context(), agent, name, me, reason); err != nil {
		return err
	}
	did := newDeeds(c, f)
	what := agent + " " + name
	if name == "" {
		what = agent + " trust"
	}
	did.add(deed{Did: "reset", What: what, By: me.String()})
	return did.end()
}
